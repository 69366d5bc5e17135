"""Hadamard response, part known: the likeliest of each fiber in the support of each output.

In a block, output c is in the support of row r if c & r has even parity, ``(1 + chi_r(c)) / 2``
with the character chi_r = +-1. Of a fiber with rows r_1, r_2, ..., likeliest first, the likeliest
in the support has the mass

    sum_j w_j (1 + chi_j)/2 prod_{i<j} (1 - chi_i)/2 .

Characters multiply to characters (of the exclusive or of their rows), so f rows make 2^f of them,
whose factors are added up for all fibers, and one Walsh-Hadamard transform gives all outputs.

Every row that is independent of those before it halves the outputs without an earlier row in their
support. With the first T such rows there remain K/2^T outputs, which are the solutions of T linear
equations, and are looked at one by one. A row that depends on those before has all of these or none
in its support. With 2^T near the root of K: O(K log K) for few fibers, and for any O(m sqrt(K)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprad.game.sets import starts
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.runtime.memory import block

# Entries of a block, and the fewest rows that are looked at together.
BLOCK_ENTRIES, ROWS = 2**16, 8

Transform = Callable[[FloatArray], FloatArray]


def likeliest(
    fiber: IntArray, where: IntArray, row: IntArray, mass: FloatArray, shape: tuple[int, int],
    even: Transform,
) -> FloatArray:  # fmt: skip
    """For each block and output, the sum over fibers of the mass of their likeliest in the support.

    `where` and `row` are the block and the row of each; `even` sums a table over the rows of even
    parity with each output.
    """
    order = np.lexsort((-mass, row, where, fiber))
    fiber, where, row, mass = fiber[order], where[order], row[order], mass[order]
    group = np.cumsum(np.r_[True, (np.diff(fiber) != 0) | (np.diff(where) != 0)][: len(row)])
    first = np.r_[True, (np.diff(group) != 0) | (np.diff(row) != 0)][: len(row)]
    group, where, row, mass = group[first], where[first], row[first], mass[first]
    order = np.lexsort((-mass, group))
    where, row, mass, begin = where[order], row[order], mass[order], starts(group)
    found = _Sum(shape[1], max(1, shape[1].bit_length() // 2), np.zeros(shape), np.zeros(shape))
    size = np.diff(np.r_[begin, len(row)])
    for f in range(1, found.most + 1):
        some = begin[size == f][:, None] + np.arange(f)
        found.add(where[some[:, 0]], row[some], mass[some], np.zeros(len(some)))
    waiting: dict[int, list[tuple[int, IntArray, FloatArray, float]]] = {}
    for a, length in zip(begin[size > found.most], size[size > found.most], strict=True):
        part = slice(a, a + length)
        taken, rest = found.independent(int(where[a]), row[part], mass[part])
        waiting.setdefault(len(taken), []).append(
            (int(where[a]), row[a + taken], mass[a + taken], rest)
        )
    for some_groups in waiting.values():
        blocks, rows, masses, rests = zip(*some_groups, strict=True)
        found.add(np.array(blocks), np.array(rows), np.array(masses), np.array(rests))
    total = found.factors.sum(axis=1, keepdims=True)
    return np.asarray(2 * even(found.factors) - total + found.alone)


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """Factors of characters, and what is added to single outputs, by block; of each fiber `most`
    rows make characters.
    """

    size: int
    most: int
    factors: FloatArray
    alone: FloatArray

    def add(self, where: IntArray, row: IntArray, mass: FloatArray, rest: FloatArray) -> None:
        """Fibers with so many rows (columns), and the mass `rest` where none is in the support."""
        many = row.shape[1]
        half = 0.5 ** np.arange(1, many + 1)
        share = mass * half
        after = np.cumsum(np.c_[rest * half[-1], share[:, ::-1]], axis=1)[:, ::-1]
        # by the last row of a set of rows, up to the sign
        factor = np.c_[after[:, :1], after[:, 1:] - share]
        last = np.array([s.bit_length() for s in range(1 << many)])
        sign = 1.0 - 2.0 * (np.bitwise_count(np.arange(1 << many)) % 2)
        step = max(1, block(BLOCK_ENTRIES) >> many)
        flat = self.factors.reshape(-1)
        for a in range(0, len(row), step):
            part = slice(a, a + step)
            place = np.zeros((len(row[part]), 1), dtype=np.intp)
            for k in range(many):
                place = np.concatenate([place, place ^ row[part, k : k + 1]], axis=1)
            place += where[part, None] * self.size
            np.add.at(flat, place, factor[part][:, last] * sign)

    def independent(self, where: int, row: IntArray, mass: FloatArray) -> tuple[IntArray, float]:
        """The first independent rows, and the mass of the next one if all other outputs are in its
        support. Outputs that none of `most` rows has are looked at here.
        """
        basis: dict[int, tuple[int, int]] = {}  # by its highest bit, a sum of rows and its parity
        taken: list[int] = []
        for k, one in enumerate(row.tolist()):
            left, odd = one, 1
            while left and left.bit_length() in basis:
                other, parity = basis[left.bit_length()]
                left, odd = left ^ other, odd ^ parity
            if left:
                if len(taken) == self.most:
                    self._look(where, _outputs(basis, self.size), row[k:], mass[k:])
                    break
                basis[left.bit_length()] = left, odd
                taken.append(k)
            elif odd:  # the rows that it is a sum of have even parity together
                return np.array(taken), float(mass[k])
        return np.array(taken), 0.0

    def _look(self, where: int, outputs: IntArray, row: IntArray, mass: FloatArray) -> None:
        """Add the mass of the first of these rows that has each output in its support."""
        k = 0
        while k < len(row) and len(outputs):
            some = slice(k, k + max(ROWS, block(BLOCK_ENTRIES) // (4 * len(outputs))))
            inside = np.bitwise_count(outputs[:, None] & row[some]) % 2 == 0
            first = inside.argmax(axis=1)
            hit = inside[np.arange(len(outputs)), first]
            self.alone[where, outputs[hit]] += mass[some][first[hit]]
            outputs, k = outputs[~hit], some.stop


def _outputs(basis: dict[int, tuple[int, int]], size: int) -> IntArray:
    """All outputs whose parities with these sums of rows are as given."""
    bits = size.bit_length() - 1
    found = np.zeros(1, dtype=np.intp)
    for bit in range(1, bits + 1):
        high = 1 << (bit - 1)
        if bit in basis:
            row, odd = basis[bit]
            wrong = np.bitwise_count(found & row) % 2 != odd
            found = found | np.where(wrong, high, 0)
        else:
            found = np.r_[found, found | high]
    return found
