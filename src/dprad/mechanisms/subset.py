"""Subset selection: report a random set of w values, more often one that contains the truth.

One rule for w everywhere: ``max(1, round(m/(e^epsilon + 1)))``, halves up. The paper mixes rounding
and flooring. Because w is whole, the risk can fall where epsilon grows past a step.
Outputs are packed bits (`packed.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.arrays import BoolArray, FloatArray
from dprad.guarantees import REPLACE_ONE, PureDP
from dprad.mechanisms import packed
from dprad.mechanisms.base import categories, check_parameters, quotient
from dprad.mechanisms.packed import Words
from dprad.mechanisms.support import Supports

# Entries of the boolean table in which a block of subsets is drawn.
BLOCK_ENTRIES = 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection:
    """A uniformly random `subset`-element set, conditioned to contain the truth with chance p.

    Examples
    --------
    >>> SubsetSelection(epsilon=1.0, size=10).subset
    3

    """

    epsilon: float
    size: int

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def subset(self) -> int:
        """The number of values reported, w."""
        shrink = float(np.exp(-self.epsilon))
        return max(1, int(np.floor(self.size * shrink / (1.0 + shrink) + 0.5)))

    @property
    def p(self) -> float:
        """Chance that the truth is among them."""
        w, m = self.subset, self.size
        return w / (w + (m - w) * float(np.exp(-self.epsilon)))

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for replaced records."""
        trivial = self.subset == self.size
        return PureDP(0.0 if trivial else self.epsilon, neighbours=REPLACE_ONE)

    @property
    def supports(self) -> Supports:
        """Drawing without replacement; ratios one by one, which keeps all digits."""
        w, m, p = self.subset, self.size, self.p

        def without(n: int, inside: int) -> FloatArray:
            """Chance that k given values miss `inside` draws from m - 1, for k = 0 .. n."""
            k = np.arange(n, dtype=float)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.maximum(m - 1 - inside - k, 0.0) / np.maximum(m - 1 - k, 1.0)
            return np.asarray(np.r_[1.0, np.cumprod(ratios)])

        def full(k: int) -> float:
            j = np.arange(k, dtype=float)
            return p * float(np.prod(np.maximum(w - 1 - j, 0.0) / np.maximum(m - 1 - j, 1.0)))

        return Supports(
            log_ratio=self.epsilon,
            hit=lambda n: p * without(n, w - 1),
            miss=lambda n: (1.0 - p) * without(n, w),
            full=full,
        )

    def sample(self, records: Any, rng: np.random.Generator) -> Words:
        """One packed set a record, by Floyd's algorithm on many at once. O(n w)."""
        codes = categories(records, self.size, "SubsetSelection").reshape(-1)
        step = max(1, BLOCK_ENTRIES // self.size)
        blocks = [self._block(codes[a : a + step], rng) for a in range(0, len(codes), step)]
        if not blocks:
            return np.zeros((0, packed.width(self.size)), dtype=np.uint64)
        return np.concatenate([packed.pack(b) for b in blocks])

    def _block(self, codes: Any, rng: np.random.Generator) -> BoolArray:
        m, rows = self.size, np.arange(len(codes))
        truth = rng.random(len(codes)) < self.p
        wanted = self.subset - truth.astype(np.intp)
        chosen = np.zeros((len(codes), m), dtype=bool)
        # w others out of m - 1, or w - 1: one more step of the same algorithm
        for k in range(self.subset):
            live = k < wanted
            last = m - 1 - wanted + k  # draws from 0 .. last
            drawn = rng.integers(0, np.maximum(last, 0) + 1)
            taken = chosen[rows, np.minimum(drawn, m - 1)]
            pick = np.where(taken, last, drawn)
            chosen[rows[live], pick[live]] = True
        # others are numbered without the true value: shift those from it upwards by one
        codes = np.asarray(codes)
        shifted = np.zeros_like(chosen)
        position = np.arange(m)
        below = position < codes[:, None]
        shifted[:, :] = chosen & below
        shifted[:, 1:] |= (chosen & ~below)[:, :-1]
        shifted[rows, codes] = truth
        return shifted

    def log_likelihood(self, outputs: Words, records: Any) -> FloatArray:
        """Log-probability of outputs given records; broadcasts over the leading axes."""
        from scipy.special import gammaln

        w, m = self.subset, self.size

        def log_choose(n: int, k: int) -> float:
            return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) if n >= k else 0.0

        own = packed.contains(outputs, records)
        inside = np.log(self.p) - log_choose(m - 1, w - 1)
        with np.errstate(divide="ignore"):
            outside = np.log1p(-self.p) - log_choose(m - 1, w)
        proper = packed.count(outputs) == w
        return np.where(proper, np.where(own, inside, outside), -np.inf)

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value from so many reports."""
        w, m, p = self.subset, self.size, self.p
        if m == w:
            return float("inf")
        q = (w - p) / (m - 1)  # chance that another value is reported
        return quotient(q * (1.0 - q), people * (p - q) ** 2)

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {
            "kind": "SubsetSelection",
            "epsilon": self.epsilon,
            "size": self.size,
            "subset": self.subset,
        }
