"""Attacks on GRR, OUE and subset selection over thousands of places (figure LDP_attacks)."""

from __future__ import annotations

from typing import Any

from dprad.attacks.optimal import optimal_attack
from dprad.mechanisms import GRR, OUE, SubsetSelection
from dprad.model.priors import Prior
from dprad.paper.experiments import Made, Options, Row, cells
from dprad.show.plots.style import COLOURS
from dprad.verbs.assess import assess
from dprad.verbs.simulate import simulate

SIZES = {"Porto": 3052, "Geolife": 5356}
KINDS: dict[str, Any] = {"GRR": GRR, "subset selection": SubsetSelection, "OUE": OUE}
EPSILONS = range(1, 20)
RUNS = 1_000_000
STYLES: dict[str, Any] = {
    "GRR": {"linewidth": 3.5},
    "subset selection": {"linestyle": "--"},
    "OUE": {},
}
# Risks nearer than this are equal.
TIE = 1e-12


def grid(options: Options) -> tuple[dict[str, int], list[Row]]:
    """Places, and a cell for each of them, mechanism and epsilon."""
    sizes = {"152 places": 152} if options.quick else SIZES
    found = [
        {"places": place, "values": m, "mechanism": kind, "epsilon": e}
        for place, m in sizes.items()
        for kind in KINDS
        for e in (list(EPSILONS)[::6] if options.quick else EPSILONS)
    ]
    return sizes, found


def run(options: Options) -> Made:
    """A row for each place, mechanism and epsilon."""
    sizes, wanted = grid(options)
    n = options.runs or (2000 if options.quick else RUNS)

    def work(cell: Row, seed: int) -> list[Row]:
        mechanism = KINDS[cell["mechanism"]](epsilon=float(cell["epsilon"]), size=cell["values"])
        prior = Prior.uniform(cell["values"])
        attack = optimal_attack(mechanism, prior=prior)
        tried = simulate(mechanism, attack, prior=prior, trials=n, rng=seed)
        low, high = tried.interval
        exact = assess(mechanism, prior=prior).rad
        return [cell | {"rad": exact, "simulated": tried.rad, "low": low, "high": high}]

    rows = cells(options, wanted, work)
    return Made(
        name=options.name,
        rows=rows,
        parameters={"runs": n, "prior": "uniform", "values": list(sizes.values())},
        sentences=_sentences(rows),
        draw=lambda figure: _draw(figure, rows, list(sizes)),
        size=(8.0, 3.4) if len(sizes) > 1 else (4.6, 3.4),
        shown=("places", "mechanism", "epsilon", "rad", "simulated", "low", "high"),
    )


def _sentences(rows: list[Row]) -> tuple[str, ...]:
    """Whether the attack meets the exact risk, and who is above whom."""
    inside = sum(r["low"] <= r["rad"] <= r["high"] for r in rows)
    farthest = max(abs(r["simulated"] - r["rad"]) for r in rows)
    highest = max(r["rad"] for r in rows if r["mechanism"] == "OUE")
    return (
        f"Lines are exact risks, markers the measured RAD of the optimal attack: {inside} of "
        f"{len(rows)} intervals (95%) hold the exact risk, and no marker is farther from it than "
        f"{farthest:.4f}. OUE reaches {highest:.4f} at most.",
        f"{_order(rows, 'GRR', 'subset selection')} {_order(rows, 'subset selection', 'OUE')}",
        "Only the number of places enters: the prior is uniform, as in the paper. `locations` has "
        "the real visits and distances. The paper prints no numbers for this figure, and its plots "
        "were not read off.",
    )


def _order(rows: list[Row], one: str, two: str) -> str:
    """In how many cells the first is at least as risky as the second, and by how much not."""
    pairs = _pairs(rows, one, two)
    equal = sum(abs(a["rad"] - b["rad"]) <= TIE for a, b in pairs)
    other = [(a, b) for a, b in pairs if a["rad"] < b["rad"] - TIE]
    text = (
        f"{one[0].upper()}{one[1:]} is at least as risky as {two} in {len(pairs) - len(other)} of "
        f"{len(pairs)} cells (equal in {equal})"
    )
    if not other:
        return text + ", as in the paper."
    far = max(b["rad"] / a["rad"] - 1 for a, b in other)
    where = ", ".join(f"{a['places']} {a['epsilon']}" for a, _ in other)
    return f"{text}; not in {where}, where it is below by up to {100 * far:.1f}%."


def _pairs(rows: list[Row], one: str, two: str) -> list[tuple[Row, Row]]:
    other = {(r["values"], r["epsilon"]): r for r in rows if r["mechanism"] == two}
    return [(r, other[r["values"], r["epsilon"]]) for r in rows if r["mechanism"] == one]


def _draw(figure: Any, rows: list[Row], places: list[str]) -> None:
    axes = figure.subplots(1, len(places), sharey=True, squeeze=False)[0]
    for ax, place in zip(axes, places, strict=True):
        for k, kind in enumerate(KINDS):
            own = [r for r in rows if r["places"] == place and r["mechanism"] == kind]
            at = [r["epsilon"] for r in own]
            # GRR is wide, with large dots: from some epsilon on subset selection, dashed, is on it
            ax.plot(at, [r["rad"] for r in own], color=COLOURS[k], label=kind, **STYLES[kind])
            ax.plot(at, [r["simulated"] for r in own], "o", color=COLOURS[k],
                    markersize=5.5 if kind == "GRR" else 2.5)  # fmt: skip
        ax.set(title=f"{place}, m = {own[0]['values']}", xlabel="epsilon")
    axes[0].set_ylabel("extra risk (RAD)")
    axes[0].legend(title="line: exact, dot: measured")
