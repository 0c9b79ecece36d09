"""Several audits in one file: what they share, what is their own, and what is there already."""

import pytest

from dprime.audit import AuditConfig, audits_in, begin, play_batch
from dprime.audit.words import seed_in
from dprime.runs.run import Run
from told import refuses

COMMON = {"max_records": 8, "trials": 6, "training": {"steps": 2, "clip_norm": 2.0}}


def configs(**own):
    values = {**COMMON, "seed": 1, "claim": {"epsilon": 4.0}}
    return {name: AuditConfig.from_words({**values, **each}) for name, each in own.items()}


def test_what_is_common_and_what_is_not():
    audits = [{"name": "a", "training": {"steps": 3}}, {"name": "b", "seed": 2}]
    found = audits_in({**COMMON, "audits": audits})
    assert found["a"] == {**COMMON, "training": {"steps": 3, "clip_norm": 2.0}}
    assert found["b"] == {**COMMON, "seed": 2}
    assert COMMON["training"] == {"steps": 2, "clip_norm": 2.0}
    no_table = audits_in({"training": 3, "audits": audits})
    assert no_table["a"]["training"] == 3  # for the configuration to refuse


A = {"name": "a"}
test_lists_that_are_none = refuses(
    {
        "audits be a list of tables": lambda: audits_in({"audits": A}),
        "audits be a list of": lambda: audits_in({"audits": [3]}),
        "audits be a list": lambda: audits_in({"audits": []}),
        "name be letters, digits, spaces": lambda: audits_in({"audits": [{}]}),
        "name be letters, digits": lambda: audits_in({"audits": [{"name": "../a"}]}),
        "name be of one of [[audits]] only": lambda: audits_in({"audits": [A, A]}),
    }
)


def test_each_is_the_audit_that_it_would_be_alone_and_what_is_there_is_gone_on_with(tmp_path):
    several = configs(one={"adversary": "di"}, other={"adversary": "gradient"})
    folder = tmp_path / "new" / "folder"
    played = play_batch(several, folder)
    first = next(played).record.to_dict()
    played.close()
    assert not (folder / "other.run").exists()
    for each in play_batch(several, folder):
        alone = begin(several[each.name], tmp_path / f"{each.name}.run")
        assert each.path == folder / f"{each.name}.run"
        assert each.record.to_dict() == alone.to_dict()
        assert each.seconds > 0
    assert next(play_batch(several, folder)).record.to_dict() == first
    with Run.open(folder / "one.run") as run:
        assert sum(worker.blocks for worker in run.workers().values()) == len(run.done())


def test_a_seed_that_was_drawn_is_no_other_setting(tmp_path):
    values = {**COMMON, "claim": {"epsilon": 4.0}}
    assert seed_in(tmp_path / "a.run") == {}
    (first,) = play_batch({"a": AuditConfig.from_words(values)}, tmp_path)
    kept = {**seed_in(tmp_path / "a.run"), **values}
    (again,) = play_batch({"a": AuditConfig.from_words(kept)}, tmp_path)
    assert again.record.to_dict() == first.record.to_dict()
    with pytest.raises(ValueError, match=r"a\.run must be of .*trials 7\), but it is of trials 6"):
        list(play_batch({"a": AuditConfig.from_words({**kept, "trials": 7})}, tmp_path))


def test_what_is_wrong_with_one_is_said_before_the_first(tmp_path):
    several = configs(a={}, b={"options": {"copies": 0}})
    with pytest.raises(ValueError, match="copies must be at least 1"):
        list(play_batch(several, tmp_path / "none"))
    assert not (tmp_path / "none").exists()
