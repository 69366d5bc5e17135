"""Success sets: for each fiber, which classes of records each guess would be right about.

Three forms, so that no m x m array need exist: one class per set (`Singletons`), intervals of
classes on a line (`Windows`, by prefix sums), and anything else (`Relation`, sparse). A fourth,
for places, is in `around.py`. In each, sets are grouped by fiber and sorted likeliest first, which
is how ties are broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.runtime.memory import block

# members of sets that are summed at a time
BLOCK_ENTRIES = 2**21


class Sets(Protocol):
    """Success sets over classes; all are non-empty."""

    @property
    def fiber(self) -> IntArray:
        """The fiber of each set, ascending."""

    @property
    def mass(self) -> FloatArray:
        """The prior probability of each set."""

    @property
    def guess(self) -> IntArray:
        """A guess (code of a target value) that is right about exactly this set in its fiber."""

    @property
    def sizes(self) -> IntArray:
        """The number of classes in each set."""

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum over each set of the rows of `values` (one row per class)."""

    def members(self, classes: int) -> BoolArray:
        """Dense membership, sets x classes. For few classes only."""

    def smallest(self, classes: int) -> FloatArray:
        """For each class, the least mass of a set that contains it; infinity if none does."""

    def largest(self, classes: int) -> FloatArray:
        """For each class, the greatest mass of a set that contains it; minus infinity if none."""


def starts(fiber: IntArray) -> IntArray:
    """Where each run of equal fibers begins."""
    if not len(fiber):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.r_[True, fiber[1:] != fiber[:-1]])


def tops(sets: Sets, fibers: int) -> FloatArray:
    """The heaviest set of each fiber; 0 where nothing can be guessed."""
    top = np.zeros(fibers)
    begin = starts(sets.fiber)
    if len(begin):
        top[sets.fiber[begin]] = np.maximum.reduceat(sets.mass, begin)
    return top


def likeliest_first(fiber: IntArray, mass: FloatArray) -> IntArray:
    """Sets by fiber, and by falling mass within each."""
    return np.lexsort((-mass, fiber))


def _in_order(fiber: IntArray, mass: FloatArray) -> bool:
    """Whether fibers ascend, and masses descend within each."""
    falls = mass[1:] <= mass[:-1]
    return bool(np.all((fiber[1:] > fiber[:-1]) | ((fiber[1:] == fiber[:-1]) & falls)))


@dataclass(frozen=True, slots=True, eq=False)
class Singletons:
    """Each set is one class; `index` says which."""

    index: IntArray
    fiber: IntArray
    mass: FloatArray
    guess: IntArray

    @classmethod
    def of(cls, index: IntArray, fiber: IntArray, mass: FloatArray, guess: IntArray) -> Singletons:
        """The sets {index[0]}, {index[1]}, ... given fiber, mass and guess of every class."""
        if len(index) == len(mass) and _in_order(fiber, mass):
            return cls(index, fiber, mass, guess)
        order = index[likeliest_first(fiber[index], mass[index])]
        return cls(order, fiber[order], mass[order], guess[order])

    @property
    def sizes(self) -> IntArray:
        """All one."""
        return np.broadcast_to(np.intp(1), len(self.index))

    def sums(self, values: FloatArray) -> FloatArray:
        """The rows themselves; no copy where the order is already right."""
        if len(self.index) == len(values) and np.all(self.index[:-1] < self.index[1:]):
            return values
        return values[self.index]

    def members(self, classes: int) -> BoolArray:
        """See `Sets`."""
        return np.asarray(self.index[:, None] == np.arange(classes)[None, :])

    def smallest(self, classes: int) -> FloatArray:
        """See `Sets`."""
        result = np.full(classes, np.inf)
        result[self.index] = self.mass
        return result

    def largest(self, classes: int) -> FloatArray:
        """See `Sets`."""
        result = np.full(classes, -np.inf)
        result[self.index] = self.mass
        return result


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Each set is the classes low[i] .. high[i]-1."""

    low: IntArray
    high: IntArray
    fiber: IntArray
    mass: FloatArray
    guess: IntArray

    @classmethod
    def of(
        cls, low: IntArray, high: IntArray, fiber: IntArray, mass: FloatArray, guess: IntArray
    ) -> Windows:
        """Given the bounds, fiber and guess of every window, and the mass of every class."""
        total = np.r_[0.0, np.cumsum(mass)]
        # the prefix difference can be off by a rounding error; a window never exceeds one
        weight = np.minimum(total[high] - total[low], 1.0)
        order = likeliest_first(fiber, weight)
        return cls(low[order], high[order], fiber[order], weight[order], guess[order])

    @property
    def sizes(self) -> IntArray:
        """Lengths."""
        return self.high - self.low

    def sums(self, values: FloatArray) -> FloatArray:
        """Differences of prefix sums: O(classes + sets) per column."""
        prefix = np.empty((len(values) + 1, values.shape[1]))
        prefix[0] = 0.0
        np.cumsum(values, axis=0, out=prefix[1:])
        result = prefix[self.high]
        result -= prefix[self.low]
        return result

    def members(self, classes: int) -> BoolArray:
        """See `Sets`."""
        position = np.arange(classes)
        inside = (self.low[:, None] <= position) & (position < self.high[:, None])
        return np.asarray(inside)

    def smallest(self, classes: int) -> FloatArray:
        """Paint the windows, lightest first, each class once: nearly O(classes + sets)."""
        return self._paint(np.argsort(self.mass, kind="stable"), np.full(classes, np.inf))

    def largest(self, classes: int) -> FloatArray:
        """The same, heaviest first."""
        return self._paint(np.argsort(-self.mass, kind="stable"), np.full(classes, -np.inf))

    def _paint(self, order: IntArray, result: FloatArray) -> FloatArray:
        blank = list(range(len(result) + 1))  # the next unpainted class, with short cuts
        low, high, mass = self.low.tolist(), self.high.tolist(), self.mass.tolist()
        for i in order.tolist():
            at = low[i]
            while True:
                end = at
                while blank[end] != end:
                    blank[end] = blank[blank[end]]
                    end = blank[end]
                if end >= high[i]:
                    break
                result[end] = mass[i]
                blank[end] = at = end + 1
        return result


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """Any sets, as a sparse matrix sets x classes."""

    matrix: Any
    fiber: IntArray
    mass: FloatArray
    guess: IntArray

    @classmethod
    def of(cls, matrix: Any, fiber: IntArray, mass: FloatArray, guess: IntArray) -> Relation:
        """Given membership (sparse), fiber and guess of every set, and the mass of every class."""
        weight = np.minimum(_product(matrix, mass), 1.0)
        order = likeliest_first(fiber, weight)
        return cls(matrix[order], fiber[order], weight[order], guess[order])

    @property
    def sizes(self) -> IntArray:
        """Members of each row."""
        return np.asarray(np.diff(self.matrix.indptr), dtype=np.intp)

    def sums(self, values: FloatArray) -> FloatArray:
        """A sparse product: O(members) per column."""
        return _product(self.matrix, values)

    def members(self, classes: int) -> BoolArray:
        """See `Sets`."""
        dense = self.matrix.toarray() > 0
        assert dense.shape[1] == classes
        return np.asarray(dense)

    def smallest(self, classes: int) -> FloatArray:
        """See `Sets`."""
        return self._extreme(np.minimum, np.full(classes, np.inf))

    def largest(self, classes: int) -> FloatArray:
        """See `Sets`."""
        return self._extreme(np.maximum, np.full(classes, -np.inf))

    def _extreme(self, which: np.ufunc, result: FloatArray) -> FloatArray:
        ends = self.matrix.indptr
        for a, b in row_blocks(ends):
            weights = np.repeat(self.mass[a:b], np.diff(ends[a : b + 1]))
            which.at(result, self.matrix.indices[ends[a] : ends[b]], weights)
        return result


def row_blocks(ends: IntArray) -> Iterator[tuple[int, int]]:
    """Rows of a sparse matrix, as many at a time as their entries fit a block."""
    a, size = 0, len(ends) - 1
    while a < size:
        b = int(np.searchsorted(ends, ends[a] + block(BLOCK_ENTRIES), "right")) - 1
        b = max(b, a + 1)
        yield a, b
        a = b


def _product(matrix: Any, values: FloatArray) -> FloatArray:
    """A product with a sparse matrix of ones, whose ones as numbers are a block's at a time."""
    from scipy import sparse

    ends, found = matrix.indptr, []
    for a, b in row_blocks(ends):
        entries = slice(ends[a], ends[b])
        part = (np.ones(ends[b] - ends[a]), matrix.indices[entries], ends[a : b + 1] - ends[a])
        found.append(sparse.csr_array(part, shape=(b - a, matrix.shape[1])) @ values)
    return np.concatenate(found)
