"""Every entry runs, on random records; and what experiments conclude, and from what."""

import dataclasses
import itertools
import json
import tomllib

import numpy as np
import pytest

from dprime import TradeOff
from dprime.audit.identifiability import predicted_advantage
from dprime.data import devices
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import SGD, FinalAccuracy, TrainingConfig, train
from papers.__main__ import named
from papers.adversary import (
    BELIEF,
    GLOBAL_BOUNDED,
    GLOBAL_UNBOUNDED,
    LOCAL_BOUNDED,
    LOCAL_UNBOUNDED,
    NOISES,
    belief_exceeded,
)
from papers.bernau import audits, neighbours, table2, trainings
from papers.bernau.trainings import ADULT, LOCATION, MNIST, PURCHASE, PURCHASE_LIKE, RETAIL, seen
from papers.cherubin import trainings as cherubin
from papers.cherubin.threats import drawn
from papers.drawing import Line, together
from papers.entry import SEED, Scale
from papers.mosaicrown import experiment
from papers.mosaicrown.beliefs import Replacements, most_moving
from papers.mosaicrown.experiment import Data, network
from papers.nasr import ladder
from papers.page import PAPERS, stored
from papers.thudi import aimed
from papers.thudi.attacks import ALPHAS, SETUPS, Game, rates_at

ALL = [pair for name in PAPERS for pair in named(name)]
SMOKE, FULL = Scale("smoke"), Scale("full")
BELIEFS = (0.53, 0.75, 0.9, 0.99)
NAME = "Purchase-100"
WITH_PURCHASE = [named(f"bernau/{name}")[0][1] for name in
                 ("figure4", "figure5", "figure6", "figure8", "table2")]  # fmt: skip
ANSWER = {
    "advantage": {"value": 0.25, "standard_error": 0.03},
    "predicted": {"value": 0.256, "standard_error": 0.0},
    "exceedance": {"value": 0.002, "low": 0.0, "high": 0.01},
    "trials": {"in": 500, "out": 500},
}
"""Of `dprime audit`, which the first test runs."""


def at(case, scale=SMOKE):
    return dataclasses.replace(case, scale=scale)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Networks this small only lose by threads; no data but where a test gives some."""
    monkeypatch.delenv("DPRIME_DATA", raising=False)
    with devices.one_thread():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("paper, entry", ALL, ids=[f"{p.name}-{e.name}" for p, e in ALL])  # noqa: PT006
def test_it_runs(paper, entry):
    result = paper.result(entry, SMOKE)
    assert result["claims"] or result["figures"]
    names = [claim["what"] for claim in result["claims"]]
    assert len(names) == len(set(names))
    json.dumps(result, allow_nan=False)
    assert set(result["figures"]) <= set(stored(paper.name)["results"][entry.name]["figures"])


TRAINS_NOTHING = {
    "bernau": ("figure1", "figure2", "figure3", "table3"),
    "cherubin": ("figure1", "figure2", "figure3", "figure4", "figure6", "figure7", "figure10",
                 "section5_2"),
    "mosaicrown": ("figure4_1", "figure4_2"),
    "nasr": ("section3", "mnist", "cifar10", "location30"),
    "thudi": [f"figure{number}" for number in range(1, 18) if number not in (5, 6)],
}  # fmt: skip
"""Entries whose full version follows from formulas and from the trainings that are kept."""


FULLY = [
    pytest.param(*named(f"{paper}/{each}")[0], id=f"{paper}-{each}",
                 marks=[pytest.mark.slow] if paper == "cherubin" else [])
    for paper, names in TRAINS_NOTHING.items() for each in names
]  # fmt: skip


@pytest.mark.parametrize(("paper", "entry"), FULLY)
def test_what_is_stored_is_what_comes_out_again(paper, entry):
    result, there = paper.result(entry, FULL), stored(paper.name)["results"][entry.name]
    result = json.loads(json.dumps(result))
    for kind in ("tables", "kept"):
        assert result[kind] == there[kind]
    assert list(result["figures"]) == list(there["figures"])
    for claim, other in zip(result["claims"], there["claims"], strict=True):
        for key, value in other.items():
            assert claim[key] == (pytest.approx(value) if isinstance(value, float) else value)


# Purchase-100 takes part where a user has it -----------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """The files that `dprime audit` is asked for, which is not run here."""
    files = []

    def audited(scale, file, folder, trials):
        files.append(file)
        return {each["name"]: ANSWER for each in tomllib.loads(file.read_text())["audits"]}

    monkeypatch.setattr(table2, "audited", audited)
    return files


@pytest.fixture
def purchase(tmp_path, monkeypatch):
    """A few lines in the published form: a class from 1, then 600 binary features."""
    monkeypatch.setenv("DPRIME_DATA", str(tmp_path))
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.arange(1, 11), rng.integers(0, 2, (10, 600))])
    (tmp_path / "purchase100").mkdir()
    lines = "\n".join(",".join(map(str, row)) for row in rows)
    (tmp_path / "purchase100" / "dataset_purchase").write_text(lines + "\n")
    return rows


def alone(words):
    """Whether Purchase-100 is named other than as what a stand-in stands for."""
    for case in (RETAIL, LOCATION):
        words = words.replace(f"{case.title} for {NAME}", case.title)
    return NAME in words


def test_it_takes_part_where_its_file_is(request):
    assert trainings.cases(SMOKE)[1:-1] == [at(RETAIL), at(LOCATION)]
    rows = request.getfixturevalue("purchase")
    assert trainings.cases(SMOKE)[1:-1] == [*map(at, PURCHASE_LIKE)]
    found = Scale("quick").data(PURCHASE.data)
    made = np.concatenate(
        [np.column_stack([part.labels + 1, part.records]) for part in (found.train, found.test)]
    )
    assert np.array_equal(made[made[:, 0].argsort()], rows)


@pytest.mark.slow
@pytest.mark.parametrize("entry", WITH_PURCHASE, ids=lambda entry: entry.name)
def test_a_stand_in_is_never_called_purchase_which_has_the_same_claims(entry, request, asked):
    found = entry.measure(SMOKE)
    words = [claim.what for claim in found.claims]
    words += [text for each in found.figures.values() for text in (each.title, each.text)]
    words.append(json.dumps(found.settings, ensure_ascii=False))
    assert not [each for each in words if alone(each)]
    assert alone("Purchase-100, GS bounded: advantage")
    request.getfixturevalue("purchase")
    whats = [claim.what for claim in entry.measure(SMOKE).claims]
    own = {what.removeprefix(NAME) for what in whats if what.startswith(NAME)}
    assert own
    for case in (RETAIL, LOCATION):
        assert own == {w.removeprefix(case.label) for w in whats if w.startswith(case.label)}


def test_nor_in_what_is_published():
    for entry in WITH_PURCHASE:
        result = stored("bernau")["results"][entry.name]
        words = [claim["what"] for claim in result["claims"]]
        words += [each["title"] for each in result["figures"].values()]
        assert not [each for each in words if alone(each)]


def test_a_full_table_2_is_both_files_and_purchase_where_it_is(asked, purchase, tmp_path):
    rows = table2.rows_of(FULL, table2.paper_size(FULL, tmp_path))
    assert asked[:2] == [table2.FILE, table2.LOCATION_FILE]
    assert len(rows) == 5 * len(NOISES)
    texts = {case.data: table2.audits_of(at(case)) for case in PURCHASE_LIKE}
    assert asked[2].read_text() == texts["purchase100"]
    for data, text in texts.items():
        own, retail = (each.split("\nadversary", 1)[1] for each in (text, texts["retail100"]))
        assert own.replace(data, "retail100").rstrip() == retail.rstrip()
        assert text.count("[[audits]]") == len(NOISES)


# Bernau et al. and MOSAICrOWN --------------------------------------------------------------------


def test_every_belief_has_its_own_noise_which_both_sensitivities_share():
    seeds = [trainings.seed_of(Scale(seed=s), belief) for s in (1, 2) for belief in BELIEFS]
    assert len(set(seeds)) == len(seeds)
    assert trainings.seed_of(Scale(), BELIEF) == SEED
    runs = [seen(at(ADULT), LOCAL_BOUNDED, belief) for belief in BELIEFS]
    standard = [(one.truth - one.distances**2 / 2) / one.distances for one in runs]
    for one, other in itertools.combinations(standard, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.999
    local, wide = (seen(at(MNIST), each) for each in (LOCAL_UNBOUNDED, GLOBAL_UNBOUNDED))
    # Where every gradient is clipped, global noise is a thousandth wider than local noise.
    assert np.allclose(local.truth, wide.truth, rtol=2e-3, atol=1e-3)
    losses = runs[0].gradients.losses
    assert losses.shape == (8, 3)
    assert np.abs(losses - np.log(2)).max() < 0.5


def test_local_sensitivities_give_back_epsilon_which_is_no_claim_and_slips_are_shown():
    found = audits.Audit(at(ADULT), BELIEFS)
    assert found.local["sensitivities"] == pytest.approx(found.targets, rel=1e-6)
    assert found.local["belief as printed"] == pytest.approx(np.exp(found.local["belief"]))
    assert found.local["advantage as printed"] == pytest.approx(found.local["advantage"] / 2)
    whats = [claim.what for claim in audits.claims_of(found) if ", LS: " in claim.what]
    assert whats
    assert not [what for what in whats if "sensitivities" in what]
    rows = {row[0] for row in audits.tables_of(found)[0].rows}
    assert {"LS, from the belief as printed", "LS, from the advantage as printed"} <= rows


def test_both_adversaries_are_compared_training_by_training():
    """What both have in common leaves no error: here one always wins by the other's share."""
    one = seen(at(ADULT), LOCAL_BOUNDED)
    shares = np.linspace(0.125, 1, len(one.truth))
    flat = np.full((len(shares), 8), 0.5)  # each record as often: nothing from its draw
    won = dataclasses.replace(
        one, logs=np.where(one.in_world, 1.0, -1.0),
        called=(flat + shares[:, None] / 2, flat - shares[:, None] / 2),
    )  # fmt: skip
    spread = np.std(1 - shares, ddof=1) / len(shares) ** 0.5
    found = won.ahead()
    assert found.value == pytest.approx(1 - shares.mean())
    assert found.high - found.value == pytest.approx(1.96 * spread, rel=1e-3)


@pytest.mark.parametrize("noise", [GLOBAL_BOUNDED, GLOBAL_UNBOUNDED])
def test_the_sensitivity_behind_an_advantage(noise):
    sigmas, recipe = seen(at(LOCATION), noise).sigmas, at(LOCATION).recipe(noise)
    for norm in (0.5, 4.2):
        implied = predicted_advantage(sigmas, np.full_like(sigmas, norm)).value
        assert table2.sensitivity_of(recipe, implied) == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("case", PURCHASE_LIKE, ids=lambda case: case.data)
def test_held_out_records_are_never_trained_on(case):
    kept = at(case).held_out.records
    for trained in at(case).parts:
        assert not (kept[:, None] == trained.records).all(axis=2).any()


def test_equal_records_make_no_neighbour():
    case = at(RETAIL)
    ranking = case.ranking(GLOBAL_BOUNDED, keep=None)
    equal = dataclasses.replace(ranking, scores=np.append(ranking.scores[:-3], [0.0] * 3))
    found = neighbours.neighbours(case, GLOBAL_BOUNDED, equal)
    assert [one.place for one in found] == [1, -1]
    assert found[-1].score == ranking.scores[-4] > 0


def test_outliers_are_outside_the_fences_of_all_trainings():
    """Quartiles of 0 to 19 are 4.75 and 14.25; fences lie 14.25 further out."""
    norms = np.arange(20.0).reshape(4, 5)
    assert neighbours.outliers(norms).tolist() == [0, 0, 0, 0]
    norms[3, 4], norms[0, 0] = 29.0, -10.0
    assert neighbours.outliers(norms).tolist() == [0.2, 0, 0, 0.2]
    norms[3, 4] = 28.0
    assert neighbours.outliers(norms).tolist() == [0.2, 0, 0, 0]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ({"a": ((0, 1.0), (1, 2.0)), "b": ((0, 1.0), (1, 3.0)),
          "c": ((0, 1.001, 1.0, 1.002), (1, 2.0, 2.0, 2.0))}, ["a = c", "b"]),
        ({"a": ((0, 1.0), (1, 2.0)), "b": ((0, 1.0, 0.5, 1.5), (1, 2.0, 1.5, 2.5))}, ["a", "b"]),
        (dict.fromkeys("abc", ((0, 3.0), (1, 3.0))), ["all 3, on each other"]),
    ],
)  # fmt: skip
def test_lines_on_each_other_are_drawn_once_but_no_wide_interval_is_hidden(lines, names):
    found = together([Line(name, points) for name, points in lines.items()])
    assert [line.name for line in found] == names


def test_neighbours_go_from_the_most_to_the_least_different():
    data, scores = Data.drawn(SMOKE, 20, 1), []
    for worlds in data.neighbours(GLOBAL_BOUNDED, "cpu", keep=3):
        ours, theirs = worlds.differing.records[:1], worlds.differing.records[1:]
        measure = default_measure(data.inside.kind)
        one = dataset_sensitivity(ours, theirs, adjacency="replace", measure=measure)
        scores.append(float(one.scores[0]))
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]


@pytest.mark.parametrize(("mu", "delta"), [(0.3, 0.05), (1.2, 1e-4)])
def test_a_belief_is_exceeded_with_the_probability_it_is_named_for(mu, delta):
    above = TradeOff.gaussian(mu).belief_exceeds_in_worst_pair(belief_exceeded(mu, delta))
    assert above == pytest.approx(delta, rel=1e-6)


def test_random_replacements_that_move_further():
    first = np.array([1.0, 1.1, 0.9, 1.0])
    moved = [first + 0.1, first - 0.1, first + np.array([0.5, -0.4, 0.3, -0.3])]
    found = Replacements(np.stack(moved, 1), np.array([False, True, False]))
    assert (found.further(first), found.surely_further(first)) == (2, 1)
    claim = most_moving(first, found)
    assert claim.ours == pytest.approx(1 / 3)
    for told in ("2 of 3 move it further than the 1.00", "not the most moving one",
                 "the same class moves it by 0.90 to 0.90 (1 of 3)"):  # fmt: skip
        assert told in claim.why
    assert "not the most moving" not in most_moving(first + 9, found).why


def test_accuracy_before_training_is_that_of_the_weights_that_all_cases_start_from():
    worlds = experiment.neighbours(SMOKE, 40)["bounded"]
    before, _, free = experiment.beside(SMOKE, worlds, SGD())
    still = FinalAccuracy(experiment.held_out(SMOKE))
    recipe = TrainingConfig(steps=1, learning_rate=1e-12)
    train(
        network(SMOKE, worlds.common), worlds, recipe, trials=2, seed=SMOKE.seed, world="in",
        observers=[still], keep_weights=False, progress=False,
    )  # fmt: skip
    assert np.array_equal(before, still.values)
    assert not np.array_equal(before, free)


# Nasr et al. -------------------------------------------------------------------------------------


def test_another_number_of_shadow_models_has_random_numbers_of_its_own(monkeypatch):
    chosen = []

    def begin(settings, *_, **__):
        chosen.append(settings)
        raise InterruptedError

    monkeypatch.setattr(ladder, "begin", begin)
    for many in (0, 7):
        with pytest.raises(InterruptedError):
            ladder.play("mnist", SMOKE, ladder.STATIC, [2.0], many)
    usual, other = chosen
    assert (usual.options, other.options) == ({"shadows": 2}, {"shadows": 7})
    assert usual.chosen_for["epsilon"] == 2.0
    assert usual.seed != other.seed
    assert dataclasses.replace(other, seed=usual.seed, options=usual.options) == usual


# Thudi et al. and Cherubin et al. ----------------------------------------------------------------


def test_another_pool_has_the_rates_of_the_usual_one():
    for pool, epochs in itertools.chain(*aimed.CHOSEN["full"].values()):
        other = aimed.setup_with(SETUPS["full"], pool, epochs)
        assert other.batch / other.pool == SETUPS["full"].batch / SETUPS["full"].pool


def test_every_seed_has_draws_of_its_own():
    seeds = [Game("mnist", 3.0, Scale("smoke", seed=s)).own_seed(0) for s in range(2015, 2030)]
    assert len(set(seeds)) == len(seeds)
    other = dataclasses.replace(SETUPS["smoke"], epochs=2)
    assert Game("mnist", 3.0, SMOKE, other).own_seed(0) not in seeds


@pytest.mark.parametrize("alpha", ALPHAS)
def test_attacks_that_carry_their_false_positive_rate(alpha):
    scores, members = np.linspace(0, 1, 101), np.arange(101) % 4 == 0
    flagged = scores >= 1 - alpha - 1e-9
    assert flagged.sum() == round(100 * alpha) + 1
    expected = members[flagged].mean(), flagged[~members].mean()
    assert rates_at(scores, members, alpha) == pytest.approx(expected)
    assert rates_at(np.array([np.nan, 0.0]), np.array([True, True]), 0.1) == (None, None)


def test_the_seed_reaches_the_trainings(monkeypatch, tmp_path):
    one, same, other = (cherubin.train(cherubin.RETAIL, Scale("smoke", seed=s)) for s in (5, 5, 6))
    assert one["runs"] == same["runs"] != other["runs"]
    assert (one["seed"], other["seed"]) == (5, 6)
    monkeypatch.setattr(cherubin, "HERE", tmp_path)
    monkeypatch.setattr(cherubin, "train", lambda case, scale: {"seed": scale.seed})
    for size in ("quick", "full"):
        assert cherubin.trained(cherubin.RETAIL, Scale(size, seed=77))["seed"] == 77
    assert (tmp_path / "raw-seed77.json").exists()
    cherubin.trained.cache_clear()


def test_the_published_have_the_colours_of_ours_and_the_triangle_inequality_is_no_claim():
    found = json.loads((cherubin.HERE / "raw.json").read_text())["adult"]
    inks = {line.name: line.pencil.ink for line in drawn("adult", found).series}
    assert inks["ours: age, estimate"] == inks["published: age"]
    assert inks["ours: membership, certified"] == inks["published: membership"]
    assert len(set(inks.values())) == 2
    for one in found["runs"]:
        security = one["security"]["closed-form"]
        pairs = zip(security["approximate"], security["full"], strict=True)
        assert all(rough <= full for rough, full in pairs)
