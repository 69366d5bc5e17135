"""Staircase noise (Geng and Viswanath): a density that falls by steps.

Steps have the length of the sensitivity. With k = floor(|x|/sensitivity), the density is
``a e^{-k eps}`` on the first share `gamma` of a step and ``a e^{-(k+1) eps}`` on the rest. The
default gamma, ``1/(1 + e^{eps/2})``, gives the least mean absolute error of all epsilon-DP noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number
from dprad.mechanisms.additive import Additive
from dprad.mechanisms.base import Card, quotient
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import CLAMP, EPSILON, SENSITIVITY, Goal
from dprad.numerics.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(Additive):
    """Staircase noise.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    sensitivity
        How far one record can move the number.
    clamp
        Interval (low, high) to which outputs are clipped; default: none.
    gamma
        The share of a step that is high; default: the best one for this epsilon.

    Examples
    --------
    >>> import math
    >>> Staircase(epsilon=2 * math.log(3)).high     # 1/(1 + 3)
    0.25

    """

    epsilon: float
    sensitivity: float = 1.0
    clamp: tuple[float, float] | None = None
    gamma: float | None = None

    card: ClassVar = Card(
        name="staircase",
        title="staircase noise",
        takes=(EPSILON, SENSITIVITY, CLAMP),
        reads="numbers",
    )
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon", low=0))
        self._check()
        if self.gamma is not None and 0 < number(self.gamma, "gamma", low=0, high=1) < 1e-9:
            raise DpradError(f"gamma must be 0 or at least 1e-9, but is {self.gamma!r}.")

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for records that differ by at most the sensitivity."""
        return PureDP(self.epsilon, neighbours=REPLACE_ONE)

    @property
    def high(self) -> float:
        """The share of a step that is high: `gamma`, or the best one for this epsilon."""
        half = float(np.exp(-self.epsilon / 2))
        return half / (1.0 + half) if self.gamma is None else self.gamma

    @property
    def _low_share(self) -> float:
        """Probability that a draw lies in the low part of its step."""
        low = (1.0 - self.high) * float(np.exp(-self.epsilon))
        # epsilon and gamma so extreme that both parts are empty: all is in the high part
        return low / (self.high + low) if self.high + low > 0 else 0.0

    def beyond(self, x: Any) -> FloatArray:
        """Pr[noise > x]. O(1) each.

        Parameters
        ----------
        x
            Numbers.

        Returns
        -------
        ndarray
            Probabilities.

        Examples
        --------
        >>> float(Staircase(epsilon=1.0).beyond(0.0))
        0.5

        """
        x = np.asarray(x, dtype=float)
        if self.epsilon == 0:
            return np.full(x.shape, 0.5)
        place = np.abs(x) / self.sensitivity
        step = np.floor(np.minimum(place, 1e300))
        part = np.clip(place - step, 0.0, 1.0)
        gamma, low = self.high, self._low_share
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.where(gamma > 0, np.minimum(part, gamma) / gamma, 1.0)
            second = np.where(gamma < 1, np.maximum(part - gamma, 0.0) / (1.0 - gamma), 0.0)
        inside = (1.0 - low) * first + low * second
        # the rest of this step, and of all that follow
        decay = float(-np.expm1(-self.epsilon))
        tail = 0.5 * np.exp(-self.epsilon * step) * (1.0 - inside * decay)
        tail = np.where(np.isinf(x), 0.0, tail)
        return np.asarray(np.where(x >= 0, tail, 1.0 - tail))

    def error(self, confidence: float = 0.95) -> float:
        """The noise stays within this with the given probability."""
        level = number(confidence, "confidence", low=0, high=1)
        if self.epsilon == 0 or level == 1.0:
            return self._within(float("inf"))
        gamma, low = self.high, self._low_share
        # Pr[|noise| > x] = e^{-k eps} (1 - inside decay) = 1 - level
        step = float(np.floor(-np.log1p(-level) / self.epsilon))
        decay = float(-np.expm1(-self.epsilon))
        inside = (1.0 - (1.0 - level) * float(np.exp(self.epsilon * step))) / decay
        inside = min(max(inside, 0.0), 1.0)
        if inside <= 1.0 - low:
            part = gamma * inside / (1.0 - low)
        else:
            part = gamma + (1.0 - gamma) * (inside - (1.0 - low)) / low
        return self._within((step + part) * self.sensitivity)

    def variance(self, people: int = 1) -> float:
        """Variance of the mean of `people` reports (no clamp): a geometric step, a place in it."""
        gamma, low, r = self.high, self._low_share, float(np.exp(-self.epsilon))
        rise = float(-np.expm1(-self.epsilon))
        place = (gamma + low) / 2
        square = ((1.0 - low) * gamma**2 + low * (1.0 + gamma + gamma**2)) / 3
        steps = quotient(r * (1.0 + r), rise**2) + 2.0 * quotient(r, rise) * place
        return quotient(self.sensitivity * self.sensitivity * (steps + square), people)

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record: a step, its high or low part, a place in it, a sign. O(n)."""
        values = np.asarray(records, dtype=float)
        sign = np.where(rng.random(values.shape) < 0.5, -1.0, 1.0)
        if self.epsilon == 0:
            return self._clip(sign * np.inf)
        step = rng.geometric(-np.expm1(-self.epsilon), values.shape) - 1.0
        low = rng.random(values.shape) < self._low_share
        u = rng.random(values.shape)
        part = np.where(low, self.high + (1.0 - self.high) * u, self.high * u)
        return self._clip(values + sign * (step + part) * self.sensitivity)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-density inside, log-probability of the atoms at the clamps."""
        t, v = np.broadcast_arrays(np.asarray(outputs, float), np.asarray(records, float))
        if self.epsilon == 0:
            return np.full(t.shape, -np.log(2.0))
        place = np.abs(t - v) / self.sensitivity
        step = np.floor(place)
        # an output is rounded, and the high part may be narrower than the rounding
        blur = 4 * np.finfo(float).eps * np.maximum(np.abs(t), np.abs(v)) / self.sensitivity
        low = place - step >= self.high + np.where(np.isfinite(blur), blur, 0.0)
        width = self.high + (1.0 - self.high) * np.exp(-self.epsilon)
        with np.errstate(divide="ignore"):
            top = np.log(-np.expm1(-self.epsilon)) - np.log(2 * self.sensitivity * width)
            inside = top - self.epsilon * (step + low)
            if self.clamp is None:
                return np.asarray(inside)
            left, right = np.log(self.beyond(v - t)), np.log(self.beyond(t - v))
        ends = self.clamp
        return np.asarray(np.where(t <= ends[0], left, np.where(t >= ends[1], right, inside)))

    def describe(self) -> dict[str, Any]:
        """The arguments, with the gamma that is used."""
        return {**super(Staircase, self).describe(), "gamma": self.high}

    @classmethod
    def first_guess(cls, goal: Goal) -> float:
        """As for Laplace noise."""
        return -2.0 * max(goal.values - 1, 1) * float(np.log1p(-goal.share))
