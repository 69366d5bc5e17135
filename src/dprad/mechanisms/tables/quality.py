"""How useful a published table is: the noise of a cell, and how often it exceeds what is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprad.errors import whole
from dprad.mechanisms.tables.noise import Noise
from dprad.mechanisms.tables.table import Table
from dprad.model.priors import Prior
from dprad.numerics.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Quality:
    """One table: `typical` is the mean size of the noise of a cell, `error` what it stays within in
    95 of 100 cells, and `swamped` the expected share of cells with somebody in them whose noise
    exceeds the number itself; None if the number of people is not known.
    """

    title: str
    typical: float
    error: float
    swamped: float | None


def quality(
    tables: Sequence[Table], noises: Sequence[Noise], prior: Prior, people: int | None
) -> tuple[Quality, ...]:
    """For every table, as if `people` were spread as in the prior. O(m) per table."""
    count = prior.rows if people is None else whole(people, "people", low=1)
    rows = []
    for table, noise in zip(tables, noises, strict=True):
        if noise.silent:
            rows.append(Quality(_title(table), np.inf, np.inf, None if count is None else 1.0))
            continue
        cell, cells = table.cells(prior)
        inside = cell >= 0
        mass = prior.table[inside]
        value = table.values(prior, noise.whole)[inside]
        total = np.bincount(cell[inside], weights=mass * value, minlength=cells)
        filled = np.bincount(cell[inside], weights=mass, minlength=cells) > 0
        share = None
        if count is not None and np.any(filled):
            share = float(_beyond(noise, np.abs(count * total[filled])).mean())
        line = noise.line()
        rows.append(Quality(_title(table), _typical(noise), line.error(0.95), share))
    return tuple(rows)


def _title(table: Table) -> str:
    """What the table is about."""
    if table.edges is not None:
        return f"{table.of}, in bins"
    what = "count" if table.clamp is None else f"sum of {table.of}"
    return f"{what} by {', '.join(table.by)}" if table.by else what


def _sizes(noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Sizes 0, 1, ... of discrete Gaussian noise, and their probabilities."""
    p = np.asarray(noise.line().probabilities())
    middle = len(p) // 2
    size = p[middle:].copy()
    size[1:] *= 2
    return np.arange(len(size), dtype=float), size


def _typical(noise: Noise) -> float:
    """The mean size."""
    if noise.kind == "laplace":
        return noise.scale
    if noise.kind == "gaussian":
        return noise.scale * float(np.sqrt(2 / np.pi))
    if noise.kind == "geometric":
        return float(1.0 / np.sinh(1.0 / noise.scale))
    size, p = _sizes(noise)
    return float(size @ p)


def _beyond(noise: Noise, size: FloatArray) -> FloatArray:
    """The chance that the noise is larger than this."""
    if noise.kind == "laplace":
        return np.asarray(np.exp(-size / noise.scale))
    if noise.kind == "gaussian":
        from scipy.special import erfc

        return np.asarray(erfc(size / noise.scale / np.sqrt(2.0)))
    # a count is a whole number, up to rounding
    size = np.floor(size + 1e-6)
    if noise.kind == "geometric":
        return np.asarray(2 * np.exp(-(size + 1) / noise.scale) / (1 + np.exp(-1 / noise.scale)))
    upto = np.cumsum(_sizes(noise)[1])
    return np.asarray(np.maximum(1.0 - upto[np.minimum(size, len(upto) - 1).astype(np.intp)], 0.0))
