"""Very many equally likely values, none of them listed: RAD and own risks in closed form.

Nothing or everything is known (Lambda: one fiber, or one for each value) and one of m values must
be named. The sums over values of the general closed forms then have closed forms themselves:

- randomised response: ``gap (1 - 1/m)``, whatever is known;
- independent memberships: ``h_k = p r^k``, so sums of a geometric series;
- support sets of w values: each names w values that are equally good, ``lift (1 - w/m) p/w``;
- Hadamard response: how many of the rows 1 .. n an output c favours depends, up to a sign, only on
  the lowest bit that is set in c (longer stretches of rows cancel), so there are O(log m) kinds;
- protocols over time: by their Bayes capacity (`memoised.py`).

O(log m) at most, so 10^9 values are no more work than a thousand.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from dprad.exact import memoised
from dprad.exact.channel import ROUNDING, TIE
from dprad.exact.grr import METHOD as GRR_METHOD
from dprad.exact.grr import raised
from dprad.exact.own import Own, promised_tv
from dprad.exact.solution import Solution
from dprad.exact.support import MAX_ENTRIES, chances
from dprad.exact.support import METHOD as SUPPORT_METHOD
from dprad.game.game import Classes, Even
from dprad.game.query import read_all
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.mechanisms.listed import Listed
from dprad.mechanisms.over_time.base import Memoised
from dprad.mechanisms.over_time.bit_flip import DBitFlip
from dprad.mechanisms.support import SupportMechanism
from dprad.numerics.arrays import FloatArray


def answers(mechanism: Mechanism, question: Question) -> bool:
    """Whether nothing needs to be listed to answer: no value of an `Even` question, no pair of near
    places.
    """
    game, query = question.game, question.query
    if isinstance(game, Classes) and question.passed:
        return isinstance(mechanism, GRR) and raised(game, mechanism.read(question)) is not None
    if not isinstance(game, Even) or not (query is None or query == question.prior.columns[0]):
        return False
    if solve_even(mechanism, game) is None or own_even(mechanism, game) is None:
        return False
    read_all(game.values, mechanism.reads_codes or 0, type(mechanism).__name__, question.prior)
    return True


@singledispatch
def solve_even(mechanism: Any, game: Even) -> Solution | None:  # noqa: ARG001
    """The best attack on a mechanism that reads the values as they are; None: list them."""
    return None


@solve_even.register
def _grr(mechanism: GRR, game: Even) -> Solution:
    gap, lie, m = mechanism.gap, mechanism.lie, game.values
    blind = 0.0 if game.membership else game.p_plus
    return Solution(
        rad=gap * game.unlike,
        success_out=blind if gap == 0.0 else lie + gap / m,
        rero=lie * m * game.p_plus + gap,
        method=GRR_METHOD,
    )


@solve_even.register
def _support(mechanism: SupportMechanism, game: Even) -> Solution | None:
    law, m, w = mechanism.supports, game.values, mechanism.members
    lift = float(-np.expm1(-law.log_ratio))
    if w is not None:
        # a value is in with chance p, and equally good as the others of its set
        p, q = float(law.hit(0)[0]), 0.0
        named, nobody, full = p / w, 0.0, float(w == m)
        first, rad = p, lift * p * (1.0 - w / m) / w
        after = p * (m - w) / (m - 1)
    elif mechanism.independent:
        p, q = chances(mechanism)
        r, stay = 1.0 - q, np.log1p(-q) if q < 1.0 else -np.inf
        series, shorter = _geometric(q, stay, m), _geometric(q, stay, m - 1)
        falls = float(np.exp(stay * m)) if q < 1.0 else 0.0
        inner = max(r * shorter - (m - 1) * falls, 0.0)
        rad = lift * p * (inner / m + r * game.unlike * series) / m
        named, first, after = p * series / m, p, p * r
        nobody, full = float(law.miss(0)[0]) * (falls / r if r > 0 else 0.0), p * q ** (m - 1.0)
    else:
        return None
    if game.membership:
        rad = lift * game.unlike * after
        inside = 0.0 if lift == 0.0 else first - full
        return Solution(rad=rad, success_out=inside - rad, rero=1.0, method=SUPPORT_METHOD)
    success_in = game.p_plus if lift == 0.0 else named + nobody * game.p_plus
    return Solution(rad=rad, success_out=success_in - rad, rero=success_in, method=SUPPORT_METHOD)


def _geometric(q: float, stay: float, terms: int) -> float:
    """``sum of (1 - q)^k`` for k below `terms`; `stay` is log(1 - q)."""
    if q == 0.0:
        return float(terms)
    return float(-np.expm1(stay * terms)) / q


@solve_even.register
def _listed(mechanism: Listed, game: Even) -> Solution | None:
    return None if mechanism.alike is None else solve_even(mechanism.alike, game)


@solve_even.register
def _memoised(mechanism: Memoised, game: Even) -> Solution | None:
    if mechanism.alike is not None:
        return solve_even(mechanism.alike, game)
    if mechanism.periods > 1 or game.membership or isinstance(mechanism, DBitFlip):
        return None
    capacity = memoised.capacity_of(mechanism, game.values)
    if capacity is None:
        return None
    one = game.p_plus
    rad = one * max(capacity - 1.0, 0.0)
    return Solution(rad=rad, success_out=one, rero=rad + one, method=memoised.METHOD)


@solve_even.register
def _hadamard(mechanism: HadamardResponse, game: Even) -> Solution:
    m, (inside, outside) = game.values, np.exp(mechanism.log_levels)
    many, held = _favoured(mechanism)
    pbar = outside + (inside - outside) * held / m
    ahead = (inside - outside) * (m - held) / m
    if game.membership:
        told = ahead > TIE * pbar
        rad = float(many @ (held / m * ahead))
        luck = float((many * held / m * pbar)[told].sum())
        return Solution(rad=rad, success_out=luck, rero=1.0, method=mechanism.method)
    rad = float(many @ np.where(held > 0, ahead, 0.0)) / m
    rero = float(many @ np.where(held > 0, inside, outside)) / m
    return Solution(rad=rad, success_out=game.p_plus, rero=rero, method=mechanism.method)


def _favoured(mechanism: HadamardResponse) -> tuple[FloatArray, FloatArray]:
    """Kinds of outputs: how many there are, and how many values each favours."""
    m, blocks, b = mechanism.size, mechanism.blocks, mechanism.block
    many, held = [], []
    for some, rows in ((m % blocks, m // blocks + 1), (blocks - m % blocks, m // blocks)):
        # the sum over rows 0 .. n of +-1: 1 where c and the row have even parity
        kinds = [(1.0, rows + 1)]
        for j in range(b.bit_length() - 1):
            rest = (rows + 1) % 2 ** (j + 1)
            height, number = min(rest, 2 ** (j + 1) - rest), b >> (j + 1)
            if (rows + 1) >> (j + 1) == 0:
                kinds.append((number, height))  # no bits above: the sign is always the same
            else:
                kinds += [(number / 2, height), (number / 2, -height)]
        for each, total in kinds:
            many.append(some * each)
            held.append((rows + 1 + total) / 2 - 1)  # row 0 has no value
    return np.array(many, dtype=float), np.array(held, dtype=float)


# -- one person ----------------------------------------------------------------------------------
@singledispatch
def own_even(mechanism: Any, game: Even) -> tuple[Own, int] | None:  # noqa: ARG001
    """The largest own risk, and whose it is; None: list them."""
    return None


@own_even.register
def _own_support(mechanism: SupportMechanism, game: Even) -> tuple[Own, int]:
    law = mechanism.supports
    between = float(-np.expm1(-law.log_ratio)) * float(law.hit(1)[1])
    return Own.exactly(np.array([between * game.unlike])), 0


@own_even.register
def _own_listed(mechanism: Listed, game: Even) -> tuple[Own, int] | None:
    if mechanism.alike is not None:
        return own_even(mechanism.alike, game)
    if mechanism.outcomes * game.values <= MAX_ENTRIES:
        return None  # all outcomes can be summed over
    high = promised_tv(mechanism)
    if mechanism.pair_tv is not None:
        high = min(high, mechanism.pair_tv)
    most = np.array([high * game.unlike])
    return Own(np.zeros(1, dtype=np.intp), most, np.zeros(1), most, "upper-bound"), 0


@own_even.register
def _own_hadamard(mechanism: HadamardResponse, game: Even) -> tuple[Own, int]:
    """A value gains on half of its block; any two values of it share half of that."""
    m, blocks, b = game.values, mechanism.blocks, mechanism.block
    inside, outside = np.exp(mechanism.log_levels)
    fewest = max(1, m // blocks)  # values of a block that has any
    held = b / 2 + (fewest - 1) * b / 4
    risk = np.array([(inside - outside) * (b / 2 - held / m)])
    return Own.exactly(risk, ROUNDING), m % blocks if m > blocks else 0
