"""Numbers as titles and labels say them: ceilings rounded up, floors down, the rest as it is."""

from __future__ import annotations

import math
from decimal import Decimal

from dprime.text import round_down, round_up

DIGITS = 3
"""Significant digits in a title."""

PLAIN_EXPONENTS = range(-7, 7)
"""Powers of ten that are written out."""


def up(value: float, digits: int = DIGITS) -> str:
    """A ceiling.

    >>> up(0.040049), up(2.0), up(0.00001234)
    ('0.0401', '2', '0.0000124')
    """
    return _plain(round_up(value, digits))


def down(value: float, digits: int = DIGITS) -> str:
    """A floor.

    >>> down(0.040049), down(0.0)
    ('0.04', '0')
    """
    return _plain(round_down(value, digits)) if value > 0 else "0"


def near(value: float, digits: int = DIGITS) -> str:
    """A number that was given, or an estimate: rounded to the nearest.

    >>> near(0.123456), near(14_000)
    ('0.123', '14,000')
    """
    if value >= 1000:
        return f"{value:,.0f}"
    return _plain(f"{value:.{digits}g}")


def percent_up(share: float, digits: int = DIGITS) -> str:
    """A share that is a ceiling.

    >>> percent_up(0.040049), percent_up(1.0)
    ('4.01 %', '100 %')
    """
    return f"{up(100 * min(share, 1.0), digits)} %"


def percent_down(share: float, digits: int = DIGITS) -> str:
    """A share that is a floor; less than certain is never printed as 100 %.

    >>> percent_down(0.0129), percent_down(0.99999)
    ('1.29 %', '99.9 %')
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


def _plain(text: str) -> str:
    """Without an exponent where that is readable."""
    value = Decimal(text)
    if not value.is_finite():
        return "∞" if value > 0 else "-∞"
    if value and math.floor(value.adjusted()) not in PLAIN_EXPONENTS:
        return text
    written = format(value, "f")
    return written.rstrip("0").rstrip(".") if "." in written else written
