"""Draw docs/assets/curve.svg: a certified trade-off curve and two numbers read off it.

Plain string formatting, no drawing library. Run it again when the numbers change:

    python docs/make_curve_svg.py
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dprime
from dprime import text

TRAINING = dprime.DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
FPR = 0.01
OUTPUT = Path(__file__).parent / "assets" / "curve.svg"

INK, SOFT, CURVE, BAND, ADVANTAGE, RATE = (
    "#1b1f24",
    "#5b6570",
    "#174a8c",
    "#dde8f6",
    "#a8410b",
    "#0b6b4f",
)


@dataclass(frozen=True)
class Panel:
    """A square plot: where it is on the page and which rates it shows."""

    left: float
    top: float
    side: float
    most_fpr: float
    most_tpr: float

    def at(self, fpr: float, tpr: float) -> tuple[float, float]:
        """Return page coordinates of a pair of rates."""
        x = self.left + self.side * fpr / self.most_fpr
        y = self.top + self.side * (1 - tpr / self.most_tpr)
        return round(x, 2), round(y, 2)

    def path(self, rates: list[tuple[float, float]]) -> str:
        """Draw an SVG path through pairs of rates."""
        return "M" + " L".join("{} {}".format(*self.at(*pair)) for pair in rates)


MAIN = Panel(left=76, top=88, side=400, most_fpr=1.0, most_tpr=1.0)
CORNER = Panel(left=534, top=116, side=150, most_fpr=0.05, most_tpr=0.15)


def drawing() -> str:
    """Draw the whole picture."""
    curve = TRAINING.curve()
    grid = np.linspace(0.0, 1.0, 1001)
    widest = float(max(grid, key=lambda fpr: curve.tpr(fpr) - fpr))
    advantage, tpr = curve.advantage(), curve.tpr(FPR)
    rates = [(float(x), curve.tpr(float(x))) for x in np.linspace(0.0, 1.0, 121) ** 2]
    near = [(float(x), curve.tpr(float(x))) for x in np.linspace(0.0, CORNER.most_fpr, 61)]
    parts = [
        _head(advantage, tpr),
        _axes(MAIN, (0, 0.25, 0.5, 0.75, 1), (0, 0.25, 0.5, 0.75, 1)),
        _curve(MAIN, rates),
        _main_labels(curve, widest, advantage, tpr),
        _axes(CORNER, (0, 0.01, 0.05), (0, 0.05, 0.1, 0.15)),
        _curve(CORNER, near),
        _corner_labels(tpr),
        _readings(curve),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _head(advantage: float, tpr: float) -> str:
    z, q, steps = TRAINING.noise_multiplier, TRAINING.sample_rate, TRAINING.steps
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 560" width="720" height="560" \
role="img" aria-labelledby="curve-title curve-desc" \
font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">
<title id="curve-title">A certified trade-off curve</title>
<desc id="curve-desc">DP-SGD with noise multiplier {z:g}, sampling rate {q:g} and {steps:,} steps. \
The horizontal axis is the false-positive rate, the vertical axis the true-positive rate. Blind \
guessing is the diagonal. The certified curve bends above it: no attacker lies above the curve. \
The widest gap, the membership advantage, is {_up(advantage)}. At a false-positive rate of \
{FPR:g} the curve allows a true-positive rate of {_up(tpr)}; a second panel enlarges that \
corner.</desc>
<rect width="720" height="560" rx="14" fill="#ffffff"/>
<rect x="0.5" y="0.5" width="719" height="559" rx="13.5" fill="none" stroke="#d5dae0"/>
<text x="28" y="38" font-size="19" font-weight="600" fill="{INK}">\
How well can anyone tell whether one record was used?</text>
<text x="28" y="61" fill="{SOFT}">DP-SGD, noise multiplier {z:g}, sampling rate {q:g}, \
{steps:,} steps; with or without the record</text>"""


def _axes(panel: Panel, fprs: tuple[float, ...], tprs: tuple[float, ...]) -> str:
    left, right, top, bottom = (
        panel.left,
        panel.left + panel.side,
        panel.top,
        panel.top + panel.side,
    )
    lines = [
        f'<rect x="{left}" y="{top}" width="{panel.side}" height="{panel.side}" fill="#fbfcfd"/>'
    ]
    for fpr in fprs:
        x, _ = panel.at(fpr, 0)
        lines.append(
            f'<path d="M{x} {top} V{bottom}" stroke="#e3e7ec"/>'
            f'<text x="{x}" y="{bottom + 17}" text-anchor="middle" fill="{SOFT}" font-size="12">'
            f"{_percent(fpr)}</text>"
        )
    for tpr in tprs:
        _, y = panel.at(0, tpr)
        lines.append(
            f'<path d="M{left} {y} H{right}" stroke="#e3e7ec"/>'
            f'<text x="{left - 7}" y="{y + 4}" text-anchor="end" fill="{SOFT}" font-size="12">'
            f"{_percent(tpr)}</text>"
        )
    lines.append(f'<path d="M{left} {top} V{bottom} H{right}" fill="none" stroke="{SOFT}"/>')
    return "\n".join(lines)


def _curve(panel: Panel, rates: list[tuple[float, float]]) -> str:
    end = rates[-1][0]
    band = [*rates, (end, end), (0.0, 0.0)]
    return (
        f'<path d="{panel.path(band)} Z" fill="{BAND}"/>\n'
        f'<path d="{panel.path([(0.0, 0.0), (end, end)])}" stroke="{SOFT}" stroke-width="1.5" '
        'stroke-dasharray="6 4"/>\n'
        f'<path d="{panel.path(rates)}" fill="none" stroke="{CURVE}" stroke-width="3" '
        'stroke-linejoin="round"/>'
    )


def _main_labels(curve: dprime.TradeOff, widest: float, advantage: float, tpr: float) -> str:
    x, low = MAIN.at(widest, widest)
    _, high = MAIN.at(widest, curve.tpr(widest))
    x_tpr, y_tpr = MAIN.at(FPR, tpr)
    middle, bottom = MAIN.left + MAIN.side / 2, MAIN.top + MAIN.side
    halfway = MAIN.at(0.72, 0.72)
    on_curve = MAIN.at(0.43, curve.tpr(0.43))
    return f"""\
<text x="{middle}" y="{bottom + 42}" text-anchor="middle" fill="{INK}">\
False-positive rate: outsiders wrongly called members</text>
<text x="24" y="{MAIN.top + MAIN.side / 2}" text-anchor="middle" fill="{INK}" \
transform="rotate(-90 24 {MAIN.top + MAIN.side / 2})">True-positive rate: members found</text>
<text x="{MAIN.left + 16}" y="{MAIN.top + 26}" fill="{INK}" font-weight="600">\
Beyond every attacker</text>
<text x="{MAIN.left + 16}" y="{MAIN.top + 44}" fill="{SOFT}">whatever they know of the others</text>
<text x="{on_curve[0] - 14}" y="{on_curve[1]}" text-anchor="end" fill="{CURVE}" \
font-weight="600">certified curve</text>
<text x="{halfway[0] + 6}" y="{halfway[1] + 22}" fill="{SOFT}" \
transform="rotate(-45 {halfway[0]} {halfway[1]})" text-anchor="middle">blind guessing</text>
<path d="M{x} {high + 4} V{low - 4}" stroke="{ADVANTAGE}" stroke-width="2"/>
<path d="M{x - 4} {high + 10} L{x} {high + 3} L{x + 4} {high + 10} Z M{x - 4} {low - 10} L{x} \
{low - 3} L{x + 4} {low - 10} Z" fill="{ADVANTAGE}"/>
<path d="M{x + 4} {low + 12} L{x + 44} {low + 52}" stroke="{ADVANTAGE}" stroke-width="1"/>
<text x="{x + 48}" y="{low + 58}" fill="{ADVANTAGE}" font-weight="600">\
advantage {_up(advantage)}</text>
<text x="{x + 48}" y="{low + 76}" fill="{SOFT}">the widest gap</text>
<circle cx="{x_tpr}" cy="{y_tpr}" r="5" fill="#ffffff" stroke="{RATE}" stroke-width="2.5"/>
<path d="M{x_tpr + 6} {y_tpr} L{x_tpr + 60} {y_tpr}" stroke="{RATE}" stroke-width="1"/>
<text x="{x_tpr + 64}" y="{y_tpr + 4}" fill="{RATE}">enlarged at the right</text>"""


def _corner_labels(tpr: float) -> str:
    x, y = CORNER.at(FPR, tpr)
    bottom = CORNER.top + CORNER.side
    return f"""\
<text x="{CORNER.left - 30}" y="{CORNER.top - 14}" fill="{INK}" font-weight="600">\
The lower left corner</text>
<path d="M{x} {bottom} V{y} H{CORNER.left}" fill="none" stroke="{RATE}" stroke-width="1.5" \
stroke-dasharray="2 3"/>
<circle cx="{x}" cy="{y}" r="5" fill="#ffffff" stroke="{RATE}" stroke-width="2.5"/>
<text x="{CORNER.left - 30}" y="{bottom + 44}" fill="{RATE}" font-weight="600">\
TPR {_percent(float(_up(tpr)))} at FPR {_percent(FPR)}</text>
<text x="{CORNER.left - 30}" y="{bottom + 62}" fill="{SOFT}">members found, at most</text>"""


def _readings(curve: dprime.TradeOff) -> str:
    left, top = CORNER.left - 30, CORNER.top + CORNER.side + 102
    rows = (
        ("advantage", _up(curve.advantage())),
        ("success", _percent(float(_up(curve.success(prior=0.5))))),
        ("d′", _up(curve.d_prime())),
        ("ε at δ = 1e-5", _up(curve.epsilon(delta=1e-5))),
    )
    lines = [
        f'<text x="{left}" y="{top}" fill="{INK}" font-weight="600">Read off the same curve</text>'
    ]
    for i, (name, value) in enumerate(rows):
        y = top + 24 + 22 * i
        lines.append(
            f'<text x="{left}" y="{y}" fill="{SOFT}">{name}</text>'
            f'<text x="{CORNER.left + CORNER.side}" y="{y}" text-anchor="end" fill="{INK}">'
            f"{value}</text>"
        )
    y = top + 24 + 22 * len(rows)
    lines.append(
        f'<text x="{left}" y="{y}" fill="{SOFT}" font-size="12">all at most, certified</text>'
    )
    return "\n".join(lines)


def _up(value: float) -> str:
    """As many digits as `_percent` shows, which then rounds nothing down."""
    return text.round_up(value, 3)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


if __name__ == "__main__":
    OUTPUT.write_text(drawing(), encoding="utf-8")
