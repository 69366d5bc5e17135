"""Theorem C straight from Rényi divergences, without the detour over a profile.

Theorem C asks for ``E_q h(r)``, r the likelihood ratio of two neighbours and
``h(r) = (r - 1 - nu N(r))_+`` (`unified.py`). A promise of divergences limits the moments of r:
``E_q r = 1``; ``E_q r^k`` and ``E_q r^(1-k)`` are at most ``M_k = exp((k-1) R(k))``;
``E_q r log r`` and ``-E_q log r`` are at most R(1). Every function

    D(r) = c0 + c1 r + sum_k (u_k r^k + v_k r^(1-k)) / M_k + (u r log r - v log r) / R(1)

with u, v >= 0 that is nowhere below h therefore proves ``E_q h(r) <= c0 + c1 + sum (u + v)``. The
best D and nu are found by a linear program on a grid of r. D and h are convex, so between grid
points D is above its tangents and h below its chords: what is missing there is added to c0 (for
large r, to c1), and the bound is certified, whatever the program found.

Both orders of a pair of records occur, with the same weight, and one pair of laws answers for both.
So where one N serves all pairs, h may be replaced by its mean with that of the reversed pair,
``(h(r) + r h(1/r)) / 2``. A profile cannot use this; it is what makes the moments tighter.

Not claimed: that it is the largest RAD under such a promise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dprad.bounds.unified import Separations, least_cost, separations, share
from dprad.game.game import Game
from dprad.model.guarantees import Guarantee, Moments
from dprad.numerics.arrays import FloatArray

# Orders, groups of pairs, and grid points on either side of r = 1 in the program, and how many
# times finer the grid is on which its answer is certified.
ORDERS, GROUPS, POINTS, FINER = 20, 4, 96, 12
# The grid ends where the profile falls below this, or at this loss.
RARE, FAR = 1e-9, 60.0
# Larger values of a moment's function are not told apart by the program.
LARGE = 1e4


def theorem_c_moments(guarantee: Guarantee, game: Game) -> float:
    """The certified least value: pair by pair, and both orders of a pair together.

    Two linear programs of about 400 rows for each group of pairs.
    """
    assert isinstance(guarantee, Moments)
    groups = share(separations(game), GROUPS)
    if not len(groups.weight) or guarantee.kl == 0.0:
        return 0.0
    top, basis = min(guarantee.epsilon_at(RARE), FAR), _Basis(guarantee)
    asked = [_Prices(groups, False)]
    if game.share == 1.0:
        asked.append(_Prices(_merged(groups, game.unlike), True))
    return min(_certified(basis, prices, top) for prices in asked)


def _merged(groups: Separations, weight: float) -> Separations:
    """All pairs as one group, in both orders."""
    if len(groups.weight) == 1:
        return replace(groups, weight=np.array([weight]))
    low, high = groups.low.min(keepdims=True), groups.high.max(keepdims=True)
    return Separations(np.array([weight]), low, high)


@dataclass(frozen=True, slots=True)
class _Prices:
    """What D must exceed in each group: ``gain - nu * cost``, and zero."""

    groups: Separations
    both: bool

    def gain(self, loss: FloatArray) -> FloatArray:
        """At r = e^loss."""
        more = np.expm1(loss)
        return np.asarray(np.abs(more) / 2 if self.both else np.maximum(more, 0.0))

    def cost(self, loss: FloatArray) -> FloatArray:
        """One row for each group; infinite where there is nothing to gain."""
        r = np.exp(loss)
        straight = least_cost(r, np.ones_like(r), self.groups)
        if not self.both:
            return np.asarray(np.where(loss > 0, straight, np.inf))
        back = least_cost(np.ones_like(r), r, self.groups)  # r N(1/r)
        return np.asarray(np.where(loss > 0, straight, back) / 2)

    def height(self, loss: FloatArray, nu: float) -> FloatArray:
        """h, one row for each group."""
        cost = self.cost(loss)
        paid = np.where(np.isfinite(cost), nu * np.minimum(cost, 1e300), np.inf)
        return np.asarray(np.maximum(self.gain(loss) - paid, 0.0))

    @property
    def ends(self) -> tuple[float, float]:
        """No less than h at zero, and than its slope for large r."""
        return (0.5, 0.5) if self.both else (0.0, 1.0)


def _certified(basis: _Basis, prices: _Prices, top: float) -> float:
    """The value of the program's answer, with what it lacks between grid points."""
    found = _program(basis, prices, np.linspace(-top, top, 2 * POINTS + 1))
    if found is None:
        return float("inf")
    nu, weights = found
    loss = np.linspace(-top, top, 2 * POINTS * FINER + 1)
    value, slope, size = basis.functions(loss)
    total, heights = nu, prices.height(loss, nu)
    for weight, used, height in zip(prices.groups.weight, weights, heights, strict=True):
        d, rise = value @ used, slope @ used
        d -= 8 * np.finfo(float).eps * (size @ np.abs(used))
        lacking = _lacking(np.exp(loss), d, rise, height, prices.ends)
        total += float(weight) * (float(used.sum()) + lacking)
    return total


class _Basis:
    """The functions whose means are known: at most one each, exactly one for 1 and r."""

    def __init__(self, guarantee: Moments) -> None:
        orders = guarantee.read_at
        if len(orders) > ORDERS:
            orders = orders[np.unique(np.linspace(0, len(orders) - 1, ORDERS).astype(np.intp))]
        self.orders = orders
        self.log_moment = (orders - 1.0) * guarantee._renyi(orders)
        self.kl = guarantee.kl

    def functions(self, loss: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values, slopes in r and sizes of terms, at r = e^loss; the first two are 1 and r."""
        x, r, k, m = loss[:, None], np.exp(loss), self.orders, self.log_moment
        with np.errstate(over="ignore"):
            up = np.exp(np.minimum(k * x - m, 600.0))
            down = np.exp(np.minimum((1.0 - k) * x - m, 600.0))
        one = np.ones_like(loss)
        value = np.c_[one, r, up, down, r * loss / self.kl, -loss / self.kl]
        slope = np.c_[
            0.0 * one, one, up * k / r[:, None], down * (1.0 - k) / r[:, None],
            (loss + 1.0) / self.kl, -1.0 / (self.kl * r),
        ]  # fmt: skip
        # exponents are rounded in proportion to their terms
        grown = 1.0 + k * np.abs(x) + m
        size = np.c_[one, r, up * grown, down * grown, np.abs(value[:, -2:])]
        return value, slope, size


def _program(
    basis: _Basis, prices: _Prices, loss: FloatArray
) -> tuple[float, list[FloatArray]] | None:
    """The price nu, and for each group the coefficients of D, found on a grid."""
    from scipy.optimize import linprog

    value, slope, _ = basis.functions(loss)
    # rows of large r are divided by it
    scale = np.maximum(np.exp(loss), 1.0)
    start = value[0] - slope[0] * np.exp(loss[0])  # its tangent, at zero
    value /= scale[:, None]
    for part in (value, slope):
        part[:, 2:] = np.minimum(part[:, 2:], LARGE)
    start[2:] = np.minimum(start[2:], LARGE)
    weight, gain, cost = prices.groups.weight, prices.gain(loss) / scale, prices.cost(loss) / scale
    n, parts = value.shape[1], len(weight)
    rows, limits = [], []
    for g in range(parts):
        own, some = slice(1 + g * n, 1 + (g + 1) * n), np.isfinite(cost[g])
        block = np.zeros((len(loss) + int(some.sum()) + 2, 1 + parts * n))
        block[:, own] = np.vstack([value, value[some], start, slope[-1]])
        block[len(loss) : -2, 0] = cost[g][some]
        rows.append(block)
        limits.append(np.r_[np.zeros(len(loss)), gain[some], prices.ends])
    free = [(None, None), (None, None)] + [(0.0, None)] * (n - 2)
    found = linprog(
        np.r_[1.0, np.repeat(weight, n)],
        A_ub=-np.vstack(rows),
        b_ub=-np.concatenate(limits),
        bounds=[(0.0, None), *free * parts],
        method="highs",
    )
    if found.x is None:
        return None
    used = found.x[1:].reshape(parts, n).copy()
    used[:, 2:] = np.maximum(used[:, 2:], 0.0)
    return max(0.0, float(found.x[0])), list(used)


def _lacking(
    r: FloatArray, d: FloatArray, slope: FloatArray, h: FloatArray, ends: tuple[float, float]
) -> float:
    """How far D may be below h, for all r >= 0: both convex, known at the grid points."""
    at_zero, steepest = ends
    if slope[-1] < steepest:
        return float("inf")
    width, chord = np.diff(r), np.diff(h) / np.diff(r)
    bend = slope[1:] - slope[:-1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # where the tangents of both ends meet
        at = (d[:-1] - d[1:] + slope[1:] * width) / bend
    at = np.clip(np.where(bend > 0, at, 0.0), 0.0, width)
    inside = h[:-1] + chord * at - d[:-1] - slope[:-1] * at
    missing = np.maximum(inside, np.maximum(h[:-1] - d[:-1], h[1:] - d[1:]))
    start = max(at_zero - float(d[0] - slope[0] * r[0]), float(h[0] - d[0]))
    # a constant for small r, a multiple of r for large ones
    left = r[:-1] < 1.0
    constant = max(0.0, start, float(missing[left].max()))
    return constant + max(0.0, float((missing[~left] / r[:-1][~left]).max()))
