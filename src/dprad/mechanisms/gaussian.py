"""Gaussian noise on a number.

A value that moves by at most the sensitivity under noise of standard deviation sigma is
(sensitivity/sigma)-Gaussian DP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.arrays import FloatArray
from dprad.errors import DpradError, number
from dprad.guarantees import REPLACE_ONE, GaussianDP
from dprad.mechanisms.additive import Additive


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Additive):
    """Gaussian noise of standard deviation sigma.

    Examples
    --------
    >>> round(Gaussian(sigma=2.0).error(0.95), 4)     # 1.96 sigma
    3.9199

    """

    sigma: float
    sensitivity: float = 1.0
    clamp: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", number(self.sigma, "sigma", low=0))
        if self.sigma == 0:
            raise DpradError("sigma must be positive, but is 0: there would be no noise.")
        self._check()

    @property
    def guarantee(self) -> GaussianDP:
        """Gaussian DP for records that differ by at most the sensitivity."""
        return GaussianDP(self.sensitivity / self.sigma, neighbours=REPLACE_ONE)

    def error(self, confidence: float = 0.95) -> float:
        """The noise stays within this with the given probability."""
        from scipy.special import ndtri

        level = number(confidence, "confidence", low=0, high=1)
        return float(self.sigma * ndtri((1.0 + level) / 2.0))

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output a record. O(n)."""
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

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {
            "kind": "Gaussian",
            "sigma": self.sigma,
            "sensitivity": self.sensitivity,
            "clamp": None if self.clamp is None else list(self.clamp),
        }
