"""Sentences that are printed in several places, each worded once, and the numbers in them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

PROMISE = (
    "no attacker does better on average over trainings, whatever they know of the other records"
)
POINTER = "the documentation lists them in “What the numbers mean”"
ESTIMATE = "An estimate: the truth can be worse."
CLIPPED = (
    "each record's gradient is clipped on its own and depends on no other record (no padding to "
    "the batch's longest record, no loss averaged over the tokens of several records, no batch "
    "statistics)"
)
BATCHES = {
    "poisson": "batches are Poisson samples (in each step each record is drawn by its own secret "
    "coin)",
    "fixed-size": "batches have a fixed size (in each step a uniformly random set of records is "
    "drawn in secret)",
    "shuffle": "batches cut the data in an order that does not depend on the records, and use "
    "each record once an epoch",
    "full": "every step uses all records",
}
PUBLIC = (
    "sampling rate, divisor and number of steps are public constants, not computed from the number "
    "of records"
)
PUBLIC_SIZE = (
    "the number of records is public, and sampling rate, divisor and number of steps depend on "
    "nothing else in the data"
)
SENSITIVITY = (
    "one record moves each released sum by no more than the sensitivity that the noise is for, "
    "whatever the other records are, and the number of releases does not depend on it"
)
SECRET = "noise and seed are secret, and the noise is ideal (random real numbers, not rounded ones)"
RESPONSE = "each answer is randomised on its own, by secret and ideal coins"
POOL = (
    "each record of the pool was kept by its own secret coin, and nothing public (rate, divisor, "
    "steps, number of records) depends on how many were kept"
)
STATED = "the stated guarantee is true of what was run"
GIVEN = "the given curve is that of what was run"
ALONE = "one result is released, and nothing else was chosen or published from these data"
SEEN = (
    "Seen at every step: the noise, the norm that records were clipped to, how many records were "
    "clipped, and the batches that the data loader drew."
)
UNSEEN = (
    "Not seen, and left to you: that one record moves the clipped sum by no more than the clipping "
    "norm C (padding to the longest record of a batch, losses over tokens or divided by the "
    "batch's class weights, augmentation that mixes records, and whatever else uses other records "
    "of the batch break this: in Opacus' own char-lstm example one record moves the sum by 73 C, "
    "and an advantage of 0.92 is reached where 0.222 is certified); that learning rate and "
    "stopping do not follow the raw loss; that weights of a checkpoint are this training's; that "
    "momentum does not start from the data; that nothing was computed from these data before "
    "(scaling, class weights, a clipping norm, first weights); that no training metric is "
    "published; that the seed is secret (a number in the script, or the 42 of transformers' "
    "Trainer, is not). More: “What a certificate of the monitor rests on” in the "
    "documentation"
)

GRID = (
    "PyTorch's normal numbers lie on a grid. Whoever sees updates or models in full precision can "
    "tell the worlds apart by it (AUC 1.00 where ideal noise allows 0.503), whatever ε is"
)
SECURE_NOISE = (
    "The noise is of Opacus' secure mode: four draws of a cryptographic generator, added up. No "
    "attack on it is known; that float32 numbers are not real numbers is covered by no analysis."
)
IDEAL_NOISE = (
    f"The noise is taken as ideal, as ideal_noise=True asks. {GRID}. That they end is not counted "
    "either: no number here holds against them."
)
CHANGES = {
    "add-remove": "added or removed",
    "replace": "replaced by another",
    "zero-out": "zeroed out (the number of records is public)",
}
KINDS: Mapping[str, tuple[str, ...]] = {
    "Gaussian": (SENSITIVITY, SECRET),
    "Laplace": (SENSITIVITY, SECRET),
    "RandomizedResponse": (RESPONSE,),
    **dict.fromkeys(
        ("EpsilonDelta", "EpsilonDeltaProfile", "RDP", "ZCDP", "GDP", "PLD"), (STATED,)
    ),
    "NoiseTails": (SECRET,),
    "EmptyBatches": (SECRET,),
}
"""The conditions of mechanisms that are no DP-SGD, by the name in their description."""
STATED_ONLY = (
    "These limits hold for every mechanism with this guarantee; if you know the mechanism, its own "
    "parameters give numbers that are as sharp or sharper."
)


def certified(adjacency: str | None = None, group_size: int = 1, where: str = POINTER) -> str:
    """What "certified" means, in one line; no adjacency where only a curve is known."""
    return f"{_certified_for(adjacency, group_size)}: {PROMISE}, if the conditions hold ({where})"


def certified_in_full(
    described: Mapping[str, Any] | None, adjacency: str | None = None, group_size: int = 1
) -> str:
    """What "certified" means, with every condition of the mechanism that `to_dict()` described."""
    *listed, last = conditions(described, group_size, adjacency)
    holds = _certified_for(adjacency, group_size)
    return f"{holds}, if: {'; '.join(listed)}; and {last}. Then {PROMISE}."


def conditions(
    described: Mapping[str, Any] | None, group_size: int = 1, adjacency: str | None = None
) -> list[str]:
    """What must be true for a certified number of this mechanism to hold, by its `to_dict()`.

    None where only a curve is known; without an adjacency, what every one asks is listed.
    """
    records = "one record" if group_size == 1 else f"at most {group_size:,} records"
    return [*dict.fromkeys(_own(described, adjacency)), f"each person has {records}", ALONE]


def describe(
    described: Mapping[str, Any], adjacency: str, group_size: int = 1, *, chosen: str | None = None
) -> str:
    """A mechanism in one line; the digits of a chosen parameter are cut on the safe side.

    >>> describe({"name": "Gaussian", "noise_multiplier": 8.0}, "replace")
    'Gaussian, noise multiplier 8.0; one record replaced'
    """

    def digits(name: str) -> str:
        return safe_digits(name, described[name]) if name == chosen else f"{described[name]:.6g}"

    if "sampling_probability" in described:
        inner = describe(described["training"], adjacency, group_size, chosen=chosen)
        return f"{inner}, trained on a share {digits('sampling_probability')} of a pool"
    name = described["name"]
    if name == "DPSGD":
        steps = f"{described['steps']:,} {'step' if described['steps'] == 1 else 'steps'}"
        what = (
            f"DP-SGD, noise {digits('noise_multiplier')}, rate {digits('sample_rate')}, {steps}, "
            f"{described['sampling']} sampling"
        )
    elif parts := described.get("mechanisms"):
        what = f"{len(parts)} parts, the first of them {parts[0]['name']}"
    elif (name, described.get("steps")) == ("EpsilonDelta", 1):
        what = f"ε = {described['epsilon']:g} and δ = {described['delta']:g} alone"
    elif name == "GDP":
        what = f"A mechanism that is {described['mu']:g}-GDP"
    elif name == "ZCDP" and described.get("xi") == 0:
        what = f"A mechanism that is {described['rho']:g}-zCDP"
    else:
        told = [f"{key.replace('_', ' ')} {_briefly(x)}" for key, x in described.items()]
        what = ", ".join(told).removeprefix("name ")
    records = _records(group_size)
    changed = {"replace": f"{records} replaced", "zero-out": f"{records} zeroed out"}
    return f"{what}; {changed.get(adjacency, f'with or without {records}')}"


def _briefly(value: object) -> str:
    """A parameter; of many numbers, how many there are."""
    return f"of {len(value):,} numbers" if isinstance(value, list | tuple) else f"{value}"


def command(name: str, options: Mapping[str, str]) -> str:
    """A command with its options, as it can be typed."""
    words = [(f"--{option.replace('_', '-')}", text) for option, text in options.items()]
    return shlex.join(["dprime", name, *(word for pair in words for word in pair)])


def two_epsilons(own: float, proved: float, delta: float) -> str:
    """The ε of the accountant "gdp" beside the one that is proved."""
    up = math.ceil(proved * 1000) / 1000 if math.isfinite(proved) else proved
    return (
        f'The accountant "gdp" says ε = {own:.4g} at δ = {delta:g}, which is too low: '
        f"ε = {up:.4g} is proved."
    )


def plain_noise(ends_at: float, revealed: str) -> str:
    """What noise without secure mode, of which the largest normal number is known, does."""
    return (
        f"Opacus' secure_mode is off. {GRID}. They also end at {ends_at:.3f} standard deviations: "
        f"an output that one of the worlds cannot have is counted in every δ with {revealed}."
    )


def install(extra: str) -> str:
    """The command that installs an optional part."""
    return f"pip install 'dprime[{extra}]'"


def _certified_for(adjacency: str | None, group_size: int) -> str:
    if adjacency is None:
        return "Certified for the two data sets that the curve compares"
    return f"Certified for {_records(group_size)} {CHANGES[adjacency]}"


def _records(group_size: int) -> str:
    return "one record" if group_size == 1 else f"the {group_size:,} records of one person"


def _own(described: Mapping[str, Any] | None, adjacency: str | None) -> tuple[str, ...]:
    if described is None:
        return (GIVEN,)
    if "mechanisms" in described:
        return tuple(each for part in described["mechanisms"] for each in _own(part, adjacency))
    if "training" in described:
        pool = (POOL,) if described["name"] == "PoolSampled" else ()
        return (*pool, *_own(described["training"], adjacency))
    if described["name"] == "DPSGD":
        drawn = "full" if described["sample_rate"] == 1 else described["sampling"]
        public = PUBLIC if adjacency in (None, "add-remove") else PUBLIC_SIZE
        return (CLIPPED, BATCHES[drawn], public, SECRET)
    return KINDS[described["name"]]


COMPARABLE = "Numbers can be compared only where all are for the same adjacency."

SMALLEST = 1e-290  # what is below is printed as this


SIDES = {"certified": "at most", "estimate": "about", "lower bound": "at least"}
"""What a number that grows with the attacker's success is called, by the kind of its curve."""


def given(value: float) -> str:
    """A number that the user gave, short, but never rounded to certainty."""
    text = f"{value:.6g}"
    return f"{value:.12g}" if float(text) in (0.0, 1.0, 100.0) else text


def round_up(value: float, digits: int = 4) -> str:
    """A few significant digits, rounded up: a ceiling may not shrink when it is printed."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) < SMALLEST:
        return f"{SMALLEST:g}" if value > 0 else "-0"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / unit - 1e-14 * abs(value / unit)) * unit:.{digits}g}"


def round_down(value: float, digits: int = 4) -> str:
    """A few significant digits, rounded down: a floor may not rise when it is printed."""
    text = round_up(-value, digits)
    return text.removeprefix("-") if text.startswith("-") else text if value == 0 else f"-{text}"


def interval_text(
    value: float, low: float, high: float, digits: int = 3, *, scale: float = 1.0
) -> str:
    """A value and its interval: how far it goes, or both ends where they are not equally far."""
    shown, bottom, top = (f"{scale * each:.{digits}f}" for each in (value, low, high))
    below, above = (f"{scale * each:.{digits}f}" for each in (value - low, high - value))
    return f"{shown} ± {above}" if below == above else f"{shown} ({bottom} to {top})"


def percent_up(share: float) -> str:
    """A share that is a ceiling."""
    return f"{Ceiling(share):%}"


def percent_down(share: float) -> str:
    """A share that is a floor."""
    return f"{Floor(share):%}"


def safe_digits(name: str, value: float) -> str:
    """A chosen parameter as printed may be typed in again: its digits are cut on the safe side."""
    if isinstance(value, int):
        return f"{value:,}"
    return round_up(value, 6) if name == "noise_multiplier" else round_down(value, 6)


def one_in(probability: float) -> str:
    """How many times there are to one occasion, rounded down, so that the chance is not smaller."""
    return f"{math.floor(float(round_down(1 / max(probability, SMALLEST), 3))):,}"


def odds(probability: float) -> str:
    """How often something happens, at most."""
    if probability >= 0.1:
        return f"{percent_up(probability)} of the time"
    return f"once in {one_in(probability)} times"


class Given(float):
    """A number in a template: `{x}`, `{x:%}` and `{x:points}` of a share, `{x:odds}` of a chance.

    >>> "{:%} of {}, {:points} points".format(Given(0.015), Given(2.0), Ceiling(0.123456))
    '1.5 % of 2, 12.35 points'
    """

    rounded = staticmethod(given)

    def __format__(self, form: str) -> str:
        value = float(self)
        if form == "odds":
            return odds(value)
        if form == "%":
            return f"{self.rounded(100 * min(max(value, 0.0), 1.0))} %"
        return self.rounded(100 * value if form == "points" else value)


class Ceiling(Given):
    """A limit, rounded up."""

    rounded = staticmethod(round_up)


class Floor(Given):
    """A lower bound, rounded down."""

    rounded = staticmethod(round_down)


KEPT = "\n\N{NO-BREAK SPACE}\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
"""What is not printable, and neither moves nor hides a letter: scripts and signs need it."""


def printable(words: str) -> str:
    r"""Words from a file, without control characters, which a terminal or a page would obey.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if words.isprintable():
        return words
    return "".join(
        each if each.isprintable() or each in KEPT else each.encode("unicode_escape").decode()
        for each in words
    )


def in_print(value: Any) -> Any:
    """JSON values whose texts are `printable`."""
    if isinstance(value, Mapping):
        return {name: in_print(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [in_print(each) for each in value]
    return printable(value) if isinstance(value, str) else value


def aligned(rows: Sequence[Sequence[str]], *left: int) -> list[str]:
    """A plain table: the first column and those in `left` to the left, the others to the right.

    >>> aligned([("", "spent"), ("advantage", "0.1")])
    ['           spent', 'advantage    0.1']
    """
    columns = []
    for place, cells in enumerate(zip(*rows, strict=True)):
        pad = str.ljust if place in (0, *left) else str.rjust
        columns.append([pad(cell, max(map(len, cells))) for cell in cells])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def told(*names: str) -> Callable[[object], str]:
    """A `__repr__` that shows only these attributes."""

    def shown(result: object) -> str:
        parts = ", ".join(f"{name}={getattr(result, name)!r}" for name in names)
        return f"{type(result).__name__}({parts})"

    return shown
