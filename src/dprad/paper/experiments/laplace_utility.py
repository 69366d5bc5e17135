"""Error of Laplace noise at equal risk (figure laplace_accu): calibrated by RAD and by ReRo.

Ten equally likely values, sensitivity 1, nothing known. By RAD: the exact risk is the target. By
ReRo: the bound of Hayes et al. on the success probability, ``1 - f(1/10)``, is the target, with
Laplace noise's own trade-off curve f, and with the worst one of epsilon-DP. Error: what the noise
stays within in 95 of 100 cases, ``ln(20)/epsilon``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from scipy.optimize import brentq

from dprad.mechanisms import Laplace
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.priors import Prior
from dprad.paper.experiments import Made, Options, Row, verdict
from dprad.show.plots.style import COLOURS
from dprad.verbs.calibrate import calibrate

SIZE = 10
# A target is above luck by at least this.
LUCK = 1e-9
TARGETS = [0.02 * i for i in range(1, 41)]


def laplace_tradeoff(epsilon: float, alpha: float) -> float:
    """The least chance of a miss at a chance alpha of a false alarm, for noise of scale 1/epsilon
    on numbers that differ by 1.
    """
    shrink = math.exp(-epsilon)
    if alpha < shrink / 2:
        return 1.0 - alpha / shrink
    return shrink / (4 * alpha) if alpha <= 0.5 else shrink * (1.0 - alpha)


def worst_tradeoff(epsilon: float, alpha: float) -> float:
    """The same for the worst mechanism that is epsilon-DP."""
    return float(PureDP(epsilon, neighbours=REPLACE_ONE).tradeoff(alpha))


def by_rero(target: float, f: Callable[[float, float], float]) -> float | None:
    """The epsilon at which Hayes' bound is the target; None if luck alone exceeds it."""

    def excess(epsilon: float) -> float:
        return 1.0 - f(epsilon, 1 / SIZE) - target

    return float(brentq(excess, 0.0, 100.0, xtol=1e-12)) if excess(0.0) < -LUCK else None


def run(options: Options) -> Made:
    """A row for each accepted risk; empty where ReRo cannot be met: luck alone exceeds it."""
    prior = Prior.from_counts({i / (SIZE - 1): 1.0 for i in range(SIZE)})
    rows: list[Row] = []
    for target in TARGETS[3::4] if options.quick else TARGETS:
        exact = calibrate(Laplace, max_risk=target, prior=prior, sensitivity=1.0).value
        found: Row = {"risk": target}
        for name, epsilon in (
            ("rad", exact),
            ("rero_laplace", by_rero(target, laplace_tradeoff)),
            ("rero_worst", by_rero(target, worst_tradeoff)),
        ):
            found[f"epsilon_{name}"] = epsilon
            found[f"error_{name}"] = epsilon and math.log(20) / epsilon
        rows.append(found)
    m, checks = SIZE, []
    for row in rows[:: max(1, len(rows) // 4)]:
        # the paper's closed form, inverted
        closed = -2 * (m - 1) * math.log(1 - row["risk"] * m / (m - 1))
        checks.append((f"epsilon at RAD {row['risk']:.2f}", row["epsilon_rad"], closed, 5))
    return Made(
        name=options.name,
        rows=rows,
        parameters={"values": SIZE, "sensitivity": 1, "error": "95%"},
        sentences=(*_sentences(rows), verdict(checks, "values of the paper's closed form for RAD")),
        draw=lambda figure: _draw(figure, rows),
    )


def _sentences(rows: list[Row]) -> tuple[str, ...]:
    both = [r for r in rows if r["error_rero_laplace"] is not None]
    own, worst = (
        [r[f"error_rero_{k}"] / r["error_rad"] for r in both] for k in ("laplace", "worst")
    )
    unmet = [r["risk"] for r in rows if r["error_rero_laplace"] is None]
    first = (
        "As in the paper, calibrating by RAD needs less noise for the same number. With the "
        f"trade-off curve of Laplace noise itself in Hayes' bound the errors are {min(own):.1f} to "
        f"{max(own):.1f} times smaller by RAD, {own[-1]:.1f} times at risk {both[-1]['risk']:.2g}; "
        "with the worst curve among epsilon-DP mechanisms, which knows nothing about Laplace "
        f"noise, {min(worst):.1f} to {max(worst):.1f} times, {worst[-1]:.1f} times at the same "
        "risk. The paper does not say which curve it drew; it prints no numbers for this figure, "
        "and its plot was not read off."
    )
    if unmet:
        first += (
            f" Up to {max(unmet):.2g} ReRo cannot be met at all: luck alone is right once in "
            f"{SIZE}."
        )
    second = (
        "The two numbers are not the same promise: RAD is the extra risk, ReRo the whole success."
    )
    return first, second


def _draw(figure: Any, rows: list[Row]) -> None:
    ax = figure.add_subplot()
    for k, (key, style, label) in enumerate(
        [
            ("error_rad", "-", "by RAD (exact)"),
            ("error_rero_laplace", "-", "by ReRo (Hayes, Laplace's own f)"),
            ("error_rero_worst", "--", "by ReRo (Hayes, worst f of epsilon-DP)"),
        ]
    ):
        own = [r for r in rows if r[key] is not None]
        at, values = [r["risk"] for r in own], [r[key] for r in own]
        ax.plot(at, values, style, color=COLOURS[k], label=label)
    ax.set(xlabel="accepted risk", ylabel="error of the query, 95%", yscale="log")
    ax.legend()
