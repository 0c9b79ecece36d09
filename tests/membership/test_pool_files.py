"""A training set drawn from a file: what is written, who can read it, what it tells."""

import stat

import numpy as np
import pytest

from dprime import DPSGD, InputError
from dprime.membership.pool import draw
from dprime.membership.pool_files import FORMAT, mechanism_of, sample
from dprime.membership.pool_forms import TextPool

COUNT = 50
HEADER = "id,age,pi"
ROWS = [f"{i},{20 + i / 2:g},{0.1 if i % 2 else 0.4}" for i in range(COUNT)]
TRAINING = DPSGD(noise_multiplier=1.0, sample_rate=0.2, steps=20)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.csv").write_text("\n".join([HEADER, *ROWS]) + "\n")
    return tmp_path


def seeded(path, seed):
    path.write_text(f"{seed:064x}\n")
    return path


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_holds_what_the_seed_draws_and_records_may_differ_in_probability(folder):
    seed_file = seeded(folder / "seed", 9)
    sample("pool.csv", "train.csv", sampling_probability=0.4, seed_file=seed_file)
    members = draw(COUNT, 0.4, seed=9).members
    kept = [row for row, member in zip(ROWS, members, strict=True) if member]
    assert (folder / "train.csv").read_text() == "\n".join([HEADER, *kept]) + "\n"
    facts = sample("pool.csv", "t.csv", probability_column="pi", members="m", seed_file=seed_file)
    chances = [0.1 if i % 2 else 0.4 for i in range(COUNT)]
    marks = np.loadtxt(folder / "m", dtype=int)
    assert marks.tolist() == draw(COUNT, chances, seed=9).members.astype(int).tolist()
    assert (facts.probability, facts.smallest_probability) == (0.4, 0.1)
    assert facts.expected_records == pytest.approx(12.5)
    assert facts.probability_column == "pi"
    assert "pi" in (folder / "t.csv").read_text().splitlines()[0]  # the form stays the same


@pytest.mark.parametrize("text", [None, "{", '{"probability": 0.2}', f'{{"format": "{FORMAT}"}}'])
def test_another_file_gives_no_mechanism(folder, text):
    if text is not None:
        (folder / "x.json").write_text(text)
    with pytest.raises(InputError):
        mechanism_of("x.json", TRAINING)


def test_secrets_are_for_their_owner_alone(folder):
    (folder / "train.csv").write_text("old")
    (folder / "train.csv").chmod(0o644)
    secret = {"members": "who", "seed_file": "seed"}
    sample("pool.csv", "train.csv", sampling_probability=0.3, force=True, **secret)
    assert [mode(folder / name) for name in ("train.csv", "who", "seed")] == [0o600] * 3
    assert mode(folder / "train.csv.pool.json") & 0o044 == mode(folder / "pool.csv") & 0o044
    assert (folder / "train.csv").read_text().startswith(HEADER)


def test_a_seed_is_written_once_and_read_again_and_without_a_file_none_is_kept(folder):
    for name in ("a.csv", "b.csv"):
        sample("pool.csv", name, sampling_probability=0.3, seed_file="seed")
    first, again = ((folder / f"{n}.csv").read_text() for n in "ab")
    assert first == again
    there = {path.name for path in folder.iterdir()}
    for name in ("c.csv", "d.csv"):
        sample("pool.csv", name, sampling_probability=0.3)
    assert len({first, *((folder / f"{n}.csv").read_text() for n in "cd")}) == 3
    new = {path.name for path in folder.iterdir()} - there
    assert new == {"c.csv", "c.csv.pool.json", "d.csv", "d.csv.pool.json"}


@pytest.mark.parametrize("text", ["", "123", "z" * 64, "-" + "1" * 63, "é" * 64])
def test_a_seed_that_is_none_is_not_shown(folder, text):
    (folder / "seed").write_text(text)
    with pytest.raises(InputError) as refused:
        sample("pool.csv", "train.csv", sampling_probability=0.3, seed_file="seed")
    assert refused.value.requirement == "be a file of 64 hexadecimal digits"
    assert not text or text not in str(refused.value)
    assert (folder / "seed").read_text() == text


@pytest.mark.parametrize("there", ["train.csv", "train.csv.pool.json", "who"])
def test_files_are_not_written_over(folder, there):
    (folder / there).write_text("precious")
    with pytest.raises(ValueError, match=f"a file that is not there yet, but it is '{there}'"):
        sample("pool.csv", "train.csv", sampling_probability=0.3, members="who")
    assert (folder / there).read_text() == "precious"
    assert {path.name for path in folder.iterdir()} == {"pool.csv", there}


NO_NUMBER = {"sampling_probability": None}
EITHER = "sampling_probability, probability_column"


@pytest.mark.parametrize(
    ("options", "parameter", "requirement"),
    [
        ({"out": "./sub/../pool.csv"}, "out", "another file than pool"),
        ({"members": "train.csv"}, "members", "another file than out"),
        ({"members": "train.csv.pool.json"}, "members", "another file than the public file"),
        ({"seed_file": "pool.csv"}, "seed_file", "another file than pool"),
        ({"members": "sub"}, "members", "a file that is not there yet"),
        ({"out": "train.tsv"}, "out", "a file that ends in .csv"),
        ({"out": "nowhere/train.csv"}, "out", "in a folder that is there"),
        ({"sampling_probability": 0.0}, "sampling_probability", "strictly between 0 and 1"),
        (NO_NUMBER | {"probability_column": "p"}, "probability_column", "(id, age, pi)"),
        (NO_NUMBER | {"probability_column": "age"}, "age in line 2", "strictly between"),
        ({"ignore": ["ID"]}, "ignore", "one of the pool's columns"),
        ({"ignore": ["id", "age", "pi"]}, "ignore", "some of the columns"),
        ({"batch_size": 16}, "batch_size", "at most the expected size of the draw, 15"),
        ({"probability_column": "pi"}, f"Exactly one of {EITHER}", "given"),
    ],
)  # fmt: skip
def test_bad_input_writes_nothing(folder, options, parameter, requirement):
    (folder / "sub").mkdir()
    given = {"out": "train.csv", "sampling_probability": 0.3, "force": True, **options}
    with pytest.raises(InputError) as refused:
        sample("pool.csv", **given)
    assert refused.value.parameter == parameter
    assert requirement in refused.value.requirement
    assert {path.name for path in folder.iterdir()} == {"pool.csv", "sub"}
    assert (folder / "pool.csv").read_text().startswith(HEADER)


def test_repetitions_are_refused_unless_told_apart(folder):
    lines = [HEADER, "1,30,0.5", "2,31,0.5", "3,30,0.2", "4,31,0.5"]
    (folder / "twins.csv").write_text("\n".join(lines) + "\n")
    sample("twins.csv", "a.csv", sampling_probability=0.3)
    with pytest.raises(InputError, match="1 repetition, first line 5 that is the same as line 3"):
        sample("twins.csv", "b.csv", sampling_probability=0.3, ignore=["id"])
    with pytest.raises(InputError, match=r"2 repetitions, first line 4 .* same as line 2"):
        sample("twins.csv", "b.csv", probability_column="pi", ignore=["id"])  # π tells nobody apart


def test_an_interruption_leaves_nothing_behind(folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TextPool, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sample("pool.csv", "train.csv", sampling_probability=0.3, members="who")
    assert [path.name for path in folder.iterdir()] == ["pool.csv"]
