"""Attacks record by record, straight from their definitions: slow and plain."""

import math

import numpy as np
from scipy import stats

from dprime.membership.signals import Signals

LEAST_DEVIATION = 1e-6


def signals(logits):
    """Of records that are all of class 1."""
    logits = np.asarray(logits, dtype=float)
    return Signals.from_logits(logits[..., None], np.ones(logits.shape[-1]))


def of_probabilities(p):
    p = np.asarray(p, dtype=float)
    return Signals(np.log(p), np.log1p(-p))


def halves(rng, models, inside, records):
    """Which models have which record [model, record]: the same number for every record."""
    return rng.permuted(np.arange(models)[:, None] < np.full((1, records), inside), axis=0)


def sides(values, members, record):
    """The values of the models with a record, and of those without it."""
    with_it = [row[record] for row, had in zip(values, members, strict=True) if had[record]]
    without = [row[record] for row, had in zip(values, members, strict=True) if not had[record]]
    return with_it, without


def logit_of(probability):
    return math.log(probability / (1 - probability))


def fixed_deviation(groups):
    """One deviation for all records: squared deviations from each record's own mean."""
    squares = sum((value - np.mean(group)) ** 2 for group in groups for value in group)
    return math.sqrt(squares / sum(len(group) - 1 for group in groups))


def lira(target, shadows, members, *, online, fixed):
    """From probabilities of the true class: target [record], shadows [model, record]."""
    phi = [logit_of(p) for p in target]
    others = [[logit_of(p) for p in row] for row in shadows]
    groups = [sides(others, members, record) for record in range(len(phi))]
    scores = []
    for record, own in enumerate(groups):
        laws = []
        for side in (0, 1) if online else (1,):
            every = [group[side] for group in groups]
            deviation = fixed_deviation(every) if fixed else np.std(own[side], ddof=1)
            laws.append(stats.norm(np.mean(own[side]), max(deviation, LEAST_DEVIATION)))
        if online:
            scores.append(laws[0].logpdf(phi[record]) - laws[1].logpdf(phi[record]))
        else:
            scores.append((phi[record] - laws[0].mean()) / laws[0].std())
    return np.array(scores)


def rmia(target, shadows, members, population, shadow_population, *, online, gamma, a):
    """From probabilities of the true class, pair by pair."""
    scores = []
    for record, p_target in enumerate(target):
        with_it, without = sides(shadows, members, record)
        if online:
            p_x = (np.mean(with_it) + np.mean(without)) / 2
        else:
            p_x = ((1 + a) * np.mean(without) + 1 - a) / 2
        above = 0
        for z, p_z_target in enumerate(population):
            p_z = np.mean([row[z] for row in shadow_population])
            above += (p_target / p_x) / (p_z_target / p_z) >= gamma
        scores.append(above / len(population))
    return np.array(scores)


def attack_p(target, population):
    """The share of the population's losses that are larger, ties counted half."""
    return np.array([np.mean([(q < p) + 0.5 * (q == p) for q in population]) for p in target])


def attack_r(target, shadows, members, *, inside):
    """Ranks in the logit, where the target is within the range of the models; else NaN."""
    scores = []
    for record, p in enumerate(target):
        group = sides(shadows, members, record)[0 if inside else 1]
        hardness = sorted(-logit_of(q) for q in group)
        ranks = np.arange(1, len(group) + 1)
        found = np.interp(-logit_of(p), hardness, ranks, left=np.nan, right=np.nan)
        scores.append(1 - found / (len(group) + 1))
    return np.array(scores)
