"""GRR: generalised randomised response (the paper's first example).

The true value with probability ``e^eps / (e^eps + m - 1)``, each other one with
``1 / (e^eps + m - 1)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.arrays import FloatArray, IntArray
from dprad.errors import number, whole
from dprad.guarantees import REPLACE_ONE, PureDP
from dprad.mechanisms.base import categories


@dataclass(frozen=True, slots=True, kw_only=True)
class GRR:
    """Randomised response over `size` values.

    Examples
    --------
    >>> import math
    >>> GRR(epsilon=math.log(3), size=2).truth       # the coin of Warner's survey
    0.75

    """

    epsilon: float
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon", low=0))
        object.__setattr__(self, "size", whole(self.size, "size", low=1))

    @property
    def truth(self) -> float:
        """Probability of the true value."""
        return float(1.0 / (1.0 + (self.size - 1) * np.exp(-self.epsilon)))

    @property
    def lie(self) -> float:
        """Probability of each other value."""
        shrink = float(np.exp(-self.epsilon))
        return shrink / (1.0 + (self.size - 1) * shrink)

    @property
    def gap(self) -> float:
        """``truth - lie``, without cancellation: also the total variation between two records."""
        shrink = float(np.exp(-self.epsilon))
        return float(-np.expm1(-self.epsilon)) / (1.0 + (self.size - 1) * shrink)

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for replaced records."""
        return PureDP(self.epsilon if self.size > 1 else 0.0, neighbours=REPLACE_ONE)

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """One output a record: lie with probability 1 - truth, uniformly over the others. O(n)."""
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
        return np.asarray(np.where(same, base, base - self.epsilon))

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {"kind": "GRR", "epsilon": self.epsilon, "size": self.size}
