"""Hadamard response by a fast transform: nothing or everything known, one class per set.

An output favours the values of its block whose row has even parity with it, and the best guess is
the likeliest of these. Their masses, for all outputs of a block at once, are a Walsh-Hadamard
transform, and the likeliest of them is the same transform with the greater instead of the sum. Even
and odd parities are carried separately, so nothing is subtracted. O(K log K) for K outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.exact.channel import TIE
from dprad.exact.solution import Solution
from dprad.game.game import Classes
from dprad.game.sets import Singletons
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.numerics.arrays import HEAVY, FloatArray, IntArray, distinct


def solve_hadamard(
    mechanism: HadamardResponse, game: Classes, codes: IntArray, pi: FloatArray
) -> Solution | None:
    """Records z with probability pi[z] read as codes[z]; None if the game is of another kind."""
    sets = game.sets
    if (
        not isinstance(sets, Singletons)
        or not (game.nothing_known or game.everything_known)
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
    code, mass = pairs % mechanism.size, game.probabilities[pairs // mechanism.size]
    read = np.bincount(codes[kept], weights=pi[kept], minlength=mechanism.size).astype(float)
    inside, outside = np.exp(mechanism.log_levels)
    support = _by_parity(mechanism, read, np.add)
    pbar = outside + (inside - outside) * support
    # inside - pbar, from what is not in the support: nothing cancels
    ahead = (inside - outside) * np.maximum(float(read.sum()) - support, 0.0)
    if game.everything_known and not game.nothing_known:
        own = _by_parity(mechanism, np.bincount(code, mass, mechanism.size).astype(float), np.add)
        counts = ahead > TIE * pbar if game.membership else np.ones(len(pbar), dtype=bool)
        luck = float((own * pbar)[counts].sum())
        return _solution(float(own @ ahead), luck, float(mass.sum()), mechanism)
    top = np.zeros(mechanism.size)
    np.maximum.at(top, code, mass)
    best, likeliest = _by_parity(mechanism, top, np.maximum), float(mass.max())
    gain, near = best * ahead, TIE * likeliest * pbar
    # others lose so little, where the support has next to no mass, that they tie
    ascending = np.r_[0.0, np.sort(mass)]
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.nan_to_num((near - gain) / (pbar - outside), nan=np.inf, posinf=np.inf)
    tied = ascending[np.searchsorted(ascending, most, "right") - 1]
    named_mass = np.where(gain <= near, np.maximum(best, tied), best)
    hits = np.maximum(best * inside, likeliest * outside)
    return _solution(float(gain.sum()), float(named_mass @ pbar), float(hits.sum()), mechanism)


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
