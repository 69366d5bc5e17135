"""dBitFlipPM: a few bits of a histogram, drawn once per person, flipped once and reported forever.

Values fall into b buckets. Each person draws d of them, publicly, once and for all. For the
pattern of their bucket on these they flip every bit once, keep the result, and report it whenever
they have that pattern. Nothing is added to a report, so a change of the pattern can be seen.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.mechanisms.base import Card, quotient
from dprad.mechanisms.over_time.base import HIGHEST, Memoised, check
from dprad.model.parameters import EPSILON_INF, PERIODS, Parameter
from dprad.numerics.arrays import Column, FloatArray, IntArray

BUCKETS = Parameter("buckets", "Number of buckets that values fall into.", low=1.0, whole=True)
DRAWN = Parameter("bits", "Number of bits in a report.", low=1.0, whole=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DBitFlip(Memoised):
    """Permanent bits of a histogram. An output holds the positions, then the bits of each period.

    Parameters
    ----------
    size
        Number of possible values; the codes are 0 .. size-1.
    epsilon_inf
        Privacy loss of all reports together, while the bucket stays the same.
    buckets
        Number of buckets, at most `size` (the default); value v is in bucket v * buckets // size.
    bits
        How many buckets each person reports; default: all.
    reports
        Number of reports the attacker sees, at least one per period; all reports of one bucket are
        the same.
    periods
        Points in time at which the value may differ: that many columns are read.

    Examples
    --------
    A single bit differs in one place only, and so promises half of epsilon_inf:

    >>> DBitFlip(size=8, epsilon_inf=2.0, buckets=4, bits=1).guarantee.epsilon
    1.0

    """

    size: int
    epsilon_inf: float
    buckets: int = None  # type: ignore[assignment]
    bits: int = None  # type: ignore[assignment]
    reports: int = 1
    periods: int = 1

    card: ClassVar = Card(
        name="dbitflip",
        title="permanent bits of a histogram",
        takes=(EPSILON_INF, BUCKETS, DRAWN, PERIODS),
        reads="codes",
        cost="draws",
    )
    noise: ClassVar = EPSILON_INF

    def __post_init__(self) -> None:
        if self.reports == 1:
            object.__setattr__(self, "reports", self.periods)
        check(self)
        total = number(self.epsilon_inf, "epsilon_inf", low=0, high=HIGHEST)
        buckets = self.size if self.buckets is None else whole(self.buckets, "buckets", low=1)
        bits = buckets if self.bits is None else whole(self.bits, "bits", low=1)
        if not bits <= buckets <= self.size:
            raise DpradError(
                f"bits must be at most buckets, and buckets at most size, but bits = {bits}, "
                f"buckets = {buckets} and size = {self.size}."
            )
        for name, value in (("epsilon_inf", total), ("buckets", buckets), ("bits", bits)):
            object.__setattr__(self, name, value)

    @property
    def assumes(self) -> str:
        """What reports repeat."""
        if self.periods == 1:
            return "The value of each person stays in its bucket; then all their reports are alike."
        return "The value of each person stays in its bucket within each period."

    @property
    def truth(self) -> float:
        """Chance that a bit is right."""
        return 1.0 / (1.0 + math.exp(-self.epsilon_inf / 2))

    def bucket(self, codes: Any) -> IntArray:
        """The bucket of each value."""
        return np.asarray(codes, dtype=np.intp) * self.buckets // self.size

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """``[person, 1 + periods, bit]``: positions, ascending, then the bits. O(n buckets)."""
        own = self.bucket(self.sequences(np.asarray(records).reshape(-1)))
        order = rng.random((len(own), self.buckets)).argpartition(self.bits - 1, axis=1)
        rows = [np.sort(order[:, : self.bits], axis=1)]
        match = own[:, :, None] == rows[0][:, None, :]
        for t in range(self.periods):
            right = rng.random(rows[0].shape) < self.truth
            bits = np.where(right, match[:, t], ~match[:, t]).astype(np.intp)
            for earlier in range(t):
                again = np.all(match[:, t] == match[:, earlier], axis=1)
                bits[again] = rows[1 + earlier][again]
            rows.append(bits)
        return np.stack(rows, axis=1)

    def log_of(self, outputs: Any, sequence: IntArray) -> FloatArray:
        """Fresh bits for a new pattern; for an old one, the same bits as before."""
        given, own = np.asarray(outputs), self.bucket(sequence)
        match = given[..., :1, :] == own[:, None]
        right = (given[..., 1:, :] == match).sum(axis=-1)
        fresh = right * math.log(self.truth) + (self.bits - right) * math.log1p(-self.truth)
        total = np.full(given.shape[:-2], -math.log(math.comb(self.buckets, self.bits)))
        for t in range(self.periods):
            old = np.zeros(total.shape, dtype=bool)
            for earlier in range(t):
                again = np.all(match[..., t, :] == match[..., earlier, :], axis=-1)
                same = np.all(given[..., 1 + t, :] == given[..., 1 + earlier, :], axis=-1)
                total = np.where(again & ~same, -np.inf, total)
                old |= again
            total = np.where(old, total, total + fresh[..., t])
        return np.asarray(total)

    @property
    def outcomes(self) -> int:
        """Positions, and bits."""
        return int(math.comb(self.buckets, self.bits) * 2 ** (self.bits * self.periods))

    def matrix(self, points: Column) -> FloatArray:
        """All positions and all bits."""
        places = np.array(list(itertools.combinations(range(self.buckets), self.bits)))
        width = self.bits * self.periods
        rows = (np.arange(2**width)[:, None] >> np.arange(width)) & 1
        bits = rows.reshape(-1, self.periods, self.bits)
        outputs = np.concatenate(
            [
                np.repeat(places[:, None, :], len(bits), axis=0),
                np.tile(bits, (len(places), 1, 1)),
            ],
            axis=1,
        )
        return np.exp(np.stack([self.log_of(outputs, s) for s in self.sequences(points)]))

    def epsilon_after(self, reports: int) -> float:  # noqa: ARG002
        """Two bits differ, if there are two; reports repeat themselves."""
        return 0.0 if self.buckets == 1 else self.epsilon_inf * min(self.bits, 2) / 2

    @property
    def pair_tv(self) -> float:
        """2 truth - 1 if a bucket of either value is drawn: exact for two buckets."""
        if self.periods > 1 or self.buckets == 1:
            return 1.0 if self.buckets > 1 else 0.0
        b, d = self.buckets, self.bits
        neither = (b - d) * (b - d - 1) / (b * (b - 1))
        return float(math.tanh(self.epsilon_inf / 4) * (1.0 - neither))

    def checked(self, outputs: Any) -> IntArray:
        """Positions and bits."""
        given = np.asarray(outputs)
        shape = (1 + self.periods, self.bits)
        if given.dtype.kind not in "iu" or given.ndim != 3 or given.shape[1:] != shape:
            raise DpradError(
                f"outputs of DBitFlip hold, for each person, a row of {self.bits} positions and "
                f"{self.periods} rows of as many bits."
            )
        return given.astype(np.intp)

    def understood(self, outputs: Any, support: Column) -> IntArray:  # noqa: ARG002
        """As `sample` returns them."""
        return self.checked(outputs)

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare bucket from `people` reports."""
        q = 1.0 - self.truth
        above = q * (1.0 - q) * self.buckets
        return quotient(above, people * self.bits * math.tanh(self.epsilon_inf / 4) ** 2)

    def estimate(self, outputs: Any) -> FloatArray:
        """The estimated share of each bucket in each period, from the outputs of many people.

        Parameters
        ----------
        outputs
            Positions and bits, as `sample` returns them.

        Returns
        -------
        ndarray
            One row per period, one column per bucket; unbiased, so it may be below 0 or above 1.

        """
        given, q = self.checked(outputs), 1.0 - self.truth
        shares = []
        for bits in given[:, 1:].transpose(1, 0, 2):
            debiased = (bits - q) / (self.truth - q)
            place = given[:, 0].reshape(-1)
            total = np.bincount(place, weights=debiased.reshape(-1), minlength=self.buckets)
            shares.append(total * self.buckets / (self.bits * len(given)))
        return np.stack(shares)
