"""Figures 1, 2 and 7 to 10: the bound on precision, beside others and at work."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from dprime import GDP, EpsilonDelta, PoolSampled, TradeOff, choose
from dprime.bounds import (
    deletion_capacity,
    erlingsson_advantage_from_epsilon,
    sablayrolles_precision_from_epsilon,
    yeom_advantage_from_epsilon,
)
from dprime.show.chart import Chart
from papers.drawing import Line, line, lines_chart
from papers.entry import Measured, Scale
from papers.reproduce import TOLERANCE, Claim, stated

EPSILONS = (0.1, 1.0, 2.0, 5.0)
"""Of figures 1 and 2."""

PRIORS = tuple(round(float(x), 4) for x in np.sin(np.linspace(0, np.pi / 2, 202)[1:-1]) ** 2)
"""Of figure 1, denser towards 0 and 1."""

DELTA_CASE = {"epsilon": 1.0, "delta": 1e-5, "prior": 0.1, "min_tpr": 1e-4}

ACROSS = "π, the probability of drawing the record"


def bound(epsilon: float, prior: float) -> float:
    """Theorem 3.3 without δ."""
    return TradeOff.from_lines([(epsilon, 0.0)]).precision(prior)


def figure1(scale: Scale) -> Measured:
    """The bound on a grid, the sentences of section 3.4, and theorem 3.3 itself."""
    figure = lines_chart(
        "The bound on precision falls to 0 with π, and to π with ε.", ACROSS, "bound on precision",
        [line(f"ε = {e:g}", PRIORS, [bound(e, prior) for prior in PRIORS]) for e in EPSILONS],
    )  # fmt: skip

    def width(epsilon: float) -> float:
        """Of the range of π over which the bound goes from 0.1 to 0.9."""
        pool = PoolSampled(EpsilonDelta(epsilon))
        return choose(pool, precision=0.9).prior - choose(pool, precision=0.1).prior

    epsilon, delta, prior, tpr = DELTA_CASE.values()
    reached = choose(GDP(), epsilon=epsilon, delta=delta).curve().precision(prior, tpr)
    shrink = math.exp(-epsilon) * (1 - prior)
    as_printed = 1 / (1 + shrink / prior - delta * shrink / tpr)
    corrected = TradeOff.from_lines([(epsilon, delta)]).precision(prior, tpr)
    claims = [
        stated("Width of the drop from 0.9 to 0.1: ε = 5 over ε = 0.1",
               "for large ε the drop is sharp", width(5.0) / width(0.1), most=0.5),
        stated("Precision of an attacker on the exact Gaussian less the printed bound, π = 0.1",
               "theorem 3.3: no attacker is above it", reached - as_printed, most=0.0,
               why=f"It reaches {reached:.5f}; as printed the bound is {as_printed:.5f}, with the "
               f"factor 1/π in the δ-term it is {corrected:.5f}."),
    ]  # fmt: skip
    return Measured(claims, {"epsilon": EPSILONS, **DELTA_CASE}, {"": figure})


HALF = 0.5
STEEP = 0.17
"""Below it (1-t)/t leaves the picture of figure 2."""

GRID = tuple(float(x) for x in np.linspace(0.0, 1.0, 101))


def difference(epsilon: float, by: float = 2.0) -> float:
    """The bound with a part of π less that with the same part of ε: below 0 where π acts more."""
    return bound(epsilon, HALF / by) - bound(epsilon / by, HALF)


def figure2(scale: Scale) -> Measured:
    """How the term grows by a smaller ε and by a smaller π, and the bound with half of each."""
    crossing = float(brentq(lambda t: (1 - t) / t - math.exp(-t), 0.01, 1.0))

    def why(epsilon: float) -> str:
        """Where a smaller π does not act more: how far that goes."""
        largest = float(brentq(difference, EPSILONS[0], epsilon))
        factor = float(brentq(lambda by: difference(epsilon, by), 2.0, 1e6))
        return (
            f"The bound is {bound(epsilon, HALF / 2):.3f} with half of π and "
            f"{bound(epsilon / 2, HALF):.3f} with half of ε. "
            f"Half of π acts more up to ε = {largest:.2f}; from here, it takes both divided by "
            f"{factor:.0f}."
        )

    claims = [
        stated(
            f"Bound with half of π less that with half of ε, from π = {HALF:g}, ε = {epsilon:g}",
            "decreasing π acts more on the bound than lowering ε (our reading: each is halved)",
            difference(epsilon), most=0.0, reason=lambda epsilon=epsilon: why(epsilon),  # type: ignore[misc]
        )
        for epsilon in EPSILONS
    ]  # fmt: skip
    figure = lines_chart(
        f"A smaller π is the stronger means below t = {crossing:.2f}.", "t",
        "growth of the term in the bound",
        [
            Line("by ε: e^-t", [(t, math.exp(-t)) for t in GRID]),
            Line("by π: (1-t)/t", [(t, (1 - t) / t) for t in GRID if t >= STEEP]),
        ],
    )  # fmt: skip
    return Measured(claims, {"prior": HALF, "epsilon": EPSILONS}, {"": figure})


DENIABILITY, POOL, EPSILON = 0.8, 10_000, 1.0
SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 80, 100, 125, 150, 175, 200)
FEW, MANY = 10, 200
PICTURED = 12_000
"""Where the axis of the paper's figure 7 ends."""


def deletions_as_printed(expected: int) -> int:
    """As in print: ln B / ln L with L = 1/(1 + e^-ε π/(1-π))."""
    prior = expected / POOL
    log_kept = -math.log1p(math.exp(-EPSILON) * prior / (1 - prior))
    return math.floor(math.log(DENIABILITY) / log_kept)


def deletions(expected: int) -> int:
    """With the lower bound, certified."""
    return deletion_capacity(DENIABILITY, epsilon=EPSILON, prior=expected / POOL).records


def figure7(scale: Scale) -> Measured:
    """How many deletions can be left undone, by both formulas at every expected size."""
    ways = {"as printed": deletions_as_printed, "corrected": deletions}
    counted = {name: [way(size) for size in SIZES] for name, way in ways.items()}
    claims = [claim for name, values in counted.items() for claim in capacity(name, values)]
    printed, mended = (values[SIZES.index(FEW)] for values in counted.values())
    # Randomised response on each record, an ε-DP mechanism, where all of them report "used": then
    # the belief that a record was used has its largest value.
    belief = TradeOff.from_lines([(EPSILON, 0.0)]).belief(FEW / POOL)
    kept, kept_mended = (float((1 - belief) ** records) for records in (printed, mended))
    claims.append(
        stated(f"Probability that none of the records as printed at c = {FEW} was used",
               f"at least {DENIABILITY:g} (corollary 5.2)", kept, least=DENIABILITY,
               why=f"For {printed} records, in the worst case of an ε-DP mechanism (randomised "
               f"response on each of them), it is {kept:.3f}; for the {mended} of the corrected "
               f"formula it is {kept_mended:.3f}.")
    )  # fmt: skip
    figure = lines_chart(
        f"At c = {FEW} the capacity is {mended} records, not {printed}.",
        "c, expected size of the training set", "records that can be denied",
        [line(name, SIZES, each) for name, each in {**counted, "linear": SIZES}.items()], "xy",
    )  # fmt: skip
    return Measured(
        claims, {"deniability": DENIABILITY, "pool": POOL, "epsilon": EPSILON}, {"": figure}
    )


def capacity(name: str, values: Sequence[int]) -> list[Claim]:
    """For few and for many expected records."""
    few, many = (values[SIZES.index(size)] for size in (FEW, MANY))
    below = 100 * (MANY - many) / PICTURED
    crossing = next(size for size, value in zip(SIZES, values, strict=True) if value < size)
    return [
        stated(f"Capacity {name} at c = {FEW}, over c",
               "significantly more than linear for small sizes", few / FEW, least=2.0),
        stated(f"Capacity {name} at c = {MANY}, over c",
               "marginally lower than linear for large sizes: from 0.8 to 1",
               many / MANY, least=1 - TOLERANCE, most=1.0,
               why=f"It is {many} records, and below c from c = {crossing} on. On the "
               f"paper's axis this looks marginal: {below:.1f} % of its length."),
    ]  # fmt: skip


DELTA, PUBLISHED = 1e-5, "4.0412"
NOISE = float(PUBLISHED)


def log_rates(threshold: float) -> tuple[float, float]:
    """Of saying "member", if the record was in and if not; the weight starts at 0."""
    places = ((threshold + 1) / NOISE, threshold / NOISE)
    inside, outside = (float(stats.norm.logcdf(place)) for place in places)
    return inside, outside


def precision_below(threshold: float) -> float:
    """Of "member" below the threshold; in logarithms, for the rates become tiny."""
    inside, outside = log_rates(threshold)
    return 1 / (1 + math.exp(outside - inside))


def accuracy_at(threshold: float) -> float:
    """Of both answers."""
    inside, outside = (math.exp(each) for each in log_rates(threshold))
    return (1 + inside - outside) / 2


def better_rdp_epsilon(noise: float) -> float:
    """By Rényi DP with the conversion of Balle et al. (2020), over orders up to 200."""
    orders: list[float] = np.linspace(1.01, 200, 20_000).tolist()
    return min(
        order / (2 * noise**2) + math.log1p(-1 / order) - math.log(DELTA * order) / (order - 1)
        for order in orders
    )


def figure8(scale: Scale) -> Measured:
    """Precision is not bounded for attackers who rarely say "member"."""
    wide = [float(x) for x in np.linspace(-100.0, 100.0, 201)]
    narrow = [float(x) for x in np.linspace(-10, 10, 161)]
    claim = stated(
        f"ε at δ = 1e-5 of the printed noise, {PUBLISHED}, by Rényi DP with the conversion of "
        "Balle et al. (2020)",
        "it gives (1, 1e-5)-DP: 1, to two digits", better_rdp_epsilon(NOISE), least=0.995,
        most=1.005,
    )  # fmt: skip

    def drawn(said: str, y: str, grid: Sequence[float], read: Callable[[float], float]) -> Chart:
        shown = [Line(y, [(t, read(t)) for t in grid])]
        return lines_chart(said, "threshold, from the first weight", y, shown)

    most = max(map(accuracy_at, narrow))
    figures = {
        "precision": drawn("Precision goes to 1 as the threshold falls.", "precision", wide,
                           precision_below),
        "accuracy": drawn(f"Accuracy is {most:.3f} at most.", "accuracy", narrow, accuracy_at),
    }  # fmt: skip
    settings = {"epsilon": EPSILON, "delta": DELTA, "prior": HALF, "noise_multiplier": NOISE}
    return Measured([claim], settings, figures)


SAME = 1e-12
BOUNDS: dict[str, Callable[[float], float]] = {
    "Thudi": lambda epsilon: bound(epsilon, HALF),
    "Humphries": lambda epsilon: TradeOff.from_lines([(epsilon, 0.0)]).success(),
    "Erlingsson": lambda epsilon: (1 + erlingsson_advantage_from_epsilon(epsilon)) / 2,
    "Sablayrolles": lambda epsilon: sablayrolles_precision_from_epsilon(epsilon, prior=HALF),
    "Yeom": lambda epsilon: (1 + yeom_advantage_from_epsilon(epsilon)) / 2,
}


def figure9(scale: Scale) -> Measured:
    """The bound beside earlier ones at π = ½."""
    grid = tuple(float(x) for x in np.linspace(0.05, 6.0, 120))
    values = {name: np.array([each(e) for e in grid]) for name, each in BOUNDS.items()}
    own, looser = values["Thudi"], ("Erlingsson", "Sablayrolles")
    claims = [
        stated("Largest distance from the bound of Humphries et al.", "they are the same",
               np.abs(values["Humphries"] - own).max(), most=SAME),
        *(stated(f"Least distance below the bound of {name} et al.", "tighter at every ε",
                 (values[name] - own).min(), least=0.0) for name in looser),
    ]  # fmt: skip
    shown = {"Thudi, Humphries, Mahloujifar": own, **{n: values[n] for n in (*looser, "Yeom")}}
    figure = lines_chart(
        "At π = ½ the bound is the lowest at every ε.", "ε", "bound on accuracy",
        [line(name, grid, each) for name, each in shown.items()],
    )  # fmt: skip
    settings = {"prior": HALF, "delta": 0.0, "epsilon": [grid[0], grid[-1]]}
    return Measured(claims, settings, {"": figure})


def figure10(scale: Scale) -> Measured:
    """The bound beside that of Sablayrolles et al. at every π."""
    epsilons, priors = EPSILONS[:3], tuple(float(x) for x in np.linspace(0.005, 0.995, 199))
    claims, lines = [], []
    for epsilon in epsilons:
        own = [bound(epsilon, prior) for prior in priors]
        other = [sablayrolles_precision_from_epsilon(epsilon, prior=prior) for prior in priors]
        claims.append(
            stated(f"Least distance below the bound of Sablayrolles et al., ε = {epsilon:g}",
                   "tighter for all probabilities", np.subtract(other, own).min(), least=0.0)
        )  # fmt: skip
        for name, values in (("Sablayrolles", other), ("Thudi", own)):
            lines.append(line(f"{name}, ε = {epsilon:g}", priors, values))
    said = "The bound lies below that of Sablayrolles et al. at every π."
    figure = lines_chart(said, ACROSS, "bound on precision", lines)
    return Measured(claims, {"epsilon": epsilons, "delta": 0.0}, {"": figure})
