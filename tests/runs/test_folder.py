"""The runs of a folder, in one line each."""

from blocks import CONFIG, refused, scores
from dprime.runs.folder import list_runs
from dprime.runs.run import Run


def test_runs_of_a_folder(tmp_path):
    def made(name, kind, config, blocks, done=0, failed=()):
        with Run.create(tmp_path / name, kind, config, blocks=blocks) as run:
            for block in range(done):
                run.finish(block, scores(block), seconds=1.0)
            for block in failed:
                run.fail(block, "ValueError: no")
            return run.changed()

    changed = made("c.run", "audit", CONFIG, 2, done=2)
    made("b.run", "inference", {"data": "adult"}, 3, done=1, failed=[1])
    made("d.run", "audit", {}, 1, failed=[0])
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "cut.run").write_bytes((tmp_path / "c.run").read_bytes()[:9000])
    (tmp_path / "folder").mkdir()
    (tmp_path / "runs").mkdir()
    made("runs/c.run", "audit", CONFIG, 1)
    found, others = list_runs(tmp_path)
    assert [(r.name, r.kind, r.adversary, r.data, r.done, r.blocks, r.state) for r in found] == [
        ("b.run", "inference", "membership inference", "adult", 1, 3, "incomplete"),
        ("c.run", "audit", "gradient", "digits", 2, 2, "complete"),
        ("d.run", "audit", "", "", 0, 1, "failed"),
        ("runs/c.run", "audit", "gradient", "digits", 0, 1, "incomplete"),
    ]
    assert found[1].changed == changed
    assert list(others) == ["cut.run"]
    assert "damaged" in others["cut.run"]
    with refused("a folder, but it is"):
        list_runs(tmp_path / "notes.txt")
