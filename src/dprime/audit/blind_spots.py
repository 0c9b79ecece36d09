"""What an audit cannot see because both of its worlds share it, in sentences for reports."""

from __future__ import annotations

WHY = (
    "Both worlds of an audit differ in one record and share everything else. Whatever gives the "
    "record away through what they share, the audit cannot see. A verdict does not cover:"
)

ALWAYS = (
    "Preparation of the data: scaling, features and labels are computed before the record is "
    "taken out, with the record.",
    "The model and its settings, if they were chosen by looking at the data.",
    "Other releases: training metrics, intermediate checkpoints and anything else that was "
    "published from the same data.",
    "The order of the records: the record in question stands at one random place, the same in "
    "every training of the audit. A mistake that spares that place goes unseen.",
    "The random numbers: no adversary guesses the seed. noise-grid looks for noise that a "
    "generator made in single precision, the others see no pattern in the noise.",
)
"""What no audit sees."""

ENGINE = (
    "Number of steps, learning rate, schedule, sampling rate, clipping norm C and divisor: both "
    "worlds are given the same values. A training that derives one of them from its records "
    "reveals more than the audit shows. Without an expected_batch_size the divisor follows from "
    "the number of records; the audit then plays zero-out, where that number is public.",
    "What happens after the noisy sum: di, noise-grid, attribute, gradient, malicious-dataset and "
    "opposing-dataset read the noisy sums and no model. A learning rate taken from the loss "
    "escapes them. intermediate-models and adaptive-poisoning compare the models of successive "
    "steps if the optimizer is SGD; with Adam, or where a step is lost in the weights' rounding, "
    "they read the noisy sums.",
    "What a record does inside the model or the loss: the engine computes the record in question "
    "in both worlds and leaves it out of one world's sum. Records that act on each other look "
    "alike in both worlds. The engine lets each record through model and loss alone, but it does "
    "not see what code keeps outside of the two.",
    "A small constant: gradient and malicious-dataset alternate the sign of their gradient, which "
    "cancels most of what the record adds equally to every sum. Along their direction a constant "
    "of one standard deviation of the noise may move the score by no more than a quarter of its "
    "own.",
)
"""Also, of an audit in which dprime's engine trains."""


def cannot_see(*, engine: bool) -> tuple[str, ...]:
    """What an audit cannot see, where dprime's engine trains or a function of the user's own."""
    return (*ENGINE, *ALWAYS) if engine else ALWAYS
