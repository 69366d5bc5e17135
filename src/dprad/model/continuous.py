"""Continuous distributions: their range, their masses, and atoms, of which there must be none.

An atom is a single value with positive probability. A continuous prior has only densities; the
mass of an atom would be lost, and the risk with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.errors import DpradError, number
from dprad.numerics.arrays import FloatArray

# Cells searched for atoms, cells kept, parts that each is cut into, and the smallest atom. Below:
# where the density of a cell is read.
ATOM_CELLS, ATOM_KEPT, ATOM_PARTS, ATOM_LEAST = 4096, 32, 16, 1e-9
ATOM_NODES = np.array([0.125, 0.375, 0.625, 0.875])


def find_atom(distribution: Any, low: float, high: float) -> float | None:
    """A single value with positive probability, if there is one.

    Cells that hold more than their density explains are cut repeatedly. In windows of 1e-7, 3e-10
    and 1e-12 of the range around what is left, a density has masses m with m1 m3 = m2^2 (so has a
    pole); any excess is an atom.
    """
    span = high - low
    width = span / ATOM_CELLS
    left = low + width * np.arange(ATOM_CELLS)
    while True:
        with np.errstate(all="ignore"):
            dense = np.asarray(distribution.pdf(left[:, None] + width * ATOM_NODES), dtype=float)
        explained = width * np.where(np.isfinite(dense), dense, 0.0).mean(axis=1)
        excess = _window(distribution, left + width / 2, width * (0.5 + 1e-6)) - explained
        left = left[np.argsort(-excess, kind="stable")[:ATOM_KEPT]]
        if width <= 1e-14 * span:
            break
        width /= ATOM_PARTS
        left = (left[:, None] + width * np.arange(ATOM_PARTS)).reshape(-1)
    for place in (*left, low, high):
        # a pole must be hit exactly, so a special point nearby is tried as well
        near = [x for x in (low, 0.0, high) if abs(place - x) <= 1e-12 * span]
        share = float(_besides(distribution, np.array([place, *near]), span).min())
        if share > 0 and _jump(distribution, place, span) >= share / 2:
            return float(place)
    return None


def _besides(distribution: Any, place: FloatArray, span: float) -> FloatArray:
    """The atom at each place, or 0 if it is too small to be told from a density."""
    one, two, three = (_window(distribution, place, h * span) for h in (1e-7, 10**-9.5, 1e-12))
    with np.errstate(all="ignore"):
        bend = one + three - 2 * two
        rest = np.where(bend <= 1e-12 * one, three, (one * three - two**2) / bend)
    return np.where(rest > np.maximum(ATOM_LEAST, 0.02 * one), rest, 0.0)


def _jump(distribution: Any, place: float, span: float) -> float:
    """The mass left between two neighbouring floats; almost none for a narrow spike."""
    reach = 1e-12 * span + 4 * float(np.spacing(abs(place)))
    low, high = place - reach, place + reach
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return float(distribution.cdf(high) - distribution.cdf(low))
        below = float(distribution.cdf(middle) - distribution.cdf(low))
        above = float(distribution.cdf(high) - distribution.cdf(middle))
        low, high = (low, middle) if below > above else (middle, high)


def _window(distribution: Any, centre: FloatArray, half: Any) -> FloatArray:
    """Mass within this distance of each centre, plus a few floats."""
    half = half + 4 * np.spacing(np.abs(centre))
    below = np.asarray(distribution.cdf(np.stack([centre - half, centre + half])), dtype=float)
    return np.asarray(np.maximum(below[1] - below[0], 0.0))


def between(distribution: Any, edges: FloatArray) -> FloatArray:
    """Mass between ascending edges, computed in the smaller tail to avoid cancellation."""
    below = np.asarray(distribution.cdf(edges), dtype=float)
    if not hasattr(distribution, "sf"):
        return np.maximum(np.diff(below), 0.0)
    above = np.asarray(distribution.sf(edges), dtype=float)
    return np.maximum(np.where(below[:-1] < 0.5, np.diff(below), -np.diff(above)), 0.0)


def continuous_range(distribution: Any, low: float, high: float) -> tuple[float, float]:
    """The ends of the range, if this is a continuous distribution with mass on it."""
    a, b = number(low, "low"), number(high, "high")
    if not a < b:
        raise DpradError(f"high must be greater than low, but is {high!r} with low = {low!r}.")
    if not (hasattr(distribution, "cdf") and hasattr(distribution, "pdf")):
        raise DpradError(
            "distribution must be a continuous frozen scipy distribution such as "
            f"scipy.stats.uniform(), but is a {type(distribution).__name__}. For a discrete "
            "one use Prior.from_counts."
        )
    mass = float(between(distribution, np.array([a, b]))[0])
    if not mass > 0:
        raise DpradError(
            f"distribution must have mass on [low, high], but has {mass!r} on [{a:g}, {b:g}]."
        )
    atom = find_atom(distribution, a, b)
    if atom is not None:
        raise DpradError(
            "distribution must be continuous, but has positive probability at "
            f"{atom:.6g}. Give a table of values: Prior.from_counts or Prior.from_data."
        )
    return a, b
