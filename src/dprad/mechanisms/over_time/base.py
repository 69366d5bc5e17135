"""Memoised protocols: noise that is drawn once per value, and fresh noise in every report.

The first round is drawn once for each distinct value of a person and kept; every report adds a
second round to it. However many reports an attacker sees, they cannot learn more than the first
round would tell, `epsilon_inf`; one report by itself promises `epsilon_one`.

A value that stays the same is one code. With `periods`, every column that is read is one point in
time, with an equal share of the reports, and a code is a sequence of values, a number in base
`size`, first period first. Outputs are the counts that matter: order within a period tells nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.data.tables import codes as coded
from dprad.errors import DpradError, number, whole
from dprad.game.query import columns_read
from dprad.game.question import Question
from dprad.mechanisms.base import quotient
from dprad.mechanisms.categorical import categories
from dprad.mechanisms.listed import Listed
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON_INF, EPSILON_ONE, PERIODS, REPORTS
from dprad.numerics.arrays import Column, FloatArray, IntArray

# Largest epsilon: beyond it, 1 - p1 loses digits that the promise needs.
HIGHEST = 30.0
# Most reports: counts of them are listed, or drawn one by one.
MOST_REPORTS = 1e6
# Probabilities compared when the promise for changing values is sought.
SEARCHED = 2**22


class Memoised(Listed):
    """Common to all protocols over time; subclasses define their two rounds.

    `reports` is the number of reports an attacker sees, over `periods` points in time.
    """

    __slots__ = ()
    size: int
    reports: int
    periods: int

    # -- what is read --------------------------------------------------------------------------
    @property
    def each(self) -> int:
        """Reports in one period."""
        return self.reports // self.periods

    @property
    def reads_codes(self) -> int:
        """All values, or all sequences of values."""
        return int(self.size**self.periods)

    def read(self, question: Question) -> Column:
        """Codes of the values; with `periods`, of the sequences in as many columns."""
        name = type(self).__name__
        if self.periods == 1:
            return question.codes(self.size, name)
        prior = question.prior
        columns = () if callable(question.query) else columns_read(
            prior, question.threat, question.query
        )  # fmt: skip
        if len(columns) != self.periods:
            raise DpradError(
                f"{name} with periods={self.periods} reads as many columns, one per point in time, "
                f"but got {len(columns)}. Name them with query=."
            )
        read = [prior.column(c) for c in columns]
        code, values = coded(np.concatenate(read))
        if len(values) != self.size:
            raise DpradError(
                f"{name} has size {self.size}, but these columns hold {len(values)} distinct "
                f"values. Use size {len(values)}."
            )
        by_time = np.asarray(code, dtype=np.intp).reshape(self.periods, -1)
        return self.joined(by_time.T)

    def joined(self, sequences: Any) -> IntArray:
        """The code of each row of values."""
        return np.asarray(sequences, dtype=np.intp) @ (self.size ** np.arange(self.periods))

    def sequences(self, codes: Any) -> IntArray:
        """The values of each code, one column per period."""
        given = categories(codes, self.reads_codes, type(self).__name__)
        return (given[..., None] // self.size ** np.arange(self.periods)) % self.size

    @classmethod
    def arguments(cls, values: Column | range, given: dict[str, Any]) -> dict[str, Any]:
        """The number of values, in any of the periods."""
        if isinstance(values, range) or given.get("periods", 1) == 1:
            return {**given, "size": len(values)}
        flat = {v for row in values.tolist() for v in (row if isinstance(row, tuple) else (row,))}
        return {**given, "size": len(flat)}

    # -- likelihood ----------------------------------------------------------------------------
    @abstractmethod
    def log_of(self, outputs: Any, sequence: IntArray) -> FloatArray:
        """Log-probability of outputs given one sequence of values."""

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records; broadcasts. One pass per distinct record."""
        found, at = np.unique(np.asarray(records), return_inverse=True)
        at = at.reshape(np.shape(records))
        rows = [self.log_of(outputs, sequence) for sequence in self.sequences(found)]
        table = np.stack(rows, axis=-1)
        shape = np.broadcast_shapes(table.shape[:-1], at.shape)
        table = np.broadcast_to(table, (*shape, len(found)))
        place = np.broadcast_to(at, shape)[..., None]
        return np.asarray(np.take_along_axis(table, place, axis=-1)[..., 0])

    # -- what must hold ------------------------------------------------------------------------
    @property
    def assumes(self) -> str:
        """How much is seen."""
        return seen(self)

    # -- promise -------------------------------------------------------------------------------
    @abstractmethod
    def epsilon_after(self, reports: int) -> float:
        """The promise after this many reports about one value that stays the same."""

    @property
    def guarantee(self) -> PureDP | None:
        """Of all reports; None if one can rule a value out. For values that change, the largest
        ratio over all pairs of sequences, if they are few enough to be compared, else None: it
        grows with the number of values, since memoised noise also shows when a value has changed.
        """
        if self.periods == 1:
            epsilon = self.epsilon_after(self.reports) if self.size > 1 else 0.0
            return PureDP(epsilon, neighbours=REPLACE_ONE) if np.isfinite(epsilon) else None
        if self.reads_codes * self.outcomes > SEARCHED:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(self.matrix(np.arange(self.reads_codes)))
            seen = np.isfinite(logs).any(axis=0)
            span = logs[:, seen].max(axis=0) - logs[:, seen].min(axis=0)
        most = float(span.max())
        return PureDP(most, neighbours=REPLACE_ONE) if np.isfinite(most) else None


class PerValue(Memoised):
    """Protocols that count something for each value: outputs are ``[person, period, value]``."""

    __slots__ = ()

    @property
    @abstractmethod
    def rounds(self) -> tuple[float, float, float, float]:
        """p1, q1, p2, q2."""

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value from one report of each person."""
        return rare_variance(self.rounds, people)

    def estimate(self, outputs: Any) -> FloatArray:
        """The estimated share of each value in each period, from the outputs of many people.

        Parameters
        ----------
        outputs
            Counts, as `sample` returns them.

        Returns
        -------
        ndarray
            One row per period, one column per value; unbiased, so it may be below 0 or above 1.

        """
        p1, q1, p2, q2 = self.rounds
        share = self.checked(outputs).mean(axis=0) / self.each
        return np.asarray((share - q1 * (p2 - q2) - q2) / ((p1 - q1) * (p2 - q2)))


def rare_variance(rounds: tuple[float, float, float, float], people: int) -> float:
    """Of the estimated frequency of a rare value, by how often one report of each shows it."""
    p1, q1, p2, q2 = rounds
    shown = q1 * (p2 - q2) + q2
    return quotient(shown * (1 - shown), people * ((p1 - q1) * (p2 - q2)) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgeted(Memoised):
    """Protocols whose two rounds are set by two budgets; `epsilon_one` is half of `epsilon_inf`, if
    not given.
    """

    size: int
    epsilon_inf: float
    epsilon_one: float = None  # type: ignore[assignment]
    reports: int = 1
    periods: int = 1

    noise: ClassVar = EPSILON_INF

    def __post_init__(self) -> None:
        check(self)
        total = number(self.epsilon_inf, "epsilon_inf", low=0, high=HIGHEST)
        given = self.epsilon_one
        one = total / 2 if given is None else number(given, "epsilon_one", low=0, high=HIGHEST)
        if not 0 < one < total:
            raise DpradError(
                f"epsilon_one must be above 0 and below epsilon_inf, but epsilon_one = {one:g} and "
                f"epsilon_inf = {total:g}."
            )
        object.__setattr__(self, "epsilon_inf", total)
        object.__setattr__(self, "epsilon_one", one)


# What they take on the command line.
BUDGETS = (EPSILON_INF, EPSILON_ONE, REPORTS, PERIODS)


def seen(mechanism: Memoised) -> str:
    """What an attacker is assumed to see, so that nobody takes one report for all of them."""
    reports, periods = mechanism.reports, mechanism.periods
    if reports == 1:
        return (
            "The attacker sees a single report of each person. Further reports add to the risk, "
            "even if the value stays the same; `reports` says how many are seen."
        )
    when = "all about the same value" if periods == 1 else f"{mechanism.each:,} in each period"
    return f"The attacker sees at most {reports:,} reports of each person, {when}."


def check(mechanism: Any) -> None:
    """Validate the number of values, of reports and of periods."""
    checked = {
        "size": whole(mechanism.size, "size", low=1),
        "reports": whole(mechanism.reports, "reports", low=1, high=MOST_REPORTS),
        "periods": whole(mechanism.periods, "periods", low=1),
    }
    for name, value in checked.items():
        object.__setattr__(mechanism, name, value)
    if mechanism.reports % mechanism.periods:
        raise DpradError(
            f"reports must be a multiple of periods, but reports = {mechanism.reports} and "
            f"periods = {mechanism.periods}."
        )
    if mechanism.size**mechanism.periods >= 2**62:
        raise DpradError(
            f"{mechanism.size} values over {mechanism.periods} periods are too many sequences."
        )


def blocks(keys: Any) -> list[tuple[int, list[int]]]:
    """For each distinct key, and the periods that have it, in the order of their first one."""
    found: dict[int, list[int]] = {}
    for period, key in enumerate(np.asarray(keys).tolist()):
        found.setdefault(key, []).append(period)
    return list(found.items())


def log_factorials(n: int) -> FloatArray:
    """Logarithms of 0!, 1!, ..., n!."""
    return np.asarray(np.r_[0.0, np.cumsum(np.log(np.arange(1, n + 1)))])


def times_log(count: Any, p: float) -> FloatArray:
    """``count ln p``, 0 where the count is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(np.asarray(count) > 0, count * np.log(p), 0.0))


def picked(counts: IntArray, places: Any) -> IntArray:
    """The count at each place (last axis); broadcasts over the other axes."""
    shape = np.broadcast_shapes(counts.shape[:-1], np.shape(places))
    every = np.broadcast_to(counts, (*shape, counts.shape[-1]))
    at = np.broadcast_to(places, shape)[..., None]
    return np.asarray(np.take_along_axis(every, at, axis=-1)[..., 0])


def compositions(total: int, parts: int) -> IntArray:
    """All ways to write `total` as a sum of `parts` counts, one row each."""
    rows = np.array([[total]])
    for k in range(parts - 1):
        # split the last count in all ways
        last = rows[:, -1]
        repeated = np.repeat(rows, last + 1, axis=0)
        begin = np.repeat(np.cumsum(last + 1) - (last + 1), last + 1)
        first = np.arange(len(repeated)) - begin
        rows = np.column_stack([repeated[:, :k], first, repeated[:, -1] - first])
    return rows
