"""What is asked of every tool: one fixed list, so that two runs differ in the machine only."""

from __future__ import annotations

from dataclasses import dataclass

DELTA = 1e-5
FPR = 0.01


@dataclass(frozen=True)
class Setting:
    """One DP-SGD training: noise multiplier, Poisson sampling rate, steps."""

    noise: float
    rate: float
    steps: int


CHECK_VALUES = (
    Setting(1.0, 0.01, 2_000),
    Setting(0.7, 0.001, 10_000),
    Setting(1.0, 0.001, 50_000),
    Setting(2.0, 1e-4, 500_000),
    Setting(4.0, 0.1, 300),
)
"""The settings whose values the project's tests pin to five digits."""

SPAN = (
    # Rate 1e-5: nearly all of a step's loss is tiny, one step in a million loses 5 or more.
    Setting(0.5, 1e-5, 100_000),
    Setting(0.5, 1e-5, 1_000_000),
    Setting(0.6, 1e-5, 1_000_000),
    Setting(0.8, 1e-5, 1_000_000),
    Setting(1.0, 1e-5, 1_000_000),
    Setting(2.0, 1e-5, 1_000_000),
    # Rate 1e-4.
    Setting(0.5, 1e-4, 10_000),
    Setting(0.5, 1e-4, 100_000),
    Setting(0.6, 1e-4, 100_000),
    Setting(0.7, 1e-4, 1_000_000),
    Setting(0.8, 1e-4, 1_000_000),
    Setting(1.0, 1e-4, 1_000_000),
    Setting(4.0, 1e-4, 1_000_000),
    # Rate 1e-3.
    Setting(0.5, 0.001, 1_000),
    Setting(0.6, 0.001, 10_000),
    Setting(0.8, 0.001, 50_000),
    Setting(1.5, 0.001, 200_000),
    Setting(2.0, 0.001, 1_000_000),
    Setting(8.0, 0.001, 1_000_000),
    # The training that everyone quotes: 60,000 records, batches of 256, 60 epochs.
    Setting(1.1, 256 / 60_000, 14_062),
    # Rate 0.01 to 0.05.
    Setting(0.5, 0.01, 100),
    Setting(0.6, 0.01, 1_000),
    Setting(0.8, 0.01, 1_000),
    Setting(1.5, 0.01, 10_000),
    Setting(2.0, 0.01, 2_000),
    Setting(4.0, 0.01, 100_000),
    Setting(10.0, 0.01, 1_000_000),
    Setting(3.0, 0.02, 20_000),
    Setting(1.0, 0.05, 500),
    # Rate 0.1: few steps, or much noise.
    Setting(0.7, 0.1, 100),
    Setting(0.8, 0.1, 1_000),
    Setting(1.0, 0.1, 100),
    Setting(2.0, 0.1, 1_000),
    Setting(8.0, 0.1, 10_000),
    Setting(20.0, 0.1, 100_000),
    Setting(50.0, 0.1, 1_000_000),
)

SETTINGS = CHECK_VALUES + SPAN

WARM_UP = Setting(3.0, 0.05, 100)
"""Asked once before anything is timed, and nowhere else: a tool may remember its answer."""

QUICK = (*CHECK_VALUES[:2], Setting(0.5, 1e-5, 1_000_000))

HEAVIEST = (
    Setting(0.5, 1e-5, 1_000_000),
    Setting(0.5, 1e-4, 100_000),
    Setting(0.7, 1e-4, 1_000_000),
    Setting(0.8, 0.1, 1_000),
    Setting(2.0, 0.001, 1_000_000),
)
"""Where the grids of all tools are longest: for the memory table."""


@dataclass(frozen=True)
class Goal:
    """A risk to keep, for a training whose noise is to be found."""

    rate: float
    steps: int
    ceiling: float


ADVANTAGE_GOALS = (
    Goal(0.01, 2_000, 0.1),
    Goal(0.1, 300, 0.1),
    Goal(0.001, 10_000, 0.1),
    Goal(256 / 60_000, 14_062, 0.1),
    Goal(0.001, 50_000, 0.05),
    Goal(1e-4, 500_000, 0.02),
    Goal(0.1, 10_000, 0.1),
)

TPR_GOALS = (
    Goal(0.1, 1_000, 0.03),
    Goal(0.01, 2_000, 0.03),
    Goal(0.2, 500, 0.03),
    Goal(0.1, 300, 0.03),
    Goal(0.001, 10_000, 0.03),
    Goal(256 / 60_000, 14_062, 0.02),
)
"""Few: riskcal needs one to three minutes for each with its default options."""
