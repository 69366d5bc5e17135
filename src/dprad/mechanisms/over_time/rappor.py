"""RAPPOR: the bits of a Bloom filter, randomised once per value and again in every report.

Permanent: a bit is kept with probability 1 - f, else it is a fair coin. Instant: a report shows a
permanent one as a one with probability q, a zero as a one with probability p. Two values differ in
at most 2h bits, so ``epsilon_inf = 2 h ln((1 - f/2)/(f/2))`` at most; what is promised here is the
ratio for the pair of values of this filter that is easiest to tell apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.mechanisms.base import Card
from dprad.mechanisms.over_time.base import check, rare_variance
from dprad.mechanisms.over_time.bit_chain import BitChain
from dprad.mechanisms.over_time.hashing import Hashed
from dprad.model.parameters import PERIODS, REPORTS, Parameter
from dprad.numerics.arrays import BoolArray, FloatArray

F = Parameter(
    "f",
    "Share of the bits that are replaced by coins, once and for all. Larger is more private.",
    low=1e-6,
    high=1.0,
    rising=False,
    most=1.0,
    slider=(0.0, 1.0, 0.01),
)
BITS = Parameter("bits", "Number of bits in a report.", low=1.0, whole=True)
HASHES = Parameter("hashes", "Number of bits that a value sets.", low=1.0, whole=True)
# Most hash functions and bits: each is computed for every value.
MOST_HASHES, MOST_BITS = 1e3, 1e5
# Pairs of values compared at once.
BLOCK = 2**11
# Seeds of the hash functions are multiples of this odd number.
SEEDS = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True, kw_only=True)
class RAPPOR(BitChain):
    """RAPPOR with a Bloom filter. The constants are those of its description unless given.

    Parameters
    ----------
    size
        Number of possible values; the codes are 0 .. size-1.
    f
        Share of the bits that are replaced by coins, once and for all.
    hashes
        Number of hash functions: bits that a value sets.
    bits
        Number of bits.
    p, q
        Chance that a report shows a one for a permanent zero, and for a permanent one.
    cohort
        Which hash functions.
    reports
        Number of reports the attacker sees.
    periods
        Points in time at which the value may differ: that many columns are read.

    Examples
    --------
    >>> made = RAPPOR(size=100, f=0.5, hashes=2, bits=32, reports=1000)
    >>> round(made.guarantee.epsilon, 4), round(4 * math.log(3), 4)
    (4.3944, 4.3944)

    """

    size: int
    f: float = 0.5
    hashes: int = 2
    bits: int = 32
    p: float = 0.5
    q: float = 0.75
    cohort: int = 0
    reports: int = 1
    periods: int = 1

    card: ClassVar = Card(
        name="rappor",
        title="RAPPOR with a Bloom filter",
        takes=(F, HASHES, BITS, REPORTS, PERIODS),
        reads="codes",
        cost="draws",
    )
    noise: ClassVar = F

    def __post_init__(self) -> None:
        check(self)
        for name in ("f", "p", "q"):
            object.__setattr__(self, name, number(getattr(self, name), name, low=0, high=1))
        for name, most in (("hashes", MOST_HASHES), ("bits", MOST_BITS)):
            object.__setattr__(self, name, whole(getattr(self, name), name, low=1, high=most))
        object.__setattr__(self, "cohort", whole(self.cohort, "cohort", low=0))
        if self.p > self.q:
            raise DpradError(f"p must be at most q, but p = {self.p:g} and q = {self.q:g}.")

    @property
    def width(self) -> int:
        """Bits."""
        return self.bits

    @property
    def rounds(self) -> tuple[float, float, float, float]:
        """1 - f/2, f/2, q, p."""
        return 1.0 - self.f / 2, self.f / 2, self.q, self.p

    def sets(self, values: Any) -> BoolArray:
        """The bits that the hash functions name."""
        codes = np.asarray(values)
        rows = np.zeros((*codes.shape, self.bits), dtype=bool)
        for k in range(self.hashes):
            hashing = Hashed(epsilon=1.0, size=self.size, buckets=self.bits)
            at = hashing.bucket(SEEDS * (1 + self.cohort * self.hashes + k) % 2**64, codes)
            np.put_along_axis(rows, at[..., None], values=True, axis=-1)
        return rows

    def raised(self, lift: FloatArray, value: int) -> FloatArray:
        """Over the bits of the value."""
        return np.asarray(lift[..., self.sets(np.array([value]))[0]].sum(axis=-1))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records; broadcasts."""
        counts, codes = np.asarray(outputs), np.asarray(records)
        alone = codes.size == (codes.shape or (1,))[-1]  # one row of codes
        plain = alone and counts.ndim > 2 and counts.shape[-3] == 1
        if self.periods > 1 or not plain:
            return super(RAPPOR, self).log_likelihood(outputs, records)
        # all values at once: a product with their bits
        base = self.log_of(counts, np.array([0], dtype=np.intp))
        lift = self.laws(self.reports)[1][counts[..., 0, 0, :]]
        own = lift @ self.sets(codes.reshape(-1)).T.astype(float)
        return np.asarray(base - self.raised(lift, 0)[..., None] + own)

    def epsilon_after(self, reports: int) -> float:
        """Over all pairs of values: the bits of one always shown, those of the other never."""
        lift = self.laws(reports)[1]
        if math.isinf(lift[-1]) or math.isinf(lift[0]):
            return math.inf
        rows, most = self.sets(np.arange(self.size)).astype(float), 0.0
        own = rows.sum(axis=1)
        for a in range(0, self.size, BLOCK):
            both = rows[a : a + BLOCK] @ rows.T
            ratio = (own[a : a + BLOCK, None] - both) * lift[-1] - (own - both) * lift[0]
            most = max(most, float(ratio.max()))
        return most

    def variance(self, people: int = 1) -> float:
        """Variance of the frequencies estimated by least squares on the bits, on average, from one
        report of each person and for rare values; infinite if the bits do not tell values apart.
        """
        rows = self.sets(np.arange(self.size)).astype(float)
        if self.size > self.bits or np.linalg.matrix_rank(rows) < self.size:
            return math.inf
        spread = float((np.linalg.pinv(rows.T) ** 2).sum(axis=1).mean())
        return spread * rare_variance(self.rounds, people)
