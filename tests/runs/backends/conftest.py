"""One Ray cluster on this machine, started when the first test wants it."""

import os
import sys

import pytest

from dprime.runs.backends import Local, Processes, Ray


@pytest.fixture(scope="session")
def cluster():
    """The head, to which this process is connected; its GPU can be lent, not used.

    A node that was killed is found out after five checks of its health. Until then it is sent work,
    which is lost: usual checks, 3 s apart, would leave 15 s for that.
    """
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    often = {"_system_config": {"health_check_period_ms": 500}}
    head = {"num_cpus": 2, "num_gpus": 1, "include_dashboard": False, **often}
    made = Cluster(initialize_head=True, connect=False, head_node_args=head)
    ray.init(
        address=made.address,
        log_to_driver=False,
        logging_level="ERROR",
        configure_logging=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
    )
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def node(cluster):
    """A second node, which the cluster knows to be gone before the next test."""
    added = cluster.add_node(num_cpus=1)
    yield added
    if added in cluster.worker_nodes:
        cluster.remove_node(added)
    cluster.wait_for_nodes()


@pytest.fixture
def backend(request):
    """By name; time limits where one can be kept."""

    def made(name, **options):
        if name == "ray":
            request.getfixturevalue("cluster")
            return Ray(**options)
        return Local() if name == "local" else Processes(2, **options)

    return made
