"""Continuous priors (the paper's appendix) by deterministic quadrature with an error bound.

The interval is cut into cells; each becomes one record, at its middle, with the mass of the cell,
and success sets become windows of whole cells. The finite game is solved exactly. Two errors are
made, both of second order in the width w of the cells, and both bounded (proof in
docs/theory/continuous.md). Write p_z for the density of the output given record z.

1. *Records are moved to the middle of their cell.* That changes RAD by at most
   ``sum_j pi_j || mean of p_z over cell j  -  p_{z_j} ||_1``, at most
   ``(pi_j C + V osc_j) w^2/8`` for each cell, or ``pi_j V w/2``: V and C bound the total variation
   of the first and second derivative of z -> p_z; osc_j is the oscillation of the prior's density.
2. *Guesses are moved to the grid.* Sliding a window over a cell, one cell enters and one leaves.
   The gain lies below its chord but for ``w/4`` times the oscillation of what enters and leaves;
   and where the prior has a pole, signs decide: at most twice the mass of the lighter cell, plus
   the mass of the heavier one times what p_z varies by. Summed over outputs with the integrals of
   ``sup_z p_z`` (`peak`) and of ``sup_z |dp_z/dz|`` (`slope`).

Cells with the largest error are halved. To keep whole windows whole, edges are a set of residues
modulo the length of a window. Everything known (membership) needs no windows: the integrand is
convex in p_z, so middles give a lower and ends of cells an upper bound.

O(M^2) for M cells, a few thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.exact.solution import Solution
from dprad.game.game import Game
from dprad.game.question import Posed
from dprad.game.sets import Singletons, Windows
from dprad.mechanisms.bounded import Duchi
from dprad.mechanisms.exponential import CutLaplace
from dprad.mechanisms.gaussian import Gaussian
from dprad.mechanisms.laplace import Laplace
from dprad.model.priors import Prior
from dprad.numerics.arrays import FloatArray, IntArray

# The required error, and the most cells used to reach it.
TOLERANCE = 2e-5
MAX_CELLS = 4000
# Initial number of cells, and points at which the density is read in each.
CELLS = 64
POINTS = 5
# Possible rounding error of such sums.
ROUNDING = 1e-14
# A wider interval is reported as a bound.
ACCEPTED = 1e-2

Finite = Callable[[Posed], Solution]
_NOTHING = "every window is certain or impossible"
_METHOD = "by quadrature over the prior with a proven error"


@dataclass(frozen=True, slots=True, eq=False)
class Smoothness:
    """How the output's density changes with the record z; see above for the symbols."""

    peak: float
    slope: float
    variation: Callable[[FloatArray], FloatArray]
    curvature: Callable[[FloatArray], FloatArray]


@singledispatch
def smoothness(mechanism: Any, low: float, high: float) -> Smoothness:
    """Bounds for records in [low, high]."""
    raise DpradError(
        f"{type(mechanism).__name__} needs a prior that is a table of records, but the prior is "
        f"continuous on [{low:g}, {high:g}]. Continuous priors work with Laplace, Gaussian, "
        "ExponentialInterval and Duchi; for others give a table, Prior.from_counts({value: weight})"
        ", or assess the promise: assess(mechanism.guarantee, ...)."
    )


def _constant(value: float) -> Callable[[FloatArray], FloatArray]:
    return lambda z: np.full(len(z), value)


@smoothness.register
def _laplace(mechanism: Laplace, low: float, high: float) -> Smoothness:
    r = mechanism.rate
    peak = 1.0 + r * (high - low) / 2
    return Smoothness(peak, r * peak, _constant(r), _constant(2 * r * r))


@smoothness.register
def _gaussian(mechanism: Gaussian, low: float, high: float) -> Smoothness:
    s = mechanism.sigma
    top, bend = 1 / np.sqrt(2 * np.pi), np.exp(-0.5) / np.sqrt(2 * np.pi)  # phi(0), phi(1)
    span = (high - low) / s
    slope = bend * (span + 4.0) / s
    curvature = _constant(4 * bend / s**2)
    return Smoothness(1.0 + top * span, slope, _constant(2 * top / s), curvature)


@smoothness.register
def _duchi(mechanism: Duchi, low: float, high: float) -> Smoothness:
    ends = mechanism.scaled(np.array([low, high]))
    t = float(np.tanh(mechanism.epsilon / 2))
    rise = t * float(ends[1] - ends[0]) / (high - low)
    return Smoothness(1.0 + t, rise, _constant(rise), _constant(0.0))


@smoothness.register
def _cut_laplace(mechanism: CutLaplace, low: float, high: float) -> Smoothness:
    """p_z = r e^{-r |t - z|}/T(z): bounds from T, T' and T''."""
    r, (a, b) = mechanism.rate, mechanism.bounds
    if r * (b - a) < 1e-300:
        return Smoothness(1.0, 0.0, _constant(0.0), _constant(0.0))

    def shape(z: FloatArray) -> tuple[FloatArray, FloatArray]:
        total = mechanism.total(z)
        return total, np.abs(np.exp(-r * (z - a)) - np.exp(-r * (b - z))) / total  # |T'|/(r T)

    def variation(z: FloatArray) -> FloatArray:
        return np.asarray(r * (1.0 + shape(z)[1]))

    def curvature(z: FloatArray) -> FloatArray:
        total, tilt = shape(z)
        return np.asarray(r * r * (4.0 / total + 2 * tilt + 2 * tilt**2))

    z = np.linspace(low, high, 4001)
    total, tilt = shape(z)
    # a grid misses the top of a ridge by less than this factor
    miss = float(np.exp(4 * r * (z[1] - z[0])))
    peak = miss * _ridge(r / total, z, r, (a, b))
    slope = miss * _ridge(r * r * (1.0 + tilt) / total, z, r, (a, b))
    return Smoothness(peak, slope, variation, curvature)


def _ridge(height: FloatArray, z: FloatArray, r: float, ends: tuple[float, float]) -> float:
    """The integral over t of max_z height(z) e^{-r |t - z|}, from above, between the ends."""
    log, rz = np.log(height), r * z
    top = np.exp(np.maximum.accumulate(log + rz) - rz)
    top = np.maximum(top, np.exp(np.maximum.accumulate((log - rz)[::-1])[::-1] + rz))
    inside = float(np.sum(np.maximum(top[1:], top[:-1]))) * float(z[1] - z[0])
    left = -np.expm1(-r * (z[0] - ends[0])) * top[0] / r
    right = -np.expm1(-r * (ends[1] - z[-1])) * top[-1] / r
    return inside + float(left + right)


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Cells of the prior: edges, masses, and the oscillation of the density within each."""

    edges: FloatArray
    mass: FloatArray
    wobble: FloatArray
    density: FloatArray

    @property
    def width(self) -> FloatArray:
        return np.diff(self.edges)

    @property
    def middle(self) -> FloatArray:
        return np.asarray((self.edges[1:] + self.edges[:-1]) / 2)


def solve_continuous(
    mechanism: Any, prior: Prior, eta: float, game: Game, finite: Finite
) -> Solution:
    """`game` has the numbers of the continuous one; `finite` solves a finite question."""
    assert prior.continuous_on is not None
    low, high = prior.continuous_on[1:]
    smooth = smoothness(mechanism, low, high)
    mechanism.reads([low, high])
    if game.membership:
        return _labelled(_everything(prior, smooth, game, finite))
    if eta == 0 or eta >= high - low:
        certain = 0.0 if eta == 0 else 1.0  # no guess can be right, or no guess can be wrong
        return Solution(rad=0.0, success_out=certain, rero=certain, method=_NOTHING)
    if 5 * (high - low) / (2 * eta) > MAX_CELLS:
        raise DpradError(
            f"eta = {eta:g} is too small relative to [{low:g}, {high:g}] for quadrature. The extra "
            f"risk is at most {min(1.0, game.p_plus * smooth.peak):.6g} (the heaviest window times "
            "the integral of the largest density)."
        )
    cells, pairs, (moved, slid) = _windows(prior, eta, smooth)
    unique = np.unique(np.stack(pairs, axis=1), axis=0)
    unique = unique[unique[:, 0] < unique[:, 1]]
    nowhere = np.zeros(len(unique), dtype=np.intp)
    sets = Windows.of(unique[:, 0], unique[:, 1], nowhere, cells.mass, nowhere)
    table = game.over(cells.mass, np.zeros(len(cells.mass), dtype=np.intp), sets)
    solution = finite(Posed(table, cells.middle))
    inner = solution.interval or (solution.rad, solution.rad)
    around = (max(0.0, inner[0] - moved - ROUNDING), inner[1] + moved + slid + ROUNDING)
    return _labelled(replace(solution, interval=around))


def _labelled(solution: Solution) -> Solution:
    """Exact, an estimate if the finite game was one, or only a bound if cells ran out."""
    assert solution.interval is not None
    if solution.kind == "estimate":
        return replace(solution, method=f"{solution.method}, over cells of the prior")
    if solution.interval[1] - solution.interval[0] > ACCEPTED:
        return replace(solution, rad=solution.interval[1], kind="upper-bound", method=_METHOD)
    return replace(solution, method=_METHOD)


def _everything(prior: Prior, smooth: Smoothness, game: Game, finite: Finite) -> Solution:
    """Membership: middles from below, ends of cells from above."""
    assert prior.continuous_on is not None
    low, high = prior.continuous_on[1:]
    edges: FloatArray = np.linspace(low, high, CELLS + 1)
    while True:
        cells = _measure(prior, edges)
        owed = _moved(cells, smooth)
        if float(owed.sum()) <= TOLERANCE or 2 * len(edges) > MAX_CELLS:
            break
        edges = _halved(edges, owed)

    def solved(values: FloatArray, pi: FloatArray) -> Solution:
        every = np.arange(len(pi))
        sets = Singletons.of(every, every, pi, every)
        return finite(Posed(game.over(pi, every, sets), values))

    below = solved(cells.middle, cells.mass)
    share = cells.mass / 2
    above = solved(cells.edges, np.r_[share, 0.0] + np.r_[0.0, share])
    error = float(owed.sum())
    lowest = (below.interval or (below.rad, below.rad))[0] - error
    highest = (above.interval or (above.rad, above.rad))[1] + 2 * error
    rad = min(max((below.rad + above.rad) / 2, lowest), highest)
    return replace(below, rad=rad, interval=(max(0.0, lowest - ROUNDING), highest + ROUNDING))


def _windows(
    prior: Prior, eta: float, smooth: Smoothness
) -> tuple[_Cells, tuple[IntArray, IntArray], tuple[float, float]]:
    """Cells whose edges are closed under shifts by a window, the windows, and the two errors."""
    assert prior.continuous_on is not None
    low, high = prior.continuous_on[1:]
    span, length = high - low, min(2 * eta, high - low)
    wanted = np.array([eta, span, span - eta])
    base = np.r_[0.0, wanted[wanted < length] if length == span else wanted % length]
    base = np.unique(np.r_[base, np.linspace(0.0, length, int(CELLS * length / span) + 3)[:-1]])
    while True:
        copies = np.arange(int(np.ceil(span / length)) + 1)
        edges = (low + copies[:, None] * length + base).reshape(-1)
        edges = np.r_[edges[edges < high], high]
        cells = _measure(prior, edges)
        moved = _moved(cells, smooth)
        slid, pairs = _slid(cells, eta, len(base), smooth)
        error = float(moved.sum()), float(slid.max(axis=1).sum())
        owed = np.maximum(moved * len(moved), slid.sum(axis=0))
        orbit = np.zeros(len(base))
        np.maximum.at(orbit, np.arange(len(owed)) % len(base), owed)
        # halve the orbits with the largest error, unless floats run out of digits
        middle = (base + np.r_[base[1:], length]) / 2
        fresh = middle[(orbit > max(TOLERANCE / 4, orbit.max() / 8)) & (middle > base)]
        room = len(edges) + len(fresh) * len(copies) <= MAX_CELLS
        if sum(error) <= TOLERANCE or not len(fresh) or not room:
            return cells, pairs, error
        base = np.unique(np.r_[base, fresh])


def _measure(prior: Prior, edges: FloatArray) -> _Cells:
    """Masses and oscillation of the density: read at five points, checked against the masses.

    Between two points the density is assumed to be monotone, so its mean lies between their values.
    If it does not, the density varies in between, and its oscillation is unknown.
    """
    assert prior.continuous_on is not None
    distribution = prior.continuous_on[0]
    share = np.linspace(0.0, 1.0, POINTS)[:-1]
    points = (edges[:-1, None] + np.diff(edges)[:, None] * share).reshape(-1)
    points = np.maximum.accumulate(np.r_[points, edges[-1]])
    masses = prior.cells(points)
    masses /= float(masses.sum())
    with np.errstate(all="ignore"):
        density = np.asarray(distribution.pdf(points), dtype=float) * _scale(prior)
        density = np.where(np.isnan(density), np.inf, density)
        low, high = (f(density[:-1], density[1:]) for f in (np.minimum, np.maximum))
        mean = masses / np.diff(points)
        slack = 1e-6 * mean + 1e-12
        honest = (mean >= low - slack) & (mean <= high + slack)
        high = np.where(honest | (masses <= 0), high, np.inf)
        cell = (len(edges) - 1, POINTS - 1)
        low, high = low.reshape(cell).min(axis=1), high.reshape(cell).max(axis=1)
        wobble = np.where(np.isinf(high), np.inf, high - low)
    return _Cells(edges, masses.reshape(cell).sum(axis=1), wobble, high)


def _scale(prior: Prior) -> float:
    """How much larger the density is than that of the distribution before truncation."""
    assert prior.continuous_on is not None
    distribution, low, high = prior.continuous_on
    middle = np.array([low, high])
    whole = np.diff(np.asarray(distribution.cdf(middle), dtype=float))
    if hasattr(distribution, "sf"):
        whole = np.maximum(whole, -np.diff(np.asarray(distribution.sf(middle), dtype=float)))
    return float(1.0 / whole[0])


def _moved(cells: _Cells, smooth: Smoothness) -> FloatArray:
    """Error 1, cell by cell."""
    w, mass = cells.width, cells.mass
    v, c = (
        np.maximum(f(cells.edges[:-1]), f(cells.edges[1:]))
        for f in (smooth.variation, smooth.curvature)
    )
    with np.errstate(invalid="ignore"):
        second = (mass * c + v * cells.wobble) * w * w / 8
    return np.fmin(second, mass * v * w / 2)


def _slid(
    cells: _Cells, eta: float, period: int, smooth: Smoothness
) -> tuple[FloatArray, tuple[IntArray, IntArray]]:
    """Error 2 by cell, separated into multiples of the peak and of the slope; and all windows of
    cells.

    `period` cells further on is one window length further on.
    """
    edges, w, mass, count = cells.edges, cells.width, cells.mass, len(cells.mass)

    def nearest(x: float) -> int:
        return int(np.argmin(np.abs(edges - x)))

    low, high = edges[0], edges[-1]
    start = np.arange(max(0, count - period) + 1)
    grows = np.arange(nearest(low + eta), nearest(min(low + 2 * eta, high)) + 1)
    shrinks = np.arange(nearest(max(high - 2 * eta, low)), nearest(high - eta) + 1)
    windows = (
        np.r_[start, np.zeros(len(grows), dtype=np.intp), shrinks],
        np.r_[np.minimum(start + period, count), grows, np.full(len(shrinks), count)],
    )
    owed = np.zeros((2, count))
    # windows cut off at an end: one cell enters or leaves, and only its sign can change
    for part in (grows[:-1], shrinks[:-1]):
        owed[1, part] = (mass * w)[part] * smooth.slope
    own, other = start[:-1], np.minimum(start[:-1] + period, count - 1)
    a, b, width = mass[own], mass[other], w[own]
    with np.errstate(invalid="ignore"):
        choices = (
            np.array(
                [
                    [
                        width / 4 * (cells.wobble[own] + cells.wobble[other]),
                        width**2 / 4 * (cells.density[own] + cells.density[other]),
                    ],
                    [2 * a, b * width],
                    [2 * b, a * width],
                ]
            )
            * np.array([smooth.peak, smooth.slope])[:, None]
        )
        total = choices.sum(axis=1)
    best = np.argmin(np.where(np.isnan(total), np.inf, total), axis=0)
    owed[:, own] = np.maximum(owed[:, own], choices[best, :, np.arange(len(own))].T)
    return owed, windows


def _halved(edges: FloatArray, owed: FloatArray) -> FloatArray:
    split = owed >= owed.max() / 8
    middle = ((edges[1:] + edges[:-1]) / 2)[split]
    return np.unique(np.r_[edges, middle])
