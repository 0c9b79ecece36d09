"""The monitor in the real TensorBoard, MLflow and Weights & Biases, where they are installed."""

import json
import math
import struct
import time
from pathlib import Path

import numpy as np
import pytest

from dprime import InputError
from dprime.metrics import Reading
from dprime.monitor import to_mlflow, to_tensorboard, to_wandb
from dprime.monitor.trackers import single_precision
from watching import watch

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")

BLOCK, HEADER = 32_768, 7
"""Of the file of an offline run: records are cut into the pieces that fit into blocks."""


@pytest.fixture
def tracked(private):
    """Two epochs and a half with a tracker: what it should have, as [(step, numbers)]."""

    def train(tracker, noise=1.0):
        seen, made = [], private(noise=noise)

        def note(monitor):
            seen.append((monitor.ledger.steps, monitor.numbers()))

        with watch(made, trackers=[note, tracker], metric="tpr") as monitor:
            made.train(2)
            for number, batch in enumerate(made.loader):
                if number == 3:
                    break
                made.step(*batch)
        monitor.detach()
        return monitor, seen

    return train


def test_it_is_called_at_each_epoch_and_at_the_end(tracked, private):
    called = []
    monitor, seen = tracked(called.append)
    assert called == [monitor] * 3
    assert [step for step, _ in seen] == [6, 12, 15]
    names = ["privacy_tpr", "privacy_epsilon", "privacy_warnings"]
    assert [[*numbers] for _, numbers in seen] == [names] * 3
    for (step, numbers), at in zip(seen, monitor.history(), strict=False):
        assert (step, single_precision(at)) == (at.step, numbers["privacy_tpr"])
    resumed = watch(private(), trackers=[called.append], metric="tpr")
    resumed.load_state_dict(monitor.state_dict())
    resumed.detach()
    assert len(called) == 3


def test_a_tracker_is_a_function(private):
    with pytest.raises(InputError) as refused:
        watch(private(), trackers=["mlflow"])
    assert (refused.value.parameter, refused.value.value) == ("trackers", ["mlflow"])


@pytest.mark.parametrize("name", ["epsilon", "bayes_security"])
def test_a_number_is_rounded_to_the_safe_side(name):
    reading = Reading(name)
    for value in (0.1, 1 / 3, 0.1 + 1e-12, 0.5):
        answer = reading.valued(value)
        kept = single_precision(answer)
        assert kept == float(np.float32(kept))
        assert (kept >= value) if name == "epsilon" else (kept <= value)
        assert abs(kept - value) <= 2**-24
    assert single_precision(Reading("epsilon").valued(math.inf)) == math.inf


@pytest.mark.parametrize(
    "noise", [1.0, pytest.param(0.0, marks=pytest.mark.filterwarnings("ignore"))]
)
def test_tensorboard(tracked, tmp_path, noise):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        monitor, seen = tracked(to_tensorboard(writer), noise)
    events = EventAccumulator(str(tmp_path)).Reload()
    for name in monitor.numbers():
        read = [(each.step, each.value) for each in events.Scalars(name)]
        assert read == [(step, numbers[name]) for step, numbers in seen]
    (text,) = events.Tensors("privacy_report/text_summary")[-1].tensor_proto.string_val
    assert text.decode() == f"```\n{monitor}\n```"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", [1.0, 0.0])
def test_mlflow(tracked, tmp_path, noise):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.create_experiment("dprime", artifact_location=(tmp_path / "files").as_uri())
    mlflow.set_experiment("dprime")
    with mlflow.start_run() as run:
        monitor, seen = tracked(to_mlflow(), noise)
    client, number = mlflow.MlflowClient(), run.info.run_id
    for name in monitor.numbers():
        read = [(each.step, each.value) for each in client.get_metric_history(number, name)]
        # its databases have no infinity, but the largest number
        assert read == [(step, min(numbers[name], np.finfo(float).max)) for step, numbers in seen]
    assert (tmp_path / "files" / number / "artifacts/privacy_report.txt").read_text() == str(
        monitor
    )


def records(path):
    """What is in the file of an offline run."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, whole = Path(path).read_bytes(), HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
        _, length, kind = struct.unpack("<IHB", data[at : at + HEADER])
        if at + HEADER + length > len(data):  # not all of it is written yet
            return
        whole += data[at + HEADER : at + HEADER + length]
        at += HEADER + length
        if kind in (1, 4):  # all of a record, or its last piece
            yield Record.FromString(whole)
            whole = b""


def written(path, seconds=20.0):
    """The same, once the process that writes the file has ended the run."""
    end = time.monotonic() + seconds
    while not (kept := [*records(path)]) or not kept[-1].HasField("exit"):
        assert time.monotonic() < end, "the run has not ended"
        time.sleep(0.05)
    return kept


def values(items):
    return {each.key or ".".join(each.nested_key): json.loads(each.value_json) for each in items}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", [1.0, 0.0])
def test_wandb(tracked, tmp_path, monkeypatch, noise):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    track = to_wandb()
    with pytest.raises(wandb.Error, match=r"must call wandb\.init"):
        tracked(track, noise)
    with wandb.init(mode="offline", dir=tmp_path, project="dprime") as run:
        for _ in range(20):  # its own steps are ahead of the training's
            run.log({"loss": 1.0})
        monitor, seen = tracked(track, noise)
    kept = written(run.settings.sync_file)
    logged = [values(each.history.item) for each in kept if each.HasField("history")]
    logged = [each for each in logged if "privacy_step" in each]
    assert [
        (each["privacy_step"], {n: each[n] for n in monitor.numbers()}) for each in logged
    ] == seen
    axes = {(each.metric.glob_name, each.metric.step_metric) for each in kept}
    assert ("privacy_*", "privacy_step") in axes
    summary = {n: each for one in kept for n, each in values(one.summary.update).items()}
    assert summary["privacy_report"] == str(monitor)
