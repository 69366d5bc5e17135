"""Five mechanisms over eleven values (figure optimal_examples): exact risks against Theorem 1."""

from __future__ import annotations

import math
from typing import Any

from scipy.optimize import brentq

from dprad.mechanisms import GRR, OUE, Gaussian, Laplace, SubsetSelection
from dprad.model.guarantees import REPLACE_ONE, GaussianDP, PureDP
from dprad.model.priors import Prior
from dprad.paper.experiments import Made, Options, Row, verdict
from dprad.show.plots.style import COLOURS
from dprad.verbs.assess import assess

SIZE, DELTA = 11, 1e-5
EPSILONS = [0.25 * i for i in range(1, 81)]


def sigma(epsilon: float, sensitivity: float) -> float:
    """The least Gaussian noise that is (epsilon, DELTA)-DP."""

    def excess(mu: float) -> float:
        return float(GaussianDP(mu, neighbours=REPLACE_ONE).delta(epsilon)) - DELTA

    return sensitivity / float(brentq(excess, 1e-6, 100.0))


def makers(epsilon: float) -> dict[str, Any]:
    """The five mechanisms at an epsilon; numbers are 0 .. 10."""
    span = SIZE - 1.0
    return {
        "GRR": GRR(epsilon=epsilon, size=SIZE),
        "subset selection": SubsetSelection(epsilon=epsilon, size=SIZE),
        "OUE": OUE(epsilon=epsilon, size=SIZE),
        "Laplace": Laplace(epsilon=epsilon, sensitivity=span),
        "Gaussian": Gaussian(sigma=sigma(epsilon, span), sensitivity=span),
    }


def run(options: Options) -> Made:
    """A row for each epsilon and mechanism."""
    prior = Prior.uniform(SIZE)
    rows: list[Row] = []
    for epsilon in EPSILONS[3::8] if options.quick else EPSILONS:
        promise = PureDP(epsilon, neighbours=REPLACE_ONE)
        bounds = {b.name: b.value for b in assess(promise, prior=prior).bounds}
        for name, mechanism in makers(epsilon).items():
            rad = assess(mechanism, prior=prior).rad
            rows.append(
                {
                    "epsilon": epsilon,
                    "mechanism": name,
                    "rad": rad,
                    "theorem_1": bounds["theorem-1"],
                }
            )

    def gap(epsilon: float) -> float:
        two = makers(epsilon)
        return assess(two["Laplace"], prior=prior).rad - assess(two["OUE"], prior=prior).rad

    cross = float(brentq(gap, 10.0, 18.0, xtol=1e-9))
    closed = []
    for epsilon in (1.0, 5.0, 10.0):
        theirs = (SIZE - 1) / SIZE * (1 - math.exp(-epsilon / (2 * (SIZE - 1))))
        ours = assess(makers(epsilon)["Laplace"], prior=prior).rad
        closed.append((f"Laplace at epsilon {epsilon:g}", ours, theirs, 9))
    checks = [("epsilon where Laplace meets OUE", cross, 20 * math.log(2), 3), *closed]
    return Made(
        name=options.name,
        rows=rows,
        parameters={"values": SIZE, "delta_of_gaussian": DELTA, "crossing": round(cross, 6)},
        sentences=(
            "The order of the paper comes out: GRR above subset selection above OUE; Laplace below "
            f"OUE up to epsilon = {cross:.3f} (20 ln 2; the paper says 14); Gaussian lowest. Its "
            "closed form for Laplace is ours. " + verdict(checks),
            "Differs: the Gaussian noise here is the least that is (epsilon, delta)-DP; the "
            "paper does not say how it chose sigma.",
        ),
        draw=lambda figure: _draw(figure, rows),
    )


def _draw(figure: Any, rows: list[Row]) -> None:
    ax = figure.add_subplot()
    for k, name in enumerate(dict.fromkeys(r["mechanism"] for r in rows)):
        own = [r for r in rows if r["mechanism"] == name]
        ax.plot([r["epsilon"] for r in own], [r["rad"] for r in own], color=COLOURS[k], label=name)
    own = [r for r in rows if r["mechanism"] == "GRR"]
    ax.plot([r["epsilon"] for r in own], [r["theorem_1"] for r in own], "k--", label="Theorem 1")
    ax.set(xlabel="epsilon", ylabel="extra risk (RAD)")
    ax.legend()
