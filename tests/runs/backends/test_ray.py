"""A Ray cluster on this machine: nodes leave, drivers are killed, versions differ."""

import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dprime
from dprime.audit import AuditConfig, begin
from dprime.runs.backends import backend_named
from dprime.runs.backends import ray as cluster
from dprime.runs.backends.base import End
from dprime.runs.run import Run
from dprime.runs.runner import execute
from works import Slow, Somewhere, on_gpu

pytest.importorskip("ray")
pytestmark = pytest.mark.ray

TESTS = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(dprime.__file__).parents[1])])

DRIVER = """
import sys
from pathlib import Path
from dprime.runs.backends import Ray
from dprime.runs.runner import execute
from dprime.runs.run import Run
from works import Slow

path, folder, address = [*sys.argv[1:], None][:3]
with Run.open(path) as store:
    told = lambda block, state: print(state.done, flush=True)
    execute(store, Slow(Path(folder)), backend=Ray(address), on_block=told)
"""


@pytest.fixture
def run(tmp_path):
    """A run of twelve blocks, and the work that marks its tries."""
    (tmp_path / "tries").mkdir()
    Run.create(tmp_path / "a.run", "audit", {"seed": 7}, blocks=12).close()
    return tmp_path / "a.run", Slow(tmp_path / "tries")


def driver(path, work, address, script=DRIVER):
    """Another process that plays the run."""
    found = os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path), str(work.folder), *filter(None, [address])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": found},
    )


def played(process, blocks):
    """Wait until this number of blocks is done; Ray may print lines of its own between."""
    for line in process.stdout:
        if line.strip().isdigit() and int(line) >= blocks:
            return


def is_whole(path, work):
    """Every block is done, and none was played again after it was."""
    with Run.open(path) as store:
        assert store.state().complete
        assert store.state().total_trials == 120
        lost = [event.block for event in store.events()]
        assert all(work.tries(block) <= 1 + lost.count(block) + 1 for block in range(12))
        return store.events()


@pytest.mark.slow
def test_a_node_that_leaves(cluster, node, run):
    path, work = run
    process = driver(path, work, cluster.address)
    played(process, 3)
    cluster.remove_node(node, allow_graceful=False)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert {event.outcome for event in is_whole(path, work)} <= {End.LOST.value}


@pytest.mark.slow
def test_a_driver_that_is_killed_and_resumed(cluster, run):
    path, work = run
    process = driver(path, work, cluster.address)
    played(process, 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with Run.open(path) as store:
        done = store.state().done
        assert 3 <= done < 12
        kept = store.done()
        before = {block: work.tries(block) for block in kept}
    again = driver(path, work, cluster.address)
    again.communicate(timeout=120)
    assert again.returncode == 0
    assert is_whole(path, work) == []
    assert {block: work.tries(block) for block in kept} == before  # none of them again


REACHED = """
import json, os, subprocess, sys
import psutil, ray
from dprime.runs.backends import Ray
from dprime.runs.backends.base import Task
from collections import deque
from works import scores

outcomes = Ray().outcomes(scores, deque([Task(0)]))
assert next(outcomes).end.value == "done"
mine = psutil.Process()
places = {each.laddr.ip for process in [mine, *mine.children(recursive=True)]
          for each in process.net_connections() if each.status == "LISTEN"}
ask = (f"from ray._raylet import GcsClient; "
       f"GcsClient(address={ray.get_runtime_context().gcs_address!r}).internal_kv_keys(b'')")
codes = [subprocess.run([sys.executable, "-c", ask], env={**os.environ, **token},
                        stderr=subprocess.DEVNULL).returncode
         for token in ({}, {"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "0" * 64})]
outcomes.close()
print(json.dumps([sorted(places), codes, [name for name in os.environ if "RAY_AUTH" in name]]))
"""


@pytest.mark.slow
def test_a_cluster_of_our_own_is_ours_alone(run):
    """It listens on loopback addresses only, and whoever lacks the token is turned away."""
    said, wrong = driver(*run, "", REACHED).communicate(timeout=120)
    places, codes, left = json.loads(said.splitlines()[-1]) if said else pytest.fail(wrong)
    assert places
    assert all(ipaddress.ip_address(each.removeprefix("::ffff:")).is_loopback for each in places)
    assert codes == [0, 1, 1]
    assert left == []


@pytest.mark.slow
def test_a_cluster_that_dies_ends_in_a_sentence(run):
    path, work = run
    process = driver(path, work, None)
    played(process, 3)
    import psutil

    for each in psutil.Process(process.pid).children(recursive=True):
        if each.name() == "raylet":
            each.kill()
    _, said = process.communicate(timeout=240)
    assert process.returncode == 1
    assert "BlocksFailedError: Ray failed: " in said  # Ray may say more
    assert f"go on with dprime resume {path}; finished blocks are kept" in said
    with Run.open(path) as store:
        assert store.state().done >= 3
        assert store.events() == []


@pytest.mark.slow
def test_a_worker_of_another_version(cluster, tmp_path, run):
    other = tmp_path / "other" / "dprime"
    shutil.copytree(Path(dprime.__file__).parent, other, ignore=shutil.ignore_patterns("*.pyc"))
    text = (other / "__init__.py").read_text()
    (other / "__init__.py").write_text(text.replace(f'"{dprime.__version__}"', '"0.0.1"'))
    path, work = run
    script = (
        "import ray, sys\n"
        f"env = {{'PYTHONPATH': {str(other.parent) + os.pathsep + TESTS!r}}}\n"
        "ray.init(address=sys.argv[3], log_to_driver=False, logging_level='ERROR',\n"
        "         runtime_env={'env_vars': env})\n"
    ) + DRIVER
    _, said = driver(path, work, cluster.address, script).communicate()
    assert f"different versions of dprime, 0.0.1 and {dprime.__version__}" in said
    with Run.open(path) as store:
        assert store.state().pending == 12


@pytest.mark.slow
def test_blocks_go_to_the_devices_that_are_asked_for(tmp_path, cluster):
    for device, lent in (("cpu", {0.0}), ("cuda", {1.0}), ("auto", {1.0})):
        with Run.create(tmp_path / f"{device}.run", "audit", {"seed": 7}, blocks=4) as store:
            execute(store, on_gpu, backend=backend_named("ray", device=device))
            assert set(store.arrays()["scores"]) == lent
            if lent == {1.0}:  # one GPU: a process that keeps it for its next blocks
                assert len(store.workers()) < 4


def test_work_is_placed_where_its_worker_is(monkeypatch):
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (8 << 30, 80 << 30))
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)
    monkeypatch.setattr("ray.get", lambda sent: sent)
    assert cluster._placed(Somewhere(), on_gpu=True) == Somewhere("cuda", 4.0)
    placed = cluster._placed(Somewhere(), on_gpu=False)
    assert placed.device == "cpu"
    assert 0 < placed.memory < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


def test_where_nobody_is_no_file_is_left(tmp_path):
    claim = {"epsilon": 4.0}
    settings = AuditConfig.from_words(
        max_records=8, trials=4, seed=1, training={"steps": 1}, claim=claim
    )
    began = time.monotonic()
    with pytest.raises(ValueError, match="address must be that of a running Ray cluster"):
        begin(settings, tmp_path / "a.run", backend=backend_named("ray", address="127.0.0.1:1"))
    assert time.monotonic() - began < 30
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_another_cluster_than_the_one_that_is_connected(cluster):
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ValueError, match=r"running Ray cluster .*ray\.init twice"):
            backend_named("ray", address=address)


def test_without_ray(monkeypatch):
    monkeypatch.setattr("ray.__version__", "2.51.2")
    with pytest.raises(ValueError, match=r"Ray must be 2\.52 or newer, but it is 2\.51\.2: pip"):
        backend_named("ray")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"not installed: pip install 'dprime\[ray\]'"):
        backend_named("ray")


def test_a_release_that_listens_everywhere_is_refused(monkeypatch):
    monkeypatch.setattr(cluster, "_head", lambda: "192.0.2.1:6379")
    with pytest.raises(ValueError, match=r"Ray must listen on 127\.0\.0\.1 alone"):
        cluster._check_private()
