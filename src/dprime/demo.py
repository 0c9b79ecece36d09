"""The handshake: one worked example, from what a training reveals to the noise that it needs."""

from __future__ import annotations

from rich.console import Console
from rich.markdown import Markdown

from dprime.choose import choose
from dprime.cli.tables import describe, risk_table
from dprime.mechanisms import DPSGD
from dprime.profile import Questions, risk_profile, round_up

RECORDS, BATCH, EPOCHS, NOISE = 60_000, 256, 60, 0.8


def run(console: Console) -> None:
    """Print the example; every number is computed here and now."""
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
    before = risk_profile(today.curve(), Questions())
    console.print(risk_table(describe(today, "add-remove"), before))
    console.print(
        Markdown(
            "# And if that is too much?\n\n"
            "The team decides that nobody may find more than **2 %** of the members while wrongly "
            "accusing 1 % of the others. dprime finds the noise:"
        )
    )
    chosen = choose(DPSGD(sample_rate=today.sample_rate, steps=today.steps), tpr=0.02, fpr=0.01)
    assert chosen.noise_multiplier is not None
    after = risk_profile(chosen.curve(), Questions())
    described = describe(chosen, "add-remove", chosen="noise_multiplier")
    console.print(risk_table(described, after))
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
