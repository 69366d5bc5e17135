"""The table releases by name: counts, several tables of counts, sums, a mean, a histogram."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dprad.errors import DpradError, interval, number
from dprad.mechanisms.tables.keys import Keyed
from dprad.mechanisms.tables.noise import Noise
from dprad.mechanisms.tables.release import TableRelease, columns, described
from dprad.mechanisms.tables.table import Table
from dprad.model.guarantees import REPLACE_ONE
from dprad.model.parameters import CLAMP, DELTA, THRESHOLD

_NOBODY = (
    "the number of all people does not change when one is replaced: name columns with by=, say "
    "with where= who is counted, or compare data sets with neighbours='add-remove'."
)


@dataclass(frozen=True, kw_only=True)
class Counts(Keyed):
    """A table of counts: how many people are in each cell.

    Parameters
    ----------
    by
        The columns that make a cell; empty for one number, the people for whom `where` holds.

    Examples
    --------
    >>> from dprad import assess
    >>> from dprad.data import patients
    >>> smokers = Counts(where={"smoker": "yes"}, epsilon=1.0, neighbours="add-remove")
    >>> risk = assess(smokers, prior=patients.prior(["smoker"]))
    >>> round(risk.rad, 3), risk.kind
    (0.105, 'exact')

    """

    by: Sequence[str] = ()
    card: ClassVar = described("counts", "a table of counts", "by", THRESHOLD, DELTA)

    def _check(self) -> None:
        self._set("by", columns(self.by, "by"))
        if not self.by and self.where is None and self.neighbours == REPLACE_ONE:
            raise DpradError(_NOBODY)
        self._keys()

    @property
    def tables(self) -> tuple[Table, ...]:
        """One."""
        return (Table(by=tuple(self.by), where=self.where),)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Marginals(Keyed):
    """Several tables of counts about the same people, such as block, tract and state.

    Parameters
    ----------
    by
        For each table the columns that make its cells.

    Examples
    --------
    >>> both = Marginals([["age"], ["age", "region"]], noise="gaussian", rho=0.5,
    ...                  neighbours="add-remove", weights=[1, 3])
    >>> round(both.stated.mu, 12)
    1.0

    """

    by: Sequence[Sequence[str]] = field(kw_only=False)
    card: ClassVar = described(
        "marginals", "several tables of counts", "by", THRESHOLD, DELTA
    )  # fmt: skip

    def _check(self) -> None:
        given = self.by
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            raise DpradError(
                "a list of tables is needed, each a list of columns, as in [['age'], ['age', "
                f"'region']], but got {given!r}."
            )
        tables = tuple(columns(names, "each table") for names in given)
        if not all(tables):
            raise DpradError("each table must name at least one column, but one is empty.")
        for k, names in enumerate(tables):
            if set(names) in map(set, tables[:k]):
                raise DpradError(
                    f"the table of {', '.join(names)} is there twice. To publish it repeatedly, "
                    "use times=."
                )
        self._set("by", tables)
        self._keys()

    @property
    def tables(self) -> tuple[Table, ...]:
        """One for each list of columns."""
        return tuple(Table(by=tuple(by), where=self.where) for by in self.by)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Sums(TableRelease):
    """Sums of a column, in total or by cell.

    Parameters
    ----------
    of
        The column that is summed.
    clamp
        The interval to which each person's value is moved first.
    by
        The columns that make a cell; default: one sum.

    Examples
    --------
    >>> incomes = Sums(of="income", clamp=(0, 200_000), epsilon=1.0, neighbours="replace-one")
    >>> incomes.noises[0].scale
    200000.0

    """

    of: str
    clamp: tuple[float, float]
    by: Sequence[str] = ()
    card: ClassVar = described("sums", "sums", "of", "by", CLAMP)

    def _check(self) -> None:
        self._set("of", _column(self.of))
        self._set("by", columns(self.by, "by"))
        self._set("clamp", interval(self.clamp, "clamp"))
        ends = self.clamp
        if Noise(self.noise, 1.0).whole and any(end != int(end) for end in ends):
            raise DpradError(f"clamp must be whole numbers with {self.noise} noise, but is {ends}.")

    @property
    def tables(self) -> tuple[Table, ...]:
        """One."""
        return (self._summed(),)

    def _summed(self) -> Table:
        return Table(by=tuple(self.by), of=self.of, clamp=self.clamp, where=self.where)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Mean(Sums):
    """The mean of a column: a noisy sum and a noisy count, whose quotient it is.

    The number of people does not change when one is replaced. So with these neighbours, and without
    `by` and `where`, it is taken as known, and all noise goes to the sum. If only the quotient is
    published, the risk is at most that of the pair.

    Parameters
    ----------
    of
        The column.
    clamp
        The interval to which each person's value is moved first.
    by
        The columns that make a cell; default: one mean.

    Examples
    --------
    >>> hours = Mean(of="hours", clamp=(0, 80), epsilon=1.0, neighbours="add-remove")
    >>> [noise.scale for noise in hours.noises]
    [160.0, 2.0]

    """

    card: ClassVar = described("mean", "a mean", "of", "by", CLAMP)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The sum, and the count unless it is known."""
        if self.neighbours == REPLACE_ONE and not self.by and self.where is None:
            return (self._summed(),)
        return self._summed(), Table(by=tuple(self.by), where=self.where)  # type: ignore[arg-type]

    def error(self, confidence: float = 0.95) -> None:  # noqa: ARG002
        """Not known: it depends on the number of people."""
        return


@dataclass(frozen=True, kw_only=True)
class Histogram(TableRelease):
    """Counts of people by bins of a number.

    Parameters
    ----------
    of
        The column of numbers.
    bins
        Ascending edges. A bin contains its lower edge, the last one also its upper edge; who lies
        outside is not counted.

    Examples
    --------
    >>> ages = Histogram(of="age", bins=[0, 20, 40, 60, 80, 120], epsilon=1.0,
    ...                  neighbours="replace-one")
    >>> ages.noises[0].scale
    2.0

    """

    of: str
    bins: Sequence[float]
    card: ClassVar = described("histogram", "a histogram", "of", "bins")

    def _check(self) -> None:
        self._set("of", _column(self.of))
        try:
            edges = tuple(number(edge, "bins") for edge in self.bins)
        except TypeError:
            edges = ()
        if len(edges) < 2 or any(b <= a for a, b in itertools.pairwise(edges)):
            raise DpradError(
                "bins must be two or more ascending edges, fixed before the data is seen, but is "
                f"{self.bins!r}."
            )
        self._set("bins", edges)

    @property
    def tables(self) -> tuple[Table, ...]:
        """One."""
        return (Table(of=self.of, edges=tuple(self.bins), where=self.where),)  # type: ignore[arg-type]


def _column(name: Any) -> str:
    if not isinstance(name, str):
        raise DpradError(f"of must name one column, but is {name!r}.")
    return name
