"""Density: a mechanism on the real line, given by its log-density.

It is resolved on panels: a panel is halved until the density of every record is a polynomial to all
digits. The integral of each density must be one; this detects both densities that are not
normalised and spikes too narrow for the panels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, interval, number, record
from dprad.game.question import Question
from dprad.mechanisms.additive import numbers_read
from dprad.mechanisms.base import Mechanism
from dprad.model.guarantees import Guarantee
from dprad.numerics import legendre
from dprad.numerics.arrays import Column, FloatArray
from dprad.runtime.memory import need

# Initial number of panels.
PANELS = 64
# A panel is resolved when the last terms of its series, and what it misses at points between the
# nodes and next to the ends, stay below this share of probability.
RESOLVED = 1e-12
CHECKS = np.array([-1.0 + 1e-9, -0.97, -0.052, 0.31, 0.94, 1.0 - 1e-9])
_CHECKED = np.polynomial.legendre.legvander(CHECKS, legendre.TERMS - 1)
# Most series (records times panels) held in memory (96 bytes each).
MAX_SERIES = 5_000_000
# Copies of these held at once.
COPIES = 6
# Halvings, after which a jump is as narrow as a float can tell.
ROUNDS = 50
# How far the integral of a density may be from one.
NORMALISED = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Panels:
    """Densities of records as series on panels: `series` is records x panels x terms.

    `error` is not a proven bound: it is estimated from the last terms.
    """

    centre: FloatArray
    half: FloatArray
    series: FloatArray
    error: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Density(Mechanism):
    """Outputs in `bounds` with a given log-density.

    Parameters
    ----------
    log_density
        ``log_density(outputs, records)``, vectorised: both arguments broadcast, as in numpy.
    bounds
        The interval that contains all outputs, wide enough to hold all probability.
    kinks
        Outputs at which densities may have breaks, besides the records themselves. Other breaks are
        found, at some cost.
    guarantee
        The promise, if known; it is not derived.

    Examples
    --------
    >>> import numpy as np
    >>> logistic = Density(
    ...     log_density=lambda t, z: -np.abs(t - z) - 2 * np.log1p(np.exp(-np.abs(t - z))),
    ...     bounds=(-60, 60))
    >>> round(float(logistic.integral(0.0)), 12)
    1.0

    """

    log_density: Callable[[Any, Any], Any]
    bounds: tuple[float, float]
    kinks: Sequence[float] = ()
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        if not callable(self.log_density):
            raise DpradError(
                "log_density must be a function of outputs and records, but is a "
                f"{type(self.log_density).__name__}."
            )
        object.__setattr__(self, "bounds", interval(self.bounds, "bounds"))
        try:
            kinks = tuple(number(k, "kinks") for k in self.kinks)
        except TypeError:
            raise DpradError(f"kinks must be a list of numbers, but is {self.kinks!r}.") from None
        object.__setattr__(self, "kinks", kinks)

    def reads(self, values: Any) -> FloatArray:
        """The numbers it is run on; refused if a density does not integrate to one."""
        numbers = numbers_read(values, "Density")
        self.panels(np.unique(numbers))
        return numbers

    def read(self, question: Question) -> Column:
        """The numbers of the column that is read."""
        return self.reads(question.numerical(type(self).__name__))

    def spread(self, count: int) -> list[Any]:
        """Numbers within the bounds."""
        return [float(v) for v in np.linspace(*self.bounds, count)]

    def integral(self, record: float) -> float:
        """The integral of the density over the bounds.

        Parameters
        ----------
        record
            A number.

        Returns
        -------
        float
            One, up to rounding.

        Examples
        --------
        >>> import numpy as np
        >>> logistic = Density(
        ...     log_density=lambda t, z: -np.abs(t - z) - 2 * np.log1p(np.exp(-np.abs(t - z))),
        ...     bounds=(-60, 60))
        >>> round(float(logistic.integral(1.0)), 12)
        1.0

        """
        return float(_integrals(self._resolve(np.array([number(record, "record")])))[0])

    def panels(self, records: FloatArray) -> Panels:
        """The resolved densities of these records; a `DpradError` if one is not normalised.

        Parameters
        ----------
        records
            Numbers.

        Returns
        -------
        Panels
            Centres, half widths, series and errors.

        Examples
        --------
        >>> import numpy as np
        >>> logistic = Density(
        ...     log_density=lambda t, z: -np.abs(t - z) - 2 * np.log1p(np.exp(-np.abs(t - z))),
        ...     bounds=(-60, 60))
        >>> logistic.panels(np.array([0.0, 1.0])).series.shape[0]
        2

        """
        resolved = self._resolve(records)
        total = _integrals(resolved)
        bad = np.flatnonzero(~(np.abs(total - 1.0) <= NORMALISED))
        if len(bad):
            low, high = self.bounds
            raise DpradError(
                f"log_density must integrate to 1 over [{low:g}, {high:g}], but for record "
                f"{record(float(records[bad[0]]), int(bad[0]) + 1)} its integral is "
                f"{total[bad[0]]:.6g}. The bounds must hold all outputs of every record."
            )
        return resolved

    def _resolve(self, records: FloatArray) -> Panels:
        """O(m p) evaluations for p final panels."""
        low, high = self.bounds
        breaks = np.r_[records, self.kinks]
        edges = np.unique(np.r_[np.linspace(low, high, PANELS + 1), breaks])
        edges = edges[(edges >= low) & (edges <= high)]
        left, right = edges[:-1], edges[1:]
        done: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = []
        for rounds in range(ROUNDS + 1):
            centre, half = (left + right) / 2, (right - left) / 2
            held = len(records) * (len(centre) + sum(len(d[0]) for d in done))
            if held > MAX_SERIES:
                raise DpradError(
                    "log_density has too many breaks for the panels to resolve. Give their places "
                    "with kinks=, or give the mechanism as a Channel."
                )
            need(
                COPIES * 8 * legendre.TERMS * held,
                f"The density of {len(records):,} values on {held // len(records):,} panels",
                "Choose coarser values, or give the mechanism as a Channel.",
            )
            terms = legendre.series(self._values(legendre.nodes(centre, half), records))
            # nodes stop short of the ends: check the series there and in between
            checks = centre[:, None] + half[:, None] * CHECKS
            truth = self._values(checks, records)
            off = np.abs(np.einsum("rpk,ck->rpc", terms, _CHECKED) - truth).max(axis=-1)
            last = np.abs(terms[..., -2:]).sum(axis=-1)
            doubt = 4 * half * (last + off)
            fine = (doubt <= RESOLVED).all(axis=0)
            error = doubt.max(axis=0)
            if rounds == ROUNDS:
                # a jump: all variation within a panel is in doubt
                vary = np.abs(terms[..., 1:]).sum(axis=-1) + off
                error = np.where(fine, error, 2 * (half * vary).max(axis=0))
                fine[:] = True
            done.append((centre[fine], half[fine], terms[:, fine], error[fine]))
            left, middle, right = left[~fine], centre[~fine], right[~fine]
            if not len(left):
                break
            left, right = np.r_[left, middle], np.r_[middle, right]
        centre, half, error = (np.concatenate([d[i] for d in done]) for i in (0, 1, 3))
        order = np.argsort(centre)
        terms = np.concatenate([d[2] for d in done], axis=1)[:, order]
        return Panels(centre[order], half[order], terms, error[order])

    def _values(self, outputs: FloatArray, records: FloatArray) -> FloatArray:
        """Densities, records x the shape of outputs."""
        with np.errstate(all="ignore"):
            log = self.log_density(outputs[None], records[:, None, None])
        try:
            log = np.asarray(log, dtype=float)
        except (TypeError, ValueError):
            raise DpradError("log_density must return numbers.") from None
        try:
            log = np.broadcast_to(log, (len(records), *outputs.shape))
        except ValueError:
            raise DpradError(
                "log_density must broadcast over outputs and records, but returned shape "
                f"{log.shape} for {outputs.shape} outputs and {len(records)} records."
            ) from None
        if np.isnan(log).any() or (log == np.inf).any():
            raise DpradError(
                "log_density must return numbers below infinity, but returned NaN or infinity."
            )
        return np.asarray(np.exp(log))

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record: a panel by its mass, then rejection within it."""
        values = np.asarray(records, dtype=float)
        result = np.empty(values.size)
        flat = values.reshape(-1)
        for value in np.unique(flat):
            here = np.flatnonzero(flat == value)
            panels = self.panels(np.array([value]))
            mass = np.maximum(panels.series[0, :, 0], 0.0) * panels.half
            at = rng.choice(len(mass), size=len(here), p=mass / mass.sum())
            top = np.abs(panels.series[0]).sum(axis=-1)[at]
            todo = np.arange(len(here))
            while len(todo):
                x = rng.uniform(-1.0, 1.0, len(todo))
                height = legendre.evaluate(panels.series[0][at[todo]], x)
                kept = rng.random(len(todo)) * top[todo] < height
                result[here[todo[kept]]] = panels.centre[at[todo[kept]]] + (
                    x[kept] * panels.half[at[todo[kept]]]
                )
                todo = todo[~kept]
        return result.reshape(values.shape)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """The given function; minus infinity outside of the bounds."""
        t, z = np.broadcast_arrays(np.asarray(outputs, float), np.asarray(records, float))
        low, high = self.bounds
        with np.errstate(all="ignore"):
            log = np.broadcast_to(np.asarray(self.log_density(t, z), dtype=float), t.shape)
        return np.where((t < low) | (t > high), -np.inf, log)

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {"kind": "Density", "bounds": list(self.bounds)}


def _integrals(panels: Panels) -> FloatArray:
    return np.asarray(2 * panels.series[..., 0] @ panels.half)
