"""How a run is repeated."""

import json
import shutil
import tomllib
from unittest.mock import patch

import pytest

from audited import NAMED, folder, run
from dprime import cli
from dprime.audit import AuditConfig, begin, record_of
from dprime.runs.run import Run
from dprime.show import card, repeat, report_html


@pytest.mark.parametrize("name", NAMED)
def test_the_settings_are_read_again(name):
    facts = record_of(run(name))
    values = tomllib.loads(repeat.settings_text(facts))
    assert "seed" not in values
    with Run.open(run(name)) as store:
        assert AuditConfig.from_words({**values, "seed": store.seed}) == AuditConfig.of(store)


@pytest.mark.slow
def test_the_commands_give_the_same_numbers(tmp_path, monkeypatch, capsys):
    facts = record_of(run("replace"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / repeat.FILE).write_text(repeat.settings_text(facts), encoding="utf-8")
    shutil.copy(run("replace"), tmp_path)
    command = repeat.commands(facts)[0]
    monkeypatch.setattr("sys.argv", command.split())
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    assert capsys.readouterr().err == (
        "The accountant certifies ε = 2.605 at δ = 1e-06 for this training; the claim is ε = 3.\n"
        "Starting malicious-dataset on digits …\n"
    )
    again = record_of(tmp_path / "again.run")
    assert again.metrics == facts.metrics
    assert again.deciding == facts.deciding


@pytest.mark.slow
def test_a_place_on_somebodys_machine_is_not_told(tmp_path):
    place = str(tmp_path / "a secret folder")
    settings = AuditConfig.from_words(
        {"max_records": 6, "trials": 4, "seed": 1, "claim": {"epsilon": 4.0},
         "training": {"steps": 2},
         "data_dir": place}
    )  # fmt: skip
    begin(settings, tmp_path / "a.run", progress=False)
    facts = record_of(tmp_path / "a.run")
    assert repeat.commands(facts)[0] == (
        "dprime audit audit.toml --data-dir FOLDER --seed-from a.run --run again.run"
    )
    with patch("dprime.show.report.inline_svg", lambda chart: "<svg></svg>"):
        page = report_html(facts)
    for text in (json.dumps(card(facts)), page):
        assert "a secret folder" not in text
        assert str(folder()) not in text


def test_texts_and_lists_in_toml():
    values = {
        "name": 'a "quoted" \\ μ', "sizes": [1, 2], "on": True, "small": 1e-300,
        "seed": 2**256 - 1, "nothing": None, "empty": {}, "inner": {"x": 0.1, "none": None},
    }  # fmt: skip
    read = tomllib.loads(repeat.as_toml(values))
    expected = {k: v for k, v in values.items() if k not in ("nothing", "empty")}
    assert read == {**expected, "inner": {"x": 0.1}}


def test_a_seed_gives_all_only_if_the_training_function_uses_it():
    own, engine, python = (record_of(run(name)) for name in ("own", "stands", "python"))
    assert "of the run, if the training function draws its own" in " ".join(repeat.how(own))
    assert "of the run. With the versions" in " ".join(repeat.how(engine))
    assert "begun in Python" in repeat.how(python)[0]
    assert repeat.commands(python) == []
    assert json.loads(repeat.settings_text(python)) == python.public_settings
