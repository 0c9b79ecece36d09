"""What the answers look like, for the OpenAPI description."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dprime.mechanisms import Adjacency


class Model(BaseModel):
    """An object with these entries and no other."""

    model_config = ConfigDict(extra="forbid")


class Refused(Model):
    """One sentence that says what would be right."""

    detail: str


class Slider(Model):
    """A number that moves in steps."""

    title: str
    help: str
    positions: list[float]
    default: float
    shown: list[str]


class Target(Model):
    """An acceptable risk, and the parameters that are its conditions."""

    name: str
    title: str
    positions: list[float]
    default: float
    shown: list[str]
    conditions: list[str]


class Named(Model):
    """A name, and what people call it."""

    name: str
    title: str


class Options(Model):
    """What the page can be set to."""

    version: str
    parameters: dict[str, Slider]
    adjacency: list[str]
    targets: list[Target]
    free: list[Named]
    figures: list[str]
    over: list[str]


class Mechanism(Model):
    """What was run."""

    name: Literal["DPSGD"]
    noise_multiplier: float = Field(gt=0)
    sample_rate: float = Field(gt=0, le=1)
    steps: int = Field(ge=1)
    sampling: Literal["poisson"]


class Metric(BaseModel):
    """A certified number, with the conditions that it is read at."""

    model_config = ConfigDict(extra="allow")

    value: float | None
    kind: Literal["certified"]


class Answer(Model):
    """A certified number as people read it; `shown` is rounded to the safe side."""

    name: str
    title: str
    shown: str
    value: float | None
    kind: Literal["certified"]
    sentence: str


class Figure(Model):
    """The numbers of a drawing, with the finding and the text alternative."""

    name: str
    title: str
    text: str
    rows: list[dict[str, float | str | bool | None]]


class Risk(Model):
    """What no attacker can beat."""

    mechanism: Mechanism
    adjacency: Adjacency
    group_size: int = Field(ge=1)
    metrics: dict[str, Metric]
    answers: list[Answer]
    described: str
    certified: str
    certified_in_full: str
    command: str
    figures: dict[str, Figure]


class Chosen(Model):
    """The parameter that was found; `shown` may be typed in again."""

    name: Literal["noise_multiplier", "sample_rate", "steps"]
    value: float
    shown: str


class Choice(Risk):
    """The same, with the parameter that was found."""

    chosen: Chosen


class Run(Model):
    """A run in the folder."""

    name: str
    adversary: str
    data: str
    blocks: int
    done: int
    total_trials: int
    state: Literal["complete", "running", "failed", "incomplete"]
    changed: str
    verdict: str | None
    sentence: str | None
    report: bool


class RunList(Model):
    """The runs in the folder, and why its other files are none."""

    runs: list[Run]
    not_runs: dict[str, str]


Plain = dict[str, Any]
