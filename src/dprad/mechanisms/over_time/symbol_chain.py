"""Randomised response over time: one value kept for all reports, and randomised in each.

The first round replaces the value by m with chance p1 (the value itself) or q1 (each other); every
report then shows m with chance p2 or any other with q2. How often each value was reported tells
all: with A = p1/q1, b = p2/q2 and n_m reports of m, the likelihood of x is proportional to

    (A - 1) b^(n_x) + sum_m b^(n_m) .
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms.over_time.base import (
    Budgeted,
    PerValue,
    blocks,
    compositions,
    log_factorials,
    picked,
    times_log,
)
from dprad.numerics.arrays import Column, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolChain(Budgeted):
    """Common to L-GRR and LOLOHA; subclasses define how many symbols are reported."""

    published: bool = False

    def __post_init__(self) -> None:
        Budgeted.__post_init__(self)
        if not isinstance(self.published, bool):
            raise DpradError(f"published must be True or False, but is {self.published!r}.")

    @property
    def symbols(self) -> int:
        """What is reported: one of 0 .. symbols-1."""
        return self.size

    @property
    def log_b(self) -> float:
        """``ln b``: of the second round as published, or of the one that gives epsilon_one."""
        inf, one, g = self.epsilon_inf, self.epsilon_one, self.symbols
        below = -math.expm1(one - inf)  # (A - E)/A
        if self.published:
            return math.log(-math.expm1(-inf - one) / below) + one
        # b - 1 = (E - 1)(A + g - 1)/(A - E)
        rise = math.expm1(one) * (1.0 + (g - 1) * math.exp(-inf)) / below
        return math.log1p(rise)

    @property
    def rounds(self) -> tuple[float, float, float, float]:
        """p1, q1, p2, q2."""
        return (*_response(self.epsilon_inf, self.symbols), *_response(self.log_b, self.symbols))

    def epsilon_after(self, reports: int) -> float:
        """``ln[(A b^R + g - 1)/(b^R + A + g - 2)]``: one value reported always."""
        a, power, g = self.epsilon_inf, reports * self.log_b, self.symbols
        top = np.logaddexp(a + power, _log(g - 1))
        return float(top - np.logaddexp(power, np.logaddexp(a, _log(g - 2))))

    def log_block(self, counts: IntArray, symbol: Any) -> FloatArray:
        """Log-probability of some reports in their order, by how often they show each symbol."""
        return self.log_shown(counts, counts[..., symbol])

    def log_shown(self, counts: IntArray, own: IntArray) -> FloatArray:
        """The same, given how often they show the true symbol."""
        _, q1, _, q2 = self.rounds
        shown = counts * self.log_b
        top = shown.max(axis=-1)
        every = top + np.log(np.exp(shown - top[..., None]).sum(axis=-1))
        start = math.log(q1) + times_log(counts.sum(axis=-1), q2)
        raised = math.log(math.expm1(self.epsilon_inf)) + own * self.log_b
        return np.asarray(start + np.logaddexp(raised, every))

    def log_steady(self, counts: IntArray, symbols: IntArray) -> FloatArray:
        """Log-probability of counts where the symbol stays the same; broadcasts."""
        once = counts[..., 0, :]
        log = self.log_shown(once, picked(once, symbols))
        return np.asarray(self.log_orders(counts) + log)

    def log_orders(self, counts: IntArray) -> FloatArray:
        """Log-number of orders in which the reports of each period can come."""
        ways = log_factorials(self.each)
        return np.asarray((ways[-1] - ways[counts].sum(axis=-1)).sum(axis=-1))

    def _drawn(self, symbols: IntArray, rng: np.random.Generator) -> IntArray:
        """Counts per person, period and symbol, from the true symbol in each period."""
        p1, _, p2, _ = self.rounds
        people, g = len(symbols), self.symbols
        kept = symbols.copy()
        for t in range(self.periods):
            lies = rng.random(people) >= p1
            if g > 1:
                kept[lies, t] = (kept[lies, t] + rng.integers(1, g, size=int(lies.sum()))) % g
            for earlier in range(t):
                again = symbols[:, t] == symbols[:, earlier]
                kept[again, t] = kept[again, earlier]
        true = rng.binomial(self.each, min(p2, 1.0), size=kept.shape)
        counts = np.zeros((people, self.periods, g), dtype=np.intp)
        np.put_along_axis(counts, kept[..., None], true[..., None], axis=-1)
        if g > 1:
            # the others are equally likely
            left = (self.each - true).reshape(-1)
            cell = np.repeat(np.arange(left.size), left)
            shift = rng.integers(1, g, size=len(cell))
            other = (kept.reshape(-1)[cell] + shift) % g
            np.add.at(counts.reshape(-1, g), (cell, other), 1)
        return counts

    @property
    def _lists(self) -> int:
        """Counts of reports over all periods."""
        each = math.comb(self.each + self.symbols - 1, self.symbols - 1)
        return int(each**self.periods)

    def _listed(self) -> IntArray:
        rows = compositions(self.each, self.symbols)
        place = (
            np.arange(self._lists)[:, None] // len(rows) ** np.arange(self.periods)
        ) % len(rows)  # fmt: skip
        return np.asarray(rows[place])

    def _counted(self, reports: Any) -> IntArray:
        """Reports ``[person, report]`` as counts."""
        given = np.asarray(reports)
        fits = given.dtype.kind in "iu" and given.shape[1:] == (self.reports,)
        if not fits or (given.size and not 0 <= given.min() <= given.max() < self.symbols):
            raise DpradError(
                f"run must return {self.reports} reports, each a number from 0 to "
                f"{self.symbols - 1}, as {type(self).__name__} does."
            )
        parts = given.reshape(len(given), self.periods, self.each)
        return np.asarray((parts[..., None] == np.arange(self.symbols)).sum(axis=2), dtype=np.intp)


class DirectChain(SymbolChain, PerValue):
    """The symbols are the values. Outputs are counts of reports, ``[person, period, value]``."""

    __slots__ = ()

    def log_of(self, outputs: IntArray, sequence: IntArray) -> FloatArray:
        """The product over blocks of periods with the same value."""
        total = self.log_orders(outputs)
        for value, periods in blocks(sequence):
            total = total + self.log_block(outputs[..., periods, :].sum(axis=-2), value)
        return np.asarray(total)

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """Counts of reports per person, period and value. O(n (values + reports))."""
        return self._drawn(self.sequences(np.asarray(records).reshape(-1)), rng)

    @property
    def outcomes(self) -> int:
        """All counts."""
        return self._lists

    def matrix(self, points: Column) -> FloatArray:
        """All counts of all values."""
        outputs = self._listed()
        return np.exp(np.stack([self.log_of(outputs, s) for s in self.sequences(points)]))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records; broadcasts. O(values + records) per output
        where the value stays the same.
        """
        if self.periods > 1:
            return super().log_likelihood(outputs, records)
        return self.log_steady(np.asarray(outputs), np.asarray(records))

    def understood(self, outputs: Any, support: Column) -> IntArray:
        """Reports in the order of time, ``[person, report]``, as values or codes."""
        given = np.asarray(outputs)
        values = support.tolist()
        if given.ndim == 2 and values != list(range(self.size)) and self.periods == 1:
            code = {v: i for i, v in enumerate(values)}
            try:
                given = np.array([[code[v] for v in row] for row in given.tolist()])
            except (KeyError, TypeError):
                raise DpradError("run must return values of the prior, as LGRR does.") from None
        return self._counted(given)

    def checked(self, outputs: Any) -> IntArray:
        """Counts, ``[person, period, value]``."""
        return checked_counts(self, outputs)

    @property
    def pair_tv(self) -> float:
        """Of the counts of two values and the rest: exact."""
        if self.size < 2 or self.periods > 1:
            return 0.0 if self.size < 2 else 1.0
        p1, q1, _, _ = self.rounds
        return float((p1 - q1) * apart(self, self.each))


def apart(chain: SymbolChain, reports: int) -> float:
    """The total variation of the second round alone between two kept symbols. O(reports^2)."""
    _, _, p2, q2 = chain.rounds
    ways = log_factorials(reports)
    one, two = np.meshgrid(np.arange(reports + 1), np.arange(reports + 1), indexing="ij")
    rest = reports - one - two
    real = rest >= 0
    rest = np.maximum(rest, 0)
    orders = ways[-1] - ways[one] - ways[two] - ways[rest]
    others = times_log(rest, max(1.0 - p2 - q2, 0.0))
    first = orders + times_log(one, p2) + times_log(two, q2) + others
    second = orders + times_log(one, q2) + times_log(two, p2) + others
    gap = np.abs(np.exp(first) - np.exp(second))
    return float(gap[real].sum() / 2)


def checked_counts(chain: SymbolChain, outputs: Any) -> IntArray:
    """Counts of reports that add up, or a `DpradError`."""
    given, shape = np.asarray(outputs), (chain.periods, chain.symbols)
    fits = given.dtype.kind in "iu" and given.ndim == 3 and given.shape[1:] == shape
    if not fits or np.any(given < 0) or np.any(given.sum(axis=-1) != chain.each):
        raise DpradError(
            f"outputs of {type(chain).__name__} are counts of reports that sum to {chain.each} for "
            f"each person and period ({chain.periods}), over {chain.symbols} symbols."
        )
    return given.astype(np.intp)


def _response(log_ratio: float, size: int) -> tuple[float, float]:
    """Truth and lie of randomised response."""
    shrink = math.exp(-log_ratio)
    return 1.0 / (1.0 + (size - 1) * shrink), shrink / (1.0 + (size - 1) * shrink)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
