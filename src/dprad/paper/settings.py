"""LDP Auditor's settings beyond one report, written anew: runs, its guesses, exact posteriors.

Two values, the first and the last of k. *Longitudinal*: tau independent reports about one value;
its guess is the value that the reports support most often (SHE: with the largest sum), ties at
random. *Multidimensional*: RS+FD with the same value in all d attributes; its guess is a random
member of the report of a random attribute. A setting says how often those guesses are the first
value, and, for the same runs, how strongly all that was reported speaks for it: the exact
log-likelihood ratio of the two records, which is what the best attack bets on.

Repeated reports are drawn as counts (`exact/tally.py`), sums of SHE's noise as differences of gamma
variables: the same laws, in O(k) per person instead of O(k tau).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.exact.tally import Tally
from dprad.mechanisms import BLH, GRR, OLH, OUE, SHE, SUE, THE, SubsetSelection
from dprad.mechanisms import bits as packed
from dprad.mechanisms.support import SupportMechanism
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray

PROTOCOLS: dict[str, Any] = {
    "GRR": GRR, "SS": SubsetSelection, "SUE": SUE, "OUE": OUE, "THE": THE, "SHE": SHE, "BLH": BLH,
    "OLH": OLH,
}  # fmt: skip
FAKED = ("GRR", "SUE-z", "SUE-r", "OUE-z", "OUE-r")
# Numbers drawn at once.
BLOCK = 2**21


class Setting(ABC):
    """Runs on records that are 0 (the first value everywhere) or 1 (the last)."""

    claimed: float
    true: float

    @abstractmethod
    def named(self, record: int, runs: int, rng: np.random.Generator) -> int:
        """How many of LDP Auditor's guesses, in so many runs on a record, are the first value."""

    @abstractmethod
    def strength(self, records: IntArray, rng: np.random.Generator) -> FloatArray:
        """One run on each record: ``ln p(output | first) - ln p(output | last)``."""


@dataclass(frozen=True)
class Longitudinal(Setting):
    """`times` independent reports of a protocol for `size` values."""

    protocol: str
    epsilon: float
    size: int
    times: int

    @property
    def part(self) -> Any:
        """The protocol of one report."""
        return PROTOCOLS[self.protocol](epsilon=self.epsilon, size=self.size)

    @property
    def claimed(self) -> float:  # type: ignore[override]
        """By sequential composition."""
        return self.times * self.epsilon

    @property
    def true(self) -> float:  # type: ignore[override]
        """What one report promises, so many times: less for THE."""
        return self.times * float(self.part.guarantee.epsilon)

    def named(self, record: int, runs: int, rng: np.random.Generator) -> int:
        """The largest count, or the largest sum."""
        codes = np.full(runs, record * (self.size - 1), dtype=np.intp)
        if self.protocol == "SHE":
            return int((self._sums(codes, rng).argmax(axis=1) == 0).sum())
        counts = self._counts(codes, rng)
        return int(((counts + rng.random(counts.shape)).argmax(axis=1) == 0).sum())

    def strength(self, records: IntArray, rng: np.random.Generator) -> FloatArray:
        """By the difference of two counts; for SHE, by two entries of every row."""
        codes = np.asarray(records, dtype=np.intp) * (self.size - 1)
        if self.protocol != "SHE":
            counts = self._counts(codes, rng)
            gap = counts[:, 0] - counts[:, -1]
            return np.asarray(gap * self.part.supports.log_ratio)
        found, step = [], max(1, BLOCK // self.times)
        for a in range(0, len(codes), step):
            own = codes[a : a + step, None] == np.array([0, self.size - 1])
            noise = rng.laplace(0.0, 2.0 / self.epsilon, (self.times, *own.shape))
            shown = np.clip(noise + own, 0.0, 1.0).sum(axis=0)
            found.append(self.epsilon * (shown[:, 0] - shown[:, 1]))
        return np.concatenate(found)

    def _counts(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        tally = Tally.of(self.part, self.times)
        assert tally is not None
        step = max(1, BLOCK // self.size)
        parts = [tally.sample(codes[a : a + step], rng) for a in range(0, len(codes), step)]
        return np.concatenate(parts)

    def _sums(self, codes: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of all rows."""
        shape = (len(codes), self.size)
        up, down = rng.gamma(self.times, size=shape), rng.gamma(self.times, size=shape)
        own = codes[:, None] == np.arange(self.size)
        return np.asarray(self.times * own + 2.0 / self.epsilon * (up - down))


@dataclass(frozen=True)
class Multidimensional(Setting):
    """RS+FD as published: `d` attributes of `size` values, all equal."""

    protocol: str
    epsilon: float
    size: int
    d: int

    @property
    def claimed(self) -> float:  # type: ignore[override]
        """As published."""
        return self.epsilon

    @property
    def true(self) -> float:  # type: ignore[override]
        """For the record: the epsilon with which an attribute is reported."""
        return math.log1p(self.d * math.expm1(self.epsilon))

    @property
    def part(self) -> SupportMechanism:
        """The protocol of one attribute."""
        made: SupportMechanism = PROTOCOLS[self.protocol[:3]](epsilon=self.true, size=self.size)
        return made

    def named(self, record: int, runs: int, rng: np.random.Generator) -> int:
        """A member of one report, or any value if it has none."""
        outputs = self._drawn(np.full(runs, record, dtype=np.intp), rng)
        one = outputs[np.arange(runs), rng.integers(self.d, size=runs)]
        if self.protocol == "GRR":
            return int((one == 0).sum())
        guess = packed.pick(one, rng)
        empty = guess < 0
        guess[empty] = rng.integers(self.size, size=int(empty.sum()))
        return int((guess == 0).sum())

    def strength(self, records: IntArray, rng: np.random.Generator) -> FloatArray:
        """The sum over the attributes of how much likelier its report is than as a fake."""
        outputs = self._drawn(np.asarray(records, dtype=np.intp), rng)
        first, last = (self._inside(outputs, code) for code in (0, self.size - 1))
        raised = math.expm1(self.part.supports.log_ratio)
        share: Any = 1.0
        if self.protocol.endswith("-r"):
            share = 1.0 / (self.size + packed.count(outputs) * raised)
        above, below = ((share * (1.0 + raised * x)).sum(axis=1) for x in (first, last))
        return np.asarray(np.log(above) - np.log(below))

    def _inside(self, outputs: Any, code: int) -> BoolArray:
        if self.protocol == "GRR":
            return np.asarray(outputs == code)
        return packed.contains(outputs, code)

    def _drawn(self, records: IntArray, rng: np.random.Generator) -> Any:
        """``[person, attribute]``: numbers, or sets of bits."""
        n, part = len(records), self.part
        fakes = rng.integers(self.size, size=(n, self.d))
        real = rng.integers(self.d, size=n)
        every = np.arange(n)
        if self.protocol == "GRR":
            fakes[every, real] = part.sample(records * (self.size - 1), rng)
            return fakes
        fakes[every, real] = records * (self.size - 1)
        outputs = part.sample(fakes.reshape(-1), rng).reshape(n, self.d, -1)
        if self.protocol.endswith("-z"):
            assert isinstance(part, SUE | OUE)
            blank = packed.bernoulli(part.q, n * self.d, self.size, rng).reshape(outputs.shape)
            blank[every, real] = outputs[every, real]
            return blank
        return outputs
