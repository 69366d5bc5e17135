"""Gaussian noise on a number, and its whole-number form.

A value that moves by at most the sensitivity under noise of standard deviation sigma is
(sensitivity/sigma)-Gaussian DP. The discrete Gaussian puts probability proportional to
``exp(-k^2/(2 sigma^2))`` on whole numbers k; its promise is its exact profile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number
from dprad.mechanisms.additive import Additive, WholeNoise
from dprad.mechanisms.base import Card, quotient
from dprad.model.guarantees import REPLACE_ONE, GaussianDP, Profile, PureDP
from dprad.model.parameters import CLAMP, SENSITIVITY, SIGMA, Goal
from dprad.numerics.arrays import FloatArray

# Beyond this many standard deviations, probabilities of a discrete Gaussian underflow.
REACH = 39.0
# The largest sigma of a discrete Gaussian: its table has 78 entries per unit of sigma.
MAX_SIGMA = 1e5
# Range of the outputs of a discrete Gaussian that matter, in standard deviations.
DEVIATIONS = 9.0


class _Normal(Additive):
    """Common to both: the standard deviation of the noise."""

    __slots__ = ()
    sigma: float
    noise: ClassVar = SIGMA

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", number(self.sigma, "sigma", low=0))
        if self.sigma == 0:
            raise DpradError("sigma must be positive, but is 0: there would be no noise.")
        self._check()

    @classmethod
    def first_guess(cls, goal: Goal) -> float:
        """As if there were only two neighbours of equally likely, evenly spaced values."""
        from scipy.special import ndtri

        gap = float(goal.fixed.get("sensitivity", 1.0)) / max(goal.values - 1, 1)
        return gap / (2.0 * float(ndtri((1.0 + goal.share) / 2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(_Normal):
    """Gaussian noise of standard deviation sigma.

    Parameters
    ----------
    sigma
        Standard deviation of the noise. Larger is more private.
    sensitivity
        How far one record can move the number.
    clamp
        Interval (low, high) to which outputs are clipped; default: none.

    Examples
    --------
    >>> round(Gaussian(sigma=2.0).error(0.95), 4)     # 1.96 sigma
    3.9199

    """

    sigma: float
    sensitivity: float = 1.0
    clamp: tuple[float, float] | None = None

    card: ClassVar = Card(
        name="gaussian",
        title="Gaussian noise",
        takes=(SIGMA, SENSITIVITY, CLAMP),
        reads="numbers",
        cost="line",
    )

    @property
    def guarantee(self) -> GaussianDP:
        """Gaussian DP for records that differ by at most the sensitivity."""
        return GaussianDP(self.sensitivity / self.sigma, neighbours=REPLACE_ONE)

    def error(self, confidence: float = 0.95) -> float:
        """The noise stays within this with the given probability."""
        from scipy.special import ndtri

        level = number(confidence, "confidence", low=0, high=1)
        return self._within(float(self.sigma * ndtri((1.0 + level) / 2.0)))

    def variance(self, people: int = 1) -> float:
        """Variance of the mean of `people` reports (before any clamp)."""
        return quotient(self.sigma, people / self.sigma)

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record. O(n)."""
        values = np.asarray(records, dtype=float)
        return self._clip(values + self.sigma * rng.standard_normal(values.shape))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-density inside, log-probability of the atoms at the clamps."""
        from scipy.special import log_ndtr

        t, v = np.broadcast_arrays(np.asarray(outputs, float), np.asarray(records, float))
        with np.errstate(over="ignore"):
            x = (t - v) / self.sigma
            inside = -0.5 * x * x - np.log(self.sigma) - np.log(2 * np.pi) / 2
        if self.clamp is None:
            return np.asarray(inside)
        left, right = log_ndtr(x), log_ndtr(-x)
        low, high = self.clamp
        return np.asarray(np.where(t <= low, left, np.where(t >= high, right, inside)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(_Normal, WholeNoise):
    """Discrete Gaussian noise: whole numbers k with probability proportional to exp(-k^2/(2
    sigma^2)).

    Parameters
    ----------
    sigma
        Standard deviation of the noise. Larger is more private. At most 100,000.
    sensitivity
        How far one record can move the number.
    clamp
        Interval (low, high) to which outputs are clipped; default: none.

    Examples
    --------
    >>> import math
    >>> mechanism = DiscreteGaussian(sigma=1.0)
    >>> ratio = mechanism.log_likelihood(1, 0) - mechanism.log_likelihood(0, 0)
    >>> round(float(ratio), 12)
    -0.5

    """

    sigma: float
    sensitivity: float = 1.0
    clamp: tuple[float, float] | None = None

    card: ClassVar = Card(
        name="discrete-gaussian",
        title="discrete Gaussian noise",
        takes=(SIGMA, SENSITIVITY, CLAMP),
        reads="numbers",
    )
    highest: ClassVar[float] = MAX_SIGMA

    def __post_init__(self) -> None:
        _Normal.__post_init__(self)
        number(self.sigma, "sigma", high=MAX_SIGMA, hint="For more, use Gaussian.")

    @property
    def reach(self) -> float:
        """Beyond this there is nothing left (1e-19 of probability)."""
        return float(np.ceil(DEVIATIONS * self.sigma))

    @property
    def guarantee(self) -> Profile | PureDP:
        """The exact profile.

        The noise is log-concave, so the best test of two records is a threshold, and records that
        differ by the (whole part of the) sensitivity are the easiest to tell apart.
        """
        shift = int(self.sensitivity)
        if shift == 0:
            return PureDP(0.0, neighbours=REPLACE_ONE)
        sigma, reach = self.sigma, len(_tail(self.sigma)) // 2 - 1
        tail = _tail(sigma)

        def beyond(k: int) -> float:
            """Pr[noise >= k]."""
            return float(tail[min(max(k + reach, 0), 2 * reach + 1)])

        def delta(epsilon: float) -> float:
            # outputs from the first at which the log-ratio shift (2 k - shift)/(2 sigma^2) exceeds
            first = float(np.ceil(epsilon * sigma**2 / shift + shift / 2))
            if first - shift > reach:
                return 0.0
            k = int(first)
            # e^eps times the tail is at most the other tail, so it cannot overflow
            rest = beyond(k)
            return beyond(k - shift) - (float(np.exp(epsilon + np.log(rest))) if rest > 0 else 0.0)

        return Profile(delta, neighbours=REPLACE_ONE)

    def error(self, confidence: float = 0.95) -> float:
        """The noise stays within this whole number with at least the given probability."""
        level = number(confidence, "confidence", low=0, high=1)
        tail = _tail(self.sigma)
        reach = len(tail) // 2 - 1
        outside = 2 * tail[reach + 1 :]  # Pr[|noise| > 0, 1, ...]
        return self._within(float(np.argmax(outside <= (1.0 - level) * (1 + 1e-12))))

    def variance(self, people: int = 1) -> float:
        """Variance of the mean of `people` reports (before any clamp)."""
        p = self.probabilities()
        k = np.arange(len(p)) - len(p) // 2
        return float(p @ (k * k)) / people

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record, by rejection from two-sided geometric numbers. O(n)."""
        values = np.asarray(records, dtype=float)
        noise = np.empty(values.size)
        todo = np.arange(values.size)
        scale = float(np.floor(self.sigma) + 1.0)
        stop = -np.expm1(-1.0 / scale)
        while len(todo):
            k = (rng.geometric(stop, len(todo)) - rng.geometric(stop, len(todo))).astype(float)
            over = (np.abs(k) - self.sigma**2 / scale) / self.sigma
            kept = rng.random(len(todo)) < np.exp(-over * over / 2)
            noise[todo[kept]] = k[kept]
            todo = todo[~kept]
        return self._clip(values + noise.reshape(values.shape))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability; at a clamp, that of all outputs beyond it."""
        t, v = np.broadcast_arrays(np.asarray(outputs, float), np.asarray(records, float))
        x = (t - v) / self.sigma
        inside = -x * x / 2 - _log_total(self.sigma)
        if self.clamp is None:
            return np.asarray(inside)
        low, high = self.clamp
        with np.errstate(divide="ignore"):
            left, right = np.log(self.above(v - t)), np.log(self.above(t - v))
        return np.asarray(np.where(t <= low, left, np.where(t >= high, right, inside)))

    def above(self, numbers: Any) -> FloatArray:
        """The probability that the noise is at least so large.

        Parameters
        ----------
        numbers
            Whole numbers.

        Returns
        -------
        ndarray
            Probabilities; those below one half have all their digits.

        Examples
        --------
        >>> float(DiscreteGaussian(sigma=1.0).above(-100))
        1.0

        """
        tail = _tail(self.sigma)
        reach = len(tail) // 2 - 1
        at = np.clip(np.asarray(numbers) + reach, 0, 2 * reach + 1).astype(int)
        return np.asarray(tail[at])

    def probabilities(self) -> FloatArray:
        """Probabilities of the noise -r .. r, beyond which floats underflow.

        Returns
        -------
        ndarray
            They sum to 1.

        Examples
        --------
        >>> round(float(DiscreteGaussian(sigma=1.0).probabilities().sum()), 12)
        1.0

        """
        return np.asarray(-np.diff(_tail(self.sigma)))


def _log_total(sigma: float) -> float:
    """Log of the sum of exp(-k^2/(2 sigma^2)); sqrt(2 pi) sigma to all digits from sigma 2 on."""
    if sigma >= 2.0:
        return float(np.log(sigma) + np.log(2 * np.pi) / 2)
    k = np.arange(1.0, np.ceil(REACH * sigma) + 1.0)
    return float(np.log1p(2 * np.sum(np.exp(-((k / sigma) ** 2) / 2))))


@lru_cache(maxsize=8)
def _tail(sigma: float) -> FloatArray:
    """Pr[noise >= k] for k = -r .. r+1; sums from the small end, so each is accurate."""
    r = max(1, int(np.ceil(REACH * sigma)))
    k = np.arange(r + 1.0)
    p = np.exp(-((k / sigma) ** 2) / 2 - _log_total(sigma))
    upper = np.cumsum(p[::-1])[::-1]  # k = 0 .. r
    lower = 1.0 - upper[1:][::-1]  # k = -r+1 .. 0
    tail = np.r_[1.0, lower, upper[1:], 0.0]
    tail.setflags(write=False)
    return np.asarray(tail)
