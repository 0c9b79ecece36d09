"""The trainings behind the figures, and what both adversaries see of them.

Several figures look at the same trainings. Each is made once in a process.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from dprime import bounds
from dprime.audit.identifiability import distances, predicted_advantage
from dprime.data import Dataset
from dprime.train import (
    Compute,
    EngineContext,
    LikelihoodRatio,
    LocalSensitivity,
    NoiseScale,
    Observer,
    Step,
    StepContext,
    evaluate,
    train,
)
from dprime.train.models import model_named
from papers.bernau.cases import (
    BELIEF,
    Adjacency,
    Case,
    Floats,
    Sensitivity,
    held_out,
    ranking_of,
    recipe_of,
    trials_of,
    worlds_of,
)
from papers.reproduce import Estimate, Scale, normal, share


class AboveClip(Observer):
    """How many records' gradients are longer than the clipping norm before they are clipped.

    Attributes:
        shares: of the records in each trial's batch [trial, step].
    """

    def begin(self, run: EngineContext) -> None:
        """Room for every trial and step."""
        self.shares: Floats = np.zeros((len(run.trials), run.training.steps))

    def see(self, step: Step) -> None:
        """Count."""
        assert step.clip_norm is not None
        above = (step.norms > step.clip_norm).double() * step.mask
        counted = above.sum(dim=1) / step.mask.expand_as(above).sum(dim=1)
        self.shares[step.rows, step.index] = counted.cpu().numpy()


class MeanLoss(Observer):
    """The mean loss of the records that are trained on.

    Attributes:
        losses: before each step [trial, step].
    """

    def begin(self, run: EngineContext) -> None:
        """Room for every trial and step."""
        self.losses: Floats = np.zeros((len(run.trials), run.training.steps))

    def see(self, step: Step) -> None:
        """Over the batch."""
        total = (step.losses.double() * step.mask).sum(dim=1)
        counted = total / step.mask.expand_as(step.losses).sum(dim=1)
        self.losses[step.rows, step.index] = counted.cpu().numpy()


class FinalAnswers(Observer):
    """What each trial's final model says of some records.

    Attributes:
        losses: [trial, record].
        accuracy: the share of records whose class is predicted [trial].
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def begin(self, run: EngineContext) -> None:
        """Room for every trial."""
        self._run = run
        self.losses: Floats = np.zeros((len(run.trials), len(self.dataset)))
        self.accuracy: Floats = np.zeros(len(run.trials))

    def end(self, final: StepContext) -> None:
        """Ask a slice of trials."""
        run, rows = self._run, final.rows
        asked = (run.network, final.weights, self.dataset, run.training.loss)
        self.losses[rows] = evaluate.losses(*asked)
        self.accuracy[rows] = evaluate.accuracy(*asked)


@dataclass(frozen=True, eq=False)
class Guesses:
    """How often Yeom's adversary calls a record a member: its loss is at most the mean of members.

    Attributes:
        members: over the trials, of each record in training [record].
        others: of each record that was not [record].
        advantages: of each trial, over the records [trial].
    """

    members: Floats
    others: Floats
    advantages: Floats

    def advantage(self) -> Estimate:
        """TPR − FPR, with the error of the draw of the records and of the trials together."""
        variance = self.drawn + _variance(self.advantages)
        return normal(float(self.advantages.mean()), variance**0.5)

    @property
    def drawn(self) -> float:
        """The variance of the advantage by the draw of the records."""
        return _variance(self.members) + _variance(self.others)


@dataclass(frozen=True, eq=False)
class Seen:
    """What the adversary sees of many trainings.

    Attributes:
        truth: ln of the odds that it gives to the data set that was used [trial].
        norms: local sensitivities [trial, step].
        sigmas: the noise that was added to the clipped sum [trial, step].
        above: the share of records whose gradient is longer than C [trial, step].
        losses: the mean loss of the records that are trained on, before each step [trial, step].
        accuracy: on held-out records [trial].
        guesses: of the other adversary, on the same models.
        delta: at which ε′ is read.
        noise_multiplier: z.
    """

    truth: Floats
    norms: Floats
    sigmas: Floats
    above: Floats
    losses: Floats
    accuracy: Floats
    guesses: Guesses
    delta: float
    noise_multiplier: float

    @property
    def beliefs(self) -> Floats:
        """In the data set that was used [trial]."""
        return np.asarray(1 / (1 + np.exp(-self.truth)))

    def advantage(self) -> Estimate:
        """2 Pr[right] − 1, counted, as in section 5.3 of the paper."""
        return advantage_of(int((self.truth > 0).sum()), len(self.truth))

    def ahead(self) -> Estimate:
        """The counted advantage less that of the other adversary, training by training."""
        apart = np.where(self.truth > 0, 1.0, -1.0) - self.guesses.advantages
        return normal(float(apart.mean()), (self.guesses.drawn + _variance(apart)) ** 0.5)

    def expected(self) -> Estimate:
        """The advantage that noise and local sensitivities imply for the same adversary."""
        found = predicted_advantage(self.sigmas, self.norms)
        return normal(found.value, found.standard_error)

    def distances(self) -> Floats:
        """How far apart the worlds are in each trial: √Σ (LS/σ)²."""
        return np.asarray(np.linalg.norm(self.norms / self.sigmas, axis=1))

    def both(self, truth: Floats | None = None) -> tuple[Floats, NDArray[np.bool_]]:
        """Odds and worlds, as if every training were on D: the paper counts wins on D alone."""
        odds = self.truth if truth is None else truth
        return np.concatenate([odds, -odds]), np.arange(2 * len(odds)) < len(odds)

    @cached_property
    def epsilon_from_sensitivities(self) -> float:
        """ε′ of the noise against the local sensitivities, composed by RDP as the paper does."""
        noise = 1.0 / float(distances(self.sigmas, self.norms).max())
        return bounds.rdp_epsilon_from_noise_multiplier(noise, delta=self.delta)


@cache
def seen(
    scale: Scale, case: Case, sensitivity: Sensitivity, adjacency: Adjacency, belief: float = BELIEF
) -> Seen:
    """Train on D and on D′ in turns, and look."""
    worlds = worlds_of(scale, case, ranking_of(scale, case, adjacency))
    recipe = recipe_of(scale, case, sensitivity, adjacency, belief)
    others = held_out(scale, case)
    ratio, norms, noise = LikelihoodRatio(), LocalSensitivity(), NoiseScale()
    above, losses = AboveClip(), MeanLoss()
    answers = [FinalAnswers(each) for each in (worlds.common, others)]
    done = train(
        model_named(case.model, worlds.common), worlds, recipe, trials=trials_of(scale, case),
        seed=seed_of(scale, belief), observers=[ratio, norms, noise, above, losses, *answers],
        keep_weights=False, compute=Compute(scale.device, scale.memory),
    )  # fmt: skip
    return Seen(
        truth=np.where(done.in_world, 1.0, -1.0) * ratio.logs[:, -1],
        norms=norms.norms,
        sigmas=noise.sigmas,
        above=above.shares,
        losses=losses.losses,
        accuracy=answers[1].accuracy,
        guesses=_guesses(*(each.losses for each in answers)),
        delta=case.delta,
        noise_multiplier=recipe.noise_multiplier,
    )


def seed_of(scale: Scale, belief: float) -> int:
    """Each belief has random numbers of its own; at `BELIEF` they are the scale's.

    Local and global noise share them, so that two such trainings can be compared trial by trial.
    """
    if belief == BELIEF:
        return scale.seed
    return int(np.random.SeedSequence((scale.seed, round(1000 * belief))).generate_state(1)[0])


def _variance(values: Floats) -> float:
    """Of the mean."""
    return float(np.var(values, ddof=1)) / len(values)


def _guesses(members: Floats, others: Floats) -> Guesses:
    limit = members.mean(axis=1, keepdims=True)  # see YeomLoss of dprime.membership.attacks
    called = [losses <= limit for losses in (members, others)]
    return Guesses(
        members=called[0].mean(axis=0),
        others=called[1].mean(axis=0),
        advantages=called[0].mean(axis=1) - called[1].mean(axis=1),
    )


def advantage_of(wins: int, trainings: int) -> Estimate:
    """2 Pr[right] − 1, with the exact interval of the share of right answers."""
    right = share(wins, trainings)
    return Estimate(2 * right.value - 1, 2 * right.low - 1, 2 * right.high - 1)
