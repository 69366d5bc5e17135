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

Not claimed: that it is the largest RAD under such a promise. It is the best that Theorem C can say,
up to the orders that are read.
"""

from __future__ import annotations

from dataclasses import replace

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
    """The certified least value. A linear program of about 800 rows for each group of pairs."""
    assert isinstance(guarantee, Moments)
    groups = share(separations(game), GROUPS)
    if not len(groups.weight) or guarantee.kl == 0.0:
        return 0.0
    top = min(guarantee.epsilon_at(RARE), FAR)
    basis = _Basis(guarantee)
    loss = np.linspace(-top, top, 2 * POINTS + 1)
    found = _program(basis, groups, loss)
    if found is None:
        return float("nan")
    nu, weights = found
    loss = np.linspace(-top, top, 2 * POINTS * FINER + 1)
    value, slope, size = basis.functions(loss)
    total = nu
    for g, (weight, used) in enumerate(zip(groups.weight, weights, strict=True)):
        cost = least_cost(np.exp(loss), np.ones_like(loss), _only(groups, g))[0]
        height = np.maximum(np.expm1(loss) - nu * cost, 0.0)
        d, rise, rounding = value @ used, slope @ used, size @ np.abs(used)
        lacking = _lacking(np.exp(loss), d - 8 * np.finfo(float).eps * rounding, rise, height)
        total += weight * (float(used.sum()) + lacking)
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
    basis: _Basis, groups: Separations, loss: FloatArray
) -> tuple[float, list[FloatArray]] | None:
    """The price nu, and for each group the coefficients of D, found on a grid."""
    from scipy.optimize import linprog

    value, slope, _ = basis.functions(loss)
    # rows of large r are divided by it
    scale = np.maximum(np.exp(loss), 1.0)
    value /= scale[:, None]
    value[:, 2:], slope[:, 2:] = np.minimum(value[:, 2:], LARGE), np.minimum(slope[:, 2:], LARGE)
    n, parts = value.shape[1], len(groups.weight)
    cost = least_cost(np.exp(loss), np.ones_like(loss), groups)
    above = loss > 0
    rows, limits = [], []
    for g in range(parts):
        own = slice(1 + g * n, 1 + (g + 1) * n)
        block = np.zeros((len(loss) + int(above.sum()) + 1, 1 + parts * n))
        block[: len(loss), own] = value
        block[len(loss) : -1, own] = value[above]
        block[len(loss) : -1, 0] = (cost[g] / scale)[above]
        block[-1, own] = slope[-1]
        rows.append(block)
        limits.append(np.r_[np.zeros(len(loss)), -np.expm1(-loss[above]), 1.0])
    price = np.r_[1.0, np.repeat(groups.weight, n)]
    free = [(None, None), (None, None)] + [(0.0, None)] * (n - 2)
    found = linprog(
        price,
        A_ub=-np.vstack(rows),
        b_ub=-np.concatenate(limits),
        bounds=[(0.0, None), *free * parts],
        method="highs",
    )
    if found.x is None:
        return None
    x = found.x
    x[0] = max(0.0, x[0])
    weights = [x[1 + g * n : 1 + (g + 1) * n].copy() for g in range(parts)]
    for used in weights:
        used[2:] = np.maximum(used[2:], 0.0)
    return float(x[0]), weights


def _lacking(r: FloatArray, d: FloatArray, slope: FloatArray, h: FloatArray) -> float:
    """How far D may be below h, for all r >= 0: both convex, known at the grid points."""
    if slope[-1] < 1.0:  # h never rises faster than r
        return float("inf")
    width, chord = np.diff(r), np.diff(h) / np.diff(r)
    bend = slope[1:] - slope[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        # where the tangents of both ends meet
        at = (d[:-1] - d[1:] + slope[1:] * width) / bend
    at = np.clip(np.where(bend > 0, at, 0.0), 0.0, width)
    inside = np.maximum(h[:-1] + chord * at - d[:-1] - slope[:-1] * at, 0.0)
    missing = np.maximum(inside, np.maximum(h[:-1] - d[:-1], h[1:] - d[1:]))
    start = float(h[0] - d[0] + max(slope[0], 0.0) * r[0])
    # a constant for small r, a multiple of r for large ones
    left = r[:-1] < 1.0
    constant = max(0.0, start, float(missing[left].max()))
    return constant + max(0.0, float((missing[~left] / r[:-1][~left]).max()))


def _only(groups: Separations, g: int) -> Separations:
    listed = None if groups.listed is None else (groups.listed[g],)
    part = slice(g, g + 1)
    return replace(
        groups,
        weight=groups.weight[part],
        low=groups.low[part],
        high=groups.high[part],
        listed=listed,
    )
