"""Subset selection: report a random set of w values, more often one that contains the truth.

One rule for w everywhere: ``max(1, round(m/(e^epsilon + 1)))``, halves up. The paper mixes rounding
and flooring. Because w is whole, the risk can fall where epsilon grows past a step.
Outputs are packed bits (`packed.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.arrays import FloatArray
from dprad.guarantees import REPLACE_ONE, PureDP
from dprad.mechanisms import packed
from dprad.mechanisms.base import categories, check_parameters, quotient
from dprad.mechanisms.packed import Words
from dprad.mechanisms.support import Supports

# Below this share of members (or of others) trying random values takes too long.
RARE = 0.15
# Random values that are tried before sets of the right size are put aside.
TRIES = 8
_BITS, _NONE = np.uint64(1) << np.arange(64, dtype=np.uint64), np.uint64(0)


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
        """One packed set a record. O(n m/64), and as often as sizes must be mended.

        Independent bits give every set of their size with equal chance; so does dropping or adding
        random members until the size is right. The truth is put in or left out at the end.
        """
        codes = categories(records, self.size, "SubsetSelection").reshape(-1)
        m, w = self.size, self.subset
        truth = rng.random(len(codes)) < self.p
        wanted = w - truth.astype(np.intp)  # among the m - 1 others
        share = min(1.0, max(0.0, (w - self.p) / (m - 1))) if m > 1 else 0.0
        # a little off, to the side from which sizes are mended with fewer tries
        off = np.sqrt(share * (1.0 - share) / m) * (-1.5 if share < 0.5 else 1.5)
        share = min(1.0, max(0.0, share + float(off)))
        sets = packed.bernoulli(share, len(codes), m, rng)
        packed.put(sets, codes, np.zeros(len(codes), dtype=bool))
        surplus = packed.count(sets) - wanted
        # a random value will do if it can be dropped or added; where few can, pick among them
        rare = 1 if share < RARE else -1 if share > 1.0 - RARE else 0
        todo = np.flatnonzero(surplus)
        while len(todo):
            lack, own = surplus[todo], codes[todo]
            if rare and np.any(lack * rare > 0):
                self._picked(sets, todo[lack * rare > 0], codes, surplus, rng)
                lack = surplus[todo]
            for _ in range(TRIES):
                chosen = rng.integers(0, m, size=len(todo))
                word, bit = chosen >> 6, _BITS[chosen & 63]
                held = sets[todo, word]
                member = (held & bit) != 0
                fits = (lack != 0) & (member == (lack > 0)) & (chosen != own)
                sets[todo, word] = held ^ np.where(fits, bit, _NONE)
                lack = lack - np.where(fits, np.sign(lack), 0)
            surplus[todo] = lack
            todo = todo[lack != 0]
        packed.put(sets, codes, truth)
        return sets

    def _picked(
        self, sets: Words, rows: Any, codes: Any, surplus: Any, rng: np.random.Generator
    ) -> None:
        """Mend the size of some sets by one member each, picked among those that can be."""
        held, drop = sets[rows], surplus[rows] > 0
        pool = np.where(drop[:, None], held, ~held)
        packed.trim(pool, self.size)
        packed.put(pool, codes[rows], np.zeros(len(pool), dtype=bool))
        packed.put(held, packed.pick(pool, rng), ~drop)
        sets[rows] = held
        surplus[rows] -= np.where(drop, 1, -1)

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
