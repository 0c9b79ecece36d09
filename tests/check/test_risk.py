"""The certified risk that a script's numbers give is that of the core, or none is shown."""

import math

import pytest

from check.parts import LOOP, PRIVATE, SCRIPTS, START
from dprime import DPSGD, EpsilonDelta
from dprime.check import check


def numbers(risk):
    return {answer.name: answer.value for answer in risk.answers}


def assert_same(risk, mechanism, delta, adjacency="add-remove"):
    assert risk.mechanism == mechanism
    curve = mechanism.curve(adjacency)
    assert numbers(risk) == {"advantage": curve.advantage(), "epsilon": curve.epsilon(delta)}
    assert {answer.kind for answer in risk.answers} == {"certified"}


def test_numbers_in_the_script_give_the_core_s_risk(examine):
    (risk,) = examine(START + PRIVATE + LOOP + "engine.get_epsilon(1e-6)").reading.risks
    batches = math.ceil(60_000 / 256)
    assert_same(risk, DPSGD(1.1, 1 / batches, 10 * batches), 1e-6)
    (risk,) = examine(START + PRIVATE + LOOP, records=1000, delta=1e-4).reading.risks
    assert_same(risk, DPSGD(1.1, 1 / 4, 40), 1e-4)


def test_a_last_batch_that_is_dropped_makes_the_rate_larger(examine):
    text = START.replace("batch_size=256", "batch_size=256, drop_last=True") + PRIVATE + LOOP
    (risk,) = examine(text).reading.risks
    assert_same(risk, DPSGD(1.1, 1 / 234, 2340), 1e-5)


def test_shuffled_batches_are_certified_as_such(examine):
    text = START + PRIVATE.replace("max_grad", "poisson_sampling=False, max_grad") + LOOP
    (risk,) = examine(text).reading.risks
    assert_same(risk, DPSGD(1.1, 1 / 235, 2350, sampling="shuffle"), 1e-5, "replace")


def test_defaults_of_the_command_line_are_named():
    (risk,) = check(SCRIPTS / "good" / "mnist.py").reading.risks
    assert risk.about == "the training with the defaults of its command line"
    assert_same(risk, DPSGD(1.0, 1 / 938, 9380), 1e-5)


def test_several_trainings_are_composed():
    one, together = check(SCRIPTS / "bad" / "dp601_grid.py").reading.risks
    assert_same(one, DPSGD(1.1, 1 / 235, 2350), 1e-6)
    assert_same(together, DPSGD(1.1, 1 / 235, 3 * 2350), 1e-6)
    assert together.about == "all 3 trainings together"


def test_a_target_is_read_as_a_promise(examine):
    private = PRIVATE.replace("make_private", "make_private_with_epsilon").replace(
        "noise_multiplier=1.1", "target_epsilon=2.0, target_delta=1e-6, epochs=10"
    )
    (risk,) = examine(START + private + LOOP).reading.risks
    assert_same(risk, EpsilonDelta(2.0, 1e-6), 1e-6)


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("noise_multiplier=1.1", "noise_multiplier=noise", "noise_multiplier as a number"),
        ("batch_size=256", "batch_size=size", "batch_size as a number"),
        ('datasets.MNIST("data", train=True)', "mine()", "the number of records (--records)"),
        ("range(10)", "range(n)", "how often the loop in line"),
        ("for _ in range(10)", "while more()", "how often the loop in line"),
        ("optimizer.step()", "pass", "no loop with optimizer.step() was followed"),
        ("optimizer.zero_grad()", "optimizer.noise_multiplier *= 1", "stays the same"),
        ("noise_multiplier=1.1", "noise_multiplier=0", "a training without errors (DP408)"),
        ("noise_multiplier=1.1", "noise_multiplier=1e-9", "parameters that can be certified"),
        ("y in loader", "y in itertools.cycle(loader)", "(DP107)"),
        (
            "optimizer.step()",
            "mine(optimizer)\n        optimizer.step()",
            "what mine (line 23) does",
        ),
        ("loader = Data", "data.data = data.data[:500]\nloader = Data", "(--records)"),
        ("max_grad_norm", "clipping='adaptive', max_grad_norm", "does not adapt"),
        ("model = nn", "from opacus.schedulers import StepNoise as S\nS(0)\nmodel = nn", "stays"),
    ],
)
def test_what_is_missing_is_named_and_no_number_is_shown(examine, old, new, missing):
    text = START + PRIVATE + LOOP
    assert old in text
    reading = examine(text.replace(old, new)).reading
    assert reading.risks == ()
    assert missing in " ".join(reading.missing)


@pytest.mark.parametrize(
    "more",
    [
        "def train():{}",
        "def train():{}\nfrom mine import run\nrun(train)",
        "class T:\n  def f(self):{}",
    ],
)
def test_steps_that_other_code_calls_for_are_not_counted(examine, more):
    """Nothing in the file says how often they happen: one epoch would be far too little."""
    text = START + PRIVATE + more.format(LOOP.replace("\n", "\n    "))
    reading = examine(text).reading
    assert reading.risks == ()
    assert "how often step() in line" in " ".join(reading.missing)


def test_a_step_without_a_loop_is_not_counted_once(examine):
    reading = examine(START + PRIVATE + "optimizer.step()").reading
    assert reading.risks == ()
    recursive = LOOP.replace("optimizer.step()", "again()\n") + "def again():\n    again()\n"
    assert examine(START + PRIVATE + recursive).reading.risks == ()


def test_more_than_one_private_training_has_no_single_risk(examine):
    reading = examine(START + PRIVATE + PRIVATE + LOOP).reading
    assert reading.risks == ()


def test_arrays_with_a_written_shape_have_so_many_records(examine):
    made = "data = torch.utils.data.TensorDataset({}, torch.randint(0, 2, (1000,)))\nloader = "
    for array in ("torch.randn(1000, 5)", "torch.zeros((1000, 5))", "torch.rand(size=(1000, 5))"):
        text = START.replace("loader = ", made.format(array)) + PRIVATE + LOOP
        (risk,) = examine(text).reading.risks
        assert_same(risk, DPSGD(1.1, 1 / 4, 40), 1e-5)
    for array in ("torch.randn(n, 5)", "torch.randn(1000, 5)[:10]", "torch.load('x.pt')"):
        text = START.replace("loader = ", made.format(array)) + PRIVATE + LOOP
        assert "the number of records (--records)" in examine(text).reading.missing


def test_a_while_loop_that_counts_is_counted(examine):
    counted = "n = 0\nwhile n < 10:\n    n += 1" + LOOP.split("range(10):")[1]
    (risk,) = examine(START + PRIVATE + counted).reading.risks
    assert_same(risk, DPSGD(1.1, 1 / 235, 2350), 1e-5)
    (risk,) = examine(START + PRIVATE + counted.replace("n < 10", "n <= 10")).reading.risks
    assert_same(risk, DPSGD(1.1, 1 / 235, 11 * 235), 1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n < 10", "n != 10"),
        ("n < 10", "more(n)"),
        ("n += 1", "n += step"),
        ("n += 1", "n -= 1"),
        ("n += 1\n", "n += 1\n    if again():\n        n = 0\n"),
        ("n += 1\n", "n += 1\n    if again():\n        continue\n"),
        ("n = 0\nwhile n < 10", "n, m = 0, 10\nwhile n < m"),
    ],
)
def test_another_while_loop_is_not_counted(examine, old, new):
    loop = "n = 0\nwhile n < 10:\n    n += 1" + LOOP.split("range(10):")[1] + "    m = next_one()\n"
    assert loop.count(old) == 1
    reading = examine(START + PRIVATE + loop.replace(old, new)).reading
    assert reading.risks == ()
    assert "how often the loop in line" in " ".join(reading.missing)
