"""Tables of outputs for regressions: a row per output, a column for what may speak.

A *line* through the coordinates; *hinges* and single values; the same *within* each value of a
coordinate that has few; sums over *blocks* of neighbouring coordinates, of several sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.verbs.audit.coordinates import Rows

Table = Callable[[Rows], FloatArray]

# Coordinates of a line, and of a table of hinges.
LINE, HINGED = 50, 25
# Values of a coordinate that get a column each, how often they come again where others do not, and
# where hinges are.
FEW, AGAIN, KNOTS = 12, 4, (0.1, 0.3, 0.5, 0.7, 0.9)
# Most values within which hinges are repeated, coordinates that have them, and those repeated.
WITHIN, SPLIT, REPEATED = 6, 3, 6
# How many blocks there are (with two or more coordinates in each), the most coordinates in them,
# and the most values that are counted.
BLOCKS, MOST, COUNTED = (1, 2, 4, 8), 1024, 4


def differing(raw: FloatArray, secret: IntArray, most: int) -> IntArray:
    """The coordinates whose distributions differ most between the two secrets: by their mean
    ranks. One sort per coordinate.
    """
    places = np.flatnonzero((raw != raw[:1]).any(axis=0))  # missing numbers are not even themselves
    if len(places) <= most:
        return places
    filled = np.ascontiguousarray(np.nan_to_num(raw[:, places], nan=-1e9).T)
    second = secret[np.argsort(filled, axis=1)]
    total: IntArray = second @ np.arange(len(raw))
    size = int(np.count_nonzero(secret))
    rest = len(raw) * (len(raw) - 1) // 2 - total
    gap = np.abs(total / max(size, 1) - rest / max(len(raw) - size, 1))
    return np.asarray(np.sort(places[np.argsort(-gap)[:most]]))


def telling(raw: FloatArray, secret: IntArray, most: int) -> list[int]:
    """Columns whose distributions differ clearly between the two secrets (Kolmogorov and Smirnov,
    at a thousandth for all together), most first.
    """
    chosen, size = differing(raw, secret, LINE), np.bincount(secret, minlength=2)
    far = np.zeros(len(chosen))
    for k, j in enumerate(chosen.tolist()):
        _, place = np.unique(raw[:, j], return_inverse=True)
        seen = (np.bincount(place[secret == z], minlength=place.max() + 1) for z in (0, 1))
        zero, one = (np.cumsum(n) / max(n.sum(), 1) for n in seen)
        far[k] = np.abs(one - zero).max()
    clear = np.sqrt(np.log(2e3 * max(len(chosen), 1)) / 2 * (1 / np.maximum(size, 1)).sum())
    order = np.argsort(-far, kind="stable")[:most]
    return [int(chosen[k]) for k in order if far[k] > clear]


def columns(rows: Rows, chosen: IntArray) -> FloatArray:
    """Some coordinates; those that outputs do not have are missing."""
    raw = rows.numbers
    wide = int(chosen.max(initial=-1)) + 1
    if raw.shape[1] < wide:
        raw = np.pad(raw, ((0, 0), (0, wide - raw.shape[1])), constant_values=np.nan)
    return np.asarray(raw[:, chosen])


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Coordinates as they are, scaled."""

    chosen: IntArray
    middle: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, rows: Rows, secret: IntArray) -> _Line:
        chosen = differing(rows.numbers, secret, LINE)
        chosen = chosen[np.isfinite(rows.numbers[:, chosen]).any(axis=0)]
        x = rows.numbers[:, chosen]
        low, middle, high = (
            np.nanquantile(np.where(np.isfinite(x), x, np.nan), (0.16, 0.5, 0.84), axis=0)
            if len(chosen)
            else np.zeros((3, 0))
        )
        spread = np.maximum(high - middle, middle - low)
        return cls(chosen, middle, np.where(spread > 0, spread, 1.0))

    def __call__(self, rows: Rows) -> FloatArray:
        near = np.clip((columns(rows, self.chosen) - self.middle) / self.spread, -5.0, 5.0)
        return np.concatenate([np.ones((len(near), 1)), np.nan_to_num(near)], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Hinges:
    """For each coordinate its common values, whether it is missing, and a line with hinges."""

    chosen: IntArray
    values: tuple[FloatArray, ...]
    knots: tuple[FloatArray, ...]
    missing: BoolArray

    @classmethod
    def of(cls, rows: Rows, secret: IntArray, most: int = HINGED) -> _Hinges:
        chosen = differing(rows.numbers, secret, most)
        values, knots = [], []
        for x in rows.numbers[:, chosen].T:
            known = x[np.isfinite(x)]
            found, times = np.unique(known, return_counts=True)
            if len(found) > FEW:
                found = found[(times >= max(8, len(x) // 20)) | atoms(times)]
            rest = known[~np.isin(known, found)]
            values.append(found)
            knots.append(np.quantile(rest, KNOTS) if len(rest) >= 8 else np.zeros(0))
        missing = np.asarray(np.isnan(rows.numbers[:, chosen]).any(axis=0))
        return cls(chosen, tuple(values), tuple(knots), missing)

    def __call__(self, rows: Rows) -> FloatArray:
        return np.concatenate([np.ones((len(rows), 1)), *self.parts(rows)], axis=1)

    def parts(self, rows: Rows) -> Iterator[FloatArray]:
        """The columns of each coordinate."""
        every = columns(rows, self.chosen).T
        for x, values, knots, lacks in zip(
            every, self.values, self.knots, self.missing, strict=True
        ):
            same = x[:, None] == values
            if len(values) == 2 and not len(knots) and not lacks:
                yield 2.0 * same[:, :1] - 1.0
                continue
            yield same.astype(float)
            if lacks:
                yield np.isnan(x)[:, None].astype(float)
            if len(knots):
                other = ~(np.isnan(x) | same.any(axis=1))
                yield _bent(x, knots) * other[:, None]


def atoms(times: IntArray) -> BoolArray:
    """Which values come again and again, if these are few among values that hardly do: noise that
    was left out, or cut off.
    """
    again = np.asarray(times >= AGAIN)
    return again if np.count_nonzero(again) <= FEW else np.zeros(len(times), dtype=bool)


def _bent(x: FloatArray, knots: FloatArray) -> FloatArray:
    """A line, and hinges that open outwards."""
    scale = max(float(knots[-1] - knots[0]), 1e-300)
    near = np.clip(np.nan_to_num(x), knots[0] - 3.0 * scale, knots[-1] + 3.0 * scale)
    middle = len(knots) // 2
    below = np.maximum(knots[:middle] - near[:, None], 0.0)
    above = np.maximum(near[:, None] - knots[middle:], 0.0)
    line = (near - knots[middle])[:, None]
    return np.concatenate([line, below, above], axis=1) / scale


@dataclass(frozen=True, slots=True, eq=False)
class _Within:
    """Hinges, and the same again within each value of some coordinates."""

    hinges: _Hinges
    by: tuple[tuple[int, FloatArray], ...]

    @classmethod
    def of(cls, rows: Rows, secret: IntArray) -> _Within:
        by = []
        for j in differing(rows.numbers, secret, 2 * REPEATED).tolist():
            values, times = np.unique(
                np.nan_to_num(rows.numbers[:, j], nan=-1e9), return_counts=True
            )
            if 2 <= len(values) <= WITHIN:
                by.append((j, values[times >= 8]))
        return cls(_Hinges.of(rows, secret, REPEATED), tuple(by[:SPLIT]))

    def __call__(self, rows: Rows) -> FloatArray:
        table = self.hinges(rows)
        parts = [table]
        for j, values in self.by:
            x = np.nan_to_num(columns(rows, np.array([j]))[:, 0], nan=-1e9)
            parts += [table[:, 1:] * (x == v)[:, None] for v in values]
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """How often each value occurs in blocks of neighbouring coordinates: of lists whose parts mean
    the same, few numbers say most. Where there are many values, sums.
    """

    chosen: IntArray
    values: FloatArray
    middle: FloatArray
    spread: FloatArray
    starts: IntArray

    @classmethod
    def of(cls, rows: Rows, secret: IntArray) -> Iterator[_Blocks]:
        """One for all coordinates, one for halves, and so on."""
        chosen, values = _alike(rows.numbers, differing(rows.numbers, secret, MOST))
        x = np.where(np.isfinite(rows.numbers[:, chosen]), rows.numbers[:, chosen], np.nan)
        known = np.maximum((~np.isnan(x)).sum(axis=0), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            middle = np.nansum(x, axis=0) / known
            spread = np.sqrt(np.nansum((x - middle) ** 2, axis=0) / known)
        spread = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
        if not np.isnan(x).any():
            values = values[1:]
        for count in BLOCKS:
            if len(chosen) >= 2 * count:
                starts = np.linspace(0, len(chosen), count, endpoint=False).astype(np.intp)
                yield cls(chosen, values, middle, spread, starts)

    def __call__(self, rows: Rows) -> FloatArray:
        x = columns(rows, self.chosen)
        if len(self.values):
            every = [2.0 * (x == v) for v in self.values]
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                every = [np.nan_to_num(np.clip((x - self.middle) / self.spread, -5.0, 5.0))]
            every.append(np.isnan(x).astype(float))
        scale = np.sqrt(np.diff(np.r_[self.starts, len(self.chosen)]))
        parts = [np.add.reduceat(each, self.starts, axis=1) / scale for each in every]
        return np.concatenate([np.ones((len(x), 1)), *parts], axis=1)


def _alike(raw: FloatArray, places: IntArray) -> tuple[IntArray, FloatArray]:
    """The coordinates that share a few values, and these; or those that have many values."""
    sets = [np.unique(x[~np.isnan(x)]) for x in raw[:, places].T]
    few = [tuple(v.tolist()) for v in sets if 1 < len(v) <= COUNTED]
    if 2 * len(few) < len(places):
        return places[[len(v) > COUNTED for v in sets]], np.zeros(0)
    values = np.array(max(few, key=few.count, default=()))
    return places[[bool(np.isin(v, values).all()) for v in sets]], values


def tables(
    rows: Rows, secret: IntArray, extra: tuple[Table, ...] = ()
) -> Iterator[tuple[str, Table]]:
    """All that are fitted to these outputs, by name. `extra` scores are known beforehand."""
    yield "line", _Line.of(rows, secret)
    yield "hinges", _Hinges.of(rows, secret)
    within = _Within.of(rows, secret)
    if within.by:
        yield "within", within
    for blocks in _Blocks.of(rows, secret):
        yield "blocks", blocks
    if extra:
        yield (
            "given",
            lambda rows: np.stack([np.ones(len(rows)), *(score(rows) for score in extra)], axis=1),
        )
