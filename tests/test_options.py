"""One declaration of options: commands, files and the page take every word from it."""

import inspect
import time

import pytest

from dprime import mechanisms, options, validate
from dprime.audit import plan_request, planner, words
from dprime.audit.config import AuditConfig, usual_options
from dprime.audit.plan_request import ASKED
from dprime.cli.commands import COMMANDS, imported
from dprime.metrics import CONDITIONS, TARGETS
from dprime.option import FLAG, SHARE, SHARES, Option, as_typed, check_names, read, takes, whole
from dprime.options import DECLARED
from dprime.registry import METRICS
from dprime.request import risk_request
from dprime.runs import backends
from told import refuses


def of(name):
    """The options of a command."""
    return getattr(imported(name).callback, "options", ())


SIZED = {"noise_multiplier": "1", "batch_size": "2", "dataset_size": "9", "epochs": "1"}
SAME = ("name", "help", "kind", "table")


def is_declared(option):
    declared = DECLARED[option.name]
    return all(getattr(option, each) == getattr(declared, each) for each in SAME)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_declared(name):
    command, taken = imported(name), of(name)
    assert all(map(is_declared, taken))
    shown = [each for each in command.params if each.param_type_name == "option"]
    assert [(each.name, each.opts, each.metavar) for each in shown] == [
        (option.name, [option.flag], option.kind.metavar) for option in taken
    ]
    assert [each.is_flag for each in shown] == [option.kind is FLAG for option in taken]


def test_help_says_the_adjacency_that_sizes_of_batch_and_data_set_change():
    for name in ("risk", "choose"):
        (adjacency,) = (option for option in of(name) if option.name == "adjacency")
        assert f"--dataset-size the default is {risk_request(SIZED).adjacency}" in adjacency.note


def test_each_option_has_a_command_and_one_meaning():
    assert {*DECLARED} == {option.name for name in COMMANDS for option in of(name)}
    assert not {option.name for option in CONDITIONS} & {*TARGETS}


def test_choices_and_defaults_are_those_of_what_is_called():
    assert {*options.ADJACENCY.choices} == {*mechanisms.ADJACENCIES}
    assert options.BACKEND.choices == tuple(backends.BACKENDS)
    sampling = inspect.signature(mechanisms.DPSGD).parameters["sampling"]
    assert options.SAMPLING.default == sampling.default
    planned = {each.name: each.default for each in ASKED}
    for name, each in inspect.signature(planner.plan).parameters.items():
        if planned.get(name) is not None:
            assert planned[name] == each.default
    assert (
        tuple(words.WORDS[n].option for n in ("fpr", "prior", "min_tpr")) == plan_request.CONDITIONS
    )
    usual = {option.name: option.default for option in usual_options()}
    config = AuditConfig.from_words(claim={"epsilon": 4.0}, trials=2, seed=1)
    for name, default in usual.items():
        if default is not None and hasattr(config, name) and name != "trials":
            assert getattr(config, name) == default
        if default is not None and name in config.training:
            assert config.training[name] == default


def test_what_is_a_probability_may_be_typed_as_a_percentage():
    shares = {name for name, each in options.DECLARED.items() if each.kind in (SHARE, SHARES)}
    checked = {n for n, each in words.WORDS.items() if each.check in (validate.rate, words._share)}
    assert checked <= shares
    assert {name for name in METRICS if METRICS[name].share} & {*options.DECLARED} <= shares
    assert not {"noise_multiplier", "epsilon", "steps", "clip_norm"} & shares
    assert options.SAMPLING_PROBABILITIES.read("10 %, 0.5") == [0.1, 0.5]


def test_a_function_takes_what_was_given():
    def called(place, *, own=1, **given):
        return place, own, given

    taken = takes(options.MIN_TPR, options.JSON, annotate=lambda option: option.help)(called)
    names = [*inspect.signature(taken).parameters]
    assert names == ["place", "own", "min_tpr", "json"]
    assert taken("here", min_tpr="0", json=False) == ("here", 1, {"min_tpr": "0"})
    assert read([options.MIN_TPR, options.DELTA], {"min_tpr": "1/4"}) == {"min_tpr": 0.25}
    assert options.LEARNING_RATES.read("0.3, 1") == [0.3, 1.0]
    assert options.COLUMNS.read("age, 3") == ["age", 3]
    assert whole("seed", str(2**70 + 1)) == 2**70 + 1


def test_a_line_says_choices_default_and_note():
    one = Option("a_b", "What", choices=("x",))
    assert (one.flag, one.line()) == ("--a-b", "What: x.")
    assert one.here(1e-5, note="More.").line() == "What: x [1e-5]. More."
    assert one.here((1.0, 0.5), choices=("x", "y")).line() == "What: x or y [1, 0.5]."


NAMES = ["steps", "min_tpr", "advantage", "tpr"]
TYPED = {name: options.DECLARED[name].flag for name in NAMES} | {"scores": "FILE"}


@pytest.mark.parametrize(
    ("sentence", "typed"),
    [
        ("scores must be 1, but it is 2.", "FILE must be 1, but it is 2."),
        ("steps must be 1, but it is 2.", "--steps must be 1, but it is 2."),
        ("Exactly one of tpr, other must be given.", "Exactly one of --tpr, other must be given."),
        ("x must be left out: more steps, min_tpr.", "x must be left out: more steps, --min-tpr."),
        ("x must be 'min_tpr'.", "x must be 'min_tpr'."),  # what the user typed
        ("x must be y: give advantage=0.1.", "x must be y: give --advantage 0.1."),
        ('x must be y: give advantage="a-b".', "x must be y: give --advantage a-b."),
        ("No rule: see min_tpr.", "No rule: see --min-tpr."),
        ("other=1 and not_known stay.", "other=1 and not_known stay."),
        ("x must be 1, but it is 'tpr=3'.", "x must be 1, but it is 'tpr=3'."),
    ],
)
def test_errors_name_options_as_they_are_typed(sentence, typed):
    assert as_typed(sentence, TYPED) == typed


def test_a_long_word_does_not_take_long():
    sentence, start = f"a must be b, but it is {'x' * 50_000}.", time.process_time()
    assert as_typed(sentence, TYPED) == sentence
    assert time.process_time() - start < 2.0


def test_the_nearest_name_is_suggested():
    with pytest.raises(ValueError, match="but it is 'setps': did you mean steps"):
        check_names("training", {"setps": 3}, NAMES)
    with pytest.raises(ValueError, match="but it is 'qq': known are steps, min_tpr"):
        check_names("training", {"qq": 3}, NAMES)


test_what_is_refused = refuses(
    {
        "training be a table of names": lambda: check_names("training", 3, NAMES),
        "steps be a whole number": lambda: options.STEPS.read("1.5"),
        "steps be a whole number, 0": lambda: options.STEPS.read("many"),
    }
)
