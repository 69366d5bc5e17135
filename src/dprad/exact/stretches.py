"""Zones where something is known: stretches of outputs along which a fiber looks the same.

The zones of an output (`zones.py`) move along the values with it. For the members of one fiber they
change only where an edge passes one of them: O(members) stretches. Along a stretch the likeliest
member t of each zone stays, and the best gain is ``scale max_z t_z (level_z - q)``, or nothing, a
convex function of q = pbar/scale. So the zone that is best for the least and for the largest q of
a run of outputs is best on all of it, and running sums give the total; other runs are halved.

O((m + K) log K) for m values and K outputs, where the best zones change rarely along stretches, as
they do where pbar is smooth; O(fibers K) at worst.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprad.exact.channel import nearly
from dprad.exact.zones import Highest, Zones
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.runtime.memory import block

# What is best: its likelihood sum over the scale, its mass, the mass of what is named, and
# whether this is sure.
Chosen = tuple[FloatArray, FloatArray, FloatArray, BoolArray]

# Stretches processed together, and the share of a gain that is rounding.
BLOCK_ENTRIES, ROUNDING = 2**14, 1e-15


def by_fiber(
    zones: Zones, pbar: FloatArray, fiber: IntArray, place: IntArray, mass: FloatArray
) -> FloatArray | None:
    """RAD, luck and hits of guesses with these fibers, places among the values and masses; None if
    zones do not move one way.
    """
    some = zones.scale > 0
    edge, scale, pbar = zones.edge[:, some], zones.scale[some], pbar[some]
    if not len(scale) or np.any(np.diff(edge[1:-1], axis=1) < 0):
        return None
    order = np.lexsort((place, fiber))
    fiber, place = fiber[order], place[order]
    owner, begin, end = stretches(edge[1:-1], fiber, place)
    along, highest = Along.of(scale, pbar), Highest.of(mass[order])
    width = int(edge[-1, 0]) + 1
    key, totals = fiber * width + place, np.zeros(3)
    step = block(BLOCK_ENTRIES)
    for i in range(0, len(owner), step):
        part = slice(i, i + step)
        a, b = begin[part], end[part]
        ends = np.searchsorted(key, owner[part] * width + edge[:, a])
        top = highest.between(ends[:-1], ends[1:]).T
        totals[:2] += along.best(a, b, _Tops.of(top, zones.level).chosen)
        totals[2] += float((top * zones.level).max(axis=1) @ along.scales(a, b))
    return totals


def stretches(
    edges: IntArray, fiber: IntArray, place: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Fiber, first output and end of each, by fiber; members are in order."""
    outputs = edges.shape[1]
    first = np.unique(fiber)
    passed = [np.searchsorted(edge, place, "right") for edge in edges]
    owner = np.concatenate([first, *(fiber for _ in edges)])
    begin = np.concatenate([np.zeros_like(first), *passed])
    order = np.lexsort((begin, owner))
    owner, begin = owner[order], begin[order]
    end = np.r_[begin[1:], outputs]
    end[np.flatnonzero(owner[1:] != owner[:-1])] = outputs
    some = end > begin
    return owner[some], begin[some], end[some]


@dataclass(frozen=True, slots=True, eq=False)
class _Tops:
    """The likeliest member of each zone (column), and a pass."""

    top: FloatArray
    level: FloatArray

    @classmethod
    def of(cls, top: FloatArray, level: FloatArray) -> _Tops:
        """By stretch and zone."""
        return cls(np.pad(top, ((0, 0), (0, 1))), np.r_[level, 0.0])

    def chosen(self, rows: IntArray, low: FloatArray, high: FloatArray, *, last: bool) -> Chosen:
        """See `Along.best`."""
        best, named, sure = _agreed(self.top[rows], self.level, low, high, last=last)
        mass = self.top[rows, best]
        return mass * self.level[best], mass, self.top[rows, named], sure


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """Of runs of 1, 2, 4, ... outputs the sums of their scales and of pbar (no differences of
    running sums, which lose digits), the least and the largest pbar/scale.
    """

    scale: list[FloatArray]
    pbar: list[FloatArray]
    least: list[FloatArray]
    most: list[FloatArray]

    @classmethod
    def of(cls, scale: FloatArray, pbar: FloatArray) -> Along:
        """O(K)."""
        found: list[list[FloatArray]] = [[scale], [pbar], [pbar / scale], [pbar / scale]]
        merged = (np.add, 0.0), (np.add, 0.0), (np.minimum, np.inf), (np.maximum, -np.inf)
        while len(found[0][-1]) > 1:
            for rows, (both, none) in zip(found, merged, strict=True):
                last = rows[-1] if len(rows[-1]) % 2 == 0 else np.r_[rows[-1], none]
                rows.append(both(last[::2], last[1::2]))
        return cls(*found)

    def scales(self, a: IntArray, b: IntArray) -> FloatArray:
        """Sums of scales of outputs a .. b-1."""
        return _summed(self.scale, a, b)

    def best(self, a: IntArray, b: IntArray, chosen: Callable[..., Chosen]) -> FloatArray:
        """Gain and luck of the best guesses on stretches a .. b-1. ``chosen(rows, low, high,
        last)`` names those of some stretches, from the least to the largest pbar/scale; the last
        time both are the same.
        """
        start = np.frexp((a ^ (b - 1)).astype(float))[1]  # the least run that holds all
        found = np.zeros(2)
        item = node = np.zeros(0, dtype=np.intp)
        for k in range(int(start.max()), -1, -1):
            fresh = np.flatnonzero(start == k)
            item, node = np.r_[item, fresh], np.r_[node, a[fresh] >> k]
            if not len(item):
                continue
            held, mass, named, sure = chosen(
                item, self.least[k][node], self.most[k][node], last=k == 0
            )
            here, run = item[sure], node[sure]
            low, high = np.maximum(a[here], run << k), np.minimum(b[here], (run + 1) << k)
            over = _summed(self.pbar, low, high)
            found[0] += float(held[sure] @ self.scales(low, high) - mass[sure] @ over)
            found[1] += float(named[sure] @ over)
            item, node = np.repeat(item[~sure], 2), np.repeat(2 * node[~sure], 2)
            node[1::2] += 1
            inside = (node << max(k - 1, 0) < b[item]) & ((node + 1) << max(k - 1, 0) > a[item])
            item, node = item[inside], node[inside]
        return found


def _summed(runs: list[FloatArray], a: IntArray, b: IntArray) -> FloatArray:
    """Sums over a .. b-1, of O(log) runs each."""
    total = np.zeros(len(a))
    for run in runs:
        some = a < b
        if not some.any():
            break
        odd = some & (a % 2 == 1)
        total[odd] += run[a[odd]]
        odd = some & (b % 2 == 1)
        total[odd] += run[b[odd] - 1]
        a, b = (a + 1) >> 1, b >> 1
    return total


def _agreed(
    top: FloatArray, level: FloatArray, low: FloatArray, high: FloatArray, *, last: bool
) -> tuple[IntArray, IntArray, BoolArray]:
    """The best zone, the zone that is named (the likeliest member of those that tie), and whether
    both are the same from the least to the largest pbar/scale.
    """
    ends = [top * (level - q[:, None]) for q in (low, high)]
    row, heaviest = np.arange(len(top)), top.max(axis=1)
    near = [nearly(g.max(axis=1), heaviest, q) for g, q in zip(ends, (low, high), strict=True)]
    chosen = ends[0].argmax(axis=1)
    tied = ends[0] >= (ends[0].max(axis=1) - near[0])[:, None]
    named = np.where(tied, top, -1.0).argmax(axis=1)
    if last:
        return chosen, named, np.ones(len(top), dtype=bool)
    sure = ends[1].max(axis=1) <= ends[1][row, chosen] + ROUNDING * high * heaviest
    behind = top <= top[row, named][:, None]
    apart = np.ones_like(behind)
    for gain, tie in zip(ends, near, strict=True):
        own = gain[row, named]
        sure &= gain.max(axis=1) <= own + tie
        apart &= gain < (own - tie)[:, None]
    return chosen, named, sure & np.all(behind | apart, axis=1)
