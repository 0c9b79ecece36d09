"""A Ray cluster on this machine, started once for the tests that want it."""

import os
import sys

import pytest


@pytest.fixture(scope="session")
def local_ray():
    ray = pytest.importorskip("ray")
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
        logging_level="ERROR", configure_logging=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
    )  # fmt: skip
    yield ray
    ray.shutdown()


@pytest.fixture
def cluster(request):
    """Makes the backend; Ray itself is started when it is first wanted."""

    def made(**options):
        from dprime.audit.backends import Ray

        request.getfixturevalue("local_ray")
        return Ray(**options)

    return made
