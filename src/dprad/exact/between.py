"""Protocols over time between two protocols with a single report, for any prior and knowledge.

All reports are drawn from what the first round kept: they tell no more than the kept answer does,
which is one report of a protocol without a second round. And whoever sees them may summarise them:
a bit counts as set if it was one often enough, a symbol is the one reported most. Such a summary is
again one report of a protocol of the same kind, and tells no less than nothing. Both have closed
forms, and no attack gains by seeing less, so

    RAD*(summary) <= RAD*(all reports) <= RAD*(what was kept) ,

whatever the prior, the knowledge and the loss. The two ends meet as reports add up: for a year of
daily reports about one of 10,000 values they agree to four digits or more. (A sum over all counts
is hard: for membership the likelihood of a random person is a sum of independent variables weighted
by the prior, and its distribution counts solutions of knapsack problems.) O(k log k) for k values,
after O(R) for the summaries of bits, O(R^3 log g) for those of symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.exact.memoised import REPORTS, SYMBOLS, balls
from dprad.exact.solution import Solution
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.over_time.base import Memoised, log_factorials
from dprad.mechanisms.over_time.bit_chain import UnaryChain
from dprad.mechanisms.over_time.hashing import LOLOHA, Hashed
from dprad.mechanisms.over_time.symbol_chain import DirectChain, SymbolChain
from dprad.mechanisms.unary import UnaryEncoding

# Ends that differ by less than this share of the larger one are called exact; the error of sums
# over counts, as a share of the result.
CLOSE, ROUNDING = 1e-3, 1e-11
_METHOD = "between a summary of the reports and what was kept"

Ends = tuple[Mechanism, list[Mechanism]]


def enclosed(mechanism: Memoised, single: Callable[[Any], Solution | None]) -> Solution | None:
    """The enclosure, if the protocol has one and `single` solves its ends exactly; else None.

    `single` solves a protocol with one report for the question at hand, or returns None.
    """
    if mechanism.periods > 1 or mechanism.reports == 1:
        return None
    ends = ends_of(mechanism)
    above = None if ends is None else single(ends[0])
    if ends is None or above is None or above.kind != "exact":
        return None
    below = [s for s in map(single, ends[1]) if s is not None and s.kind == "exact"]
    low = max((_ends(s)[0] for s in below), default=0.0)
    high = max(_ends(above)[1], low)  # equal up to rounding
    return Solution(
        rad=(low + high) / 2,
        success_out=above.success_out,
        rero=above.rero,
        method=_METHOD,
        interval=(low * (1.0 - ROUNDING), high * (1.0 + ROUNDING)),
    )


def both(one: Solution | None, other: Solution | None) -> Solution | None:
    """What two enclosures say together: the narrower one, cut by the other."""
    if one is None or other is None:
        return one or other
    (low, high), (least, most) = _ends(one), _ends(other)
    better = one if high - low <= most - least else other
    low, high = max(low, least), min(high, most)
    high = max(low, high)  # equal up to rounding
    return replace(better, rad=(low + high) / 2, interval=(low, high))


def close(solution: Solution) -> bool:
    """Whether the ends agree well enough to be called exact."""
    low, high = _ends(solution)
    return high - low <= CLOSE * high


def within(drawn: Solution, around: Solution) -> Solution:
    """An estimate, with an interval that reaches no further than what is certain."""
    (low, high), (least, most) = _ends(drawn), _ends(around)
    low, high = min(max(low, least), most), max(min(high, most), least)
    rad = min(max(drawn.rad, low), high)
    return replace(drawn, rad=rad, interval=(low, high))


def _ends(solution: Solution) -> tuple[float, float]:
    return solution.interval or (solution.rad, solution.rad)


@singledispatch
def ends_of(mechanism: Any) -> Ends | None:  # noqa: ARG001
    """What was kept, and summaries of all reports, as protocols with one report; None: unknown."""
    return None


@ends_of.register
def _unary(mechanism: UnaryChain) -> Ends:
    """A bit counts as set from so many ones on: the thresholds that are best for some number of
    equally likely values.
    """
    unset, lift = mechanism.laws(mechanism.reports)
    ways = log_factorials(mechanism.reports)
    law = np.exp(unset + ways[-1] - ways - ways[::-1])
    law /= law.sum()
    q = np.minimum(np.cumsum(law[::-1])[-2::-1], 1.0)
    p = np.minimum(np.cumsum((law * np.exp(lift))[::-1])[-2::-1], 1.0)
    numbers = np.geomspace(2, max(mechanism.size, 2), 12)[:, None]
    with np.errstate(all="ignore"):
        nobody = np.exp(numbers * np.log1p(-q))
        capacity = p / q * (1 - nobody) + (1 - p) / (1 - q) * nobody
    best = np.unique(np.nan_to_num(capacity).argmax(axis=1))
    p1, q1, _, _ = mechanism.rounds
    summaries = [
        UnaryEncoding(size=mechanism.size, p=float(p[i]), q=float(min(q[i], p[i]))) for i in best
    ]
    return UnaryEncoding(size=mechanism.size, p=p1, q=q1), list(summaries)


@ends_of.register
def _direct(mechanism: DirectChain) -> Ends | None:
    odds = _odds(mechanism)
    if odds is None or mechanism.size < 2:
        return None
    size = mechanism.size
    return GRR(epsilon=mechanism.epsilon_inf, size=size), [GRR(epsilon=odds, size=size)]


@ends_of.register
def _hashed(mechanism: LOLOHA) -> Ends | None:
    odds = _odds(mechanism)
    if odds is None:
        return None
    size, g = mechanism.size, mechanism.symbols
    kept = Hashed(epsilon=mechanism.epsilon_inf, size=size, buckets=g)
    return kept, [Hashed(epsilon=odds, size=size, buckets=g)]


def _odds(chain: SymbolChain) -> float | None:
    """``ln`` of how much likelier the symbol reported most (ties at random) is to be the true one
    than any other one is.
    """
    g = chain.symbols
    if chain.reports > REPORTS or g > SYMBOLS or g < 2:
        return None
    p1, q1, _, _ = chain.rounds
    found = min(balls(chain, g) / g, 1.0)  # it is the one that was kept
    missed = (1.0 - found) / (g - 1)
    gap = (p1 - q1) * (found - missed)
    return math.log1p(max(gap, 0.0) / (p1 * missed + q1 * found + (g - 2) * q1 * missed))
