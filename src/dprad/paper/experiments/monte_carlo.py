"""Nested Monte Carlo for a continuous prior (figures MC_results), exact values beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.mechanisms import ExponentialInterval
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.paper.experiments import Made, Options, Row, cells, verdict
from dprad.paper.nested import nested_monte_carlo
from dprad.show.plots.style import COLOURS
from dprad.verbs.assess import assess

EPSILONS = (0.1, 2.08, 4.06, 6.04, 8.02, 10.0)
ETAS = (0.1, 0.25, 0.5, 0.75)
DRAWS = (500, 1000, 2000, 5000)
# The paper's repetitions up to 1,000 draws. The cost grows with the square of the draws, so fewer
# beyond; and draws from Beta cost six times as much, so fewer of those.
REPEATS, FEWEST, DEAR = 500, 10, 5
EXACT = {
    ("uniform", 0.1): (0.0057, 0.1257, 0.2422, 0.3425, 0.4255, 0.4934),
    ("uniform", 0.5): (0.0085, 0.1653, 0.2799, 0.3515, 0.3946, 0.4212),
}
# Beta(.1, .1), eta .25, at epsilon .1, 5.05, 10.
BETA = {0.1: 0.0118, 5.05: 0.4231, 10.0: 0.5272}


def prior(name: str) -> Prior:
    """Of the two priors."""
    from scipy.stats import beta, uniform

    return Prior.continuous(uniform() if name == "uniform" else beta(0.1, 0.1), 0, 1)


def exact(name: str, eta: float, epsilon: float) -> float:
    """The risk, by quadrature."""
    noise = ExponentialInterval(epsilon=epsilon, factor=1.0)
    return assess(noise, prior=prior(name), threat=Threat(loss="absolute", eta=eta)).rad


def run(options: Options) -> Made:
    """A row for each prior, tolerance, epsilon and number of draws."""
    repeats = options.runs or (3 if options.quick else REPEATS)
    draws = (100, 200) if options.quick else DRAWS
    grid = [
        {"prior": p, "eta": eta, "epsilon": e, "draws": n}
        for p in ("uniform", "Beta(.1, .1)")
        for eta in (ETAS[:2] if options.quick else ETAS)
        for e in (EPSILONS[::5] if options.quick else EPSILONS)
        for n in draws
    ]

    def work(cell: Row, seed: int) -> list[Row]:
        return [_row(cell, seed, repeats)]

    rows = cells(options, grid, work)
    return Made(
        name=options.name,
        rows=rows,
        parameters={
            "repetitions": f"{repeats} (uniform) up to 1,000 draws; the paper has {REPEATS}",
            "draws": list(draws),
            "scale": "1/epsilon, as the authors' code",
        },
        sentences=_sentences(rows, verdict(_checks(options.quick)), max(draws)),
        draw=lambda figure: _draw(figure, rows),
        size=(9.0, 4.6),
        shown=(
            "prior",
            "eta",
            "epsilon",
            "draws",
            "exact",
            "mean",
            "low",
            "high",
            "guaranteed_error",
        ),
    )


def _row(cell: Row, seed: int, repeats: int) -> Row:
    """Nested Monte Carlo, repeated, beside the exact value."""
    noise = ExponentialInterval(epsilon=cell["epsilon"], factor=1.0)
    population = prior(cell["prior"])
    # streams of their own: the authors' forked workers shared theirs
    many = repeats if cell["prior"] == "uniform" else -(-repeats // DEAR)
    times = min(many, max(FEWEST, round(many * (1000 / cell["draws"]) ** 2)))
    seeds = np.random.SeedSequence(seed).generate_state(times)
    solutions = [
        nested_monte_carlo(noise, population, eta=cell["eta"], draws=cell["draws"], rng=int(s))
        for s in seeds
    ]
    values = np.array([s.rad for s in solutions])
    ends = solutions[0].interval or (0.0, 1.0)
    low, high = np.quantile(values, [0.025, 0.975])
    return cell | {
        "exact": exact(cell["prior"], cell["eta"], cell["epsilon"]),
        "repetitions": times,
        "mean": float(values.mean()),
        "low": float(low),
        "high": float(high),
        "guaranteed_error": float(ends[1] - solutions[0].rad),
    }


def _checks(quick: bool) -> list[tuple[str, float, float, int]]:
    """Exact values beside the reference numbers."""
    checks = []
    for (name, eta), values in EXACT.items():
        for e, value in zip(EPSILONS, values, strict=True):
            if not quick or e == EPSILONS[0]:
                checks.append((f"{name}, eta {eta}, epsilon {e:g}", exact(name, eta, e), value, 4))
    for e, value in BETA.items():
        checks.append((f"Beta, eta 0.25, epsilon {e:g}", exact("Beta(.1, .1)", 0.25, e), value, 4))
    return checks


def _sentences(rows: list[Row], agreement: str, draws: int) -> tuple[str, ...]:
    off = max(abs(r["mean"] - r["exact"]) for r in rows if r["draws"] == draws)
    wide = [r["guaranteed_error"] for r in rows if r["draws"] == draws]
    return (
        f"{agreement} (Where one does not, the printed digit is a rounding slip of the reference.) "
        f"At {draws} draws the mean of nested Monte Carlo is within {off:.3f} of the exact value. "
        f"What its error bound guarantees, cut off at 1, reaches {min(wide):.2f} to "
        f"{max(wide):.2f} above the estimate: mostly more than the number itself.",
        "Differs from the paper: its Beta plots are off by up to 0.016, since forked workers "
        "shared their random numbers; and its text says scale 2/epsilon where its code has "
        "1/epsilon.",
    )


def _draw(figure: Any, rows: list[Row]) -> None:
    names = list(dict.fromkeys(r["prior"] for r in rows))
    etas = list(dict.fromkeys(r["eta"] for r in rows))
    axes = figure.subplots(len(names), len(etas), sharex=True, sharey=True, squeeze=False)
    for line, name in zip(axes, names, strict=True):
        for ax, eta in zip(line, etas, strict=True):
            for k, e in enumerate(dict.fromkeys(r["epsilon"] for r in rows)):
                own = [r for r in rows if (r["prior"], r["eta"], r["epsilon"]) == (name, eta, e)]
                at = [r["draws"] for r in own]
                ax.fill_between(
                    at,
                    [r["low"] for r in own],
                    [r["high"] for r in own],
                    color=COLOURS[k % 7],
                    alpha=0.25,
                    linewidth=0,
                )
                ax.plot(at, [r["mean"] for r in own], color=COLOURS[k % 7], label=f"{e:g}")
                ax.plot(at, [r["exact"] for r in own], ":", color=COLOURS[k % 7])
            ax.set_title(f"{name}, eta = {eta}", fontsize=9)
    axes[0][0].legend(title="epsilon (dotted: exact)", fontsize=6, title_fontsize=7)
    for ax in axes[-1]:
        ax.set_xlabel("draws")
