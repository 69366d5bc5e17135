"""LDP Auditor beyond one report: repeated reports with a majority vote, and RS+FD with a guess at a
random attribute; the same runs, bet on with exact posteriors.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from dprad.mechanisms import GRR
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.priors import Prior
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.numerics.intervals import clopper_pearson
from dprad.paper.auditor import lower_bound
from dprad.paper.experiments import Made, Options, Row, cells
from dprad.show.plots.style import COLOURS
from dprad.verbs.audit import audit

SIZES, TIMES, ATTRIBUTES = (2, 100), (5, 50, 500), (2, 10)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
RUNS, ALPHA = 20_000, 0.01
# Reports simulated at once.
BLOCK = 2**20


def repeated(codes: IntArray, epsilon: float, size: int, times: int, rng: Any) -> IntArray:
    """Counts of each value in `times` reports of each person."""
    grr, found = GRR(epsilon=epsilon, size=size), []
    step = max(1, BLOCK // times)
    for a in range(0, len(codes), step):
        some = codes[a : a + step]
        reports = grr.sample(np.repeat(some, times), rng).reshape(len(some), times)
        at = reports + size * np.arange(len(some))[:, None]
        found.append(np.bincount(at.reshape(-1), minlength=size * len(some)).reshape(-1, size))
    return np.concatenate(found).astype(np.intp)


def vote(counts: IntArray, rng: Any) -> IntArray:
    """The value reported most often; ties at random."""
    return np.asarray((counts + rng.random(counts.shape)).argmax(axis=1))


def walk(epsilon: float, size: int, times: int) -> FloatArray:
    """The law of (reports of the first value) - (reports of the last), given either of them: all
    that an attacker needs to tell these two apart.
    """
    grr = GRR(epsilon=epsilon, size=size)
    step = np.array([grr.lie, max(1.0 - grr.truth - grr.lie, 0.0), grr.truth])  # down, stay, up
    law = np.ones(1)
    for _ in range(times):
        law = np.convolve(law, step)
    law = law / law.sum()
    return np.stack([law, law[::-1]])


def longitudinal(cell: Row, seed: int, runs: int) -> Row:
    """Both audits of `tau` independent reports about one of two values."""
    e, k, times = cell["epsilon"], cell["values"], cell["tau"]
    rng = np.random.default_rng(seed)
    named = []
    for value in (0, k - 1):
        counts = repeated(np.full(runs, value, dtype=np.intp), e, k, times, rng)
        named.append(int((vote(counts, rng) == 0).sum()))

    def run(records: Any, random: Any) -> IntArray:
        counts = repeated(np.asarray(records) * (k - 1), e, k, times, random)
        return np.asarray(counts[:, 0] - counts[:, -1] + times)

    return _both(cell, times * e, times * e, named, run, walk(e, k, times), runs, seed)


def with_fakes(values: IntArray, spent: float, size: int, d: int, rng: Any) -> IntArray:
    """RS+FD as published, for records with the same value in all d attributes."""
    answers = rng.integers(size, size=(len(values), d))
    real = rng.integers(d, size=len(values))
    answers[np.arange(len(values)), real] = GRR(epsilon=spent, size=size).sample(values, rng)
    return np.asarray(answers)


def multidimensional(cell: Row, seed: int, runs: int) -> Row:
    """Both audits of RS+FD; ours on two records that differ in all attributes."""
    e, k, d = cell["epsilon"], cell["values"], cell["d"]
    rng = np.random.default_rng(seed)
    spent = math.log1p(d * math.expm1(e))
    named = []
    for value in (0, k - 1):
        outputs = with_fakes(np.full(runs, value), spent, k, d, rng)
        guess = outputs[np.arange(runs), rng.integers(d, size=runs)]
        named.append(int((guess == 0).sum()))

    def run(records: Any, random: Any) -> IntArray:
        outputs = with_fakes(np.asarray(records) * (k - 1), spent, k, d, random)
        return np.asarray((outputs == 0).sum(axis=1) * (d + 1) + (outputs == k - 1).sum(axis=1))

    return _both(cell, e, spent, named, run, agreements(spent, k, d), runs, seed)


def agreements(spent: float, k: int, d: int) -> FloatArray:
    """The law of how many entries agree with the first record and how many with the last."""
    part = GRR(epsilon=spent, size=k)
    fake = np.array([1.0 / k, 1.0 / k, 1.0 - 2.0 / k])  # first, last, neither
    real = np.array([part.truth, part.lie, max(1.0 - part.truth - part.lie, 0.0)])
    rows = []
    for law in (real, real[[1, 0, 2]]):
        table = np.zeros((d + 1, d + 1))
        for i in range(d):
            for j in range(d - i):
                ways = math.comb(d - 1, i) * math.comb(d - 1 - i, j)
                chance = ways * fake[0] ** i * fake[1] ** j * fake[2] ** (d - 1 - i - j)
                table[i + 1, j] += chance * law[0]
                table[i, j + 1] += chance * law[1]
                table[i, j] += chance * law[2]
        rows.append(table.reshape(-1))
    return np.array(rows)


def guesser(law: FloatArray, trials: int) -> Any:
    """The attack by exact posteriors that should certify most: name the likelier record where the
    output says enough, else pass. Fixed before any run.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.nan_to_num(np.abs(np.log(law[0]) - np.log(law[1])), nan=0.0, posinf=700.0)
    best, enough = -1.0, 0.0
    levels = np.unique(np.round(strength, 9))
    for least in levels[:: max(1, len(levels) // 200)]:
        told = strength >= least - 1e-9
        made = trials * float(law[:, told].sum()) / 2
        right = trials * float(law[:, told].max(axis=0).sum()) / 2
        low = clopper_pearson(int(right), max(int(made), int(right), 1), 1 - ALPHA)[0]
        odds = math.log(low / (1 - low)) if low > 0.5 else 0.0
        if odds > best:
            best, enough = odds, float(least)
    guess = np.where(strength >= enough - 1e-9, law.argmax(axis=0), -1)

    def attack(outputs: Any, _known: Any) -> list[int | None]:
        return [g if g >= 0 else None for g in guess[np.asarray(outputs)].tolist()]

    return attack


def _both(
    cell: Row, claimed: float, true: float, named: list[int], run: Any, law: FloatArray, runs: int,
    seed: int,
) -> Row:  # fmt: skip
    """Their bound and ours, from equally many calls and at the same confidence."""
    theirs = lower_bound(named[0], named[1], runs, alpha=ALPHA)
    claim = PureDP(claimed, neighbours=REPLACE_ONE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few calls cannot refute such an epsilon
        ours = audit(
            run, claim=claim, prior=Prior.uniform(2), attack=guesser(law, 2 * runs),
            vectorised=True, trials=2 * runs, confidence=1 - ALPHA / 2, rng=seed,
        )  # fmt: skip
    return cell | {
        "claimed": claimed,
        "true": true,
        "ldp_auditor": max(theirs, 0.0) if theirs is not None else 0.0,
        "certified": ours.epsilon_lower,
        "verdict": ours.verdict,
    }


def grid(quick: bool) -> list[Row]:
    """All settings."""
    some: Any = EPSILONS[2:3] if quick else EPSILONS
    long = [
        {"setting": "longitudinal", "values": k, "tau": t, "d": 1, "epsilon": e}
        for k in SIZES for t in (TIMES[:1] if quick else TIMES) for e in some
    ]  # fmt: skip
    many = [
        {"setting": "multidimensional", "values": k, "tau": 1, "d": d, "epsilon": e}
        for k in SIZES for d in ATTRIBUTES for e in some
    ]  # fmt: skip
    return long + many


def run(options: Options) -> Made:
    """A row for each setting and epsilon."""
    runs = options.runs or (2000 if options.quick else RUNS)
    kinds = {"longitudinal": longitudinal, "multidimensional": multidimensional}

    def work(cell: Row, seed: int) -> list[Row]:
        return [kinds[cell["setting"]](cell, seed, runs)]

    rows = cells(options, grid(options.quick), work)
    return Made(
        name=options.name,
        rows=rows,
        parameters={"runs_on_each_record": runs, "protocol": "GRR", "confidence": 1 - ALPHA / 2},
        sentences=_sentences(rows),
        draw=lambda figure: _draw(figure, rows),
        size=(8.0, 3.6),
    )


def _sentences(rows: list[Row]) -> tuple[str, ...]:
    many = [r for r in rows if r["setting"] == "multidimensional"]
    refuted = sum(r["verdict"] == "violated" for r in many)
    seen = sum(r["ldp_auditor"] > r["claimed"] for r in many)
    above = sum(r[n] > r["true"] + 1e-9 for r in rows for n in ("certified", "ldp_auditor"))
    better = sum(r["certified"] > r["ldp_auditor"] for r in rows)
    return (
        "Both bounds come from equally many calls and hold with the same confidence, each by "
        f"itself; {above} of {2 * len(rows)} are above the truth. Ours, by exact posteriors, is "
        f"the higher one in {better} of {len(rows)} cells.",
        "Longitudinal: tau independent reports about one value, which promise tau times epsilon. "
        "No audit sees more than about the logarithm of the number of calls; what was really "
        "promised is known without one.",
        f"Multidimensional: RS+FD, claimed for the record. The guess at a random attribute exceeds "
        f"the claim in {seen} of {len(many)} cells; two records that differ in all attributes "
        f"refute it in {refuted}. The truth is ln(d (e^epsilon - 1) + 1).",
    )


def _draw(figure: Any, rows: list[Row]) -> None:
    axes = figure.subplots(1, 2)
    for ax, setting in zip(axes, ("longitudinal", "multidimensional"), strict=True):
        own = [r for r in rows if r["setting"] == setting]
        top = max(r["true"] for r in own)
        ax.plot([0, top], [0, top], color="grey", linewidth=0.8, label="truth")
        ax.plot([r["true"] for r in own], [r["ldp_auditor"] for r in own], "x", color=COLOURS[1],
                label="LDP Auditor")  # fmt: skip
        ax.plot([r["true"] for r in own], [r["certified"] for r in own], ".", color=COLOURS[0],
                label="exact posteriors")  # fmt: skip
        if setting == "multidimensional":
            ax.plot([r["true"] for r in own], [r["claimed"] for r in own], "_", color="black",
                    label="claimed")  # fmt: skip
        else:
            ax.set(xscale="log", yscale="symlog", ylim=(-0.1, 20))
        ax.set(title=setting, xlabel="true epsilon")
        ax.legend(frameon=False)
    axes[0].set_ylabel("lower bound on epsilon")
