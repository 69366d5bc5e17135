"""Tails: what matters of several outputs with Laplace noise on the same value.

All outputs below the smallest value carry the same information (each is likelier by ``e^rate`` for
a value that is smaller by one), and so do all above the largest: of these only the numbers matter.
They are drawn directly; outputs between the values are drawn one by one. With much noise nearly all
are beyond, so many releases cost little more than one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.laplace import Laplace
from dprad.numerics.arrays import Column, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """The outputs of `times` runs on values from `low` to `high`. Build it with `Tails.of`."""

    mechanism: Laplace
    times: int
    low: float
    high: float

    @classmethod
    def of(cls, mechanism: Mechanism, times: int, values: Column) -> Tails | None:
        """For Laplace noise that is added at least twice to these values; else None."""
        if times < 2 or type(mechanism) is not Laplace or mechanism.rate == 0:
            return None
        low, high = float(values.min()), float(values.max())
        clamp = mechanism.clamp or (low, high)
        return cls(mechanism, times, low, high) if clamp[0] <= low and high <= clamp[1] else None

    @property
    def between(self) -> int:
        """About how many outputs lie between the values, at most."""
        return math.ceil(
            self.times * -math.expm1(-self.mechanism.rate * (self.high - self.low) / 2)
        )

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """For each record how many outputs lie below and above, then those between: records x
        (2 + most between), filled up with `low`, and as many fewer below.
        """
        values, rate = np.asarray(records, dtype=float), self.mechanism.rate
        below = np.exp(-rate * (values - self.low)) / 2
        above = np.exp(-rate * (self.high - values)) / 2
        under = rng.binomial(self.times, below)
        over = rng.binomial(self.times - under, np.minimum(above / (1.0 - below), 1.0))
        inside = self.times - under - over
        columns = int(inside.max(initial=0))
        uniform = rng.random((len(values), columns))
        share = (below + uniform.T * (1.0 - below - above)).T  # of all outputs
        with np.errstate(divide="ignore"):
            noise = np.where(share < 0.5, np.log(2 * share), -np.log(2 * (1.0 - share))) / rate
        outputs = np.clip(values[:, None] + noise, self.low, self.high)
        outputs = np.where(np.arange(columns) < inside[:, None], outputs, self.low)
        return np.column_stack([under - (columns - inside), over, outputs])

    def log_likelihood(self, outputs: FloatArray, records: Any) -> FloatArray:
        """Up to a term that is the same for all records; broadcasts over the leading axes."""
        values, rate = np.asarray(records, dtype=float), self.mechanism.rate
        total = outputs[..., 0] * (self.low - values) + outputs[..., 1] * (values - self.high)
        for column in range(2, outputs.shape[-1]):
            total -= np.abs(outputs[..., column] - values)
        return np.asarray(rate * total)
