"""Which two data sets to compare: two records, or a record and none.

With more than two records, first calls on some of them show which two are easiest to tell apart,
in two rounds, the second with the better half; the learners start from these calls, and no bet is
placed on them.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.special import expit

from dprad.attacks.counting import player
from dprad.attacks.optimal import OptimalAttack
from dprad.exact.posterior import expanded
from dprad.model.guarantees import Guarantee, PureDP
from dprad.numerics.arrays import Column, FloatArray, IntArray
from dprad.verbs.audit.allowed import cell_bets, growth, posterior_bets
from dprad.verbs.audit.coordinates import Reader, Rows, joined
from dprad.verbs.audit.learners import FARTHEST, Score, alone, together
from dprad.verbs.audit.outputs import translated
from dprad.verbs.audit.plan import Plan
from dprad.verbs.audit.session import best_cell

# Most candidate records, and pairs of them that are looked at closely: of the last, and of others.
RECORDS, PAIRS, CLOSELY = 10, 8, 4


def candidates(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Which records to consider: all if few, else both ends, the likeliest and some others."""
    possible = np.flatnonzero(probabilities > 0)
    if len(possible) <= RECORDS:
        return possible
    likeliest = possible[np.argsort(-probabilities[possible], kind="stable")[:2]]
    fixed = np.unique(np.r_[possible[[0, -1]], likeliest])
    others = np.setdiff1d(possible, fixed)
    drawn = rng.choice(others, size=RECORDS - len(fixed), replace=False)
    return np.sort(np.r_[fixed, drawn])


def choose_pair(
    samples: dict[int, Any], claim: Guarantee, seed: int, absent: int | None
) -> tuple[int, int]:
    """The two whose outputs speak most against the claim, by what learners say about outputs that
    they were not trained on.
    """
    return _ranked(samples, claim, seed, absent, PAIRS)[0]


def better(
    samples: dict[int, Any], claim: Guarantee, seed: int, absent: int | None, keep: int
) -> list[int]:
    """So many records, those of the best pairs; one that stands for none is kept."""
    pairs = _ranked(samples, claim, seed, absent, CLOSELY)
    return sorted(list(dict.fromkeys(z for pair in pairs for z in pair))[:keep])


def _ranked(
    samples: dict[int, Any], claim: Guarantee, seed: int, absent: int | None, most: int
) -> list[tuple[int, int]]:
    """All pairs, the best first: those farthest apart are looked at closely."""
    reader = Reader()
    parts = [reader.rows(outputs) for outputs in samples.values()]
    sizes = [np.full(len(p), z) for p, z in zip(parts, samples, strict=True)]
    rows = dict(zip(samples, reader.settle(parts, sizes), strict=True))
    pairs = list(itertools.combinations(sorted(rows), 2))
    if absent is not None:
        pairs = [p for p in pairs if absent in p]
    pairs.sort(key=lambda p: -_distance(rows[p[0]], rows[p[1]]))
    if len(pairs) == 1:
        return pairs
    speeds = []
    for a, b in pairs[:most]:
        both = joined([rows[a], rows[b]])
        secret = np.repeat([0, 1], [len(rows[a]), len(rows[b])])
        speeds.append(_speed(both, secret, claim, seed))
    order = sorted(range(len(speeds)), key=lambda i: -speeds[i])
    return [pairs[i] for i in order] + pairs[most:]


def _speed(rows: Rows, secret: IntArray, claim: Guarantee, seed: int) -> float:
    """Growth of the wealth per call, estimated: by what the mixture itself expects, or for other
    than pure claims by what learners say about outputs that they were not trained on.
    """
    if isinstance(claim, PureDP):
        odds = alone(rows, secret, claim.epsilon)(rows)
        pay = posterior_bets(odds, np.array([claim.epsilon]))[:, 0]
        chance = expit(odds)
        return float(((1.0 - chance) * pay[:, 0] + chance * pay[:, 1]).mean())
    threshold, a, b = best_cell(together(rows, secret, seed).tried, secret, claim)
    if not np.isfinite(threshold):
        return 0.0
    chances = np.array([a]), np.array([b])
    return float(growth(*chances, cell_bets(*chances, claim))[0])


def _distance(one: Rows, two: Rows) -> float:
    """The largest difference of the distribution functions of a coordinate, or of whole outputs."""
    worst = 0.0
    width = max(one.numbers.shape[1], two.numbers.shape[1])
    tables = [
        np.pad(r.numbers, ((0, 0), (0, width - r.numbers.shape[1])), constant_values=np.nan)
        for r in (one, two)
    ]
    for x, y in zip(tables[0].T[:256], tables[1].T[:256], strict=True):
        a, b = np.sort(np.nan_to_num(x, nan=-1e308)), np.sort(np.nan_to_num(y, nan=-1e308))
        grid = np.concatenate([a, b])
        upto = [np.searchsorted(x, grid, "right") / len(x) for x in (a, b)]
        worst = max(worst, float(np.abs(upto[0] - upto[1]).max()))
    return worst


def known_scores(plan: Plan, pair: tuple[int, int], support: Column) -> tuple[Score, ...]:
    """Log-odds that need no learning: the likelihood of a named mechanism, or the user's attack."""
    scores: list[Score] = []
    if plan.attack is not None:
        scores.append(_attack_score(plan, pair, support))
    elif plan.model is not None:
        scores.append(_model_score(plan, pair, support))
    return tuple(scores)


def _model_score(plan: Plan, pair: tuple[int, int], support: Column) -> Score:
    assert plan.model is not None
    mechanism = plan.model.named if plan.model.given else plan.subject
    read = mechanism.read(plan.question)[list(pair)]
    foreign = mechanism is not plan.subject

    def score(rows: Rows) -> FloatArray:
        outputs = mechanism.understood(rows.raw, support) if foreign else rows.raw
        log = mechanism.log_likelihood(expanded(outputs), read[None, :])
        with np.errstate(invalid="ignore"):
            odds = log[:, 1] - log[:, 0]
        return np.clip(np.nan_to_num(odds), -FARTHEST, FARTHEST)

    return score


def _attack_score(plan: Plan, pair: tuple[int, int], support: Column) -> Score:
    game, attack = plan.game, plan.attack
    play = player(attack, plan.question)
    if isinstance(attack, OptimalAttack):
        play = translated(play, attack.mechanism, support)
    rng = np.random.default_rng(0)

    def score(rows: Rows) -> FloatArray:
        # what the attack says about somebody of whom it knows what is known of the second record
        guess = play(rows.raw, np.full(len(rows), pair[1], dtype=np.intp), rng)
        right = [game.hits(np.full(len(rows), z, dtype=np.intp), guess) for z in pair]
        return np.asarray(right[1].astype(float) - right[0].astype(float))

    return score
