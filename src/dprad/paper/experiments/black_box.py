"""Bounds from a promise alone, ten equally likely values (figure black_box), ours beside them."""

from __future__ import annotations

from typing import Any

from dprad.mechanisms import OUE
from dprad.model.guarantees import REPLACE_ONE, ApproxDP
from dprad.model.priors import Prior
from dprad.paper.experiments import Made, Options, Row, verdict
from dprad.show.plots.style import COLOURS
from dprad.verbs.assess import assess

SIZE, DELTA = 10, 1e-5
EPSILONS = [0.1 * i for i in range(1, 101)]
NAMES = {
    "theorem-1": "Theorem 1",
    "proposition-1": "Proposition 1",
    "theorem-4": "Theorem 4 / Corollary 2",
    "theorem-c": "unified bound (new)",
    "theorem-b": "exact optimum (new)",
}


def run(options: Options) -> Made:
    """A row for each epsilon."""
    prior = Prior.uniform(SIZE)
    rows: list[Row] = []
    for epsilon in EPSILONS[9::20] if options.quick else EPSILONS:
        promise = ApproxDP(epsilon, DELTA, neighbours=REPLACE_ONE)
        bounds = {b.name: b.value for b in assess(promise, prior=prior).bounds}
        row: Row = {"epsilon": epsilon} | {n: bounds[n] for n in NAMES}
        row["oue_exact"] = assess(OUE(epsilon=epsilon, size=SIZE), prior=prior).rad
        rows.append(row)
    pure, both = (
        {
            b.name: b.value or 0.0
            for b in assess(ApproxDP(1.0, d, neighbours=REPLACE_ONE), prior=prior).bounds
        }
        for d in (0.0, DELTA)
    )
    checks = [
        ("Theorem 1, epsilon 1", pure["theorem-1"], 0.415905, 6),
        ("optimum, epsilon 1, delta 1e-5", both["theorem-b"], 0.131977, 6),
    ]
    gap = max((r["theorem-4"] - r["theorem-b"]) for r in rows)
    return Made(
        name=options.name,
        rows=rows,
        parameters={"values": SIZE, "delta": DELTA, "prior": "uniform"},
        sentences=(
            "For a uniform prior and an attacker who knows nothing the paper's Theorem 4 is the "
            f"optimum already (they differ by {gap:.0e} at most), and the unified bound meets it. "
            "For other priors and knowledge it is not; there the new bounds are smaller. "
            + verdict(checks),
        ),
        draw=lambda figure: _draw(figure, rows),
    )


def _draw(figure: Any, rows: list[Row]) -> None:
    ax = figure.add_subplot()
    at = [r["epsilon"] for r in rows]
    dashes = ["-", "--", "-.", ":", (0, (1, 1))]
    for k, (key, label) in enumerate(NAMES.items()):
        ax.plot(at, [r[key] for r in rows], color=COLOURS[k], linestyle=dashes[k], label=label)
    ax.plot(at, [r["oue_exact"] for r in rows], color=COLOURS[6], label="OUE, exact")
    ax.set(xlabel="epsilon", ylabel="extra risk (RAD)")
    ax.legend()
