"""`dprime infer`: who was in the training set? Attacks beside what the certified curve allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from dprime import text, validate
from dprime.cli.options import (
    INTERRUPTED,
    Address,
    AsJson,
    FailOn,
    TimeLimit,
    Where,
    Workers,
    backend_asked,
    check_fail_on,
    check_torch,
    exit_on,
    look_here,
    number_option,
    text_option,
    whole,
)
from dprime.cli.pools import outsiders, pool_named
from dprime.data import Dataset
from dprime.mechanisms import DEFAULT_ADJACENCY
from dprime.text import round_up

if TYPE_CHECKING:
    from dprime.membership.confidence import Interval
    from dprime.membership.inference import Inference

Text = str | None
LARGEST_POPULATION = 1000


def infer(
    data: Annotated[str, text_option("The data set's name; digits if not given.")] = "digits",
    data_dir: Annotated[Text, text_option("The folder of the data sets' files.")] = None,
    pool: Annotated[
        Text, number_option("Records of the pool, from the first; all if not given.")
    ] = None,
    records: Annotated[
        Text, number_option("The first so many of the pool are in question [1000].")
    ] = None,
    model: Annotated[
        Text,
        text_option("linear, dense-64-32, conv-16-32 or module:function; dense-64 if not given."),
    ] = None,
    trainer: Annotated[Text, text_option("Your own training function, module:function.")] = None,
    pi: Annotated[
        str, text_option("π: a record is in a target's part so likely; several: 0.1,0.5 [0.5].")
    ] = "0.5",
    shadow_pi: Annotated[str, number_option("The same for shadow models [0.5].")] = "0.5",
    shadows: Annotated[str, number_option("Models that the attacker trains [64].")] = "64",
    targets: Annotated[str, number_option("Models that are attacked [5].")] = "5",
    attacks: Annotated[
        Text, text_option("E.g. lira,rmia-offline,attack-p; all usual ones if not given.")
    ] = None,
    epsilon: Annotated[Text, number_option("The claim: ε at --delta.")] = None,
    delta: Annotated[str, number_option("δ of the claim [1e-5].")] = "1e-5",
    noise_multiplier: Annotated[Text, number_option("Instead of ε: noise over C.")] = None,
    batch: Annotated[str, number_option("Expected records in a step [64].")] = "64",
    epochs: Annotated[str, number_option("Passes over a part of the pool [20].")] = "20",
    learning_rate: Annotated[Text, number_option("Of SGD [0.5].")] = None,
    clip_norm: Annotated[Text, number_option("C, the clipping norm [1].")] = None,
    momentum: Annotated[Text, number_option("Of SGD [0].")] = None,
    min_tpr: Annotated[str, number_option("For the limit of held-out thresholds [0.01].")] = "0.01",
    confidence: Annotated[str, number_option("Of the intervals [0.95].")] = "0.95",
    seed: Annotated[str, number_option("Gives everything [0].")] = "0",
    device: Annotated[Text, text_option("cpu (if not given) or cuda.")] = None,
    memory: Annotated[Text, number_option("GB that the training may use [2].")] = None,
    backend: Where = "here",
    workers: Workers = None,
    address: Address = None,
    time_limit: TimeLimit = None,
    shadow_file: Annotated[
        Path | None, text_option("Keeps the shadow models' answers, for the same settings only.")
    ] = None,
    charts: Annotated[Path | None, text_option("A folder for the charts.")] = None,
    fail_on: FailOn = "refuted",
    as_json: AsJson = False,
) -> None:
    """Attack models trained on part of a pool: who was in it? Without ε the training is not DP."""
    check_torch("membership inference")
    check_fail_on(fail_on)
    from dprime.membership.inference import USUAL, Asked  # noqa: PLC0415  it needs PyTorch
    from dprime.membership.inference import infer as find  # noqa: PLC0415
    from dprime.membership.recipe import Recipe  # noqa: PLC0415
    from dprime.membership.trainers import Trainers  # noqa: PLC0415

    if charts is not None:
        _check_folder(charts)
    if trainer is not None:
        engine = {"model": model, "learning_rate": learning_rate, "clip_norm": clip_norm,
                  "momentum": momentum, "device": device, "memory": memory}  # fmt: skip
        _check_left_out(engine)
    look_here()
    split, left_out = outsiders(pool_named(data, data_dir, "pool", pool))
    others = split.test.take(range(min(len(split.test), LARGEST_POPULATION)))
    recipe = Recipe(
        batch=whole("batch", batch), epochs=validate.parse("epochs", epochs),
        learning_rate=validate.parse("learning_rate", learning_rate or "0.5"),
        clip_norm=validate.parse("clip_norm", clip_norm or "1"),
        momentum=validate.parse("momentum", momentum or "0"),
        epsilon=None if epsilon is None else validate.parse("epsilon", epsilon),
        delta=validate.parse("delta", delta),
        noise_multiplier=None if noise_multiplier is None
        else validate.parse("noise_multiplier", noise_multiplier),
    )  # fmt: skip
    priors = [validate.parse("pi", each) for each in pi.split(",")]
    trainers = Trainers.named(
        recipe, split.train, model=model or "dense-64", own=trainer, device=device or "cpu",
        memory=validate.parse("memory", memory or "2"),
    )  # fmt: skip
    question = Asked(
        min_tpr=validate.parse("min_tpr", min_tpr),
        confidence=validate.parse("confidence", confidence),
    )
    where = backend_asked(backend, workers, address, time_limit, device or "cpu")
    found: list[Inference] = []
    try:
        for share in priors:
            one = find(
                split.train, others, trainers, claim=trainers.claim(share),
                certified=trainer is None,
                attacks=USUAL if attacks is None else [each.strip() for each in attacks.split(",")],
                probability=share, shadow_probability=validate.parse("shadow_pi", shadow_pi),
                shadows=whole("shadows", shadows), targets=whole("targets", targets),
                records=_in_question(records, split.train), seed=whole("seed", seed),
                asked=question, shadow_file=shadow_file, backend=where,
                shadow_models=found[0].shadow_models if found else None,
            )  # fmt: skip
            found.append(one)
    except KeyboardInterrupt:
        kept = (
            f"Finished shadow models are in {shadow_file}."
            if shadow_file is not None and shadow_file.exists()
            else "Nothing was kept."
        )
        Console(stderr=True).print(f"Stopped. {kept}", highlight=False, soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None
    drawn = [] if charts is None else _drawn(found, data, charts)
    if as_json:
        runs = [each.as_json() for each in found]
        shown = runs[0] if len(runs) == 1 else {"runs": runs}
        population = {"records": len(others), "left_out": left_out}
        shown = {"data": data, "population": population, **shown}
        print(json.dumps(shown, indent=2, allow_nan=False))
        exit_on([each.verdict for each in found], fail_on)
        return
    console = Console()
    if left_out:
        are = (
            "1 record of the test part is"
            if left_out == 1
            else f"{left_out:,} records of the test part are"
        )
        told = f"{are} in the pool too, and left out of the population."
        console.print(told, highlight=False, soft_wrap=True)
    for each in found:
        console.print(found_table(each, data), highlight=False)
        console.print(precision_table(each), highlight=False)
        console.print(each.sentence(), highlight=False)
    for path in drawn:
        console.print(f"Drawn: {path}", style="dim", highlight=False, soft_wrap=True)
    exit_on([each.verdict for each in found], fail_on)


def _check_folder(charts: Path) -> None:
    """A place for charts, before anything is trained."""
    from dprime.show.needs import check_drawing  # noqa: PLC0415  only charts need it

    check_drawing()
    try:
        charts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        wanted = f"a folder to write to ({error.strerror})"
        raise validate.refusal("charts", str(charts), wanted, "give another place") from None


def _check_left_out(engine: dict[str, Text]) -> None:
    """A function of one's own trains as it does: what belongs to the engine would do nothing."""
    for name, given in engine.items():
        if given is not None:
            remedy = "leave it out; batch, epochs and noise_multiplier are what you claim of it"
            raise validate.refusal(name, given, "left out with a trainer of your own", remedy)


def _in_question(records: Text, pool: Dataset) -> int:
    return min(1000, len(pool)) if records is None else whole("records", records)


def found_table(found: Inference, data: str) -> Table:
    """How many members each attack finds, where there are false alarms enough to count."""
    shown = found.counted
    table = _table(
        f"{data}: {found.records:,} records in question, π = {found.probability:g}, "
        f"{found.targets} targets, {found.shadows} shadow models",
        ["AUC", *(f"TPR at FPR {found.asked.fpr[place]:g}" for place in shown)],
    )
    for each in found.outcomes:
        rates = [each.roc.tpr[place] for place in shown]
        table.add_row(each.title, _shown(each.roc.auc), *map(_shown, rates))
    if found.claim is not None:
        allowed = [found.claim.tpr(fpr=found.asked.fpr[place]) for place in shown]
        table.add_row(_at_most(found), "", *map(round_up, allowed))
    table.caption = (
        f"Means over the targets with {100 * found.asked.confidence:g} % Student-t intervals. AUC: "
        "0.5 is guessing. Rates of fewer than ten false alarms are left out."
    )
    return table


def precision_table(found: Inference) -> Table:
    """How often "member" is right, and what choosing a threshold afterwards gives for nothing."""
    surest = f"Surest {100 * found.asked.top_share:g} %"
    table = _table('How often "member" is right', [surest, "Held out", "Best of 40", "Shuffled"])
    for each in found.outcomes:
        cells = (_shown(each.top), _shown(each.held_out), _shown(each.best))
        table.add_row(each.title, *cells, f"{each.shuffled.value:.3f}")
    if found.allowed_top is not None and found.allowed_precision is not None:
        limits = (round_up(found.allowed_top), round_up(found.allowed_precision))
        table.add_row(_at_most(found), *limits, "", "")
    table.caption = (
        "Held out: threshold chosen on other records. Best of 40: the best of the top 2.5 %, 5 %, "
        "…, chosen after looking; shuffled scores reach the last column for nothing."
    )
    if found.claim is not None:
        share = f"{100 * found.asked.min_tpr:g} %"
        table.caption += (
            " At most: of attacks that name as many; held out, of attackers who find at least "
            f"{share} of the members."
        )
        if found.certified:
            table.caption += f" {text.certified(DEFAULT_ADJACENCY)}. Also: {text.POOL}."
    return table


def _at_most(found: Inference) -> str:
    return "At most (certified)" if found.certified else "Allowed by the claim"


def _table(title: str, columns: list[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.caption_justify = "left"
    table.add_column("Attack")
    for name in columns:
        table.add_column(name, justify="right")
    return table


def _shown(interval: Interval | None) -> str:
    return "none" if interval is None else interval.text()


def _drawn(found: list[Inference], data: str, folder: Path) -> list[Path]:
    """Each π's curves; with several, also each attack's precision against π."""
    from dprime.show.membership import precision_figures, roc_figure  # noqa: PLC0415  it draws

    ending = [f"-{each.probability:g}" for each in found] if len(found) > 1 else [""]
    drawn = [
        roc_figure(each, data).save(folder / f"membership-roc{end}.svg")
        for each, end in zip(found, ending, strict=True)
    ]
    if len(found) > 1:
        for name, figure in precision_figures(found, data).items():
            drawn.append(figure.save(folder / f"precision-over-prior-{name}.svg"))
    return drawn
