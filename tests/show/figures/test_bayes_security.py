import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprime import DPSGD
from dprime.show.figures import BayesSecurityFigure

TRAINING = DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=500)


def test_both_lines_are_read_off_the_curves():
    figure = BayesSecurityFigure.of(TRAINING, epochs=[1, 2.5, 20])
    assert figure.epochs == (1, 2.5, 5, 20)
    steps = (100, 250, 500, 2000)
    for line, adjacency in ((figure.membership, "add-remove"), (figure.any_attribute, "replace")):
        for value, count in zip(line, steps, strict=True):
            assert value == DPSGD(1.1, 0.01, count).curve(adjacency).bayes_security()


def test_an_epoch_that_is_no_whole_number_of_steps_is_rounded_to_the_safe_side():
    figure = BayesSecurityFigure.of(TRAINING, epochs=[1.001])
    assert figure.membership[0] == DPSGD(1.1, 0.01, 101).curve().bayes_security()


def test_printed_numbers_are_not_above_the_certified_ones():
    figure = BayesSecurityFigure.of(TRAINING)
    member, secret = (float(x) for x in re.findall(r"0\.\d+", figure.title))
    place = figure.epochs.index(5)
    assert 0.99 * figure.membership[place] < member <= figure.membership[place]
    assert 0.99 * figure.any_attribute[place] < secret <= figure.any_attribute[place]


def test_an_estimate_is_called_one():
    figure = BayesSecurityFigure.of(TRAINING, epochs=[1], attribute=[(1.0, 0.98), (5.0, 0.95)])
    estimates = [row for row in figure.rows() if row["layer"] == "estimate"]
    assert [(row["epoch"], row["bayes_security"]) for row in estimates] == [(1, 0.98), (5, 0.95)]
    assert "estimate" in {row["label"] for row in figure.rows()}
    assert "which guarantee nothing: 1 epoch: 0.98; 5 epochs: 0.95." in figure.text


def test_answers_that_are_known_already_are_taken():
    asked = []

    def read(mechanism, adjacency):
        asked.append((mechanism.steps, adjacency))
        return 0.25

    figure = BayesSecurityFigure.of(TRAINING, epochs=[1], read=read)
    assert sorted(asked) == [(c, a) for c in (100, 500) for a in ("add-remove", "replace")]
    assert set(figure.membership) == {0.75}


@given(st.floats(0.001, 1.0), st.floats(0.1, 20.0), st.integers(1, 10_000_000))
@settings(max_examples=60, deadline=None)
def test_rows_are_finite_for_any_mechanism(rate, noise, steps):
    figure = BayesSecurityFigure.of(DPSGD(noise, rate, steps), read=lambda *_: 0.5)
    assert figure.at in figure.epochs
    for row in figure.rows():
        assert row["epoch"] > 0
        assert math.isfinite(row["bayes_security"])


@pytest.mark.parametrize("wrong", [(0.0, 0.5), (1.0, 1.5)])
def test_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        BayesSecurityFigure.of(TRAINING, epochs=[1], attribute=[wrong], read=lambda *_: 0.5)
    with pytest.raises(ValueError, match="epochs must be as many as the numbers"):
        BayesSecurityFigure((1.0,), (), (0.5,), 1.0)


def test_under_replace_membership_means_a_replaced_record():
    training = DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=1000)
    figure = BayesSecurityFigure.of(training, adjacency="replace")
    assert figure.membership == figure.any_attribute
    least = training.curve("replace").bayes_security()
    assert figure.membership[figure.epochs.index(figure.at)] == pytest.approx(least, rel=1e-12)


def test_where_nothing_is_certified_it_says_none():
    training = DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=1000)
    figure = BayesSecurityFigure.of(
        training, read=lambda _, adjacency: 1.0 if adjacency == "replace" else 0.3
    )
    assert figure.title.endswith("at least 0.7 for membership, none for any attribute.")


def test_between_two_epochs_the_smaller_security_is_drawn():
    figure = BayesSecurityFigure.of(DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=1000))
    lines = [layer for layer in figure.spec()["layer"] if layer["mark"]["type"] == "line"]
    assert [line["mark"]["interpolate"] for line in lines] == ["step-before"] * 2
    assert list(figure.membership) == sorted(figure.membership, reverse=True)
