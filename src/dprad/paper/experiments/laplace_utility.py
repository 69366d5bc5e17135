"""Error of Laplace noise at equal risk (figure laplace_accu): calibrated by RAD and by ReRo.

Ten equally likely values, sensitivity 1, nothing known. By RAD: the exact risk is the target. By
ReRo: the bound of Hayes et al. on the success probability is the target. Error: what the noise
stays within in 95 of 100 cases, ``ln(20)/epsilon``.
"""

from __future__ import annotations

import math
from typing import Any

from dprad.errors import DpradError
from dprad.mechanisms import Laplace
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.priors import Prior
from dprad.paper.experiments import Made, Options, Row, verdict
from dprad.show.plots.style import COLOURS
from dprad.verbs.calibrate import calibrate

SIZE = 10
TARGETS = [0.02 * i for i in range(1, 41)]


def run(options: Options) -> Made:
    """A row for each accepted risk; empty where ReRo cannot be met: luck alone exceeds it."""
    prior = Prior.from_counts({i / (SIZE - 1): 1 for i in range(SIZE)})
    rows: list[Row] = []
    for target in TARGETS[::8] if options.quick else TARGETS:
        found: Row = {"risk": target}
        exact = calibrate(Laplace, max_risk=target, prior=prior, sensitivity=1.0)
        found |= {"epsilon_rad": exact.value, "error_rad": math.log(20) / exact.value}
        try:
            theirs = calibrate(
                PureDP, max_risk=target, prior=prior, measure="hayes", neighbours=REPLACE_ONE
            )
            found |= {"epsilon_rero": theirs.value, "error_rero": math.log(20) / theirs.value}
        except DpradError:
            found |= {"epsilon_rero": None, "error_rero": None}
        rows.append(found)
    m, checks = SIZE, []
    for row in rows[:: max(1, len(rows) // 4)]:
        # the paper's closed form, inverted
        closed = -2 * (m - 1) * math.log(1 - row["risk"] * m / (m - 1))
        checks.append((f"epsilon at RAD {row['risk']:.2f}", row["epsilon_rad"], closed, 5))
    both = [r for r in rows if r["error_rero"] is not None]
    least = min(r["error_rero"] / r["error_rad"] for r in both)
    most = max(r["error_rero"] / r["error_rad"] for r in both)
    return Made(
        name=options.name,
        rows=rows,
        parameters={"values": SIZE, "sensitivity": 1, "error": "95%"},
        sentences=(
            f"As in the paper, calibrating by RAD needs far less noise: {least:.0f} to {most:.0f} "
            "times smaller errors for the same number. Below 1/m = 0.1 ReRo cannot be met at all: "
            "luck alone exceeds it. " + verdict(checks),
            "The two numbers are not the same promise: RAD is the extra risk, ReRo the whole "
            "success.",
        ),
        draw=lambda figure: _draw(figure, rows),
    )


def _draw(figure: Any, rows: list[Row]) -> None:
    ax = figure.add_subplot()
    for k, (key, label) in enumerate(
        [("error_rad", "by RAD (exact)"), ("error_rero", "by ReRo (Hayes)")]
    ):
        own = [r for r in rows if r[key] is not None]
        ax.plot([r["risk"] for r in own], [r[key] for r in own], color=COLOURS[k], label=label)
    ax.set(xlabel="accepted risk", ylabel="95% error", yscale="log")
    ax.legend()
