"""Histogram encodings: Laplace noise on each entry of a one-hot row (Wang et al. 2017).

Two records differ in two entries, so noise of scale 2/epsilon keeps the promise. SHE reports the
noisy row. THE reports which entries exceed a threshold: a unary encoding with
``p = 1 - e^{eps (threshold - 1)/2}/2`` and ``q = e^{-eps threshold/2}/2``; cutting off loses
information, so its own promise is smaller than epsilon, and that is what it states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import number
from dprad.mechanisms.base import Card, quotient
from dprad.mechanisms.categorical import Categorical, categories, check_parameters
from dprad.mechanisms.unary import Bits
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON
from dprad.numerics.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SHE(Categorical):
    """Summed histogram encoding: an output is a noisy row of `size` numbers.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    size
        Number of possible values; the codes are 0 .. size-1.

    Examples
    --------
    >>> SHE(epsilon=1.0, size=3).variance()          # of Laplace noise of scale 2
    8.0

    """

    epsilon: float
    size: int

    card: ClassVar = Card(
        name="she",
        title="summed histogram encoding",
        takes=(EPSILON,),
        reads="codes",
        cost="draws",
    )
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for replaced records."""
        return PureDP(self.epsilon if self.size > 1 else 0.0, neighbours=REPLACE_ONE)

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One row of `size` numbers per record. O(n size)."""
        codes = categories(records, self.size, "SHE").reshape(-1)
        if self.epsilon == 0:
            return np.where(rng.random((len(codes), self.size)) < 0.5, -np.inf, np.inf)
        rows = rng.laplace(0.0, 2.0 / self.epsilon, (len(codes), self.size))
        rows[np.arange(len(codes)), codes] += 1.0
        return rows

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-density of the rows; broadcasts over the leading axes. O(n size)."""
        rows, codes = np.asarray(outputs, dtype=float), np.asarray(records)
        shape = np.broadcast_shapes(rows.shape[:-1], codes.shape)
        if self.epsilon == 0:
            return np.full(shape, -self.size * np.log(2.0))
        full = np.broadcast_to(rows, (*shape, self.size))
        own = np.take_along_axis(full, np.broadcast_to(codes, shape)[..., None], axis=-1)[..., 0]
        rate = self.epsilon / 2
        every = self.size * np.log(rate / 2) - rate * np.abs(rows).sum(axis=-1)
        # |own| - |own - 1| is all that the record changes
        return np.asarray(every + rate * (2.0 * np.clip(own, 0.0, 1.0) - 1.0))

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value from `people` reports."""
        return quotient(8.0, people * self.epsilon**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class THE(Bits):
    """Thresholded histogram encoding: the entries of a noisy row that exceed `threshold`.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private. The promise is smaller than this.
    size
        Number of possible values; the codes are 0 .. size-1.
    threshold
        Default: the value in [1/2, 1] with the least variance.

    Examples
    --------
    >>> THE(epsilon=1.0, size=3, threshold=1.0).p
    0.5

    """

    epsilon: float
    size: int
    threshold: float | None = None

    card: ClassVar = Card(
        name="the", title="thresholded histogram encoding", takes=(EPSILON,), reads="codes"
    )
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        check_parameters(self)
        chosen = _best_threshold(self.epsilon) if self.threshold is None else self.threshold
        object.__setattr__(self, "threshold", number(chosen, "threshold", low=0.5, high=1))

    @property
    def p(self) -> float:  # type: ignore[override]
        """Chance that the true entry exceeds the threshold."""
        assert self.threshold is not None
        return 1.0 - float(np.exp(self.epsilon * (self.threshold - 1.0) / 2)) / 2

    @property
    def q(self) -> float:  # type: ignore[override]
        """Chance that another entry does."""
        assert self.threshold is not None
        return float(np.exp(-self.epsilon * self.threshold / 2)) / 2

    @property
    def log_ratio(self) -> float:
        """Log of p (1-q) / (q (1-p)), from logarithms that do not cancel; less than epsilon."""
        assert self.threshold is not None
        return self.epsilon / 2 + float(np.log1p(-self.q) + np.log(self.p) + np.log(4.0))

    @property
    def guarantee(self) -> PureDP:
        """What the bits promise, which is less than epsilon."""
        return PureDP(self.log_ratio if self.size > 1 else 0.0, neighbours=REPLACE_ONE)


def _best_threshold(epsilon: float) -> float:
    """The threshold of least variance q (1-q)/(p-q)^2, to six digits, by successively finer
    grids.
    """
    low, high = 0.5, 1.0
    if epsilon == 0:
        return high
    for _ in range(4):
        grid = np.linspace(low, high, 41)
        p, q = 1.0 - np.exp(epsilon * (grid - 1.0) / 2) / 2, np.exp(-epsilon * grid / 2) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            log_variance = np.log(q) + np.log1p(-q) - 2 * np.log(p - q)
        log_variance = np.where(np.isnan(log_variance), np.inf, log_variance)
        best = int(np.argmin(log_variance))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
    return float((low + high) / 2)
