"""Laplace noise truncated to bounds and renormalised (Holohan et al. 2020).

A count is never negative, a share never exceeds one, and no mass piles up at the ends as it does
with a clamp. The density is proportional to ``exp(-|z - o|/b)`` within `bounds`. Renormalising
costs privacy: the ratio of two records z and z' is largest if one is at an end and the other the
sensitivity d away (log C is concave, and falls no faster than the noise),

    e^{d/b} C(z')/C(z),   C(z) = 1 - (e^{-(z - low)/b} + e^{-(high - z)/b})/2,

so b is chosen as the least scale that keeps epsilon: larger than d/epsilon, unless d is the whole
range, where C is the same at both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, interval, number
from dprad.mechanisms.base import Card
from dprad.mechanisms.exponential import CutLaplace
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON, SENSITIVITY
from dprad.numerics.arrays import FloatArray
from dprad.numerics.bisection import last


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLaplace(CutLaplace):
    """Laplace noise whose outputs stay within `bounds`.

    Parameters
    ----------
    epsilon
        The promise, for records that differ by at most the sensitivity.
    bounds
        Interval (low, high) that contains all records and all outputs.
    sensitivity
        How far one record can move the number; default: the length of the bounds.

    Examples
    --------
    >>> noise = BoundedLaplace(epsilon=1.0, bounds=(0, 100), sensitivity=1.0)
    >>> round(1 / noise.rate, 3)          # a scale of 1 would not keep the promise
    1.613

    """

    epsilon: float
    bounds: tuple[float, float] = (0.0, 1.0)
    sensitivity: float | None = None

    card: ClassVar = Card(
        name="bounded-laplace",
        title="Laplace noise within bounds",
        takes=(EPSILON, SENSITIVITY),
        reads="range",
    )
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon", low=0))
        low, high = interval(self.bounds, "bounds")
        object.__setattr__(self, "bounds", (low, high))
        given = high - low if self.sensitivity is None else self.sensitivity
        step = number(given, "sensitivity", low=0)
        if not 0 < step <= (high - low) * (1 + 1e-12):
            raise DpradError(
                "sensitivity must be positive and at most the length of the bounds, but is "
                f"{step!r}."
            )
        object.__setattr__(self, "sensitivity", min(step, high - low))

    @property
    def _step(self) -> float:
        return self.bounds[1] - self.bounds[0] if self.sensitivity is None else self.sensitivity

    @property
    def rate(self) -> float:
        """1/b, rounded down: the largest rate whose ratio is at most e^epsilon."""
        return last(lambda r: self._ratio(r) <= self.epsilon, 0.0, self.epsilon / self._step)

    def _ratio(self, rate: float) -> float:
        """Log of the largest ratio of densities at this rate: records at the end and d away."""
        length, step = self.bounds[1] - self.bounds[0], self._step
        if rate == 0:
            return 0.0
        # totals in units of 1/rate: of a record at the end, and of one a step away from it
        end = -np.expm1(-rate * length)
        away = -np.expm1(-rate * step) - np.expm1(-rate * (length - step))
        return float(rate * step + np.log(away) - np.log(end))

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for records that differ by at most the sensitivity."""
        return PureDP(self.epsilon, neighbours=REPLACE_ONE)

    def reads(self, values: Any) -> FloatArray:
        """The numbers it is run on, or a `DpradError`."""
        numbers = super(BoundedLaplace, self).reads(values)
        if float(np.ptp(numbers)) > self._step * (1 + 1e-12):
            raise DpradError(
                f"BoundedLaplace has sensitivity {self._step:g}, but records differ by more. The "
                "sensitivity must cover the whole range of values."
            )
        return numbers

    def spread(self, count: int) -> list[Any]:
        """Numbers starting at the lower bound that differ by at most the sensitivity."""
        low = self.bounds[0]
        return [float(v) for v in np.linspace(low, low + self._step, count)]
