"""What epsilon means on a map: real visits as the prior, a guess within some metres as success.

Beyond the paper, which uses the road graphs only for their number of nodes. GRR exactly; OUE and
subset selection by the posterior estimate, with as many draws as its interval needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dprad.attacks.optimal import best_attack
from dprad.data import datasets
from dprad.data.tables import read_rows
from dprad.errors import DpradError
from dprad.mechanisms import GRR, OUE, SubsetSelection
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.numerics.arrays import FloatArray
from dprad.paper.experiments import Made, Options, Row, cells, needs
from dprad.show.plots.style import COLOURS
from dprad.verbs.assess import assess

CITIES = ("Beijing", "Porto")
# Columns with visits, the best first; `datasets.visits` counts them.
VISITS = ("points", "train_points")
KINDS: dict[str, Any] = {"GRR": GRR, "subset selection": SubsetSelection, "OUE": OUE}
METRES = (200.0, 500.0)
EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0)
SHOWN = 8.0
# Draws of the posterior estimate, and how wide its interval may be.
FIRST, WIDTH, MOST = 400, 0.02, 6400


def places(options: Options) -> dict[str, tuple[Any, Any]]:
    """Nodes (latitude, longitude, visits) and edges of each city."""
    root = datasets.given(options.data)
    if root is None:
        if not options.quick:
            needs("locations/*_nodes.csv.gz and *_edges.csv.gz", options)
        side = np.arange(8)
        lat, lon = (g.ravel() for g in np.meshgrid(41.0 + 0.002 * side, -8.6 + 0.002 * side))
        visits = np.exp(-((lat - 41.006) ** 2 + (lon + 8.594) ** 2) / 2e-5) * 1000
        nodes = np.stack([lat, lon, np.rint(visits)], axis=1)
        edges = np.array([(8 * i + j, 8 * i + j + 1) for i in range(8) for j in range(7)])
        return {"a grid (built in)": (nodes, edges)}
    folder = Path(root) / "locations"
    cities = {c: _city(folder, c.lower()) for c in CITIES if _nodes(folder, c.lower()).exists()}
    if not cities:
        needs("locations/porto_nodes.csv.gz or locations/beijing_nodes.csv.gz", options)
    return cities


def _nodes(folder: Path, city: str) -> Path:
    return folder / f"{city}_nodes.csv.gz"


def _city(folder: Path, city: str) -> tuple[Any, Any]:
    """Nodes (latitude, longitude, visits) in their order, and edges as pairs of their places."""
    names, columns = read_rows(str(_nodes(folder, city)))
    column = next((c for c in VISITS if c in names), None)
    missing = [c for c in ("node_id", "lat", "lon") if c not in names]
    missing += [] if column else [VISITS[0]]
    if missing:
        raise DpradError(f"locations: {city}_nodes.csv.gz lacks the columns {', '.join(missing)}.")
    at = [columns[names.index(n)].astype(float) for n in ("lat", "lon", column or VISITS[0])]
    ends = read_rows(str(folder / f"{city}_edges.csv.gz"))
    pair = [ends[1][ends[0].index(n)] for n in ("from_node", "to_node")]
    index = {int(v): i for i, v in enumerate(columns[names.index("node_id")])}
    both = [[index.get(int(v), int(v)) for v in side] for side in pair]
    return np.stack(at, axis=1), np.array(both).T


def population(nodes: FloatArray) -> Prior:
    """Visits as a prior on latitude and longitude; places never visited can still be guessed."""
    counts = {(float(a), float(b)): float(v) for a, b, v in nodes}
    return Prior.from_counts(counts, columns=["latitude", "longitude"])


def run(options: Options) -> Made:
    """A row for each city, distance, mechanism and epsilon."""
    cities = places(options)
    priors = {city: population(nodes) for city, (nodes, _) in cities.items()}
    epsilons = EPSILONS[::3] if options.quick else EPSILONS
    grid = [
        {"city": city, "metres": d, "mechanism": kind, "epsilon": e}
        for city in cities
        for d in METRES
        for kind in KINDS
        for e in epsilons
    ]

    def work(cell: Row, seed: int) -> list[Row]:
        return [_row(cell, seed, priors[cell["city"]], options.quick)]

    rows = cells(options, grid, work)
    return Made(
        name=options.name,
        rows=rows,
        parameters={
            c: f"{p.size} places, {int(cities[c][0][:, 2].sum()):,} visits"
            for c, p in priors.items()
        },
        sentences=_sentences(rows, priors, epsilons[len(epsilons) // 2]),
        draw=lambda figure: _draw(figure, rows, cities, priors),
        size=(9.0, 4.4 * len(cities)),
    )


def _row(cell: Row, seed: int, prior: Prior, quick: bool) -> Row:
    """The risk, exactly, or with draws until its interval is narrow enough."""
    threat = Threat(loss="haversine", eta=cell["metres"])
    mechanism = KINDS[cell["mechanism"]](epsilon=cell["epsilon"], size=prior.size)
    draws = 50 if quick else FIRST
    while True:
        risk = assess(mechanism, prior=prior, threat=threat, trials=draws, rng=seed + draws)
        low, high = risk.interval
        if risk.kind == "exact" or high - low <= WIDTH or draws >= MOST or quick:
            break
        # fresh draws, so that the last interval is valid by itself
        draws = min(MOST, max(2 * draws, int(1.3 * draws * ((high - low) / WIDTH) ** 2)))
    return cell | {
        "rad": risk.rad,
        "low": low,
        "high": high,
        "success_out": risk.success_out,
        "success_in": risk.success_in,
        "kind": risk.kind,
        "draws": None if risk.kind == "exact" else draws,
    }


def _sentences(rows: list[Row], priors: dict[str, Prior], epsilon: float) -> tuple[str, ...]:
    cities = []
    for city, prior in priors.items():
        near = [r for r in rows if r["city"] == city and r["metres"] == METRES[0]]
        grr = {r["epsilon"]: r for r in near if r["mechanism"] == "GRR"}[epsilon]
        cities.append(
            f"{city}: with GRR at epsilon = {epsilon:g} an attacker finds a visitor to within "
            f"{METRES[0]:.0f} m in {100 * grr['success_in']:.0f} of 100 tries, "
            f"{100 * grr['success_out']:.0f} without the release (kappa {prior.kappa:.5f})."
        )
    return (
        " ".join(cities),
        _surprise(rows, next(iter(priors)), epsilon),
        f"The map shows, for GRR at epsilon = {SHOWN:g}, how often the attacker is within "
        f"{METRES[0]:.0f} m of somebody at that node: where nobody goes nobody is looked for.",
    )


def _surprise(rows: list[Row], city: str, epsilon: float) -> str:
    """How the order of the mechanisms changes once near is near enough."""
    at = {
        r["mechanism"]: r["rad"]
        for r in rows
        if (r["city"], r["metres"], r["epsilon"]) == (city, METRES[0], epsilon)
    }
    told = ", ".join(f"{name} {rad:.3f}" for name, rad in at.items())
    first = max(at, key=lambda name: at[name])
    return (
        f"With a distance the order of the mechanisms is another one: {city}, {METRES[0]:.0f} m, "
        f"epsilon = {epsilon:g}: {told}. "
        + (
            "For exact guesses GRR is the riskiest; here a report of several places betrays the "
            "neighbourhood."
            if first != "GRR"
            else "GRR is the riskiest here too."
        )
    )


def found_at(prior: Prior, epsilon: float, metres: float) -> FloatArray:
    """For GRR: chance that the attacker is near enough, for a person at each place."""
    from dprad.game.question import Question

    grr = GRR(epsilon=epsilon, size=len(prior.table))
    threat = Threat(loss="haversine", eta=metres)
    question, size = Question.of(prior, threat), grr.size
    game = question.table("a map")
    outputs = np.arange(size)
    zero = np.zeros(size, dtype=np.intp)
    guess = best_attack(grr, question).codes(outputs, zero, np.random.default_rng(0))
    chance = np.zeros(size)
    for z in range(size):
        made = guess >= 0
        near = np.zeros(size, dtype=bool)
        near[made] = game.right(np.full(made.sum(), game.target_of[z]), guess[made])
        lies = grr.lie * (near.sum() - near[z])
        chance[z] = lies + grr.truth * near[z]
    return chance


def _draw(figure: Any, rows: list[Row], cities: Any, priors: Any) -> None:
    axes = figure.subplots(len(cities), 2, squeeze=False)
    for (left, right), (city, (nodes, edges)) in zip(axes, cities.items(), strict=True):
        for k, kind in enumerate(dict.fromkeys(r["mechanism"] for r in rows)):
            for d, dash in zip(METRES, ("-", "--"), strict=True):
                own = [
                    r for r in rows if (r["city"], r["mechanism"], r["metres"]) == (city, kind, d)
                ]
                at = [r["epsilon"] for r in own]
                left.plot(
                    at, [r["rad"] for r in own], dash, color=COLOURS[k], label=f"{kind}, {d:.0f} m"
                )
                left.fill_between(
                    at,
                    [r["low"] for r in own],
                    [r["high"] for r in own],
                    color=COLOURS[k],
                    alpha=0.2,
                    linewidth=0,
                )
        left.set(title=city, xlabel="epsilon", ylabel="extra risk (RAD)")
        left.legend(fontsize=7)
        prior = priors[city]
        chance = found_at(prior, SHOWN, METRES[0])
        place = np.array([list(map(float, p)) for p in prior.support.tolist()])
        from matplotlib.collections import LineCollection

        lines = [[(nodes[a, 1], nodes[a, 0]), (nodes[b, 1], nodes[b, 0])] for a, b in edges]
        right.add_collection(
            LineCollection(lines, colors="#bbbbbb", linewidths=0.3, rasterized=True)
        )
        dots = right.scatter(
            place[:, 1], place[:, 0], c=chance, s=3, cmap="viridis", rasterized=True
        )
        figure.colorbar(dots, ax=right, label=f"found within {METRES[0]:.0f} m, epsilon {SHOWN:g}")
        right.set_aspect(1 / np.cos(np.radians(nodes[:, 0].mean())))
        right.set(xticks=[], yticks=[])
