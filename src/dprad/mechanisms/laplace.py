"""Laplace and geometric noise on a number.

Laplace: density ``exp(-|t|/b)/(2b)``, b = sensitivity/epsilon. Geometric: whole numbers with
probability proportional to ``exp(-|k|/b)``. With `clamp` the output is clipped to an interval. If
all records lie in it, an attacker learns neither more nor less, since all outputs beyond the
outermost record carry the same information.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import number
from dprad.mechanisms.additive import Additive, WholeNoise
from dprad.mechanisms.base import Card, quotient
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import CLAMP, EPSILON, SENSITIVITY, Goal
from dprad.numerics.arrays import FloatArray


class _Exponential(Additive):
    """Common to both: the promise, and the rate at which the density falls."""

    __slots__ = ()
    epsilon: float
    noise: ClassVar = EPSILON

    @property
    def rate(self) -> float:
        """1/b; 0 at epsilon 0, where the noise is infinite."""
        return self.epsilon / self.sensitivity

    def scaled(self, values: FloatArray) -> FloatArray:
        """Values relative to the smallest, in units of the noise."""
        return np.asarray((values - values.min()) / self.sensitivity * self.epsilon)

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for records that differ by at most the sensitivity."""
        return PureDP(self.epsilon, neighbours=REPLACE_ONE)

    @classmethod
    def first_guess(cls, goal: Goal) -> float:
        """The closed form for equally likely values at equal distances."""
        return -2.0 * max(goal.values - 1, 1) * float(np.log1p(-goal.share))


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(_Exponential):
    """Laplace noise of scale sensitivity/epsilon.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    sensitivity
        How far one record can move the number.
    clamp
        Interval (low, high) to which outputs are clipped; default: none.

    Examples
    --------
    >>> round(Laplace(epsilon=2.0, sensitivity=1.0).error(0.95), 6)     # ln(20)/2
    1.497866

    """

    epsilon: float
    sensitivity: float = 1.0
    clamp: tuple[float, float] | None = None

    card: ClassVar = Card(
        name="laplace",
        title="Laplace noise",
        takes=(EPSILON, SENSITIVITY, CLAMP),
        reads="numbers",
        cost="line",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon", low=0))
        self._check()

    def error(self, confidence: float = 0.95) -> float:
        """The noise stays within this with the given probability."""
        level = number(confidence, "confidence", low=0, high=1)
        with np.errstate(divide="ignore"):
            reach = float(-np.log1p(-level) / self.rate) if self.rate else float("inf")
        return self._within(reach)

    def variance(self, people: int = 1) -> float:
        """Variance of the mean of `people` reports, 2 b^2 for one (before any clamp)."""
        return quotient(2.0 / self.rate, self.rate * people) if self.rate else float("inf")

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record. O(n)."""
        values = np.asarray(records, dtype=float)
        if self.rate == 0:
            noise = np.where(rng.random(values.shape) < 0.5, -np.inf, np.inf)
            return self._clip(noise)
        return self._clip(values + rng.laplace(0.0, 1.0 / self.rate, values.shape))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-density inside, log-probability of the atoms at the clamps."""
        t, v = np.broadcast_arrays(np.asarray(outputs, float), np.asarray(records, float))
        if self.rate == 0:
            return np.full(t.shape, -np.log(2.0))
        inside = np.log(self.rate / 2) - self.rate * np.abs(t - v)
        if self.clamp is None:
            return np.asarray(inside)
        low, high = self.clamp
        left, right = -np.log(2.0) - self.rate * (v - low), -np.log(2.0) - self.rate * (high - v)
        return np.asarray(np.where(t <= low, left, np.where(t >= high, right, inside)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometric(_Exponential, WholeNoise):
    """Two-sided geometric noise: Laplace for whole numbers.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    sensitivity
        How far one record can move the number.
    clamp
        Interval (low, high) to which outputs are clipped; default: none.

    Examples
    --------
    >>> import math
    >>> round(Geometric(epsilon=math.log(2)).log_likelihood(0, 0).item(), 6)     # ln(1/3)
    -1.098612

    """

    epsilon: float
    sensitivity: float = 1.0
    clamp: tuple[float, float] | None = None

    card: ClassVar = Card(
        name="geometric",
        title="geometric noise",
        takes=(EPSILON, SENSITIVITY, CLAMP),
        reads="numbers",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon", low=0))
        self._check()

    @property
    def silent(self) -> bool:
        """At epsilon 0."""
        return self.rate == 0

    @property
    def ratio(self) -> float:
        """Probability of k + 1 over that of k >= 0."""
        return float(np.exp(-self.rate))

    def error(self, confidence: float = 0.95) -> float:
        """The noise stays within this whole number with at least the given probability."""
        level = number(confidence, "confidence", low=0, high=1)
        if self.rate == 0:
            return self._within(float("inf"))
        # Pr[|k| > x] = 2 ratio^(x+1)/(1 + ratio)
        with np.errstate(divide="ignore"):
            tail = (np.log1p(-level) + np.log1p(self.ratio) - np.log(2.0)) / -self.rate
        return self._within(float(max(0.0, np.ceil(tail - 1.0 - 1e-12))))

    def variance(self, people: int = 1) -> float:
        """Variance of the mean of `people` reports, 2 r/(1-r)^2 for one (before any clamp)."""
        return quotient(2.0 * self.ratio, people * float(np.expm1(-self.rate)) ** 2)

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record: the difference of two geometric numbers. O(n)."""
        values = np.asarray(records, dtype=float)
        if self.rate == 0:
            noise = np.where(rng.random(values.shape) < 0.5, -np.inf, np.inf)
            return self._clip(noise)
        stop = -np.expm1(-self.rate)
        noise = rng.geometric(stop, values.shape) - rng.geometric(stop, values.shape)
        return self._clip(values + noise)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability; at a clamp, that of all outputs beyond it."""
        t, v = np.broadcast_arrays(np.asarray(outputs, float), np.asarray(records, float))
        if self.rate == 0:
            return np.full(t.shape, -np.log(2.0))
        inside = np.log(-np.expm1(-self.rate)) - np.log1p(self.ratio) - self.rate * np.abs(t - v)
        if self.clamp is None:
            return np.asarray(inside)
        low, high = self.clamp
        beyond = -np.log1p(self.ratio)
        left, right = beyond - self.rate * (v - low), beyond - self.rate * (high - v)
        return np.asarray(np.where(t <= low, left, np.where(t >= high, right, inside)))
