"""Prior: what is known about the population before the release.

A finite table of records with probabilities, a continuous distribution on an interval, or unknown.
Values with probability zero stay in the support: they can be guessed, and they can be the centre
of a success set. A prior counted from n rows is itself an estimate: its kappa overstates the true
one by about (1 - kappa) / n.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from dprad.data.files import Limits
from dprad.data.tables import count
from dprad.data.text import Written
from dprad.errors import DpradError, check_columns, column, one_of, whole
from dprad.model.continuous import between, continuous_range
from dprad.model.listing import MOST, Equal, Listed, alike
from dprad.model.missing import COUNTED, POLICIES, Missing, settled
from dprad.model.records import normalised, probabilities_of, split, weights_of
from dprad.numerics.arrays import Column, FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prior:
    """Records and their probabilities. Use one of the constructors below.

    Parameters
    ----------
    columns
        Names of the columns of a record.
    records
        The records and their probabilities; None if not finite.
    continuous_on
        ``(distribution, low, high)`` of a continuous prior, else None.
    rows
        Number of rows, or of people, it was counted from, else None.
    missing
        Missing values of the table it was counted from, and what was done about them, else None.
    whole
        Whether the table it was counted from is the whole population.

    Examples
    --------
    >>> prior = Prior.from_counts({"no": 3, "yes": 1})
    >>> prior.kappa          # 0.75^2 + 0.25^2
    0.625

    """

    columns: tuple[str, ...]
    records: Listed | Equal | None
    continuous_on: tuple[Any, float, float] | None = field(default=None, kw_only=True)
    rows: int | None = field(default=None, kw_only=True)
    missing: Missing | None = field(default=None, kw_only=True)
    whole: bool = field(default=False, kw_only=True)

    # -- constructors --------------------------------------------------------------------------
    @classmethod
    def uniform(cls, size: int) -> Prior:
        """The values 0 .. size-1, equally likely: a finite prior.

        They are listed only where a question needs them one by one, so that there may be very many.

        Parameters
        ----------
        size
            The number of possible values.

        Examples
        --------
        >>> Prior.uniform(4).kappa
        0.25

        """
        m = whole(size, "size", low=1, high=MOST, hint="It is the number of possible values.")
        return cls(("value",), Equal(m))

    @classmethod
    def from_probabilities(
        cls,
        probabilities: Iterable[float],
        *,
        support: Iterable[Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Prior:
        """A prior from probabilities that sum to 1.

        Parameters
        ----------
        probabilities
            Probabilities of the values 0, 1, ... or of the records in `support`.
        support
            The records, each listed once; tuples if there are several columns.
        columns
            Names of the columns.

        Returns
        -------
        Prior
            A finite prior.

        Examples
        --------
        >>> Prior.from_probabilities([0.75, 0.25], support=["no", "yes"]).kappa
        0.625

        """
        weights = probabilities_of(probabilities)
        records = range(len(weights)) if support is None else list(support)
        if len(records) != len(weights):
            raise DpradError(
                f"support must have one record per probability, but has {len(records)} for "
                f"{len(weights)} probabilities."
            )
        return cls._of(*split(records, columns), weights)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[Any, float],
        *,
        columns: Sequence[str] | None = None,
        domain: Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
        whole: bool = False,
    ) -> Prior:
        """A prior from ``{value: weight}``.

        Parameters
        ----------
        counts
            A mapping from value to weight; tuples as keys are records with several columns. Whole
            numbers (``int``) are people who were counted: few of them say little about a
            population. Other weights are shares: write 3.0, or 0.3.
        columns
            Names of the columns.
        domain
            Possible values, observed or not; see `from_data`.
        whole
            Whether the people who were counted are the whole population.

        Returns
        -------
        Prior
            A finite prior.

        Examples
        --------
        >>> Prior.from_counts({("old", "ill"): 1, ("young", "well"): 3}, columns=["age", "health"])
        Prior(2 records of age, health; kappa=0.625)

        """
        if not isinstance(counts, Mapping):
            raise DpradError(
                f"counts must be a mapping from value to weight, but is a {type(counts).__name__}."
            )
        names, arrays = split(list(counts), columns)
        prior = cls._of(names, arrays, weights_of(counts.values(), "counts"), domain)
        if not all(isinstance(n, int | np.integer) for n in counts.values()):
            return replace(prior, whole=whole)
        rows, single = sum(map(int, counts.values())), sum(n == 1 for n in counts.values())
        gaps = Missing((), rows, 0, COUNTED, single / rows)
        return replace(prior, rows=rows, missing=gaps, whole=whole)

    @classmethod
    def from_data(
        cls,
        data: Any,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        missing: str = "keep",
        domain: Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
        glob: bool = False,
        encoding: str | None = None,
        decimal: str = ".",
        whole: bool = False,
        limits: Limits | None = None,
    ) -> Prior:
        """Count the rows of a data frame, or of a CSV or Parquet file.

        Parameters
        ----------
        data
            pandas, polars, pyarrow, DuckDB, Dask or Spark frame, or a path (``.csv``, ``.csv.gz``,
            ``.tsv``, ``.parquet``), which may be larger than memory. A path is taken literally.
        columns
            The columns that make up a record; default: all but `weight`.
        weight
            A column of survey weights.
        missing
            ``"keep"`` counts a missing value as a category of its own (None), ``"drop"`` skips such
            rows, ``"refuse"`` raises. ``prior.missing`` says how many there were.
        domain
            Possible values, observed or not: an iterable for one column, a mapping from column to
            values for several (the support is then the product).
        glob
            Whether ``*``, ``?`` and ``[...]`` in a path stand for several files.
        encoding
            Encoding of a CSV file that is not in UTF-8, such as ``"latin-1"`` or ``"utf-16"``.
        decimal
            ``","`` if a CSV file has decimal commas.
        whole
            Whether the rows are the whole population; a sample with many unique rows says little.
        limits
            Limits on columns, rows, distinct records and seconds, beyond which a file is refused.

        Returns
        -------
        Prior
            A finite prior.

        Examples
        --------
        >>> import pandas as pd
        >>> Prior.from_data(pd.DataFrame({"smoker": ["no", "no", "no", "yes"]})).kappa
        0.625

        """
        one_of(missing, "missing", POLICIES)
        written = Written.of(encoding, decimal)
        names, arrays, weights, rows, squares = count(
            data, columns=columns, weight=weight, glob=glob, limits=limits, written=written
        )
        arrays, weights, gaps = settled(names, arrays, weights, rows, squares, missing)
        prior = cls._of(tuple(names), arrays, weights, domain)
        left = gaps.rows - gaps.dropped
        return replace(prior, rows=left, missing=gaps, whole=whole)

    @classmethod
    def continuous(cls, distribution: Any, low: float, high: float) -> Prior:
        """A continuous prior: a scipy distribution, truncated to [low, high] and renormalised.

        Parameters
        ----------
        distribution
            A frozen continuous scipy distribution.
        low
            Lower end.
        high
            Upper end.

        Returns
        -------
        Prior
            A continuous prior.

        Examples
        --------
        >>> from scipy import stats
        >>> Prior.continuous(stats.norm(50, 10), 0, 100)
        Prior(continuous on [0, 100])

        """
        a, b = continuous_range(distribution, low, high)
        return cls(("value",), None, continuous_on=(distribution, a, b))

    @classmethod
    def unknown(cls) -> Prior:
        """Assume nothing about the population: every answer holds for every prior.

        Returns
        -------
        Prior
            An unknown prior, for guarantees only.

        Examples
        --------
        >>> Prior.unknown().kind
        'unknown'

        """
        return cls((), None)

    @classmethod
    def _of(
        cls,
        columns: tuple[str, ...],
        arrays: Sequence[Column],
        weights: FloatArray,
        domain: Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
    ) -> Prior:
        check_columns(columns)
        return cls(columns, Listed(*normalised(columns, arrays, weights, domain)))

    # -- properties ----------------------------------------------------------------------------
    @property
    def support(self) -> Column | None:
        """The records, sorted by their columns: an array of values if there is one column, a
        structured array (``support["age"]``) if there are several. None if not finite.
        """
        return None if self.records is None else self.records.support

    @property
    def probabilities(self) -> FloatArray | None:
        """One per record. None if not finite."""
        return None if self.records is None else self.records.probabilities

    @property
    def kind(self) -> str:
        """``"finite"``, ``"continuous"`` or ``"unknown"``."""
        if self.records is not None:
            return "finite"
        return "unknown" if self.continuous_on is None else "continuous"

    @property
    def size(self) -> int | None:
        """Number of records in the support; None if not finite."""
        return None if self.records is None else self.records.size

    @property
    def table(self) -> FloatArray:
        """The probabilities of a finite prior; a `DpradError` for any other."""
        if self.records is None:
            raise DpradError(f"a table of records is needed here, but the prior is {self.kind}.")
        return self.records.probabilities

    @property
    def kappa(self) -> float:
        """Probability that two independent draws are the same record; 0 if not finite."""
        return 0.0 if self.records is None else self.records.kappa

    @property
    def unlike(self) -> float:
        """Probability that two independent draws differ: ``1 - kappa``, without cancellation."""
        return 1.0 if self.records is None else self.records.unlike

    @property
    def doubt(self) -> str:
        """Why the counted rows say little about the population; empty if nothing speaks against
        them, or if they are all of it. One value alone does wherever it comes from.
        """
        if self.whole or self.records is None:
            return ""
        if self.records.alone:
            return "it has only one value" if self.missing is None else "all rows are alike"
        return "" if self.missing is None else self.missing.doubt(self.rows or 0)

    def cells(self, edges: FloatArray) -> FloatArray:
        """Probabilities of the cells between ascending edges, for a continuous prior."""
        assert self.continuous_on is not None
        distribution, low, high = self.continuous_on
        inside = between(distribution, np.clip(edges, low, high))
        return inside / float(between(distribution, np.array([low, high]))[0])

    def column(self, name: str) -> Column:
        """The values of one column.

        Parameters
        ----------
        name
            Name of the column.

        Returns
        -------
        ndarray
            One value per record of the support.

        Examples
        --------
        >>> Prior.from_counts({"no": 3, "yes": 1}).column("value").tolist()
        ['no', 'yes']

        """
        support = self.support
        if support is None:
            raise DpradError(f"column needs a table of records, but the prior is {self.kind}.")
        column(name, self.columns, name="column")
        return support if len(self.columns) == 1 else support[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prior):
            return NotImplemented
        if self is other:
            return True
        if (self.columns, self.rows, self.size) != (other.columns, other.rows, other.size):
            return False
        if self.continuous_on is not None or other.continuous_on is not None:
            return self.continuous_on == other.continuous_on
        return alike(self.records, other.records)

    def __hash__(self) -> int:
        ends = () if self.records is None else self.records.ends
        return hash((self.columns, self.rows, self.size, ends))

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"

    def __repr__(self) -> str:
        if self.kind == "finite":
            names = ", ".join(self.columns)
            return f"Prior({self.size} records of {names}; kappa={self.kappa:.6g})"
        if self.continuous_on is not None:
            return f"Prior(continuous on [{self.continuous_on[1]:g}, {self.continuous_on[2]:g}])"
        return "Prior(unknown)"
