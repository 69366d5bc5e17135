"""Places within a distance of each other on the sphere, by the leaves of a tree.

A leaf holds some hundred places that lie together. Its places are compared with those that may be
near any of them, one leaf's distances at a time: O((m + pairs) log m) time. Pairs are `listed`
at four bytes each, or passed by: `fold` sums over those near each place in O(m) memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.data.places import EARTH
from dprad.errors import DpradError
from dprad.numerics.arrays import BoolArray, Column, FloatArray, IntArray
from dprad.runtime.memory import SHARE, allowed, block
from dprad.runtime.progress import tell
from dprad.runtime.workers import AHEAD, hands, stream

# places in a leaf, at most; and in the part of a tree that is one task
LEAF, PART = 128, 2**13
# leaves that are looked up in the tree together
LEAVES = 64
# distances that are compared at a time
BLOCK_ENTRIES = 2**20
# a chord (of the unit sphere) is known to within this: absolutely, and as a share of it
SLACK = 1e-9
# bytes of a place that a task takes along, besides its numbers: its angles, and a tree on it
PLACE = 80

# what becomes of the numbers of the places near one, and these numbers
Fold = tuple[np.ufunc, Column]


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Which places (radians) lie within so many metres of each other; each does of itself."""

    lat: FloatArray
    lon: FloatArray
    metres: float
    tree: Any

    @classmethod
    def of(cls, lat: FloatArray, lon: FloatArray, metres: float) -> Near:
        """No pair is made. O(m log m)."""
        from scipy.spatial import cKDTree

        near = np.cos(lat)
        points = np.stack([near * np.cos(lon), near * np.sin(lon), np.sin(lat)], axis=1)
        return cls(lat, lon, metres, cKDTree(points, leafsize=LEAF))

    @property
    def chord(self) -> float:
        """The distance through the sphere, of radius one."""
        return float(2 * np.sin(min(self.metres / EARTH, np.pi) / 2))

    @property
    def far(self) -> float:
        """No chord between near places is longer."""
        return self.chord * (1 + SLACK) + SLACK

    @property
    def sure(self) -> float:
        """Places with a shorter chord between them are near."""
        return max(self.chord * (1 - SLACK) - SLACK, 0.0)

    def are(self, i: IntArray, j: IntArray) -> BoolArray:
        """Whether places i are near places j, by the formula."""
        lat, lon = self.lat, self.lon
        h = (
            np.sin((lat[i] - lat[j]) / 2) ** 2
            + np.cos(lat[i]) * np.cos(lat[j]) * np.sin((lon[i] - lon[j]) / 2) ** 2
        )
        return np.asarray(2 * EARTH * np.arcsin(np.sqrt(np.minimum(h, 1.0))) <= self.metres)

    def listed(self, afford: Callable[[int, int], None]) -> Any:
        """A sparse, symmetric matrix.

        `afford` is told how many pairs may be near, and of how many places, and refuses too many.
        """
        from scipy import sparse

        self._afford(afford)
        count = np.zeros(self.tree.n, dtype=np.intp)
        found = []
        for rows, columns in self._candidates():
            near = self._compared(rows, columns)
            count[rows] = near.sum(axis=1)
            found.append((rows, np.broadcast_to(columns, near.shape)[near]))
        begin = np.r_[0, np.cumsum(count)]
        indices = np.empty(begin[-1], dtype=np.int32)
        while found:  # to where the rows belong
            rows, columns = found.pop()
            own = count[rows]
            shift = begin[rows] - (np.cumsum(own) - own)
            indices[np.arange(len(columns)) + np.repeat(shift, own)] = columns
        if begin[-1] < 2**31:
            begin = begin.astype(np.int32)  # of one kind with the indices, which are not copied
        ones = np.ones(len(indices), dtype=bool)
        result = sparse.csr_array((ones, indices, begin), shape=(self.tree.n, self.tree.n))
        result.has_canonical_format = True  # the columns of each row ascend
        return result

    def fold(self, *folds: Fold, rows: IntArray | None = None) -> list[Column]:
        """For each place (or for some `rows`, others are left open), its near places' numbers
        summed, or the least or greatest of them.

        Each part of the tree is a task with the places around it, for as many workers as there are.
        Sums run in the order of the places: they are those of a product with the matrix `listed`,
        whatever the parts and the workers.
        """
        asked = np.ones(self.tree.n, dtype=bool)
        if rows is not None:
            asked[:] = False
            asked[rows] = True
        begin, end, centre, radius = _nodes(self.tree, PART)
        reach = radius + self.far
        parts = [own[asked[own]] for own in map(self._slice, begin, end)]
        how, values = zip(*folds, strict=True)

        def task(k: int) -> tuple[_Part]:
            listed = self.tree.query_ball_point(centre[k], reach[k], return_sorted=True)
            around = np.asarray(listed, dtype=np.intp)
            mine = np.searchsorted(around, parts[k])
            return (_Part(self.metres, how, mine, around, (self.lat, self.lon, *values)),)

        some = [k for k, own in enumerate(parts) if len(own)]
        most = self.tree.query_ball_point(centre, reach, return_length=True).max(initial=1)
        size = float(most) * (PLACE + sum(v.itemsize * v[:1].size for v in values))
        workers = max(1, min(hands(), int(SHARE * allowed() / (AHEAD * size))))
        result = [np.empty_like(v) for v in values]
        done = stream(_folded, map(task, some), workers, threads=True)
        for count, (k, found) in enumerate(zip(some, done, strict=True)):
            for whole, part in zip(result, found, strict=True):
                whole[parts[k]] = part
            tell("places", count + 1, len(some))
        return result

    def _slice(self, begin: int, end: int) -> IntArray:
        return np.asarray(self.tree.indices[begin:end])

    def _compared(self, rows: IntArray, columns: IntArray) -> BoolArray:
        """Rows by columns: surely near, surely not, or in between, where the formula decides."""
        from scipy.spatial.distance import cdist

        points = self.tree.data
        apart = cdist(points[rows], points[columns], "sqeuclidean")
        near = apart < self.sure**2
        unsure = np.flatnonzero((apart <= self.far**2) & ~near)  # of one axis: two are slow
        i, j = np.divmod(unsure, len(columns))
        near[i, j] = self.are(rows[i], columns[j])
        return np.asarray(near)

    def _afford(self, afford: Callable[[int, int], None]) -> None:
        """At most, at least and exactly so many pairs are near: the first that decides."""
        tree = self.tree
        begin, end, centre, radius = _nodes(tree, LEAF)
        many = end - begin
        try:
            most = tree.query_ball_point(centre, radius + self.far, return_length=True)
            afford(int(most @ many), tree.n)
        except DpradError:  # too many, unless fewer are near
            within = np.maximum(self.sure - radius, 0.0)
            least = tree.query_ball_point(centre, within, return_length=True)
            afford(int(np.where(within > 0, least, 0) @ many), tree.n)
            afford(int(tree.count_neighbors(tree, self.far)), tree.n)

    def _candidates(self, some: IntArray | None = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Places of a leaf, and in order those that may be near them; all places or `some`."""
        from scipy.spatial import cKDTree

        tree, order = self.tree, self.tree.indices
        if some is not None:
            tree = cKDTree(self.tree.data[some], leafsize=LEAF)
            order = some[tree.indices]
        begin, end, centre, radius = _nodes(tree, LEAF)
        found = (self._around if some is None else self._among)(centre, radius + self.far)
        for first, last, columns in zip(begin, end, found, strict=True):
            step = max(1, block(BLOCK_ENTRIES) // len(columns))
            for at in range(first, last, step):
                yield order[at : min(at + step, last)], columns

    def _around(self, centre: FloatArray, reach: FloatArray) -> Iterator[Any]:
        """Places within reach of each centre, in order, by the tree."""
        for a in range(0, len(centre), LEAVES):
            part = slice(a, a + LEAVES)
            for listed in self.tree.query_ball_point(centre[part], reach[part], return_sorted=True):
                yield np.asarray(listed, dtype=np.int32)

    def _among(self, centre: FloatArray, reach: FloatArray) -> Iterator[Any]:
        """The same one by one: they are mostly near, and lists of them would be long."""
        from scipy.spatial.distance import cdist

        for one, far in zip(centre, reach, strict=True):
            yield np.flatnonzero(cdist(one[None], self.tree.data)[0] <= far).astype(np.int32)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class _Part:
    """One task: places `mine` and those around them, all that are near included. They are taken
    from the arrays where they are needed, or before they are sent elsewhere.
    """

    metres: float
    how: tuple[np.ufunc, ...]
    mine: IntArray
    around: Any
    arrays: tuple[Column, ...]

    def taken(self) -> tuple[Column, ...]:
        """Angles and numbers of the places around."""
        return tuple(array[self.around] for array in self.arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Part, (self.metres, self.how, self.mine, slice(None), self.taken())

    def __sizeof__(self) -> int:
        """What is sent: Dask passes what is large to workers directly, and forgets it after use."""
        return PLACE * (len(self.mine) + LEAF)


def _folded(part: _Part) -> list[Column]:
    lat, lon, *values = part.taken()
    near = Near.of(lat, lon, part.metres)
    result = [np.empty_like(v) for v in values]
    for rows, columns in near._candidates(part.mine):
        hit = near._compared(rows, columns)
        indices = np.broadcast_to(columns, hit.shape)[hit]
        ends = np.r_[0, np.cumsum(np.count_nonzero(hit, axis=1))]
        for whole, ufunc, numbers in zip(result, part.how, values, strict=True):
            whole[rows] = _reduced(ufunc, numbers, indices, ends)
    return [whole[part.mine] for whole in result]


def _reduced(ufunc: np.ufunc, values: Column, indices: IntArray, ends: IntArray) -> Column:
    if values.dtype.kind != "f" or ufunc is not np.add:
        return np.asarray(ufunc.reduceat(values[indices], ends[:-1], axis=0))
    from scipy import sparse

    # one after the other, as in any product of sparse matrices: numpy would sum in pairs
    ones, shape = np.ones(len(indices)), (len(ends) - 1, len(values))
    return np.asarray(sparse.csr_array((ones, indices, ends), shape=shape) @ values)


def _nodes(tree: Any, most: int) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Parts of a tree, of at most so many places or single leaves: where each begins and ends in
    the order of the tree, its centre, and a radius that reaches all its places.
    """
    found, waiting = [], [tree.tree]
    while waiting:
        node = waiting.pop()
        if node.split_dim < 0 or node.end_idx - node.start_idx <= most:
            found.append((node.start_idx, node.end_idx))
        else:
            waiting += [node.greater, node.lesser]
    begin, end = np.asarray(found, dtype=np.intp).T
    points = tree.data[tree.indices]
    low = np.minimum.reduceat(points, begin, axis=0)
    high = np.maximum.reduceat(points, begin, axis=0)
    return begin, end, (low + high) / 2, np.linalg.norm(high - low, axis=1) / 2 + SLACK
