"""`dprime demo`: one worked example, from what a training reveals to the noise that it needs."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from dprime import text
from dprime.audit.config import AuditConfig
from dprime.cli.tables import risk_table
from dprime.mechanisms import DPSGD
from dprime.metrics import risk_profile
from dprime.solve import choose
from dprime.text import round_up

RECORDS, BATCH, EPOCHS, NOISE = 60_000, 256, 60, 0.8
TRIALS = 1000


def demo() -> None:
    """Run a worked example, which ends with a real audit."""
    console = Console()  # every number below is computed here and now
    steps = EPOCHS * RECORDS // BATCH
    today = DPSGD(noise_multiplier=NOISE, sample_rate=BATCH / RECORDS, steps=steps)
    console.print(
        Markdown(
            "# What does this training reveal about one person?\n\n"
            f"A team trains a model on {RECORDS:,} records with DP-SGD: batches of {BATCH}, "
            f"{EPOCHS} epochs, noise multiplier {NOISE}. Someone who sees every update of the "
            "training wants to know whether *your* record was in it."
        )
    )
    before = risk_profile(today.curve())
    console.print(risk_table(text.describe(today.to_dict(), "add-remove"), before, "add-remove"))
    console.print(
        Markdown(
            "# And if that is too much?\n\n"
            "The team decides that nobody may find more than **2 %** of the members while wrongly "
            "accusing 1 % of the others. dprime finds the noise:"
        )
    )
    chosen = choose(DPSGD(sample_rate=today.sample_rate, steps=today.steps), tpr=0.02, fpr=0.01)
    assert chosen.noise_multiplier is not None
    after = risk_profile(chosen.curve())
    described = text.describe(chosen.to_dict(), "add-remove", chosen="noise_multiplier")
    console.print(risk_table(described, after, "add-remove"))
    found = [
        round_up(100 * answer.value, 3)
        for answers in (before, after)
        for answer in answers
        if answer.name == "tpr"
    ]
    console.print(
        Markdown(
            f"Noise **{NOISE} → {round_up(chosen.noise_multiplier, 4)}** brings the share of "
            f"members that anyone can find, wrongly accusing 1 % of the others, from at most "
            f"{found[0]} % down to at most {found[1]} %. The same from the command line:\n\n"
            f"    dprime risk --noise-multiplier {NOISE} --sample-rate {BATCH}/{RECORDS} "
            f"--steps {steps}\n"
            f"    dprime choose --tpr 0.02 --fpr 0.01 --sample-rate {BATCH}/{RECORDS} "
            f"--steps {steps}"
        )
    )
    _put_to_the_test(console)


def _put_to_the_test(console: Console) -> None:
    """A real audit of a small training, and of the same with half of its noise."""
    console.print(
        Markdown(
            "# Is it true?\n\n"
            "A claim can be put to the test. The strongest adversary trains a small model on "
            f"scikit-learn's digits {2 * TRIALS:,} times, half of them with a record that it "
            "made, sees every update, and says which were which. First a correct training with "
            "ε = 4, then the same with half of the noise that is claimed. The claim is the whole "
            "certified curve:"
        )
    )
    if find_spec("torch") is None:
        words = f"This part needs PyTorch: {text.install('train')}"
        console.print(words, highlight=False, markup=False)
        return
    from dprime.audit.audits import begin  # noqa: PLC0415  it needs PyTorch
    from dprime.cli.audit_tables import audit_table  # noqa: PLC0415

    chosen = AuditConfig.from_words({"claim": {"epsilon": 4.0}, "seed": 1})
    noise = chosen.training["noise_multiplier"]
    for used in (noise, noise / 2):
        config = AuditConfig.from_words({
            "max_records": 100, "trials": TRIALS, "seed": 2, "training": {"noise_multiplier": used},
            "claim": {"noise_multiplier": noise},
        })  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            record = begin(config, Path(folder) / "demo.run")
        if used == noise:
            console.print(audit_table(record))
        console.print(record.sentence, style="bold", highlight=False)
    console.print(
        Markdown(
            "The same from the command line:\n\n    dprime audit --epsilon 4 --max-records 100"
        )
    )
