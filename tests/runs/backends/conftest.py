"""A Ray cluster on this machine, started once for the tests that want it."""

import os
import sys

import pytest

from dprime.runs.backends import Local, Processes, Ray


@pytest.fixture(scope="session")
def local_ray():
    ray = pytest.importorskip("ray")
    ray.init(  # the GPU is there by name only: it can be lent, not used
        address="local",
        num_cpus=2,
        num_gpus=1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        configure_logging=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
    )
    yield ray
    ray.shutdown()


@pytest.fixture
def backend(request):
    """By name; time limits where one can be kept. Ray is started when it is first wanted."""

    def made(name, **options):
        if name == "ray":
            request.getfixturevalue("local_ray")
            return Ray(**options)
        return Local() if name == "local" else Processes(2, **options)

    return made
