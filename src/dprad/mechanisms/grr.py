"""GRR: generalised randomised response (the paper's first example).

The true value with probability ``e^eps / (e^eps + m - 1)``, each other one with
``1 / (e^eps + m - 1)``. With `delta`, the approximate version, the numerators are
``e^eps + delta (m - 1)`` and ``1 - delta``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms.base import Card, quotient
from dprad.mechanisms.categorical import categories, check_parameters
from dprad.mechanisms.support import SupportMechanism, Supports
from dprad.model.guarantees import REPLACE_ONE, ApproxDP, PureDP
from dprad.model.parameters import DELTA, EPSILON, Goal
from dprad.numerics.arrays import Column, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class GRR(SupportMechanism):
    """Generalised randomised response over `size` values.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    size
        Number of possible values; the codes are 0 .. size-1.
    delta
        Probability of failure; 0 for pure DP.

    Examples
    --------
    >>> import math
    >>> GRR(epsilon=math.log(3), size=2).truth       # the coin of Warner's survey
    0.75

    """

    epsilon: float
    size: int
    delta: float = 0.0

    card: ClassVar = Card(
        name="grr",
        title="randomised response",
        takes=(EPSILON, DELTA),
        reads="codes",
        cost="quick",
    )
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def truth(self) -> float:
        """Probability of the true value."""
        shrink = float(np.exp(-self.epsilon))
        others = (self.size - 1) * shrink
        return (1.0 + self.delta * others) / (1.0 + others)

    @property
    def lie(self) -> float:
        """Probability of each other value."""
        shrink = float(np.exp(-self.epsilon))
        return (1.0 - self.delta) * shrink / (1.0 + (self.size - 1) * shrink)

    @property
    def gap(self) -> float:
        """``truth - lie``, without cancellation: also the total variation between two records."""
        shrink = float(np.exp(-self.epsilon))
        rise = float(-np.expm1(-self.epsilon)) + self.delta * self.size * shrink
        return rise / (1.0 + (self.size - 1) * shrink)

    @property
    def guarantee(self) -> ApproxDP:
        """(epsilon, delta)-DP for replaced records."""
        if self.size == 1 or self.delta == 0.0:
            return PureDP(self.epsilon if self.size > 1 else 0.0, neighbours=REPLACE_ONE)
        return ApproxDP(self.epsilon, self.delta, neighbours=REPLACE_ONE)

    @property
    def members(self) -> int:
        """The reported value."""
        return 1

    @property
    def supports(self) -> Supports:
        """Only the reported value."""
        truth, lie, size = self.truth, self.lie, self.size
        with np.errstate(divide="ignore"):
            ratio = float(np.log(truth) - np.log(lie)) if self.delta else self.epsilon
        return Supports(
            log_ratio=ratio,
            hit=lambda n: np.full(n + 1, truth),
            miss=lambda n: lie * np.maximum(size - 1 - np.arange(n + 1), 0),
            full=lambda k: truth if k == 0 else 0.0,
        )

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """One output per record: lie with probability 1 - truth, uniformly over the others.
        O(n).
        """
        codes = categories(records, self.size, "GRR")
        result = codes.copy()
        lies = rng.random(codes.shape) >= self.truth
        shift = rng.integers(1, self.size, size=int(lies.sum())) if self.size > 1 else 0
        result[lies] = (codes[lies] + shift) % self.size
        return result

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records."""
        same = np.asarray(outputs) == np.asarray(records)
        base = -np.log1p((self.size - 1) * np.exp(-self.epsilon))
        with np.errstate(divide="ignore"):
            true = base + np.log1p(self.delta * (self.size - 1) * np.exp(-self.epsilon))
            lie = base - self.epsilon + np.log1p(-self.delta)
        return np.asarray(np.where(same, true, lie))

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value from `people` reports."""
        return quotient(self.lie * (1.0 - self.lie), people * self.gap**2)

    @classmethod
    def first_guess(cls, goal: Goal) -> float:
        """The closed form for equally likely values."""
        return float(np.log1p(goal.fixed.get("size", 2) * goal.share / (1.0 - goal.share)))

    def understood(self, outputs: Any, support: Column) -> IntArray:
        """Values of the prior as codes."""
        given = outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)
        code = {v: i for i, v in enumerate(support.tolist())}
        try:
            return np.array([code[v] for v in given], dtype=np.intp)
        except (KeyError, TypeError):
            raise DpradError("run must return values of the prior, as GRR does.") from None

    def checked(self, outputs: Any) -> IntArray:
        """Codes."""
        return categories(super(GRR, self).checked(outputs), self.size, "GRR")
