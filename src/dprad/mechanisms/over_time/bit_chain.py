"""Bits over time: every bit is flipped once and for all, then again in every report.

A bit of the true value is one with probability p1 in the first round, any other with q1; a report
shows it as a one with probability p2 or q2. How often each bit was one tells all: with R reports of
one value and c ones,

    lambda(c) = [p1 A + (1-p1) B] / [q1 A + (1-q1) B] ,   A = p2^c (1-p2)^(R-c),  B with q2 ,

is how much a bit speaks for a value that sets it, and it grows with c.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms.over_time.base import (
    Memoised,
    PerValue,
    blocks,
    log_factorials,
    picked,
    times_log,
)
from dprad.numerics.arrays import BoolArray, Column, FloatArray, IntArray


class BitChain(Memoised):
    """Common to unary chains and RAPPOR; subclasses define the rounds and the bits of a value.

    Outputs are counts of ones, ``[person, period, bit]``.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of bits."""

    @property
    @abstractmethod
    def rounds(self) -> tuple[float, float, float, float]:
        """p1, q1, p2, q2."""

    @abstractmethod
    def sets(self, values: Any) -> BoolArray:
        """Which bits each value sets, one row per value."""

    @abstractmethod
    def raised(self, lift: FloatArray, value: int) -> FloatArray:
        """The sum of `lift` (last axis: bits) over the bits that a value sets."""

    @property
    def single(self) -> tuple[float, float]:
        """The chance of a one in one report, for a bit of the value and for any other."""
        p1, q1, p2, q2 = self.rounds
        return p1 * p2 + (1 - p1) * q2, q1 * p2 + (1 - q1) * q2

    def laws(self, reports: int) -> tuple[FloatArray, FloatArray]:
        """``ln`` of the probability of a sequence with c ones, c = 0 .. reports, for a bit that is
        not set; and ``ln lambda(c)``.
        """
        return _laws(*self.rounds, reports)

    def log_of(self, outputs: IntArray, sequence: IntArray) -> FloatArray:
        """The product over bits, block by block of periods with the same value."""
        ways = log_factorials(self.each)
        choices = ways[-1] - ways - ways[::-1]
        total = choices[outputs].sum(axis=(-2, -1))
        for value, periods in blocks(sequence):
            counts = outputs[..., periods, :].sum(axis=-2)
            unset, lift = self.laws(self.each * len(periods))
            total = total + unset[counts].sum(axis=-1) + self.raised(lift[counts], value)
        return np.asarray(total)

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """Counts of ones per person, period and bit. O(n periods^2 bits)."""
        p1, q1, p2, q2 = self.rounds
        values = self.sequences(np.asarray(records).reshape(-1))
        people = len(values)
        kept = np.empty((people, self.periods, self.width), dtype=bool)
        for t in range(self.periods):
            chance = np.where(self.sets(values[:, t]), p1, q1)
            kept[:, t] = rng.random((people, self.width)) < chance
            for earlier in range(t):
                again = values[:, t] == values[:, earlier]
                kept[again, t] = kept[again, earlier]
        return rng.binomial(self.each, np.where(kept, p2, q2)).astype(np.intp)

    @property
    def outcomes(self) -> int:
        """All counts; of more than 64, at least as many as nobody can list."""
        return int((self.each + 1) ** min(self.periods * self.width, 64))

    def matrix(self, points: Column) -> FloatArray:
        """All counts of all bits."""
        base, columns = self.each + 1, self.periods * self.width
        counts = (np.arange(self.outcomes)[:, None] // base ** np.arange(columns)) % base
        outputs = counts.reshape(-1, self.periods, self.width)
        return np.exp(np.stack([self.log_of(outputs, s) for s in self.sequences(points)]))

    def understood(self, outputs: Any, support: Column) -> IntArray:  # noqa: ARG002
        """Counts, or reports as rows of bits in the order of time, ``[person, report, bit]``."""
        given = np.asarray(outputs)
        if given.dtype.kind in "iub" and given.ndim == 3 and given.shape[2] == self.width:
            if given.shape[1] == self.reports:
                parts = given.reshape(len(given), self.periods, self.each, self.width)
                return np.asarray(parts.sum(axis=2), dtype=np.intp)
            if given.shape[1] == self.periods:
                return given.astype(np.intp)
        raise DpradError(
            f"run must return {self.reports} reports of {self.width} bits each, as "
            f"{type(self).__name__} does."
        )

    def checked(self, outputs: Any) -> IntArray:
        """Counts of ones, ``[person, period, bit]``."""
        given = np.asarray(outputs)
        shape = (self.periods, self.width)
        whole = given.dtype.kind in "iu" and given.ndim == 3 and given.shape[1:] == shape
        if not whole or (given.size and not 0 <= given.min() <= given.max() <= self.each):
            raise DpradError(
                f"outputs of {type(self).__name__} are counts of ones, from 0 to {self.each}, for "
                f"each person, period ({self.periods}) and bit ({self.width})."
            )
        return given.astype(np.intp)


class UnaryChain(BitChain, PerValue):
    """One bit per value."""

    __slots__ = ()

    @property
    def width(self) -> int:
        """As many as values."""
        return self.size

    def sets(self, values: Any) -> BoolArray:
        """Its own."""
        return np.asarray(np.asarray(values)[..., None] == np.arange(self.size))

    def raised(self, lift: FloatArray, value: int) -> FloatArray:
        """Of its own bit."""
        return lift[..., value]

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records; broadcasts. O(bits + records) per output where
        the value stays the same.
        """
        if self.periods > 1:
            return super().log_likelihood(outputs, records)
        counts = np.asarray(outputs)[..., 0, :]
        unset, lift = self.laws(self.reports)
        ways = log_factorials(self.reports)
        base = (unset + ways[-1] - ways - ways[::-1])[counts].sum(axis=-1)
        own = picked(counts, np.asarray(records))
        return np.asarray(base + lift[own])

    def epsilon_after(self, reports: int) -> float:
        """``ln lambda(R) - ln lambda(0)``: one bit always one, the other never."""
        lift = self.laws(reports)[1]
        return float(lift[-1] - lift[0])

    @property
    def pair_tv(self) -> float:
        """Of the counts of two bits: exact."""
        unset, lift = self.laws(self.each)
        ways = log_factorials(self.each)
        other = np.exp(unset + ways[-1] - ways - ways[::-1])
        own = other * np.exp(lift)
        between = np.abs(np.outer(own, other) - np.outer(other, own)).sum() / 2
        return float(1.0 if self.periods > 1 else between)


@lru_cache(maxsize=256)
def _laws(
    p1: float, q1: float, p2: float, q2: float, reports: int
) -> tuple[FloatArray, FloatArray]:
    c = np.arange(reports + 1)
    high = times_log(c, p2) + times_log(reports - c, 1.0 - p2)
    low = times_log(c, q2) + times_log(reports - c, 1.0 - q2)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.logaddexp(_log(p1) + high, _log(1.0 - p1) + low)
        other = np.logaddexp(_log(q1) + high, _log(1.0 - q1) + low)
        lift = np.where(np.isneginf(other), 0.0, own - other)
    return np.asarray(other), np.asarray(lift)


def _log(p: float) -> float:
    return math.log(p) if p > 0 else -math.inf
