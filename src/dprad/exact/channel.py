"""Theorem 2 of the paper for finitely many outputs: an exact sum.

    RAD* = sum_o sum_x max_{g or pass} sum_{z in S(g) & fiber x} pi_z ( p(o|z) - pbar(o) )

Outputs are taken a block at a time, so no array as large as the channel is made. Cost: O(m K) for
one class a set and for windows, O(members of the success relation x K) otherwise; a few blocks of
`BLOCK_ENTRIES` numbers of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprad.arrays import FloatArray, IntArray
from dprad.games import Game
from dprad.success import starts

# Entries of a block: small enough for the cache, large enough to pay for the calls.
BLOCK_ENTRIES = 2**19
# Gains that differ by less than this share of an output's probability are ties.
TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Solution:
    """What a solver finds: the RAD of the best attack, its luck on absent people, and ReRo."""

    rad: float
    success_out: float
    rero: float
    method: str


def sum_over_outputs(
    joint: Callable[[int, int], FloatArray], outputs: int, game: Game, method: str
) -> Solution:
    """`joint(a, b)` gives pi_c p(o|c) for classes c (rows) and outputs a <= o < b (columns)."""
    pi, sets = game.probabilities, game.sets
    assert pi is not None and sets is not None
    begin = starts(sets.fiber)
    own_fiber = np.repeat(np.arange(len(begin)), np.diff(np.r_[begin, len(sets.fiber)]))
    rad = success_out = rero = 0.0
    step = max(1, BLOCK_ENTRIES // max(len(pi), len(sets.mass)))
    for a in range(0, outputs if len(begin) else 0, step):
        weight = joint(a, min(a + step, outputs))
        pbar = weight.sum(axis=0)
        rero += float(_best(sets.sums(weight), begin).sum())
        weight -= pi[:, None] * pbar
        gain = sets.sums(weight)
        best = _best(gain, begin)
        rad += float(np.maximum(best, 0.0).sum())
        # the likeliest of the guesses that tie; a tie with passing is a pass if all is known
        near = TIE * pbar
        chosen = _best(np.where(gain >= (best - near)[own_fiber], sets.mass[:, None], 0.0), begin)
        guess = best > near if game.everything_known else best >= -near
        success_out += float(np.sum(np.where(guess, chosen, 0.0) @ pbar))
    return Solution(rad=rad, success_out=success_out, rero=rero, method=method)


def _best(values: FloatArray, begin: IntArray) -> FloatArray:
    """The greatest of each run of rows."""
    if len(begin) == 1:
        return np.asarray(values.max(axis=0, keepdims=True))
    if len(begin) == len(values):
        return values
    return np.maximum.reduceat(values, begin, axis=0)
