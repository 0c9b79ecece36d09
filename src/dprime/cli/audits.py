"""`dprime audit`, `plan` and `bound`: claims put to the test."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from dprime import options
from dprime.audit.config import AuditConfig, usual_options
from dprime.audit.estimators import ESTIMATORS, FOR_TRIALS
from dprime.audit.lower import USUAL_METHOD, bound_json, lower_bound, readings
from dprime.audit.plan_request import ASKED, planned
from dprime.audit.record import AuditRecord
from dprime.audit.scores import read_scores
from dprime.audit.words import SEVERAL, audits_in, seed_in, words_in
from dprime.cli import audit_tables, command
from dprime.cli.command import argument, say, show, takes
from dprime.option import names_of_file, read
from dprime.runs.run import Run
from dprime.runs.states import worker_lines
from dprime.text import round_down

# plan ---------------------------------------------------------------------------------------------


@takes(*ASKED, options.JSON)
def plan(**given: str) -> None:
    """Compute how many trials an audit needs, or what --trials can show."""
    made, lines = planned(given)
    if "json" in given or made["command"] is None:
        show(made, given, *lines)
        return
    sentence, *limits = lines
    show({}, given, sentence)
    say(f"The audit: {made['command']}")
    show({}, given, *limits)


# audit --------------------------------------------------------------------------------------------

AUDIT = (*usual_options(), options.SEED_FROM)
TOML = "TOML file of one audit or several; options override it."


@takes(*AUDIT, *options.BACKENDS, options.RUN, options.FAIL_ON, options.JSON)
def audit(
    file: Annotated[Path | None, argument("FILE", TOML)] = None,
    **given: str,
) -> None:
    """Attack a training repeatedly to test its claim. Exit code 1 if it is refuted."""
    command.check_fail_on(given)
    command.check_torch("an audit")
    values, asked = {} if file is None else words_in(file), read(AUDIT, given)
    if SEVERAL not in values:
        with names_of_file(file, given):
            config = AuditConfig.from_options(values, asked)
        _say_certified("", config)
        path = command.path_of(given, config.adversary, config.data)
        command.starting(f"Starting {config.adversary} on {config.data}", given)
        where = command.backend_of(given, config.device)
        from dprime.audit.audits import begin  # noqa: PLC0415  it needs PyTorch

        finish_audit(path, lambda: begin(config, path, backend=where), given)
        return
    folder = Path(given.get("run", command.FOLDER / (file.stem if file else SEVERAL)))
    configs = {}
    with names_of_file(file, given):
        for name, each in audits_in(values).items():
            kept = seed_in(folder / f"{name}.run")
            configs[name] = AuditConfig.from_options({**kept, **each}, asked)
    for name, config in configs.items():
        _say_certified(f"{name}: ", config)
    _finish_batch(configs, folder, given)


def _say_certified(name: str, config: AuditConfig) -> None:
    if certified := config.certified():
        say(f"{name}{certified}", error=True)


def finish_audit(path: Path, run: Callable[[], AuditRecord], given: Mapping[str, str]) -> None:
    """Run, and print the answer; an interrupted run says how to go on."""
    with command.interruptible(lambda: command.how_to_resume(path)):
        record = run()
    show({"run": str(path), **record.to_dict()}, given, *audit_tables.of_audit(record))
    with Run.open(path, verify=False) as kept:
        workers = kept.workers()
    for line in worker_lines(workers) if len(workers) > 1 else ():
        command.note(line, given)
    command.note(f"Kept in {path}.", given)
    command.exit_on([record.verdict.outcome], given)


def _finish_batch(
    configs: Mapping[str, AuditConfig], folder: Path, given: Mapping[str, str]
) -> None:
    """Play them all and print what they found; finished runs stay whatever happens."""
    command.starting(f"Starting {', '.join(configs)}", given)
    from dprime.audit.audits import Played, play_batch  # noqa: PLC0415  it needs PyTorch
    from dprime.data.devices import device_title  # noqa: PLC0415
    from dprime.runs.contents import versions  # noqa: PLC0415

    where = command.backend_of(given, next(iter(configs.values())).device)
    start, played = time.perf_counter(), list[Played]()
    with command.interruptible(
        lambda: (
            f" after {len(played)} of {len(configs)} audits. Give the same command to go on: runs "
            f"are kept in {folder}."
        )
    ):
        for each in play_batch(configs, folder, backend=where):
            played.append(each)
            count = f"{len(played)} of {len(configs)}"
            outcome = each.record.verdict.outcome
            say(f"{count}: {each.name}, {outcome}, {each.seconds:.1f} s", "dim", error=True)
    answer = {
        "device": sorted({device_title(each.device) for each in configs.values()}),
        "versions": versions(),
        "seconds": time.perf_counter() - start,
        "audits": [_played_json(each) for each in played],
    }
    show(answer, given, *audit_tables.of_batch(played))
    command.note(f"Kept in {folder}; dprime report tells more of each.", given)
    command.exit_on([each.record.verdict.outcome for each in played], given)


def _played_json(played: Any) -> dict[str, Any]:
    shown = {"name": played.name, "run": str(played.path), "seconds": played.seconds}
    shown |= played.record.to_dict()
    return shown


# bound --------------------------------------------------------------------------------------------

ROWS = {
    True: "each row comes from a separate training",
    False: "the rows are canaries of one training, each in or out by its own fair coin",
}
"""What must be true of the rows, of trials of two worlds and of one run."""

CSV = "CSV with the columns score (members high) and world (in, out)."
BOUND = (
    options.METHOD.here(USUAL_METHOD, choices=(*ESTIMATORS,)),
    options.DELTA.here(1e-5),
    options.CONFIDENCE.here(0.95),
)


@takes(*BOUND, options.JSON)
def bound(scores: Annotated[Path, argument("FILE", CSV)], **given: str) -> None:
    """Compute a lower bound on ε from your own attack scores."""
    found = lower_bound(*read_scores(scores), **read(BOUND, given))
    lines = [found.sentence()]
    if each := [f"{metric.title} ≥ {round_down(value)}" for metric, value in readings(found)]:
        lines.append(f"Read off the same curve: {', '.join(each)}.")
    show({found.method: bound_json(found)}, given, *lines)
    rows = ROWS[found.method in FOR_TRIALS]
    words = f"This holds if {rows}, and the method was chosen before the scores were looked at."
    command.note(words, given)
