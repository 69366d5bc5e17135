"""LOLOHA: every person hashes their value to g symbols with a public function of their own, and
reports the symbol by randomised response over time.

One hash function for all reports, so at most g values are told apart. BiLOLOHA has g = 2. As for
L-GRR, the published second round gives less than epsilon_one for g > 2; by default it is exact, and
so is the number of symbols that goes with it, ``g = max(2, round(E + 1))``.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, whole
from dprad.mechanisms.base import Card, quotient
from dprad.mechanisms.categorical import MOST_EDGES
from dprad.mechanisms.hashing import Hashing
from dprad.mechanisms.over_time.base import BUDGETS, blocks, seen
from dprad.mechanisms.over_time.symbol_chain import SymbolChain, apart, checked_counts
from dprad.numerics.arrays import Column, FloatArray, IntArray

# Most symbols: with more, randomised response over the values themselves does better.
MOST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed(Hashing):
    """Local hashing to any number of buckets, once."""

    epsilon: float
    size: int
    buckets: int
    delta: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LOLOHA(SymbolChain):
    """Local hashing over time. An output is (seeds, counts of reports).

    Parameters
    ----------
    size
        Number of possible values; the codes are 0 .. size-1.
    epsilon_inf
        Privacy loss of all reports together.
    epsilon_one
        Privacy loss of one report; default: half of epsilon_inf.
    reports
        Number of reports the attacker sees.
    periods
        Points in time at which the value may differ: that many columns are read.
    buckets
        Number of symbols, at least 2; 2 is BiLOLOHA. Default: the number with the least error.
    published
        Whether to use the published second round and number of symbols.

    Examples
    --------
    >>> made = LOLOHA(size=100, epsilon_inf=4.0, epsilon_one=1.2)
    >>> made.symbols, round(made.guarantee.epsilon, 9)
    (4, 1.2)
    >>> LOLOHA(size=100, epsilon_inf=4.0, epsilon_one=1.2, buckets=2).symbols
    2

    """

    buckets: int | None = None

    card: ClassVar = Card(
        name="loloha",
        title="local hashing over time",
        takes=BUDGETS,
        reads="codes",
        cost="draws",
    )
    highest: ClassVar[float] = 2 * math.log(MOST - 2)  # with half of it for one report

    def __post_init__(self) -> None:
        SymbolChain.__post_init__(self)
        if self.buckets is not None:
            object.__setattr__(self, "buckets", whole(self.buckets, "buckets", low=2))
        if self.symbols > MOST:
            raise DpradError(
                f"LOLOHA with epsilon_one = {self.epsilon_one:g} would report {self.symbols:,} "
                f"symbols; more than {MOST:,} are not offered. Use LGRR, or give fewer buckets."
            )

    @property
    def symbols(self) -> int:
        """How many: the published number, or the best."""
        if self.buckets is not None:
            return self.buckets
        if self.published:
            return max(2, _published(self.epsilon_inf, self.epsilon_one))
        return max(2, math.floor(math.exp(self.epsilon_one) + 1.5))

    def edges(self) -> list[float]:
        """Where the number of symbols steps up as epsilon_inf and epsilon_one grow together."""
        if self.buckets is not None or self.published:
            return []
        ratio = self.epsilon_inf / self.epsilon_one
        return [float(e) for e in ratio * np.log(np.arange(1, MOST_EDGES) + 0.5)]

    @property
    def alike(self) -> Hashed | None:
        """One report is local hashing."""
        if self.reports > 1:
            return None
        epsilon = max(self.epsilon_after(1), 0.0)
        return Hashed(epsilon=epsilon, size=self.size, buckets=self.symbols)

    def bucket(self, seeds: Any, codes: Any) -> IntArray:
        """The symbol of each code under the hash function of each seed."""
        hashing = Hashed(epsilon=1.0, size=self.size, buckets=self.symbols)
        return hashing.bucket(seeds, codes).astype(np.intp)

    def sample(self, records: Any, rng: np.random.Generator) -> tuple[Any, IntArray]:
        """Seeds, and counts of reports per person, period and symbol. O(n (g + reports))."""
        values = self.sequences(np.asarray(records).reshape(-1))
        seeds = rng.integers(0, 2**64, size=len(values), dtype=np.uint64)
        return seeds, self._drawn(self.bucket(seeds[:, None], values), rng)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records; broadcasts."""
        if self.periods > 1:
            return super(LOLOHA, self).log_likelihood(outputs, records)
        seeds, counts = np.asarray(outputs[0]), np.asarray(outputs[1])
        log = self.log_steady(counts, self.bucket(seeds, np.asarray(records)))
        return np.asarray(log - 64 * np.log(2.0))

    def log_of(self, outputs: Any, sequence: IntArray) -> FloatArray:
        """By the symbols of the sequence under each seed."""
        seeds, counts = np.asarray(outputs[0]), np.asarray(outputs[1])
        shown = self.bucket(seeds[..., None], sequence)
        total = np.empty(seeds.shape)
        for pattern in {tuple(row) for row in shown.reshape(-1, self.periods).tolist()}:
            here = np.all(shown == pattern, axis=-1)
            total[here] = self.log_hashed(counts[here], pattern)
        return np.asarray(total - 64 * np.log(2.0))

    def log_hashed(self, counts: IntArray, symbols: Any) -> FloatArray:
        """Log-probability of counts given the symbol in each period."""
        total = self.log_orders(counts)
        for symbol, periods in blocks(symbols):
            total = total + self.log_block(counts[..., periods, :].sum(axis=-2), symbol)
        return np.asarray(total)

    @property
    def outcomes(self) -> int:
        """All hash functions, and all counts."""
        return int(self.symbols**self.size * self._lists)

    def matrix(self, points: Column) -> FloatArray:
        """An ideal family: all functions are equally likely."""
        counts, values = self._listed(), self.sequences(points)
        every = itertools.product(range(self.symbols), repeat=self.periods)
        given = {s: np.exp(self.log_hashed(counts, s)) for s in every}
        share = float(self.symbols) ** -self.size
        functions = itertools.product(range(self.symbols), repeat=self.size)
        parts = [
            np.stack([given[tuple(h[v] for v in row)] for row in values.tolist()])
            for h in functions
        ]
        return np.concatenate(parts, axis=1) * share

    def understood(self, outputs: Any, support: Column) -> Any:  # noqa: ARG002
        """Pairs of a seed and its reports, in the order of time."""
        try:
            seeds = np.array([row[0] for row in outputs], dtype=np.uint64)
            reports = np.array([list(row[1]) for row in outputs])
        except (TypeError, ValueError, IndexError, OverflowError):
            raise DpradError(
                f"run must return (seed, {self.reports} reports), as LOLOHA does."
            ) from None
        return seeds, self._counted(reports)

    def checked(self, outputs: Any) -> tuple[Any, IntArray]:
        """Seeds and counts."""
        if not isinstance(outputs, tuple) or len(outputs) != 2:
            raise DpradError("outputs of LOLOHA must be a tuple (seeds, counts of reports).")
        return np.asarray(outputs[0], dtype=np.uint64), checked_counts(self, outputs[1])

    @property
    def pair_tv(self) -> float:
        """That of two symbols, where two values do not collide: exact."""
        if self.periods > 1:
            return 1.0
        p1, q1, _, _ = self.rounds
        return float((p1 - q1) * apart(self, self.each) * (1.0 - 1.0 / self.symbols))

    @property
    def assumes(self) -> str:
        """How much is seen, and that hashing is ideal."""
        return f"{seen(self)} The hash functions behave like independent uniform ones."

    def describe(self) -> dict[str, Any]:
        """The arguments, and the number of symbols."""
        return {**super(SymbolChain, self).describe(), "buckets": self.symbols}

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value from one report of each person."""
        p1, q1, p2, q2 = self.rounds
        s, g = 1.0 / self.symbols, self.symbols
        return quotient(s * (1 - s), people * ((p1 - q1) * (p2 - q2) * (1 - 1 / g)) ** 2)

    def estimate(self, outputs: Any) -> FloatArray:
        """The estimated share of each value in each period, from the outputs of many people.

        Parameters
        ----------
        outputs
            Seeds and counts of reports, as `sample` returns them.

        Returns
        -------
        ndarray
            One row per period, one column per value; unbiased, so it may be below 0 or above 1.

        """
        seeds, counts = self.checked(outputs)
        p1, q1, p2, q2 = self.rounds
        g, means = self.symbols, []
        for code in range(self.size):
            at = self.bucket(seeds, np.intp(code))[:, None, None]
            means.append(np.take_along_axis(counts, at, axis=2)[..., 0].mean(axis=0) / self.each)
        share = np.stack(means, axis=1)
        return np.asarray((share - 1 / g) / ((p1 - q1) * (p2 - q2) * (1 - 1 / g)))


def _published(inf: float, one: float) -> int:
    """The published number of symbols, everything divided by A^2."""
    s, e = math.exp(-inf), math.exp(one)
    inner = 1 - 14 * s**2 - 12 * e**2 * s**2 + 12 * e * s**3 + 12 * e * s + s**4
    above = math.sqrt(max(inner, 0.0)) - 1 + 6 * s - 6 * e * s**2 + s**2
    return math.floor(above / (6 * s * (1 - e * s)) + 0.5)
