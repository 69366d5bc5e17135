"""Places within a distance of each other on the sphere, by the leaves of a tree.

A leaf holds some hundred places that lie together. Its places are compared with those that may be
near any of them, and only what is near is kept: O((m + pairs) log m) time, four bytes per pair, and
one leaf's distances at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dprad.data.places import EARTH
from dprad.errors import DpradError
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.runtime.memory import block

# places in a leaf, at most
LEAF = 128
# leaves that are looked up in the tree together
LEAVES = 64
# distances that are compared at a time
BLOCK_ENTRIES = 2**20
# a chord (of the unit sphere) is known to within this: absolutely, and as a share of it
SLACK = 1e-9


def within(
    lat: FloatArray, lon: FloatArray, metres: float, afford: Callable[[int, int], None]
) -> Any:
    """Which places (radians) lie within so many metres: a sparse, symmetric matrix.

    `afford` is told how many pairs may be near, and of how many places, and refuses too many.
    """
    from scipy import sparse
    from scipy.spatial import cKDTree

    points = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    tree = cKDTree(points, leafsize=LEAF)
    chord = 2 * np.sin(min(metres / EARTH, np.pi) / 2)

    def exactly(i: IntArray, j: IntArray) -> BoolArray:
        h = (
            np.sin((lat[i] - lat[j]) / 2) ** 2
            + np.cos(lat[i]) * np.cos(lat[j]) * np.sin((lon[i] - lon[j]) / 2) ** 2
        )
        return np.asarray(2 * EARTH * np.arcsin(np.sqrt(np.minimum(h, 1.0))) <= metres)

    count = np.zeros(len(lat), dtype=np.intp)
    found = []
    for rows, columns in _candidates(tree, chord * (1 + SLACK) + SLACK, afford):
        near = _near(points, rows, columns, chord, exactly)
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
        begin = begin.astype(np.int32)  # of one kind with the indices, which are not copied then
    ones = np.ones(len(indices), dtype=bool)
    result = sparse.csr_array((ones, indices, begin), shape=(len(lat), len(lat)))
    result.has_canonical_format = True  # the columns of each row ascend
    return result


def _near(
    points: FloatArray,
    rows: IntArray,
    columns: IntArray,
    chord: float,
    exactly: Callable[[IntArray, IntArray], BoolArray],
) -> BoolArray:
    """Rows by columns: surely near, surely not, or in between, where it is measured `exactly`."""
    from scipy.spatial.distance import cdist

    far, sure = chord * (1 + SLACK) + SLACK, chord * (1 - SLACK) - SLACK
    apart = cdist(points[rows], points[columns], "sqeuclidean")
    near = apart < max(sure, 0.0) ** 2
    i, j = np.nonzero((apart <= far**2) & ~near)
    near[i, j] = exactly(rows[i], columns[j])
    return np.asarray(near)


def _candidates(
    tree: Any, far: float, afford: Callable[[int, int], None]
) -> Iterator[tuple[IntArray, IntArray]]:
    """Places of a leaf, and in order those that may be within `far` of them."""
    begin, end = _leaves(tree)
    points = tree.data[tree.indices]
    low = np.minimum.reduceat(points, begin, axis=0)
    high = np.maximum.reduceat(points, begin, axis=0)
    centre, reach = (low + high) / 2, np.linalg.norm(high - low, axis=1) / 2 + far + SLACK
    try:
        most = tree.query_ball_point(centre, reach, return_length=True)
        afford(int(most @ (end - begin)), tree.n)
    except DpradError:  # too many, unless fewer are near
        afford(int(tree.count_neighbors(tree, far)), tree.n)
    for a in range(0, len(begin), LEAVES):
        part = slice(a, a + LEAVES)
        around = tree.query_ball_point(centre[part], reach[part], return_sorted=True)
        for first, last, listed in zip(begin[part], end[part], around, strict=True):
            columns: Any = np.asarray(listed, dtype=np.int32)
            step = max(1, block(BLOCK_ENTRIES) // len(columns))
            for at in range(first, last, step):
                yield tree.indices[at : min(at + step, last)], columns


def _leaves(tree: Any) -> tuple[IntArray, IntArray]:
    """Where the leaves begin and end in the order of the tree."""
    found, waiting = [], [tree.tree]
    while waiting:
        node = waiting.pop()
        if node.split_dim < 0:
            found.append((node.start_idx, node.end_idx))
        else:
            waiting += [node.greater, node.lesser]
    begin, end = np.asarray(found, dtype=np.intp).T
    return begin, end
