"""A Bayesian mixture of simple models: few calls suffice, and it is careful where it knows little.

*Regressions* (a line through the coordinates; hinges and single values; the same within each value
of a coordinate that has few) with several penalties; *boxes* that halve the coordinates; *counts*
of whole outputs. Each averages over its parameters (by Laplace's method, or exactly), and its
weight is its evidence, the chance it gave to the secrets seen: nothing need be set aside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import betaln, expit

from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.verbs.audit.coordinates import Rows

Table = Callable[[Rows], FloatArray]

# Penalties of the regressions, and that of the first column; most columns, and Newton's steps.
PENALTIES, LEVEL, WIDEST, STEPS = (64.0, 16.0, 4.0, 1.0, 0.25), 1.0, 150, 12
# Coordinates of a line, and of a table of hinges.
LINE, HINGED = 50, 25
# Values of a coordinate that get a column each, and where hinges are.
FEW, KNOTS = 12, (0.1, 0.3, 0.5, 0.7, 0.9)
# Most values within which hinges are repeated, coordinates that have them, and those repeated.
WITHIN, SPLIT, REPEATED = 6, 3, 6
# Coordinates of boxes, how often they are halved (by how many there are), and the least that are.
HALVED, DEPTHS, LEAST = 4, (0, 6, 4, 3, 2), 4
# Models that weigh less than this are left out.
LIGHT = 1e-3
LOG_PI = math.log(math.pi)


def differing(raw: FloatArray, secret: IntArray, most: int) -> IntArray:
    """The coordinates whose distributions differ most between the two secrets."""
    varies = np.array([len(np.unique(x[~np.isnan(x)])) > 1 or np.isnan(x).any() for x in raw.T])
    places = np.flatnonzero(varies)
    if len(places) <= most:
        return places
    filled = np.nan_to_num(raw[:, places], nan=-1e9)
    order = np.argsort(filled, axis=0).argsort(axis=0) / len(raw)
    gap = np.abs(order[secret == 1].mean(axis=0) - order[secret == 0].mean(axis=0))
    return np.asarray(np.sort(places[np.argsort(-gap)[:most]]))


def columns(rows: Rows, chosen: IntArray) -> FloatArray:
    """Some coordinates; those that outputs do not have are missing."""
    raw = rows.numbers
    wide = int(chosen.max(initial=-1)) + 1
    if raw.shape[1] < wide:
        raw = np.pad(raw, ((0, 0), (0, wide - raw.shape[1])), constant_values=np.nan)
    return np.asarray(raw[:, chosen])


# -- tables ----------------------------------------------------------------------------------------
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
                found = found[times >= max(8, len(x) // 20)]
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


# -- regressions -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """Weights, their covariance, and the log of the evidence."""

    weights: FloatArray
    covariance: FloatArray
    evidence: float

    def chance(self, table: FloatArray) -> FloatArray:
        """That it is the second record, averaged over the weights (MacKay's approximation)."""
        spread = np.einsum("ij,ij->i", table @ self.covariance, table)
        return np.asarray(expit(table @ self.weights / np.sqrt(1.0 + math.pi / 8 * spread)))


def _regressions(table: FloatArray, secret: IntArray) -> Iterator[_Fitted]:
    """One for each penalty, by Newton's method; each starts where the one before ended."""
    sign, size = np.where(secret == 1, 1.0, -1.0), table.shape[1]
    weights = np.zeros(size)
    for strength in PENALTIES:
        penalty = np.r_[LEVEL, np.full(size - 1, strength)]

        def loss(w: FloatArray, penalty: FloatArray = penalty) -> float:
            return float(np.logaddexp(0.0, -sign * (table @ w)).sum() + penalty @ (w * w) / 2)

        now = loss(weights)
        for _ in range(STEPS):
            factor, slope = _curve(table, secret, weights, penalty)
            step = cho_solve(factor, slope)
            length = 1.0
            while length > 1e-3 and loss(weights - length * step) > now:
                length /= 2
            weights = weights - length * step
            before, now = now, loss(weights)
            if before - now <= 1e-3:
                break
        factor, _ = _curve(table, secret, weights, penalty)
        evidence = -now + np.log(penalty).sum() / 2 - np.log(np.diag(factor[0])).sum()
        yield _Fitted(weights, cho_solve(factor, np.eye(size)), float(evidence))


def _curve(
    table: FloatArray, secret: IntArray, weights: FloatArray, penalty: FloatArray
) -> tuple[tuple[FloatArray, bool], FloatArray]:
    """The curvature of the loss (as a factor), and its slope."""
    chance = expit(table @ weights)
    slope = table.T @ (chance - secret) + penalty * weights
    curve = (table * (chance * (1.0 - chance))[:, None]).T @ table
    curve[np.diag_indices(len(curve))] += penalty
    return cho_factor(curve), slope


# -- boxes -----------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Box:
    """Outputs in a box: a coin of unknown chance, or halved at the median of some coordinate.

    `share` are the weights of these after what was seen, the coin first.
    """

    chance: float
    evidence: float
    halves: list[tuple[int, float, _Box, _Box]] = field(default_factory=list)
    share: FloatArray = field(default_factory=lambda: np.ones(1))

    @classmethod
    def of(cls, x: FloatArray, secret: IntArray, depth: int) -> _Box:
        n, k = len(secret), int(np.count_nonzero(secret))
        coin = math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - math.lgamma(n + 1.0) - LOG_PI
        box = cls((k + 0.5) / (n + 1.0), coin)
        if depth == 0 or n < LEAST:
            return box
        for j, column in enumerate(x.T):
            cut = float(np.partition(column, n // 2)[n // 2])
            upper = column > cut
            if not upper.any():
                upper = column >= cut
            if upper.all():
                continue
            edge = (float(column[upper].min()) + float(column[~upper].max())) / 2
            parts = [cls.of(x[half], secret[half], depth - 1) for half in (~upper, upper)]
            box.halves.append((j, edge, parts[0], parts[1]))
        if box.halves:
            each = np.array([a.evidence + b.evidence for _, _, a, b in box.halves])
            logs = np.r_[coin, each - math.log(len(each))] - math.log(2.0)
            box.evidence = float(np.logaddexp.reduce(logs))
            box.share = np.exp(logs - box.evidence)
        return box

    def add(self, x: FloatArray, where: IntArray, weight: float, into: FloatArray) -> None:
        """Add this weight of the chances of some outputs."""
        into[where] += weight * self.share[0] * self.chance
        for (j, edge, low, high), share in zip(self.halves, self.share[1:].tolist(), strict=True):
            if share < LIGHT:
                into[where] += weight * share * self.chance
                continue
            upper = x[where, j] > edge
            for box, some in ((low, where[~upper]), (high, where[upper])):
                if len(some):
                    box.add(x, some, weight * share, into)


@dataclass(frozen=True, slots=True, eq=False)
class _Boxes:
    """The coordinates that are halved, and the box of all outputs."""

    chosen: IntArray
    box: _Box

    @classmethod
    def of(cls, rows: Rows, secret: IntArray) -> _Boxes:
        chosen = differing(rows.numbers, secret, HALVED)
        x = np.nan_to_num(columns(rows, chosen), nan=-1e9)
        return cls(chosen, _Box.of(x, secret, DEPTHS[len(chosen)]))

    def __call__(self, rows: Rows) -> FloatArray:
        found = np.zeros(len(rows))
        x = np.nan_to_num(columns(rows, self.chosen), nan=-1e9)
        self.box.add(x, np.arange(len(rows)), 1.0, found)
        return found


# -- counts ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """A coin of unknown chance for every whole output."""

    chances: dict[Any, float]
    evidence: float

    @classmethod
    def of(cls, rows: Rows, secret: IntArray) -> _Counts:
        seen: dict[Any, list[int]] = {}
        for key, z in zip(rows.keys, secret.tolist(), strict=True):
            seen.setdefault(key, [0, 0])[z] += 1
        zero, one = np.array(list(seen.values()), dtype=float).T
        each = (one + 0.5) / (zero + one + 1.0)
        evidence = betaln(one + 0.5, zero + 0.5).sum() - len(seen) * LOG_PI
        return cls(dict(zip(seen, each.tolist(), strict=True)), float(evidence))

    def __call__(self, rows: Rows) -> FloatArray:
        return np.array([self.chances.get(key, 0.5) for key in rows.keys])


# -- the mixture -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """Chances from a table of the outputs (of themselves, if there is none), and the evidence."""

    name: str
    table: Table | None
    chance: Callable[[Any], FloatArray]
    evidence: float


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Models and their weights; `shares` by name."""

    models: tuple[_Model, ...]
    weights: FloatArray

    @property
    def shares(self) -> dict[str, float]:
        """The weights of all models of a kind."""
        total = dict.fromkeys((m.name for m in self.models), 0.0)
        for model, weight in zip(self.models, self.weights.tolist(), strict=True):
            total[model.name] += weight
        return total

    def __call__(self, rows: Rows) -> FloatArray:
        """Log-odds of the second record."""
        total, chance = 0.0, np.zeros(len(rows))
        tables: dict[int, Any] = {id(None): rows}
        for model, weight in zip(self.models, self.weights.tolist(), strict=True):
            if weight < LIGHT:
                continue
            if id(model.table) not in tables and model.table is not None:
                tables[id(model.table)] = model.table(rows)
            chance += weight * model.chance(tables[id(model.table)])
            total += weight
        chance = np.clip(chance / total, 1e-15, 1.0 - 1e-15)
        return np.asarray(np.log(chance) - np.log1p(-chance))


def mixture(rows: Rows, secret: IntArray, extra: tuple[Table, ...] = ()) -> Mixture:
    """Fit all models and weigh them by their evidence. `extra` scores are known beforehand.

    Costs about 20 ms for some hundred outputs of a few numbers, and grows with both.
    """
    models: list[_Model] = []
    for name, table in _tables(rows, secret, extra):
        x = table(rows)
        if 1 < x.shape[1] <= WIDEST:
            found = _regressions(x, secret)
            models += [_Model(name, table, f.chance, f.evidence) for f in found]
    many = math.log(len(PENALTIES))  # each kind weighs the same beforehand
    boxes, counts = _Boxes.of(rows, secret), _Counts.of(rows, secret)
    models.append(_Model("boxes", None, boxes, boxes.box.evidence + many))
    models.append(_Model("counts", None, counts, counts.evidence + many))
    evidence = np.array([m.evidence for m in models])
    weights = np.exp(evidence - evidence.max())
    return Mixture(tuple(models), weights / weights.sum())


def _tables(rows: Rows, secret: IntArray, extra: tuple[Table, ...]) -> Iterator[tuple[str, Table]]:
    yield "line", _Line.of(rows, secret)
    yield "hinges", _Hinges.of(rows, secret)
    within = _Within.of(rows, secret)
    if within.by:
        yield "within", within
    if extra:
        yield (
            "given",
            lambda rows: np.stack([np.ones(len(rows)), *(score(rows) for score in extra)], axis=1),
        )
