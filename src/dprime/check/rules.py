"""Every mistake that is looked for: its code, how bad it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dprime.text import GRID

Severity = Literal["error", "warning", "note"]

MEANINGS: dict[Severity, str] = {
    "error": "the guarantee does not hold",
    "warning": "the guarantee may not hold, or not for what it seems to",
    "note": "good to know; what the guarantee rests on, or what has no effect on it",
}


@dataclass(frozen=True)
class Rule:
    """One kind of mistake.

    Attributes:
        code: its name in comments and reports.
        severity: "error", "warning" or "note".
        title: the mistake in a few words.
        why: one sentence on why it matters.
        remedy: one sentence on what to do.
    """

    code: str
    severity: Severity
    title: str
    why: str
    remedy: str


@dataclass(frozen=True)
class Finding:
    """A mistake at a place.

    Attributes:
        code: of the rule.
        line: in the file, from 1; None where a whole run is meant.
        sentence: what is wrong here.
        place: where that is, in words ("line 12", "cell 3, line 4").
    """

    code: str
    line: int | None
    sentence: str
    place: str = ""

    @property
    def rule(self) -> Rule:
        """The kind of mistake."""
        return RULES[self.code]

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "code": self.code,
            "severity": self.rule.severity,
            "line": self.line,
            "place": self.place,
            "sentence": self.sentence,
            "why": self.rule.why,
            "remedy": self.rule.remedy,
        }


_ALL = (
    Rule(
        "DP001",
        "warning",
        "no private training",
        "Nothing in this file makes a training private in a way that this check can read.",
        "Give the script that calls Opacus' make_private.",
    ),
    Rule(
        "DP002",
        "error",
        "engine without make_private",
        "An engine alone changes nothing: gradients are neither clipped nor noised.",
        "Call make_private, and train with what it returns.",
    ),
    Rule(
        "DP101",
        "error",
        "batches are not Poisson",
        "Opacus accounts for every batch as if each record were drawn independently; for shuffled "
        "batches of a fixed size the ε that it reports is not proved, and can be too small.",
        "Leave poisson_sampling at True, or certify the run with dprime risk --sampling shuffle "
        "--adjacency replace.",
    ),
    Rule(
        "DP102",
        "error",
        "training on another loader",
        "The accountant counts batches drawn by the loader that make_private returned; other "
        "batches hold other records at another rate.",
        "Run the training loop over the loader that make_private returned.",
    ),
    Rule(
        "DP103",
        "error",
        "records drawn with weights",
        "Records with a larger weight are in more batches than the accountant counts.",
        "Draw all records alike (Poisson sampling). Where classes differ, weigh each record's own "
        "loss (reduction='none', times its weight, then the mean).",
    ),
    Rule(
        "DP104",
        "note",
        "sampler set aside",
        "Opacus replaces the loader's sampler by Poisson sampling: the guarantee holds, but the "
        "sampler's weights or order have no effect.",
        "Drop the sampler. Where classes differ, weigh each record's own loss (reduction='none', "
        "times its weight, then the mean).",
    ),
    Rule(
        "DP105",
        "error",
        "accounting by hand for plain batches",
        "The accountant assumes that each record is in a batch independently of the others; a "
        "plain DataLoader cuts the data into batches of a fixed size.",
        "Let make_private or DPDataLoader.from_data_loader make the loader.",
    ),
    Rule(
        "DP106",
        "error",
        "gradients gathered over several batches",
        "A record may be in several of the batches and is clipped in each for itself, so it can do "
        "more to the sum than the noise is made for, and than the accountant counts.",
        "Use a larger batch_size, and BatchMemoryManager to cut it to what fits in memory.",
    ),
    Rule(
        "DP107",
        "error",
        "one batch for several steps",
        "The noise is fresh, but a record of that batch is in every one of these steps, while the "
        "accountant counts each as a batch of its own: drawing at random gains nothing then.",
        "Take one step for each batch that the loader gives; for more steps, run over the loader "
        "again.",
    ),
    Rule(
        "DP108",
        "error",
        "a random record in place of an empty batch",
        "A record that is alone in its batch then takes the place of a random one, which moves the "
        "sum by up to two clipping norms; the noise is accounted for one.",
        "Leave rand_on_empty at False.",
    ),
    Rule(
        "DP109",
        "error",
        "the rate of the batches is changed",
        "The accountant goes on with the rate that the loader had in make_private.",
        "Give the DataLoader the batch_size that is wanted before make_private.",
    ),
    Rule(
        "DP201",
        "error",
        "normalisation that mixes records",
        "With batch normalisation each record changes the gradients of all the others in its "
        "batch, so clipping one record's gradient does not bound what that record does.",
        "Call ModuleValidator.fix(model) before the optimizer is made, or use GroupNorm.",
    ),
    Rule(
        "DP202",
        "warning",
        "perhaps normalisation that mixes records",
        "Batch normalisation in the model that is made private would break its clipping.",
        "Make sure that ModuleValidator.fix or GroupNorm is used for the private model.",
    ),
    Rule(
        "DP203",
        "warning",
        "a number across the records of a batch",
        "With it each record changes the gradients of the others, so clipping one record's "
        "gradient does not bound what that record does.",
        "Let inputs and loss be made of each record for itself, and average the losses alone.",
    ),
    Rule(
        "DP204",
        "warning",
        "a number across the batch in forward",
        "Where forward takes a mean, a spread or a softmax across the records, each record changes "
        "the gradients of the others, so clipping one record's gradient does not bound what that "
        "record does.",
        "Let forward compute each record's output from that record alone.",
    ),
    Rule(
        "DP301",
        "error",
        "optimizer of another model",
        "Parameters that are not those of the private model have no gradients for each record, so "
        "they are not trained, or trained without protection.",
        "Make the optimizer from the parameters of the very model that make_private gets, after "
        "ModuleValidator.fix.",
    ),
    Rule(
        "DP302",
        "error",
        "a second optimizer",
        "It applies gradients of the private model that are neither clipped nor noised nor "
        "counted.",
        "Train all parameters of the model with the optimizer that make_private returned.",
    ),
    Rule(
        "DP303",
        "error",
        "the old optimizer steps",
        "Only the optimizer that make_private returned clips, adds noise and counts; the one that "
        "it was made from applies the bare gradients.",
        "Call step() on the optimizer that make_private returned.",
    ),
    Rule(
        "DP304",
        "error",
        "batch gradient clipped, not each record's",
        "Clipping the sum over a batch does not bound what one record adds to it, so no noise on "
        "it gives a guarantee.",
        "Clip each record's gradient: let Opacus' make_private do the training.",
    ),
    Rule(
        "DP305",
        "note",
        "clipping that is not for privacy",
        "Opacus has its own clipping, of each record's gradient: for privacy this call does "
        "neither good nor harm; by default step() sets its result aside, with ghost clipping it "
        "shortens the sum but not the noise, which harms the training.",
        "Remove the call; max_grad_norm is what clips.",
    ),
    Rule(
        "DP306",
        "error",
        "parameters updated by hand",
        "The bare gradient goes into the weights without clipping, noise or accounting.",
        "Leave the update to the optimizer that make_private returned.",
    ),
    Rule(
        "DP307",
        "warning",
        "a clipping norm that clips nothing",
        "The noise grows with the clipping norm; where the noise multiplier was made small to make "
        "up for it, almost nothing is protected.",
        "Clip at a norm that many gradients reach, often between 0.1 and 10.",
    ),
    Rule(
        "DP308",
        "warning",
        "adaptive clipping",
        "Opacus counts the clipped records of each batch and divides by the batch's true size, "
        "which no published analysis covers with Poisson sampling.",
        'Use clipping="flat" with a fixed max_grad_norm.',
    ),
    Rule(
        "DP309",
        "error",
        "the noise follows the norm, the clipping does not",
        "With ghost clipping and with clipping for each layer, a new max_grad_norm changes the "
        "noise alone: gradients are still clipped to the norm of make_private.",
        "Keep one max_grad_norm, or change it in the default mode (hooks, flat clipping).",
    ),
    Rule(
        "DP310",
        "warning",
        "the clipping norm is set during the training",
        "A norm that is computed from gradients, weights before the noise or records tells of "
        "them, and nothing counts that.",
        "Fix the norm or its schedule in advance (opacus.schedulers).",
    ),
    Rule(
        "DP311",
        "error",
        "ghost clipping with a loss of one's own",
        "With ghost clipping it is the criterion that make_private returned that clips; any other "
        "loss gives the gradients to the optimizer as they are.",
        "Compute the loss with the criterion that make_private returned, and call its backward().",
    ),
    Rule(
        "DP312",
        "error",
        "gradients changed after ghost clipping",
        "Ghost clipping clips in backward(): what is done to the gradients afterwards is done to "
        "the clipped sum, and the noise need not fit it any more.",
        "Leave the gradients as they are; clip_grad_norm_ with norm 2 and a fixed max_norm is a "
        "projection, and harmless.",
    ),
    Rule(
        "DP401",
        "error",
        "training goes on, the count starts again",
        "The steps before the checkpoint have spent privacy that the new accountant does not know.",
        "Save and load with privacy_engine.save_checkpoint and load_checkpoint, or load the "
        "accountant's state_dict too.",
    ),
    Rule(
        "DP402",
        "note",
        "training starts from saved weights",
        "If they were trained on the same people's data, what that revealed is not counted here.",
        "Where they come from the same data, load the accountant's state too; public weights are "
        "fine.",
    ),
    Rule(
        "DP403",
        "error",
        "a new engine for the same model",
        "Each engine counts only its own steps, so the ε that it reports leaves out the others.",
        "Make one PrivacyEngine, before the loop, for the whole training.",
    ),
    Rule(
        "DP404",
        "warning",
        "ε is read before the training",
        "At that time nothing has been counted: the number says nothing about the model.",
        "Call get_epsilon after the last step.",
    ),
    Rule(
        "DP405",
        "error",
        "the accountant's hook is replaced",
        "An optimizer has one step hook, and Opacus' accountant counts in it: with another, no "
        "step is counted.",
        "Keep the accountant's hook, and call your own code after step().",
    ),
    Rule(
        "DP406",
        "error",
        "the accountant's history is changed",
        "Steps that were taken cannot be taken back: what they revealed stays revealed.",
        "Leave the accountant and its history alone; use a new engine only for other data.",
    ),
    Rule(
        "DP407",
        "warning",
        "the noise is changed during the training",
        "Opacus counts the new value from the next step on, but an ε that was planned or stated "
        "for the first one no longer holds.",
        "Use a scheduler of opacus.schedulers, and read ε after the last step.",
    ),
    Rule(
        "DP408",
        "error",
        "no noise",
        "Without noise every record can show itself, whatever the clipping.",
        "Give a noise multiplier above 0; dprime choose finds the one that keeps a risk.",
    ),
    Rule(
        "DP409",
        "error",
        "steps that were not counted",
        "What those steps revealed is missing from the reported ε.",
        "Train with the optimizer that make_private returned, and save its accountant at the end.",
    ),
    Rule(
        "DP410",
        "error",
        "the inner optimizer steps",
        "original_optimizer is the plain one inside Opacus' own: its step() neither clips nor adds "
        "noise nor counts.",
        "Call step() on the optimizer that make_private returned.",
    ),
    Rule(
        "DP411",
        "error",
        "more epochs than the noise was chosen for",
        "make_private_with_epsilon chooses the noise for the epochs that it is given; each epoch "
        "more spends more than the target.",
        "Give epochs= the number of epochs that the training really has.",
    ),
    Rule(
        "DP412",
        "warning",
        "a target ε with a noise that changes",
        "make_private_with_epsilon chooses one noise for the whole training; where a schedule "
        "lowers it, more than the target is spent.",
        "Give the noise to make_private yourself, and read ε after the last step.",
    ),
    Rule(
        "DP413",
        "warning",
        "an accountant that can be too low",
        'accountant="gdp" takes the limit of infinitely many small steps for the training. The '
        "noise that it chooses for ε = 3 (rate 0.01, 1,000 steps, δ = 1e-5) has ε = 3.886.",
        'Use accountant="prv" (the default) or "rdp", or let dprime risk or dprime.monitor count.',
    ),
    Rule(
        "DP501",
        "warning",
        "δ above 1/N",
        "A training that publishes one whole record out of N keeps δ = 1/N: such a δ promises "
        "nobody anything.",
        "Choose δ well below 1/N, for example 1/(10 N).",
    ),
    Rule(
        "DP502",
        "warning",
        "a large δ",
        "δ is the chance that the promise of ε may fail altogether, for every record.",
        "Choose δ well below one over the number of records.",
    ),
    Rule(
        "DP601",
        "warning",
        "several trainings on the same data",
        "Each run spends privacy, and choosing the best of them reveals something of all: the ε of "
        "one run does not cover that.",
        "Compose all runs (dprime.Composition), tune on public data, or select privately (Liu and "
        "Talwar 2019; Papernot and Steinke 2022).",
    ),
    Rule(
        "DP602",
        "warning",
        "a choice by a training metric",
        "The loss on training records is not protected by the noise: stopping or keeping a model "
        "by it reveals something that is not counted.",
        "Fix the number of epochs in advance, or decide by public data.",
    ),
    Rule(
        "DP701",
        "error",
        "the same noise again",
        "A seed that is set anew in the loop repeats the noise, and noise that repeats can be "
        "subtracted.",
        "Seed once, before the training, or not at all.",
    ),
    Rule(
        "DP702",
        "note",
        "a fixed seed",
        "Whoever knows the seed can draw the same noise and subtract it.",
        "For the model that you publish, leave the seed out, or use secure_mode=True.",
    ),
    Rule(
        "DP703",
        "note",
        "secure mode is off",
        f"{GRID}. They also end at 5.768 standard deviations: at rate 0.01, noise 1 and 1,000 "
        "steps, an output that is impossible without the record has a probability of 2.3e-5 with "
        "it, more than a δ of 1e-5.",
        "For the model that you publish, use PrivacyEngine(secure_mode=True); where it is not to "
        "be had, let dprime.monitor count the tails, and publish no more digits than are needed.",
    ),
    Rule(
        "DP801",
        "warning",
        "statistics of the training data",
        "A mean, a scale or a vocabulary taken from the records is published with the model, and "
        "no noise was added to it.",
        "Take it from public data or from known limits, or compute it privately and compose.",
    ),
    Rule(
        "DP802",
        "warning",
        "records that are there more than once",
        "The guarantee is for one record; whoever has several copies in the data is protected "
        "less.",
        "Keep each record once and augment it when it is drawn, or certify with dprime risk "
        "--group-size.",
    ),
    Rule(
        "DP803",
        "warning",
        "several rows of a batch for one record",
        "Each row is clipped for itself, so a record with four rows does four times what the noise "
        "is made for.",
        "Give the model one row for each record, and augment when a record is drawn.",
    ),
)

RULES: dict[str, Rule] = {rule.code: rule for rule in _ALL}
"""All rules by code."""
