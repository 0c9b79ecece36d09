"""Numbers and lists as titles say them: ceilings rounded up, floors down, the rest as it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from dprime.text import round_down, round_up

DIGITS = 4
"""Significant digits in a title."""

READ_ALOUD = 9
"""The number of points of a series in its text alternative."""

PLAIN_EXPONENTS = range(-7, 7)
"""Powers of ten that are written out."""


def up(value: float, digits: int = DIGITS) -> str:
    """A ceiling.

    >>> up(0.040049), up(2.0), up(0.00001234)
    ('0.04005', '2', '0.00001234')
    """
    return _plain(round_up(value, digits))


def down(value: float, digits: int = DIGITS) -> str:
    """A floor.

    >>> down(0.040049), down(0.0), down(-0.00123)
    ('0.04004', '0', '-0.00123')
    """
    return _plain(round_down(value, digits))


def near(value: float, digits: int = DIGITS) -> str:
    """A number that was given, or an estimate: rounded to the nearest.

    >>> near(0.123456), near(14_000)
    ('0.1235', '14,000')
    """
    if value >= 1000:
        return f"{value:,.0f}"
    return _plain(f"{value:.{digits}g}")


def percent_up(share: float, digits: int = DIGITS) -> str:
    """A share that is a ceiling.

    >>> percent_up(0.040049), percent_up(1.0)
    ('4.005 %', '100 %')
    """
    return f"{up(100 * min(share, 1.0), digits)} %"


def percent_down(share: float, digits: int = DIGITS) -> str:
    """A share that is a floor; less than certain is never printed as 100 %.

    >>> percent_down(0.0129), percent_down(0.99999)
    ('1.29 %', '99.99 %')
    """
    return f"{down(100 * max(share, 0.0), digits)} %"


def percent(share: float, digits: int = DIGITS) -> str:
    """A share that was given or counted; printed as 0 % or 100 % only where it is just that.

    >>> percent(0.01), percent(0.9996), percent(0.9999999), percent(1.0)
    ('1 %', '99.96 %', '99.99999 %', '100 %')
    """
    for more in range(digits, 13):
        text = f"{100 * share:.{more}g}"
        if share in (0.0, 1.0) or float(text) not in (0.0, 100.0):
            break
    return f"{_plain(text)} %"


def counted(number: int, word: str) -> str:
    """A number of things.

    >>> counted(1, "step"), counted(2000, "step")
    ('1 step', '2,000 steps')
    """
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def inside(title: str) -> str:
    """A title inside a sentence: a word begins small, a symbol or an acronym stays.

    >>> inside("Membership advantage"), inside("TPR at FPR 0.01")
    ('membership advantage', 'TPR at FPR 0.01')
    """
    return title[0].lower() + title[1:] if title[1:2].islower() else title


def share_range(low: float, high: float) -> str:
    """An interval of a share, never printed narrower than it is.

    >>> share_range(0.12344, 0.2)
    '12.34 % to 20 %'
    """
    return f"{percent_down(low)} to {percent_up(high)}"


def points(difference: float) -> str:
    """A difference of shares in percentage points, with two digits.

    >>> points(0.0512), points(-0.004), points(-0.0)
    ('5.1', '-0.4', '0')
    """
    return near(100 * difference + 0.0, 2)  # without the sign of -0


def some_of(count: int, most: int = READ_ALOUD) -> list[int]:
    """Places to read aloud out of `count`: both ends, and some between.

    >>> some_of(13, 5), some_of(2)
    ([0, 3, 6, 9, 12], [0, 1])
    """
    return sorted({round(at * (count - 1) / (most - 1)) for at in range(most)}) if count else []


def by_luck(count: int, confidence: float) -> int:
    """The expected number of intervals that lie wholly above the truth by luck, rounded up.

    >>> by_luck(25, 0.95)
    1
    """
    return math.ceil(count * (1.0 - confidence) / 2.0 - 1e-9)


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Words as a list in a sentence.

    >>> listed(["10 %"]), listed(["10 %", "30 %", "50 %"])
    ('10 %', '10 %, 30 % and 50 %')
    """
    return f" {last} ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def sentence(name: str) -> str:
    """A name at the beginning of a sentence.

    >>> sentence("attack R"), sentence("ε = 3")
    ('Attack R', 'ε = 3')
    """
    return name[:1].upper() + name[1:] if name[:1].isascii() else name


def _plain(text: str) -> str:
    """Without an exponent where that is readable."""
    value = Decimal(text)
    if not value.is_finite():
        return "∞" if value > 0 else "-∞"
    if value and math.floor(value.adjusted()) not in PLAIN_EXPONENTS:
        return text
    written = format(value, "f")
    return written.rstrip("0").rstrip(".") if "." in written else written
