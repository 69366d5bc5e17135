"""Hadamard response by a fast transform: one class per set, whatever is known.

An output favours the values of its block whose row has even parity with it, and the best guess is
the likeliest of these. Their masses, for all outputs of a block at once, are a Walsh-Hadamard
transform, and the likeliest of them is the same transform with the greater instead of the sum. Even
and odd parities are carried separately, so nothing is subtracted. O(K log K) for K outputs. Where a
part is known, the likeliest of each fiber counts (`parities.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.exact.channel import TIE
from dprad.exact.parities import likeliest
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Singletons
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.numerics.arrays import HEAVY, FloatArray, IntArray, distinct

# The probability of naming somebody by a tie that is not looked at.
UNSURE = 1e-7


def solve_hadamard(
    mechanism: HadamardResponse, game: Classes, codes: IntArray, pi: FloatArray
) -> Solution | None:
    """Records z with probability pi[z] read as codes[z]; None if the game is of another kind."""
    sets = game.sets
    if (
        not isinstance(sets, Singletons)
        or (game.membership and not game.everything_known)
        or game.forced is not None
        or game.probabilities.max() > HEAVY
        or not len(sets.mass)
    ):
        return None
    kept = np.flatnonzero(pi > 0)
    named = np.zeros(len(game.probabilities), dtype=bool)
    named[sets.index] = True
    asked = kept[named[game.class_of[kept]]]
    pairs = distinct(game.class_of[asked] * mechanism.size + codes[asked])[0]
    if len(pairs) != len(sets.index):
        return None  # a class reads several values
    owner, code = np.divmod(pairs, mechanism.size)
    mass = game.probabilities[owner]
    read = np.bincount(codes[kept], weights=pi[kept], minlength=mechanism.size).astype(float)
    inside, outside = np.exp(mechanism.log_levels)
    support = _by_parity(mechanism, read, np.add)
    pbar = outside + (inside - outside) * support
    # inside - pbar, from what is not in the support: nothing cancels
    ahead = (inside - outside) * np.maximum(float(read.sum()) - support, 0.0)
    if game.membership and not game.nothing_known:
        own = _by_parity(mechanism, np.bincount(code, mass, mechanism.size).astype(float), np.add)
        luck = float((own * pbar)[ahead > TIE * pbar].sum())
        return _solution(float(own @ ahead), luck, float(mass.sum()), mechanism)
    if not game.nothing_known:
        return _part_known(mechanism, game.fiber[owner], code, mass, pbar, ahead)
    top = np.zeros(mechanism.size)
    np.maximum.at(top, code, mass)
    best, heaviest = _by_parity(mechanism, top, np.maximum), float(mass.max())
    gain, near = best * ahead, TIE * heaviest * pbar
    # others lose so little, where the support has next to no mass, that they tie
    ascending = np.r_[0.0, np.sort(mass)]
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.nan_to_num((near - gain) / (pbar - outside), nan=np.inf, posinf=np.inf)
    tied = ascending[np.searchsorted(ascending, most, "right") - 1]
    named_mass = np.where(gain <= near, np.maximum(best, tied), best)
    hits = np.maximum(best * inside, heaviest * outside)
    return _solution(float(gain.sum()), float(named_mass @ pbar), float(hits.sum()), mechanism)


def _part_known(
    mechanism: HadamardResponse,
    fiber: IntArray,
    code: IntArray,
    mass: FloatArray,
    pbar: FloatArray,
    ahead: FloatArray,
) -> Solution | None:
    """Fiber, code and mass of each class that can be named; of the outputs, pbar and by how much
    their support exceeds it. None if very unlikely classes tie with a pass, so that it takes a
    comparison to say who is named.
    """
    inside, outside = np.exp(mechanism.log_levels)
    fiber = distinct(fiber)[1]
    top = np.zeros(int(fiber.max()) + 1)
    np.maximum.at(top, fiber, mass)
    # whoever is not in the support is as likely as this share of them who are
    floor = top * (outside / inside)
    where, row = mechanism.place(code)

    def best(worth: FloatArray) -> FloatArray:
        some, shape = worth > 0, (mechanism.blocks, mechanism.block)
        found = likeliest(
            fiber[some], where[some], row[some], worth[some], shape,
            lambda table: _transform(table, np.add),
        )  # fmt: skip
        return np.maximum(found.reshape(-1), 0.0)

    named = best(mass)
    hits = inside * (best(mass - floor[fiber]) + float(floor.sum()))
    # of a support with next to no mass, all guesses tie
    near, over = TIE * pbar, pbar - outside
    idle = over <= near / 2
    lightest = np.sort(mass)
    upto = np.r_[0.0, np.cumsum(lightest)]
    with np.errstate(divide="ignore"):
        tied = upto[np.searchsorted(lightest, near / over, "right")]
    if float(np.where(idle, 0.0, tied) @ pbar) > UNSURE:
        return None
    luck = float(np.where(idle, float(top.sum()), named) @ pbar)
    return _solution(float(named @ ahead), luck, float(hits.sum()), mechanism)


def own_hadamard(mechanism: HadamardResponse, points: IntArray, mass: FloatArray) -> FloatArray:
    """Own risks: each of these values gains on the outputs of its support. O(K log K)."""
    read = np.zeros(mechanism.size)
    read[points] = mass
    inside, outside = np.exp(mechanism.log_levels)
    away = np.maximum(float(mass.sum()) - _by_parity(mechanism, read, np.add), 0.0)
    ahead = (inside - outside) * _transform(away.reshape(mechanism.blocks, -1), np.add)
    return np.asarray(ahead[mechanism.place(points)])


def _solution(rad: float, luck: float, hits: float, mechanism: HadamardResponse) -> Solution:
    return Solution(rad=rad, success_out=luck, rero=hits, method=mechanism.method)


def _by_parity(mechanism: HadamardResponse, values: FloatArray, both: Any) -> FloatArray:
    """Of every output, what `both` makes of the values in its support; 0 if it has none."""
    table = np.zeros((mechanism.blocks, mechanism.block))
    block, row = mechanism.place(np.arange(mechanism.size))
    table[block, row] = values
    return np.asarray(_transform(table, both).reshape(-1))


def _transform(table: FloatArray, both: Any) -> FloatArray:
    """For each row (block) and column c, what `both` makes of the entries r with c & r even."""
    (blocks, size), even, odd, width = table.shape, table, np.zeros_like(table), 1
    while width < size:
        shape = (blocks, -1, 2, width)
        e, o = even.reshape(shape), odd.reshape(shape)
        e0, e1, o0, o1 = e[:, :, 0], e[:, :, 1], o[:, :, 0], o[:, :, 1]
        even = np.stack([both(e0, e1), both(e0, o1)], axis=2)
        odd = np.stack([both(o0, o1), both(o0, e1)], axis=2)
        width *= 2
    return even.reshape(blocks, size)
