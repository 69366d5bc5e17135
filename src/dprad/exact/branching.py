"""Laplace and geometric noise on a line: which guesses can be the best, from all outputs to few.

Between two values v < w let X fall and Y rise like the noise seen from v and from w. A success set
without members strictly between them gains ``a X + c Y - b P``: its weight on the left, its weight
on the right, its mass, and P = pbar. X/P falls and Y/P rises along the way, so the difference of
two sets is bounded by its values at the ends. A set that another one, or passing, beats all the
way is dropped; one with members in between too, if even more would not suffice. Where one is left,
its integral is in closed form. Otherwise the range is halved, down to single gaps, where the
envelope of the lines is taken.

Blocks of all fibers are processed together. O((R + c) log m) for m values, R sets and c changes of
the best guess, as long as few sets are nearly the best; O(m R) if all are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dprad.exact.envelope import SAME, Passing, Steps, envelope
from dprad.game.game import Classes
from dprad.game.sets import Singletons, Windows, starts
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.runtime.memory import block
from dprad.runtime.progress import tell

# Guesses processed together.
BLOCK_ENTRIES = 2**16
# Gains that differ by less than this share are the same, as those of all windows far around are.
EVEN = 2e-15
# Of sets that gain the same any may be named if their masses differ by less than this share.
ALIKE = 1e-9
# Weights are summed together over so many units of the noise, if these have this many members.
STRETCH, FEWEST = 30.0, 64


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Classes one after the other along the points, by fiber, and sets that are intervals of them.

    A member is a class at one of its values: its `weight`, the point `x`, and a key that ascends by
    fiber and place. `before` and `after` are weights up to a member, seen from it. Of each set the
    members low .. high-1, fiber and mass. Of each point the weight of everybody to its `left` and
    `right`, itself in both, and `pbar`; `area` is the integral of pbar up to it.
    """

    points: FloatArray
    steps: Steps
    weight: FloatArray
    x: FloatArray
    key: IntArray
    before: FloatArray
    after: FloatArray
    total: FloatArray
    low: IntArray
    high: IntArray
    fiber: IntArray
    mass: FloatArray
    whole: BoolArray
    left: FloatArray
    right: FloatArray
    pbar: FloatArray
    area: FloatArray
    complete: bool

    @classmethod
    def of(cls, game: Classes, weight: Any, points: FloatArray, steps: Steps) -> Line | None:
        """The line, if the game is of this kind; else None."""
        found = _members(game, weight.sorted_indices())
        if found is None:
            return None
        rows, place, own, low, high, fiber, mass, whole = found
        width = len(points) + 1
        key = own * width + place
        if np.any(np.diff(key) < 0):
            return None
        everyone = np.asarray(weight.sum(axis=0)).reshape(-1)
        left, right = scan(everyone, points), scan(everyone[::-1], -points[::-1])[::-1]
        gone = -np.expm1(-np.diff(points))
        passed = (steps.falling * left[:-1] + steps.rising * right[1:]) * gone
        x = points[place]
        return cls(
            points, steps, rows, x, key,
            scan(rows, x, own), scan(rows[::-1], -x[::-1], own[::-1])[::-1],
            np.r_[0.0, np.cumsum(rows)], low, high, fiber, mass, whole,
            left, right, left + right - everyone, np.r_[0.0, np.cumsum(passed)],
            len(rows) == weight.nnz and own[0] == own[-1],
        )  # fmt: skip

    def seen(self, low: IntArray, high: IntArray, end: FloatArray, *, rising: bool) -> FloatArray:
        """The weight of members low .. high-1 as seen from `end`, on their right or left."""
        low, high = np.broadcast_arrays(low, high)
        result = np.zeros(len(low))
        some = np.flatnonzero(high > low)
        a, b, end = low[some], high[some], end[some]
        if rising:
            found = self.after[a] * np.exp(end - self.x[a])
            edge = np.minimum(b, len(self.x) - 1)
            mine = (b < len(self.x)) & (self._fiber(edge) == self._fiber(a))
            rest = self.after[edge] * np.exp(np.where(mine, end - self.x[edge], 0.0))
        else:
            found = self.before[b - 1] * np.exp(self.x[b - 1] - end)
            edge = np.maximum(a - 1, 0)
            mine = (a > 0) & (self._fiber(edge) == self._fiber(a))
            rest = self.before[edge] * np.exp(np.where(mine, self.x[edge] - end, 0.0))
        found = np.where(mine, np.maximum(found - rest, 0.0), found)
        one = b - a == 1
        result[some] = np.where(one, self.weight[a] * np.exp(-np.abs(self.x[a] - end)), found)
        return result

    def _fiber(self, members: IntArray) -> IntArray:
        return np.asarray(self.key[members] // (len(self.points) + 1))


def _members(game: Classes, weight: Any) -> tuple[Any, ...] | None:
    """Weight, place and fiber of the members; ends, fiber, mass and whether it is everybody of each
    set. None if a class that counts has no value.
    """
    sets = game.sets
    if isinstance(sets, Singletons):
        first, index = weight.indptr[:-1][sets.index], sets.index
        one = weight.indptr[1:][sets.index] - first == 1
        if np.any(weight.indptr[1:][index] == first):
            return None
        # of several classes of a fiber at one value only the likeliest can be the best guess
        place = weight.indices[first].astype(np.intp)
        key = np.where(one, sets.fiber * weight.shape[1] + place, -1 - np.arange(len(index)))
        kept = np.unique(key, return_index=True)[1]
        last = weight.indices[weight.indptr[1:][index] - 1]
        kept = kept[np.lexsort((last[kept], place[kept], sets.fiber[kept]))]
        classes, fiber, mass = index[kept], sets.fiber[kept], sets.mass[kept]
        begin = np.r_[0, np.cumsum(np.diff(weight.indptr)[classes])]
        low, high = begin[:-1], begin[1:]
    elif isinstance(sets, Windows):
        classes = np.arange(len(game.probabilities))[game.asked]
        count = np.diff(weight.indptr)[classes]
        if np.any(count == 0):
            return None
        begin = np.r_[0, np.cumsum(count)]
        low, high, fiber, mass = begin[sets.low], begin[sets.high], sets.fiber, sets.mass
        if np.any(sets.high > len(classes)):
            return None
    else:
        return None
    rows = weight[classes]
    whole = (high - low == rows.nnz) & (len(classes) == len(game.probabilities))
    own = np.repeat(game.fiber[classes], np.diff(rows.indptr))
    return rows.data, rows.indices.astype(np.intp), own, low, high, fiber, mass, whole


def scan(weight: FloatArray, value: FloatArray, run: IntArray | None = None) -> FloatArray:
    """Of each member, all weight up to it as seen from there, in its run: nothing cancels."""
    if run is None or run[0] == run[-1]:
        stretch = np.floor((value - value[:1]) / STRETCH)
        begin = np.flatnonzero(np.r_[True, stretch[1:] != stretch[:-1]])
        if len(begin) * FEWEST <= len(value):
            return _stretched(weight, value, begin)
    total, sums = 0.0, []
    fade = np.exp(-np.diff(value, prepend=value[:1]).clip(0.0))
    if run is not None:
        fade[1:][run[1:] != run[:-1]] = 0.0
    for w, f in zip(weight.tolist(), fade.tolist(), strict=True):
        total = total * f + w
        sums.append(total)
    return np.array(sums)


def _stretched(weight: FloatArray, value: FloatArray, begin: IntArray) -> FloatArray:
    """The same by running sums, as far as no power overflows."""
    sums, total, last = np.empty(len(value)), 0.0, float(value[0])
    for a, b in zip(begin, np.r_[begin[1:], len(value)], strict=True):
        away = value[a:b] - value[a]
        seen = np.cumsum(weight[a:b] * np.exp(away)) + total * np.exp(last - value[a])
        sums[a:b] = seen * np.exp(-away)
        total, last = float(sums[b - 1]), float(value[b - 1])
    return sums


@dataclass(slots=True, eq=False)
class _Work:
    """Groups, each a range of points and a fiber, and their candidates: sets, in order of group."""

    start: IntArray
    stop: IntArray
    fiber: IntArray
    sets: IntArray
    group: IntArray

    def part(self, kept: BoolArray) -> _Work:
        """Some of the candidates, and their groups."""
        groups, group = np.unique(self.group[kept], return_inverse=True)
        return _Work(
            self.start[groups], self.stop[groups], self.fiber[groups], self.sets[kept], group
        )

    def halves(self) -> list[_Work]:
        """Each range in two; two lists if there are many."""
        middle = (self.start + self.stop) // 2
        parts = [
            _Work(self.start, middle, self.fiber, self.sets, self.group),
            _Work(middle, self.stop, self.fiber, self.sets, self.group),
        ]
        if len(self.sets) > block(BLOCK_ENTRIES):
            return parts
        a, b = parts
        start, stop = np.r_[a.start, b.start], np.r_[a.stop, b.stop]
        fiber, sets = np.r_[self.fiber, self.fiber], np.r_[self.sets, self.sets]
        group = np.r_[self.group, self.group + len(self.fiber)]
        return [_Work(start, stop, fiber, sets, group)]


def between(line: Line, *, tie: bool, gained: bool) -> tuple[float, float]:
    """The integral of the best gain (or of the best weight) of each fiber, over all gaps; and the
    mass of what is named against pbar.
    """
    order = np.argsort(line.fiber, kind="stable")
    begin = starts(line.fiber[order])
    fibers = line.fiber[order][begin]
    group = np.repeat(np.arange(len(begin)), np.diff(np.r_[begin, len(order)]))
    zeros = np.zeros(len(begin), dtype=np.intp)
    stack = [_Work(zeros, zeros + len(line.points) - 1, fibers, order, group)]
    total = luck = 0.0
    while stack:
        work = stack.pop()
        found, left = _narrowed(line, work, tie=tie, gained=gained)
        total, luck = total + found[0], luck + found[1]
        if left is not None:
            stack.extend(left.halves())
        else:
            tell("values", int(work.start.min()), len(line.points))
    return total, luck


def _narrowed(
    line: Line, work: _Work, *, tie: bool, gained: bool
) -> tuple[tuple[float, float], _Work | None]:
    """What the groups that are decided contribute, and the others without the sets that lose."""
    split = _Split.of(line, work, gained)
    kept = split.rivals(tied=gained)
    count = np.bincount(work.group[kept], minlength=len(work.fiber))
    sole = kept & (count[work.group] == 1) & split.above()
    rest = kept & ~sole
    single = (work.stop - work.start == 1)[work.group]
    found = split.integrals(sole)
    leaf = rest & single
    if leaf.any():
        more = split.envelopes(leaf, tie)
        found = found[0] + more[0], found[1] + more[1]
    rest &= ~single
    return found, work.part(rest) if rest.any() else None


@dataclass(slots=True, eq=False)
class _Split:
    """Gains of the candidates as ``a X + c Y - b P``, and T if `full`: the members in between.

    Of those with some of these members (`partial`) it is an upper bound.
    By group: `inner` is T at both ends and its integral, `decay` is X at the end.
    """

    line: Line
    work: _Work
    a: FloatArray
    c: FloatArray
    b: FloatArray
    full: FloatArray
    partial: BoolArray
    inner: tuple[FloatArray, FloatArray, FloatArray]
    decay: FloatArray

    @classmethod
    def of(cls, line: Line, work: _Work, gained: bool) -> _Split:
        """Coefficients, from the weights seen from both ends."""
        g, width = work.group, len(line.points) + 1
        first, last = line.points[work.start], line.points[work.stop]
        p = np.searchsorted(line.key, work.fiber * width + work.start, "right")
        q = np.searchsorted(line.key, work.fiber * width + work.stop, "left")
        q = np.maximum(p, q)
        low, high = line.low[work.sets], line.high[work.sets]
        a = line.seen(low, np.minimum(high, p[g]), first[g], rising=False)
        c = line.seen(np.maximum(low, q[g]), high, last[g], rising=True)
        inside = np.maximum(np.minimum(high, q[g]) - np.maximum(low, p[g]), 0)
        full = (inside == (q - p)[g]) & (inside > 0)
        whole = line.whole[work.sets]
        b = np.where(whole, 0.0, line.mass[work.sets]) if gained else np.zeros(len(g))
        decay = np.exp(first - last)
        seen = (line.seen(p, q, first, rising=True), line.seen(p, q, last, rising=False))
        mass = line.total[q] - line.total[p]
        steps = line.steps
        integral = steps.rising * (mass - seen[0]) + steps.falling * (mass - seen[1])
        partial = (inside > 0) & ~full & ~(whole & gained)
        has = (full | partial).astype(float)
        alone = partial & (high - low == 1)
        # at most: what a single member has at its own place, or with everybody in between
        at = line.key[low] % width
        most = line.weight[low] / line.pbar[at]
        a, c, has = (np.where(alone, 0.0, value) for value in (a, c, has))
        b = np.where(alone, b - most, b)
        if gained:
            # everybody gains nothing, exactly
            a, c, has = (np.where(whole, 0.0, value) for value in (a, c, has))
        if line.complete:
            # everybody in between is pbar without those on either side
            all_left, all_right = line.left[work.start][g], line.right[work.stop][g]
            a, c, b = a - has * all_left, c - has * all_right, b - has
            has = np.zeros(len(g))
        inner = (*seen, np.maximum(integral, 0.0))
        return cls(line, work, a, c, b, has, partial, inner, decay)

    def _ends(self) -> tuple[FloatArray, ...]:
        """By group: pbar at both ends."""
        return self.line.pbar[self.work.start], self.line.pbar[self.work.stop]

    def _most(self, da: Any, dc: Any, db: Any, dfull: Any) -> FloatArray:
        """The greatest a difference of gains over pbar can be."""
        begin, end = self._ends()
        g, u0, u1 = self.work.group, 1 / begin, self.decay / end
        v0, v1 = self.decay / begin, 1 / end
        most = np.maximum(da * u0[g], da * u1[g]) + np.maximum(dc * v0[g], dc * v1[g]) - db
        if np.any(dfull):
            inner, fall = np.minimum(self.inner[0] / begin, self.inner[1] / end), self.decay**2
            inner = np.divide(inner, fall, out=np.ones(len(fall)), where=inner < fall)
            most = most + np.maximum(dfull, 0.0) * inner[g]
        return np.asarray(most)

    def above(self) -> BoolArray:
        """Which candidates gain all the way."""
        least = -self._most(-self.a, -self.c, -self.b, np.zeros(len(self.a)))
        return (least > self._slack()) & ~self.partial

    def _slack(self) -> FloatArray:
        begin, end = self._ends()
        g = self.work.group
        size = np.abs(self.a) / begin[g] + np.abs(self.c) / end[g] + np.abs(self.b) + self.full
        return np.asarray(SAME * size)

    def rivals(self, *, tied: bool) -> BoolArray:
        """Which candidates may be the best somewhere, or as good; of those that are all the same,
        one: as far as it matters which is named, if `tied`.
        """
        g, number = self.work.group, np.arange(len(self.a))
        begin, (left, right) = starts(g), self._ends()
        slack = self._slack()
        kept = self._most(self.a, self.c, self.b, self.full) >= -slack
        at_begin = (self.a + self.c * self.decay[g] + self.full * self.inner[0][g]) / left[g]
        at_end = (self.a * self.decay[g] + self.c + self.full * self.inner[1][g]) / right[g]
        at_begin, at_end = at_begin - self.b, at_end - self.b
        kinds = [self.full == kind for kind in np.unique(self.full)]
        for value, kind in product((at_begin, at_end), kinds):
            has, best = self._foremost(np.where(self.partial | ~kind, -np.inf, value), begin)
            best = best[g]
            behind = self._most(
                self.a - self.a[best], self.c - self.c[best], self.b - self.b[best],
                self.full - self.full[best],
            )  # fmt: skip
            # whoever leads by nothing, and is as likely, goes, and brings down nobody later
            alike = behind <= EVEN * np.maximum(np.abs(at_begin[best]), np.abs(at_end[best]))
            alike &= kept[best] & (best != number)
            if tied:
                mass = self.line.mass[self.work.sets]
                alike &= np.abs(mass - mass[best]) <= ALIKE * mass
            kept &= ~has[g] | ((behind >= -slack - slack[best]) & ~alike)
        return kept

    def _foremost(self, value: FloatArray, begin: IntArray) -> tuple[BoolArray, IntArray]:
        """By group: whether it has one, and the first of the greatest."""
        number, top = np.arange(len(value)), np.maximum.reduceat(value, begin)
        first = np.where(value >= top[self.work.group], number, len(value))
        has = np.isfinite(top)
        return has, np.where(has, np.minimum.reduceat(first, begin), 0)

    def integrals(self, some: BoolArray) -> tuple[float, float]:
        """The gain of these all the way, and their mass against pbar."""
        line, work, i = self.line, self.work, np.flatnonzero(some)
        g = work.group[i]
        area = (line.area[work.stop] - line.area[work.start])[g]
        gone = -np.expm1((line.points[work.start] - line.points[work.stop])[g])
        steps = line.steps
        gain = (steps.falling * self.a[i] + steps.rising * self.c[i]) * gone - self.b[i] * area
        gain += self.full[i] * self.inner[2][g]
        return float(gain.sum()), float(line.mass[work.sets[i]] @ area)

    def envelopes(self, some: BoolArray, tie: bool) -> tuple[float, float]:
        """The same for the best of these in single gaps."""
        line, work = self.line, self.work
        i = np.flatnonzero(some)
        groups, g = np.unique(work.group[i], return_inverse=True)
        k = work.start[groups]
        up, down = line.right[k + 1], line.left[k]
        gain = [self.c[i] - self.b[i] * up[g], self.a[i] - self.b[i] * down[g]]
        gap = line.points[k + 1] - line.points[k]
        passing = Passing(line.mass[work.sets[i]], tie)
        return envelope(
            gain[0][:, None], gain[1][:, None], gap[:, None], starts(g), passing,
            (up[:, None], down[:, None]), line.steps,
        )  # fmt: skip
