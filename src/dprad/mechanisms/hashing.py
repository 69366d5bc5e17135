"""Local hashing: hash the value to g buckets, and report the bucket by randomised response.

BLH has g = 2, OLH g = round(e^epsilon) + 1. An output is (seed of the hash function, bucket). The
exact risk is that of an ideal family, in which every value is hashed independently and uniformly;
the functions drawn here mix 64-bit seeds and are ideal for any practical purpose, but this is an
assumption, not a theorem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dprad.mechanisms.base import Card, quotient
from dprad.mechanisms.categorical import MOST_EDGES, categories, check_parameters
from dprad.mechanisms.support import SupportMechanism, Supports
from dprad.model.guarantees import REPLACE_ONE, ApproxDP, PureDP
from dprad.model.parameters import DELTA, EPSILON
from dprad.numerics.arrays import FloatArray

Words = npt.NDArray[np.uint64]


# Beyond this epsilon OLH would have so many buckets that 64-bit hashes are no longer uniform.
HIGHEST = 30.0


class Hashing(SupportMechanism):
    """Common to both; subclasses define epsilon, delta, size and buckets."""

    __slots__ = ()
    highest: ClassVar[float] = HIGHEST
    noise: ClassVar = EPSILON
    epsilon: float
    delta: float
    size: int
    buckets: int

    @property
    def truth(self) -> float:
        """Chance of the true bucket: (e + delta (g-1))/(e + g - 1)."""
        shrink, g = float(np.exp(-self.epsilon)), self.buckets
        return (1.0 + self.delta * (g - 1) * shrink) / (1.0 + (g - 1) * shrink)

    @property
    def lie(self) -> float:
        """Chance of each other bucket."""
        shrink, g = float(np.exp(-self.epsilon)), self.buckets
        return (1.0 - self.delta) * shrink / (1.0 + (g - 1) * shrink)

    @property
    def guarantee(self) -> ApproxDP:
        """(epsilon, delta)-DP for replaced records."""
        if self.delta == 0.0:
            return PureDP(self.epsilon, neighbours=REPLACE_ONE)
        return ApproxDP(self.epsilon, self.delta, neighbours=REPLACE_ONE)

    @property
    def independent(self) -> bool:
        """With ideal hash functions."""
        return True

    @property
    def supports(self) -> Supports:
        """The values hashed to the reported bucket: each with chance 1/g, independently."""
        p, share = self.truth, 1.0 / self.buckets
        ratio = self.epsilon
        if self.delta > 0.0:
            with np.errstate(divide="ignore"):
                ratio = float(np.log(p) - np.log(self.lie))
        return Supports(
            log_ratio=ratio,
            hit=lambda n: p * (1.0 - share) ** np.arange(n + 1),
            miss=lambda n: (1.0 - p) * (1.0 - share) ** np.arange(n + 1),
            full=lambda k: float(p * share**k),
        )

    def bucket(self, seeds: Any, codes: Any) -> npt.NDArray[np.int64]:
        """The bucket of each code under the hash function of each seed."""
        with np.errstate(over="ignore"):
            x = np.asarray(seeds, dtype=np.uint64) ^ _mix(np.asarray(codes).astype(np.uint64))
            return (_mix(x) % np.uint64(self.buckets)).astype(np.int64)

    def sample(self, records: Any, rng: np.random.Generator) -> Words:
        """One row (seed, bucket) per record. O(n)."""
        codes = categories(records, self.size, type(self).__name__).reshape(-1)
        seeds = rng.integers(0, 2**64, size=len(codes), dtype=np.uint64)
        answer = self.bucket(seeds, codes)
        lies = rng.random(len(codes)) >= self.truth
        shift = rng.integers(1, self.buckets, size=int(lies.sum()))
        answer[lies] = (answer[lies] + shift) % self.buckets
        return np.stack([seeds, answer.astype(np.uint64)], axis=1)

    def log_likelihood(self, outputs: Words, records: Any) -> FloatArray:
        """Log-probability of the bucket given seed and record, and of the seed (uniform)."""
        same = self.bucket(outputs[..., 0], records) == outputs[..., 1].astype(np.int64)
        with np.errstate(divide="ignore"):
            answer = np.where(same, np.log(self.truth), np.log(self.lie))
        return np.asarray(answer - 64 * np.log(2.0))

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value from `people` reports."""
        share = 1.0 / self.buckets
        return quotient(share * (1.0 - share), people * (self.truth - share) ** 2)

    @property
    def assumes(self) -> str:
        """That hashing is ideal."""
        return "The hash functions behave like independent uniform ones."

    def describe(self) -> dict[str, Any]:
        """The arguments, and the number of buckets."""
        return {**super().describe(), "buckets": self.buckets}

    def __post_init__(self) -> None:
        check_parameters(self, highest=HIGHEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class OLH(Hashing):
    """Optimal local hashing, with round(e^epsilon) + 1 buckets.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private. At most 30.
    size
        Number of possible values; the codes are 0 .. size-1.
    delta
        Probability of failure; 0 for pure DP.

    Examples
    --------
    >>> OLH(epsilon=1.0, size=100).buckets
    4

    """

    epsilon: float
    size: int
    delta: float = 0.0

    card: ClassVar = Card(
        name="olh",
        title="optimal local hashing",
        takes=(EPSILON, DELTA),
        reads="codes",
        cost="quick",
    )

    @property
    def buckets(self) -> int:  # type: ignore[override]
        """round(e^epsilon) + 1."""
        return int(np.floor(np.exp(self.epsilon) + 0.5)) + 1

    def edges(self) -> list[float]:
        """Where the number of buckets steps up, as far as floats can resolve it."""
        return [float(e) for e in np.log(np.arange(1, MOST_EDGES) + 0.5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BLH(Hashing):
    """Binary local hashing, with two buckets.

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
    >>> BLH(epsilon=math.log(3), size=100).truth       # chance of the true bucket
    0.75

    """

    epsilon: float
    size: int
    delta: float = 0.0

    card: ClassVar = Card(
        name="blh",
        title="binary local hashing",
        takes=(EPSILON, DELTA),
        reads="codes",
        cost="quick",
    )

    @property
    def buckets(self) -> int:  # type: ignore[override]
        """Two."""
        return 2


def _mix(x: Words) -> Words:
    """A bijection of 64-bit words that spreads every bit (two rounds of xor-shift-multiply)."""
    x = x ^ (x >> np.uint64(32))
    x = x * np.uint64(0xD6E8FEB86659FD93)
    x = x ^ (x >> np.uint64(32))
    x = x * np.uint64(0xD6E8FEB86659FD93)
    return x ^ (x >> np.uint64(32))
