"""A Ray cluster on this machine, started once for the tests that want it."""

import os
import sys

import pytest

from dprime.runs.backends import Here, Processes


@pytest.fixture(scope="session")
def local_ray():
    ray = pytest.importorskip("ray")
    ray.init(  # the GPU is there by name only: it can be lent, not used
        address="local", num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False,
        logging_level="ERROR", configure_logging=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
    )  # fmt: skip
    yield ray
    ray.shutdown()


@pytest.fixture
def cluster(request):
    """Makes the backend; Ray itself is started when it is first wanted."""

    def made(**options):
        from dprime.runs.backends import Ray

        request.getfixturevalue("local_ray")
        return Ray(**options)

    return made


@pytest.fixture
def backend(cluster):
    """By name; time limits where one can be kept."""

    def made(name, **options):
        if name == "here":
            return Here()
        if name == "processes":
            return Processes(2, **options)
        return cluster(**options)

    return made
