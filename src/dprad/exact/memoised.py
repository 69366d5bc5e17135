"""Protocols over time where every value is equally easy to name: an exact sum, by counting.

If in each fiber every value has a likeliest class of the same mass m_x, the best guess is always
the value with the largest likelihood, whatever the prior of the values is, and

    RAD* = sum_x m_x ( C - 1 ) ,     C = sum_o max_v p(o|v) .

C is the Bayes capacity. Unary chains: the largest of many independent counts, O(R). Randomised
response over time: the largest of R balls in g bins, by convolutions of positive terms,
O(R^3 log g). Hashing: the same, averaged over how many symbols have a value. Permanent bits: a
short sum. Other priors are summed over all counts if these are few, else enclosed
(`exact/between.py`), and estimated by draws if the enclosure is wide.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Singletons, starts
from dprad.mechanisms.over_time.base import Memoised, log_factorials
from dprad.mechanisms.over_time.bit_chain import UnaryChain
from dprad.mechanisms.over_time.bit_flip import DBitFlip
from dprad.mechanisms.over_time.hashing import LOLOHA
from dprad.mechanisms.over_time.symbol_chain import DirectChain, SymbolChain
from dprad.numerics.arrays import FloatArray, IntArray, distinct

METHOD = "closed form for values that are equally easy to name"
# Most reports and symbols for which balls in bins are counted.
REPORTS, SYMBOLS = 2000, 10**7


def closed_form(
    mechanism: Memoised, game: Classes, codes: IntArray, pi: FloatArray
) -> Solution | None:
    """The solution, or None where values are not equally easy to name, or change."""
    if mechanism.periods > 1 or not isinstance(game.sets, Singletons) or game.forced is not None:
        return None
    units = mechanism.bucket(codes) if isinstance(mechanism, DBitFlip) else codes
    kept = np.flatnonzero(pi > 0)
    values, place = distinct(units[kept])
    top = _tops(game, kept, place, len(values))
    if top is None or game.membership:
        return None
    capacity = capacity_of(mechanism, len(values))
    if capacity is None:
        return None
    named = float(top.sum())
    rad = named * max(capacity - 1.0, 0.0)
    return Solution(rad=rad, success_out=named, rero=rad + named, method=METHOD)


def _tops(game: Classes, kept: IntArray, place: IntArray, values: int) -> FloatArray | None:
    """The mass of the best class of each fiber, if it is the same for every value."""
    sets = game.sets
    assert isinstance(sets, Singletons)
    named = np.zeros(len(game.probabilities), dtype=bool)
    named[sets.index] = True
    inside = named[game.class_of[kept]]
    pairs = distinct(game.class_of[kept][inside] * values + place[inside])[0]
    if not len(pairs) or len(pairs) != len(sets.index):
        return None  # nothing can be named, or a class reads several values
    owner, value = pairs // values, pairs % values
    order = np.lexsort((-game.probabilities[owner], value, game.fiber[owner]))
    fiber, value, mass = game.fiber[owner][order], value[order], game.probabilities[owner][order]
    first = np.r_[True, (fiber[1:] != fiber[:-1]) | (value[1:] != value[:-1])]
    fiber, mass = fiber[first], mass[first]
    begin = starts(fiber)
    if not len(begin) or np.any(np.diff(np.r_[begin, len(fiber)]) != values):
        return None
    low, high = np.minimum.reduceat(mass, begin), np.maximum.reduceat(mass, begin)
    return high if np.all(high - low <= 1e-12 * high) else None


@singledispatch
def capacity_of(mechanism: Any, values: int) -> float | None:  # noqa: ARG001
    """``sum_o max_v p(o|v)`` over this many of the values; None if it is not known."""
    return None


@capacity_of.register
def _unary(mechanism: UnaryChain, values: int) -> float:
    unset, lift = mechanism.laws(mechanism.reports)
    ways = log_factorials(mechanism.reports)
    other = np.exp(unset + ways[-1] - ways - ways[::-1])
    upto = np.minimum(np.cumsum(other), 1.0)
    # the chance that the largest count is c, to all digits
    with np.errstate(divide="ignore"):
        top = upto**values * -np.expm1(values * np.log1p(-np.minimum(other / upto, 1.0)))
    return 1.0 + float(np.expm1(lift) @ top)


@capacity_of.register
def _direct(mechanism: DirectChain, values: int) -> float | None:
    if mechanism.reports > REPORTS:
        return None
    return _mixed(mechanism, balls(mechanism, values))


@capacity_of.register
def _hashed(mechanism: LOLOHA, values: int) -> float | None:
    g = mechanism.symbols
    if mechanism.reports > REPORTS or g > SYMBOLS or values * min(g, values) > SYMBOLS:
        return None
    most = min(g, values)
    share = np.zeros(most + 1)
    share[0] = 1.0
    filled = np.arange(most + 1)
    for _ in range(values):
        moved = share * (g - filled) / g
        share = share * filled / g
        share[1:] += moved[:-1]
    used = np.flatnonzero(share > 1e-18)
    # a sum over the probable numbers of symbols with a value; what is left adds less than 1e-17
    tops = np.array([balls(mechanism, int(j)) for j in used])
    return _mixed(mechanism, float(share[used] @ tops / share[used].sum()))


def _mixed(mechanism: SymbolChain, second: float) -> float:
    """Both rounds, from the sum of maxima of the second."""
    p1, q1, _, _ = mechanism.rounds
    return 1.0 + (p1 - q1) * (second - 1.0)


@capacity_of.register
def _bits(mechanism: DBitFlip, values: int) -> float:
    b, d, wrong = mechanism.buckets, mechanism.bits, 1.0 - mechanism.truth
    odds, total = mechanism.truth / wrong, 0.0
    for drawn in range(min(d, values) + 1):
        if d - drawn > b - values:
            continue
        chance = math.comb(values, drawn) * math.comb(b - values, d - drawn) / math.comb(b, d)
        silent = (1.0 - wrong) ** drawn
        rest = 1.0 if drawn < values else 1.0 / odds
        total += chance * (odds * (1.0 - silent) + rest * silent)
    return total


def balls(chain: SymbolChain, named: int) -> float:
    """Sum over all sequences of reports of ``max_m p2^(n_m) q2^(R - n_m)``, m of `named` symbols.

    Sequences whose largest count is c, reached by j of the named symbols: choose these, then place
    the other R - jc reports so that the remaining named symbols have fewer than c each. All terms
    are positive. O(R^3 log g).
    """
    reports, g = chain.reports, chain.symbols
    _, _, p2, q2 = chain.rounds
    free, log_p, log_q = g - named, math.log(p2), math.log(q2)
    ways = log_factorials(reports)
    terms = [reports * (math.log(free) + log_q)] if free and named else []
    if not named:
        return 1.0
    for c in range(1, reports + 1):
        weight = c * log_p + (reports - c) * log_q + ways[-1]
        for j, placed in _placed(reports, named, g, c, ways).items():
            terms.append(weight + math.log(math.comb(named, j)) - j * ways[c] + placed)
    top = max(terms)
    return math.exp(top) * math.fsum(math.exp(t - top) for t in terms)


def _placed(reports: int, named: int, g: int, c: int, ways: FloatArray) -> dict[int, float]:
    """Ways to place the other reports: ``ln [z^(R-jc)] e_(c-1)(z)^(named-j) e^(free z)``, by j."""
    logs: dict[int, float] = {}
    mean, n = reports / g, np.arange(reports + 1)
    law = np.exp(n * math.log(mean) - mean - ways)  # Poisson, so that nothing overflows
    below = np.where(n < c, law, 0.0)
    power: FloatArray | None = None
    for j in range(min(named, reports // c), 0, -1):
        left = reports - j * c
        if left < c:
            # too few to reach c: no restriction
            rest = left * math.log(g - j) if g > j else (0.0 if left == 0 else -math.inf)
            logs[j] = rest - ways[left]
            continue
        if power is not None:
            power = np.convolve(power, below)[: reports + 1]
        else:
            power = _power(below, named - j, reports)
            if g > named:
                spare = (g - named) * mean
                others = np.exp(n * math.log(spare) - spare - ways)
                power = np.convolve(power, others)[: reports + 1]
        value = float(power[left])
        scale = mean * (g - j) - left * math.log(mean)
        logs[j] = math.log(value) + scale if value > 0 else -math.inf
    return logs


def _power(law: FloatArray, times: int, most: int) -> FloatArray:
    """The law of a sum of `times` independent draws, up to `most`, by repeated squaring."""
    result = np.zeros(most + 1)
    result[0] = 1.0
    square = law
    while times:
        if times & 1:
            result = np.convolve(result, square)[: most + 1]
        times >>= 1
        if times:
            square = np.convolve(square, square)[: most + 1]
    return result
