"""`dprime resume`: go on with a run where it was left, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dprime import validate
from dprime.cli import options
from dprime.cli.tables import show
from dprime.runs.run import Run

OF_MODELS = ("that of shadow models alone", "one with a result")
EARLIER = ("of an earlier one", "of this version of dprime", "infer again")


def resume(
    run: Annotated[Path, typer.Argument(help="The run's file.")],
    backend: options.Where = "here",
    workers: options.Workers = None,
    address: options.Address = None,
    time_limit: options.TimeLimit = None,
    fail_on: options.FailOn = "refuted",
    as_json: options.AsJson = False,
) -> None:
    """Go on with a run where it was left; no finished block is played again."""
    options.check_fail_on(fail_on)
    options.check_torch("an audit")
    with Run.open(run, verify=False) as opened:
        kind, request = opened.kind, opened.request
    device = "auto" if request is None else request["device"]
    where = options.backend_asked(backend, workers, address, time_limit, device)
    if kind == "audit":
        from dprime.audit.audits import resume as go_on  # noqa: PLC0415  it needs PyTorch
        from dprime.cli.audits import finish_audit  # noqa: PLC0415

        finish_audit(run, lambda: go_on(run, backend=where), as_json, fail_on)
    elif request is None:
        raise _without_names(run, kind)
    elif kind == "inference":
        if "config" not in request:
            raise validate.invalid_input("run", *EARLIER)
        from dprime.cli.inferences import finish_inference  # noqa: PLC0415

        options.exit_on([finish_inference(request, run, where, as_json).verdict], fail_on)
    else:
        from dprime.cli.frontiers import finish_frontier  # noqa: PLC0415

        finish_frontier(request, run, where, as_json)


def _without_names(run: Path, kind: str) -> validate.InputError:
    """The error for a run that was begun in Python with objects."""
    if kind == "models":
        remedy = "resume the inference that has them as its --shadow-file"
        return validate.invalid_input("run", *OF_MODELS, remedy)
    remedy = (
        "call the same function again with the same file, or "
        f"dprime {'infer' if kind == 'inference' else kind} with the options that describe it and "
        f"--out {run}"
    )
    shown = "one that was begun in Python, with objects that have no name"
    return validate.invalid_input("run", shown, "described by names", remedy)


def print_kept(path: Path, kind: str, result: Mapping[str, Any] | None) -> None:
    """The tables of what an inference or a frontier has kept."""
    if kind == "models":
        remedy = "report the inference that they were trained for"
        raise validate.invalid_input("run", *OF_MODELS, remedy)
    if result is None:
        remedy = f"dprime resume {path.name}"
        raise validate.invalid_input("run", "not concluded yet", "concluded", remedy)
    if kind == "frontier":
        from dprime.cli.frontiers import frontier_table  # noqa: PLC0415

        show(result, False, frontier_table(result), result["sentence"])
    elif "inferences" in result:
        from dprime.cli.inferences import inference_tables  # noqa: PLC0415

        show(result, False, *inference_tables(result))
    else:
        raise validate.invalid_input("run", *EARLIER)
