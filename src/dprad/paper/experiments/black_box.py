"""Bounds from a promise alone, ten equally likely values (figure black_box), ours beside them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from dprad.mechanisms import OUE
from dprad.model.guarantees import REPLACE_ONE, ApproxDP
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.paper.experiments import Made, Options, Row, verdict
from dprad.show.plots.style import COLOURS
from dprad.verbs.assess import assess

SIZE, DELTA = 10, 1e-5
EPSILONS = [0.1 * i for i in range(1, 101)]
# Bounds of the paper (its figure has the last two), then ours.
PAPER = {
    "theorem-1": "Theorem 1 (not in the caption)",
    "proposition-1": "Proposition 1",
    "theorem-4": "Theorem 4 / Corollary 2",
}
NEW = {
    "theorem-c": "unified bound (new)",
    "theorem-b": "exact optimum (new)",
}
KNOWING = "unified_everything_known"
# Bounds closer than this count as equal.
EQUAL = 1e-9
# Our own values, by other means, at epsilon 1: Theorem 1 at delta 0, the optimum at delta 1e-5.
REFERENCE = (0.415905, 0.131977)


def run(options: Options) -> Made:
    """A row for each epsilon."""
    prior = Prior.uniform(SIZE)
    rows: list[Row] = []
    for epsilon in EPSILONS[9::20] if options.quick else EPSILONS:
        bounds = _bounds(epsilon, DELTA)
        row: Row = {"epsilon": epsilon} | {n: bounds[n] for n in (*PAPER, *NEW)}
        row["oue_exact"] = assess(OUE(epsilon=epsilon, size=SIZE), prior=prior).rad
        row[KNOWING] = _bounds(epsilon, DELTA, knows="everything")["theorem-c"]
        rows.append(row)
    checks = [
        ("Theorem 1, epsilon 1", _bounds(1.0, 0.0)["theorem-1"], REFERENCE[0], 6),
        ("optimum, epsilon 1, delta 1e-5", _bounds(1.0, DELTA)["theorem-b"], REFERENCE[1], 6),
    ]
    return Made(
        name=options.name,
        rows=rows,
        parameters={"values": SIZE, "delta": DELTA, "prior": "uniform"},
        sentences=(
            *_sentences(rows),
            "The paper prints no numbers for this figure. "
            + verdict(checks, "reference values (ours, by other means)"),
        ),
        draw=lambda figure: _draw(figure, rows),
        size=(9.0, 4.0),
    )


def _bounds(epsilon: float, delta: float, knows: str = "nothing") -> dict[str, float]:
    """Every bound that applies to a uniform prior."""
    promise = ApproxDP(epsilon, delta, neighbours=REPLACE_ONE)
    risk = assess(promise, prior=Prior.uniform(SIZE), threat=Threat(knows=knows))
    return {b.name: b.value for b in risk.bounds if b.value is not None}


def _sentences(rows: list[Row]) -> tuple[str, ...]:
    gap = max(r["theorem-4"] - r["theorem-b"] for r in rows)
    apart = max(abs(r["theorem-c"] - r["theorem-b"]) for r in rows)
    order = ("proposition-1", "theorem-4", "oue_exact")
    under = sum(r["proposition-1"] <= r["theorem-1"] + EQUAL for r in rows)
    same = [r["epsilon"] for r in rows if abs(r["theorem-1"] - r["proposition-1"]) <= EQUAL]
    apart_at = [r["epsilon"] for r in rows if r["epsilon"] not in same]
    ordered = sum(all(r[a] >= r[b] - EQUAL for a, b in pairwise(order)) for r in rows)
    less = max(1 - r[KNOWING] / r["theorem-1"] for r in rows)
    return (
        "The paper's curves, by its caption: Proposition 1, Theorem 4, exact risk of OUE. From "
        f"largest to smallest, this order comes out at {ordered} of {len(rows)} epsilons. Theorem "
        f"1, which the caption does not name, is at least Proposition 1 at {under}"
        + _equal(same, apart_at),
        "For a uniform prior and an attacker who knows nothing Theorem 4 is within "
        f"{gap:.0e} of the optimum over all mechanisms, and the unified bound within {apart:.0e}. "
        f"When everything is known the unified bound is up to {less:.0%} below Theorem 1.",
    )


def _equal(same: list[float], apart: list[float]) -> str:
    """Where two bounds are the same."""
    if not same:
        return ", and nowhere equal to it."
    whole = not apart or min(same) > max(apart)
    return f", equal to it {f'from {min(same):g} on' if whole else f'at {len(same)} of them'}."


def _draw(figure: Any, rows: list[Row]) -> None:
    ax = figure.add_subplot()
    at = [r["epsilon"] for r in rows]
    paper, new = COLOURS[0], COLOURS[1]
    for (key, label), dash in zip(PAPER.items(), ("--", "-.", "-"), strict=True):
        ax.plot(at, [r[key] for r in rows], color=paper, linestyle=dash, label=label)
    ax.plot(at, [r["oue_exact"] for r in rows], color=COLOURS[2], label="OUE, exact (Theorem 2)")
    # few markers: these lie on Theorem 4
    every = max(1, len(rows) // 12)
    for k, (key, label) in enumerate(NEW.items()):
        ax.plot(
            at,
            [r[key] for r in rows],
            color=new,
            linestyle="none",
            marker="ox"[k],
            fillstyle="none",
            markevery=(k * every // 2, every),
            label=label,
        )
    ax.plot(
        at,
        [r[KNOWING] for r in rows],
        ":",
        color=new,
        label="unified bound, everything known (new)",
    )
    ax.set(xlabel="epsilon", ylabel="extra risk (RAD)", ylim=(0, 1))
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
