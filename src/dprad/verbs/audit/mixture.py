"""A Bayesian mixture of simple models: few calls suffice, and it is careful where it knows little.

*Regressions* on several tables (`tables.py`) with several penalties; *boxes* that halve the
coordinates; *counts* of whole outputs; *edges*, beyond which outputs are from one record only, with
regressions that keep the claim between them (`edges.py`). Each averages over its parameters (by
Laplace's method, or exactly), and its weight is its evidence, the chance it gave to the secrets
seen: nothing need be set aside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.special import betaln, expit

from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.coordinates import Rows
from dprad.verbs.audit.edges import NONE, Edges
from dprad.verbs.audit.tables import Table, columns, differing, tables

# Penalties of the regressions, and that of the first column; most columns, and Newton's steps.
PENALTIES, LEVEL, WIDEST, STEPS = (64.0, 16.0, 4.0, 1.0, 0.25), 1.0, 150, 12
# Coordinates of boxes, how often they are halved (by how many there are), and the least that are.
HALVED, DEPTHS, LEAST = 4, (0, 6, 4, 3, 2), 4
# What edges weigh beforehand beside all other regressions, as a log.
EDGED = 1.0
# Models that weigh less than this are left out.
LIGHT = 1e-3
# Models that weigh less are not tried again on parts of the same outputs.
HOPELESS = 1e-6
LOG_PI = math.log(math.pi)


# -- regressions -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """Weights, their covariance, and the log of the evidence; the largest log-odds that the claim
    allows, and the evidence if they are cut off there (rather too low: with the same weights).
    """

    weights: FloatArray
    covariance: FloatArray
    evidence: float
    bound: float
    inside: float

    def odds(self, table: FloatArray) -> FloatArray:
        """Of the second record, averaged over the weights (MacKay's approximation)."""
        spread = np.einsum("ij,ij->i", table @ self.covariance, table)
        return np.asarray(table @ self.weights / np.sqrt(1.0 + math.pi / 8 * spread))

    def chance(self, table: FloatArray) -> FloatArray:
        """That it is the second record."""
        return np.asarray(expit(self.odds(table)))

    def allowed(self, table: FloatArray) -> FloatArray:
        """The same if odds are cut off."""
        return np.asarray(expit(np.clip(self.odds(table), -self.bound, self.bound)))


def _regressions(table: FloatArray, secret: IntArray, bound: float = math.inf) -> Iterator[_Fitted]:
    """One for each penalty, by Newton's method; each starts where the one before ended."""
    sign, size = np.where(secret == 1, 1.0, -1.0), table.shape[1]
    weights = np.zeros(size)
    odds = table @ weights
    for strength in PENALTIES:
        penalty = np.r_[LEVEL, np.full(size - 1, strength)]

        def loss(odds: FloatArray, w: FloatArray, penalty: FloatArray = penalty) -> float:
            return float(np.logaddexp(0.0, -sign * odds).sum() + penalty @ (w * w) / 2)

        now = loss(odds, weights)
        for _ in range(STEPS):
            factor, slope = _curve(table, secret, odds, weights, penalty)
            step, length, start, before = dpotrs(factor, slope)[0], 1.0, weights, now
            while True:
                weights = start - length * step
                odds = table @ weights
                now = loss(odds, weights)
                if not (length > 1e-3 and now > before):
                    break
                length /= 2
            if before - now <= 1e-3:
                break
        factor, _ = _curve(table, secret, odds, weights, penalty)
        evidence = -now + np.log(penalty).sum() / 2
        whole = float(evidence - np.log(np.diag(factor)).sum())
        covariance = dpotrs(factor, np.eye(size))[0]
        free, inside = np.abs(odds) <= bound, whole
        if not free.all():
            some = table[free]
            factor, _ = _curve(some, secret[free], some @ weights, weights, penalty)
            cut = np.clip(odds, -bound, bound)
            worse = np.logaddexp(0.0, -sign * cut) - np.logaddexp(0.0, -sign * odds)
            inside = float(evidence - worse.sum() - np.log(np.diag(factor)).sum())
        yield _Fitted(weights, covariance, whole, bound, inside)


def _curve(
    table: FloatArray,
    secret: IntArray,
    odds: FloatArray,
    weights: FloatArray,
    penalty: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The curvature of the loss (as a factor), and its slope, with these log-odds."""
    chance = expit(odds)
    slope = table.T @ (chance - secret) + penalty * weights
    curve = (table * (chance * (1.0 - chance))[:, None]).T @ table
    curve.flat[:: len(curve) + 1] += penalty
    factor, failed = dpotrf(curve, clean=0)  # LAPACK's own: these are small, and very many
    if failed:
        raise np.linalg.LinAlgError("the curvature is not positive definite")
    return factor, slope


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
    evidence: float

    @classmethod
    def of(cls, models: list[_Model]) -> Mixture:
        """Weighed by their evidence."""
        logs = np.array([m.evidence for m in models])
        total = float(np.logaddexp.reduce(logs))
        return cls(tuple(models), np.exp(logs - total), total)

    @property
    def shares(self) -> dict[str, float]:
        """The weights of all models of a kind."""
        total = dict.fromkeys((m.name for m in self.models), 0.0)
        for model, weight in zip(self.models, self.weights.tolist(), strict=True):
            total[model.name] += weight
        return total

    @property
    def awake(self) -> frozenset[str]:
        """Names of the models that are not hopeless, those between edges included."""
        found: set[str] = set()
        for model, weight in zip(self.models, self.weights.tolist(), strict=True):
            if weight >= HOPELESS:
                found.add(model.name)
                if isinstance(model.chance, _Edged):
                    found |= model.chance.between.awake
        return frozenset(found)

    def __call__(self, rows: Rows) -> FloatArray:
        """Log-odds of the second record."""
        chance = np.clip(self.chances(rows), 1e-15, 1.0 - 1e-15)
        return np.asarray(np.log(chance) - np.log1p(-chance))

    def chances(self, rows: Rows) -> FloatArray:
        """That it is the second record."""
        total, chance = 0.0, np.zeros(len(rows))
        tables: dict[int, Any] = {id(None): rows}
        for model, weight in zip(self.models, self.weights.tolist(), strict=True):
            if weight < LIGHT:
                continue
            if id(model.table) not in tables and model.table is not None:
                tables[id(model.table)] = model.table(rows)
            chance += weight * model.chance(tables[id(model.table)])
            total += weight
        return np.asarray(chance / total)


@dataclass(frozen=True, slots=True, eq=False)
class _Edged:
    """What is allowed between edges, something else beyond one or more of them."""

    edges: Edges
    between: Mixture

    def __call__(self, rows: Rows) -> FloatArray:
        return self.edges(rows, self.between.chances(rows))


def mixture(
    rows: Rows,
    secret: IntArray,
    extra: tuple[Table, ...] = (),
    bound: float = math.inf,
    only: frozenset[str] | None = None,
) -> Mixture:
    """Fit all models and weigh them by their evidence. `extra` scores are known beforehand; the
    claim allows log-odds up to the `bound`. `only` some models may be asked for, by name.

    Costs about 20 ms for some hundred outputs of a few numbers, and grows with both.
    """
    models: list[_Model] = []
    inside: list[_Model] = []
    for name, table in tables(rows, secret, extra):
        if only is not None and name not in only:
            continue
        x = table(rows)
        if not 1 < x.shape[1] <= WIDEST:
            continue
        for f in _regressions(x, secret, bound):
            models.append(_Model(name, table, f.chance, f.evidence))
            inside.append(_Model(name, table, f.allowed, f.inside))
    many = math.log(len(PENALTIES))  # each kind weighs the same beforehand
    counts = _Counts.of(rows, secret)
    models.append(_Model("counts", None, counts, counts.evidence + many))
    if only is None or "boxes" in only:
        boxes = _Boxes.of(rows, secret)
        models.append(_Model("boxes", None, boxes, boxes.box.evidence + many))
    if inside and (only is None or "edges" in only):
        between = Mixture.of(inside)
        edges = Edges.of(rows, secret, between.chances(rows))
        log = between.evidence + edges.evidence + EDGED
        models.append(_Model("edges", None, _Edged(edges, between), log))
        if bound < math.inf:  # all is as claimed: no edges either
            models += [replace(m, evidence=m.evidence + EDGED + math.log(NONE)) for m in inside]
    return Mixture.of(models)
