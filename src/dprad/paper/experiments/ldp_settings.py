"""LDP Auditor beyond one report: repeated reports with a majority vote, and RS+FD with a guess at a
random attribute; the same protocols, bet on with exact posteriors.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.priors import Prior
from dprad.numerics.arrays import FloatArray
from dprad.numerics.intervals import clopper_pearson
from dprad.paper.auditor import lower_bound
from dprad.paper.experiments import Made, Options, Row, cells
from dprad.paper.settings import FAKED, PROTOCOLS, Longitudinal, Multidimensional, Setting
from dprad.show.plots.style import COLOURS
from dprad.verbs.audit import audit

SIZES, TIMES, ATTRIBUTES = (2, 100), (5, 50, 500), (2, 10)
EPSILONS = {"longitudinal": (0.25, 0.5, 0.75, 1.0), "multidimensional": (0.25, 0.5, 1.0, 2.0, 4.0)}
RUNS, ALPHA = 20_000, 0.01
# Levels of evidence that are considered.
LEVELS = 200


def setting_of(cell: Row) -> Setting:
    """What is run in a cell."""
    protocol, e, k = cell["protocol"], cell["epsilon"], cell["values"]
    if cell["setting"] == "longitudinal":
        return Longitudinal(protocol, e, k, cell["tau"])
    return Multidimensional(protocol, e, k, cell["d"])


def guesser(pilot: FloatArray) -> Any:
    """The attack by exact posteriors that should certify most: name the likelier record where the
    output says enough, else pass. Fixed before any run that counts, by a pilot of as many.
    """
    size = np.sort(np.abs(pilot))[::-1]
    right = np.cumsum(1.0 / (1.0 + np.exp(-size)))  # the posterior of the likelier record
    best, enough = -1.0, 0.0
    for made in np.unique(np.geomspace(1, len(size), LEVELS).astype(int)):
        low = clopper_pearson(int(right[made - 1]), int(made), 1 - ALPHA)[0]
        odds = math.log(low / (1 - low)) if low > 0.5 else 0.0
        if odds > best:
            best, enough = odds, float(size[made - 1])

    def attack(outputs: Any, _known: Any) -> list[int | None]:
        told = np.asarray(outputs)
        guess = np.where(np.abs(told) >= enough - 1e-9, told < 0, -1)
        guess[told == 0] = -1  # says nothing
        return [int(g) if g >= 0 else None for g in guess.tolist()]

    return attack


def both(cell: Row, seed: int, runs: int) -> Row:
    """Their bound and ours, from equally many calls and at the same confidence."""
    setting, rng = setting_of(cell), np.random.default_rng(seed)
    first, last = (setting.named(record, runs, rng) for record in (0, 1))
    theirs = lower_bound(first, last, runs, alpha=ALPHA)
    attack = guesser(setting.strength(np.arange(2 * runs) % 2, rng))
    claim = PureDP(setting.claimed, neighbours=REPLACE_ONE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few calls cannot refute such an epsilon
        ours = audit(
            setting.strength, claim=claim, prior=Prior.uniform(2), attack=attack,
            vectorised=True, trials=2 * runs, confidence=1 - ALPHA / 2, rng=seed,
        )  # fmt: skip
    return cell | {
        "claimed": setting.claimed,
        "true": setting.true,
        "ldp_auditor": max(theirs, 0.0) if theirs is not None else 0.0,
        "certified": ours.epsilon_lower,
        "verdict": ours.verdict,
    }


def grid(quick: bool) -> list[Row]:
    """All settings."""
    some: Any = {s: e[2:3] if quick else e for s, e in EPSILONS.items()}
    long = [
        {"setting": "longitudinal", "protocol": p, "values": k, "tau": t, "d": 1, "epsilon": e}
        for p in PROTOCOLS for k in SIZES for t in (TIMES[:1] if quick else TIMES)
        for e in some["longitudinal"]
    ]  # fmt: skip
    many = [
        {"setting": "multidimensional", "protocol": p, "values": k, "tau": 1, "d": d, "epsilon": e}
        for p in FAKED for k in SIZES for d in (ATTRIBUTES[:1] if quick else ATTRIBUTES)
        for e in some["multidimensional"]
    ]  # fmt: skip
    return long + many


def run(options: Options) -> Made:
    """A row for each setting, protocol and epsilon."""
    runs = options.runs or (1000 if options.quick else RUNS)

    def work(cell: Row, seed: int) -> list[Row]:
        return [both(cell, seed, runs)]

    rows = cells(options, grid(options.quick), work)
    return Made(
        name=options.name,
        rows=rows,
        parameters={"runs_on_each_record": runs, "confidence": 1 - ALPHA / 2},
        sentences=_sentences(rows, runs),
        draw=lambda figure: _draw(figure, rows),
        size=(9.0, 4.2),
    )


def _sentences(rows: list[Row], runs: int) -> tuple[str, ...]:
    long, many = ([r for r in rows if r["setting"] == s] for s in EPSILONS)
    refuted = sum(r["verdict"] == "violated" for r in many)
    seen = sum(r["ldp_auditor"] > r["claimed"] for r in many)
    above = sum(r[n] > r["true"] + 1e-9 for r in rows for n in ("certified", "ldp_auditor"))
    better = sum(r["certified"] > r["ldp_auditor"] for r in rows)
    return (
        f"Both bounds come from {2 * runs:,} calls and hold with the same confidence, each by "
        f"itself; {above} of {2 * len(rows)} are above the truth, where one in {2 / ALPHA:g} may "
        f"be. Ours, by exact posteriors, is the higher one in {better} of {len(rows)} cells; how "
        "much evidence is enough was chosen beforehand, in a simulation of the protocol. LDP "
        "Auditor's own experiments have a million runs on each value. Repeated reports are drawn "
        "as counts of what they support, which has the same law.",
        "Longitudinal: tau independent reports about one value, which promise tau times epsilon "
        "(THE: less). LDP Auditor guesses the value that was supported most often. No audit sees "
        "more than about the logarithm of the number of calls, "
        f"{max(r['certified'] for r in long):.1f} here; what was really promised is known without "
        "one.",
        f"Multidimensional: RS+FD, claimed for the record. The guess at a random attribute exceeds "
        f"the claim in {seen} of {len(many)} cells; two records that differ in all attributes "
        f"refute it in {refuted}. The truth is ln(d (e^epsilon - 1) + 1).",
    )


def _draw(figure: Any, rows: list[Row]) -> None:
    axes = figure.subplots(1, 2)
    for ax, setting in zip(axes, EPSILONS, strict=True):
        own = [r for r in rows if r["setting"] == setting]
        truth = np.geomspace(min(r["true"] for r in own) / 2, max(r["true"] for r in own))
        ax.plot(truth, truth, color="grey", linewidth=0.8, label="truth")
        for what, mark, colour, label in (
            ("ldp_auditor", "x", COLOURS[1], "LDP Auditor"),
            ("certified", ".", COLOURS[0], "exact posteriors"),
        ):
            ax.plot([r["true"] for r in own], [r[what] for r in own], mark, color=colour,
                    markersize=4, label=label)  # fmt: skip
        if setting == "multidimensional":
            ax.plot([r["true"] for r in own], [r["claimed"] for r in own], "_", color="black",
                    label="claimed")  # fmt: skip
        else:
            ax.set(xscale="log", yscale="symlog", ylim=(-0.1, 20))
        ax.set(title=setting, xlabel="true epsilon")
        ax.legend(frameon=False)
    axes[0].set_ylabel("lower bound on epsilon")
