"""What reading could not confirm is said."""

import pytest

from check.parts import LOOP, PRIVATE, START

GHOST = PRIVATE.replace("optimizer, loader =", "optimizer, criterion, loader =").replace(
    "max_grad", "grad_sample_mode='ghost', criterion=nn.CrossEntropyLoss(), max_grad"
)
GHOST_LOOP = LOOP.replace("nn.functional.cross_entropy", "criterion")
SCHEDULE = "from opacus.schedulers import {0}\n{0}(optimizer, gamma=0.5)\n"

REACHED_INTO = {
    "an attribute of its own": "optimizer.add_noise = lambda: None",
    "the inside of the sampler": "loader.batch_sampler.__dict__['sample_rate'] = 0.5",
    "the inside by vars": "vars(loader.batch_sampler)['sample_rate'] = 0.5",
    "the inside of the optimizer": "optimizer.__dict__.update(noise_multiplier=0.1)",
    "an attribute by a name that is not known": "setattr(optimizer, name, 0.1)",
    "the norm, to a number": "optimizer.max_grad_norm = 0.5",
    "the sampler's order": "loader.batch_sampler.generator = mine",
}


@pytest.mark.parametrize("line", REACHED_INTO.values(), ids=REACHED_INTO)
def test_what_is_set_in_the_private_training_is_said(examine, line):
    for text in (START + PRIVATE + line + LOOP, START + PRIVATE + LOOP + f"    {line}\n"):
        report = examine(text)
        assert report.findings == ()
        assert "that the training stays as Opacus made it" in " ".join(report.unclear)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("DP407", "setattr(optimizer, 'noise_multiplier', 0.1)"),
        ("DP407", "optimizer.__setattr__('noise_multiplier', 0.1)"),
        ("DP407", "object.__setattr__(optimizer, 'noise_multiplier', 0.1)"),
        ("DP408", "setattr(optimizer, 'noise_multiplier', 0)"),
        ("DP405", "setattr(optimizer, 'step_hook', None)"),
        ("DP109", "setattr(loader.batch_sampler, 'sample_rate', 0.5)"),
        ("DP109", "loader.batch_sampler.sample_rate = 0.5"),
    ],
)
def test_an_attribute_is_set_however_that_is_written(examine, code, line):
    report = examine(START + PRIVATE + line + LOOP)
    assert [finding.code for finding in report.findings] == [code]
    assert report.unclear == ()


@pytest.mark.parametrize(
    "line", ["optimizer.param_groups[0]['lr'] = 1.0", "optimizer.loss_reduction = 'sum'"]
)
def test_what_has_no_part_in_privacy_may_be_set(examine, line):
    report = examine(START + PRIVATE + line + LOOP)
    assert report.findings == ()
    assert report.unclear == ()


def test_a_norm_may_follow_numbers_in_the_script_but_not_the_data(codes):
    assert codes(START, PRIVATE, LOOP, "    optimizer.max_grad_norm *= 0.9") == []
    assert codes(START, PRIVATE, LOOP, "    optimizer.max_grad_norm = 2 * loss.item()") == ["DP310"]


@pytest.mark.parametrize("name", ["StepGradClip", "ExponentialGradClip", "LambdaGradClip"])
def test_a_schedule_of_the_norm_holds_where_the_clipping_follows(examine, name):
    schedule = SCHEDULE.format(name)
    assert [f.code for f in examine(START + GHOST + schedule + GHOST_LOOP).findings] == ["DP309"]
    unknown = GHOST.replace("'ghost'", "mode")
    unclear = examine(START + unknown + schedule + GHOST_LOOP).unclear
    assert "on which the schedule" in " ".join(unclear)
    report = examine(START + PRIVATE + schedule + LOOP)
    assert report.findings == ()
    assert len(report.unclear) == (name == "LambdaGradClip")


@pytest.mark.parametrize(
    ("words", "after"),
    [
        ("stay as Opacus clipped", "for p in model.parameters():\n            p.grad.mul_(10)"),
        ("stay as Opacus clipped", "for p in model.parameters():\n            p.grad *= 10"),
        ("one backward()", "criterion(model(-x), y).backward()"),
        ("one backward()", "for _ in range(4):\n            criterion(model(x), y).backward()"),
    ],
)
def test_with_ghost_clipping_gradients_must_stay_as_they_are(examine, words, after):
    assert examine(START + GHOST + GHOST_LOOP).unclear == ()
    loop = GHOST_LOOP.replace("optimizer.step()", f"{after}\n        optimizer.step()")
    assert words in " ".join(examine(START + GHOST + loop).unclear)


def test_a_second_clipping_is_told_by_mode(examine):
    again = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()"
    for private, loop, words in (
        (PRIVATE, LOOP, "that Opacus replaces"),
        (GHOST, GHOST_LOOP, "but not the noise"),
    ):
        report = examine(START + private + loop.replace("optimizer.step()", again))
        (finding,) = report.findings
        assert finding.code == "DP305"
        assert words in finding.sentence
        assert report.unclear == ()  # a projection: no two sums get further apart
    other = GHOST_LOOP.replace("optimizer.step()", again.replace("1.0)", "1.0, norm_type=1)"))
    assert "with norm 2" in " ".join(examine(START + GHOST + other).unclear)


def test_an_empty_batch_must_stay_empty(examine):
    private = PRIVATE.replace("max_grad", "rand_on_empty={}, max_grad")
    assert examine(START + private.format(False) + LOOP).unclear == ()
    report = examine(START + private.format("flag") + LOOP)
    assert report.findings == ()
    assert report.unclear == ("Reading could not confirm that rand_on_empty is False.",)


def test_other_code_that_gets_the_optimizer_is_named(examine):
    given = examine(START + PRIVATE + "mine(optimizer)" + LOOP)
    assert "what mine (line 17) does with the optimizer" in " ".join(given.unclear)
    recursive = LOOP.replace("optimizer.step()", "again()\n") + "def again():\n    again()\n"
    assert "where every call leads" in " ".join(examine(START + PRIVATE + recursive).unclear)
