"""Missing values of a table: how many each column had, and what was done about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprad.data.tables import array
from dprad.errors import DpradError
from dprad.numerics.arrays import Column, FloatArray, IntArray

POLICIES = KEEP, DROP, REFUSE = "keep", "drop", "refuse"
# Of people who were counted already.
COUNTED = "counted"
# Most columns that a sentence names.
NAMED = 5
# Fewer counted rows, or a larger share of them that are unique, say little about the population.
FEW, ALONE = 100, 0.2


@dataclass(frozen=True, slots=True)
class Missing:
    """Missing values that were counted.

    Parameters
    ----------
    counts
        Pairs (column, rows in which it is missing), for columns with missing values.
    rows
        Number of rows.
    dropped
        Rows that were left out.
    policy
        ``"keep"``, ``"drop"``, or ``"counted"``: there were no rows to look at.
    single
        Share of the rows that count, by weight, that are the only ones of their kind.
    worth
        How many rows of equal weight would tell as much (Kish's effective number); None if weights
        are equal.

    Examples
    --------
    >>> Missing((("age", 12),), rows=100, dropped=12, policy="drop").sentence()
    "About 10% of the values of 'age' are missing; those rows were left out."

    """

    counts: tuple[tuple[str, int], ...]
    rows: int
    dropped: int
    policy: str
    single: float = 0.0
    worth: float | None = None

    def doubt(self, rows: int) -> str:
        """Why so many rows say little about the population; roughly, and empty if they may do."""
        if rows < FEW:
            if self.policy == COUNTED:
                return f"fewer than {FEW} people were counted (shares are written 3.0, not 3)"
            return f"there are fewer than {FEW} rows"
        if self.worth is not None and not self.worth >= FEW:
            return f"few rows weigh most: they tell as much as fewer than {FEW} of equal weight"
        if self.single <= ALONE:
            return ""
        share = round(self.single * 20) * 5
        what = (
            "people are the only ones of their kind"
            if self.policy == COUNTED
            else "rows are unique"
        )
        return f"about {share}% of the {int(float(f'{rows:.2g}')):,} {what}"

    def sentence(self) -> str:
        """What was done, with rounded shares; empty if nothing was missing."""
        if not self.counts:
            return ""
        kept = "missing counts as a value of its own"
        done = "those rows were left out" if self.policy == DROP else kept
        said = f"{listed(self.counts, self.rows)} are missing; {done}."
        return said[0].upper() + said[1:]


def listed(counts: Sequence[tuple[str, int]], rows: int) -> str:
    """Columns with rounded shares, the largest first."""
    order = sorted(counts, key=lambda pair: -pair[1])
    parts = [f"{_rough(n / rows)} of the values of {name!r}" for name, n in order[:NAMED]]
    parts += [f"some of {len(order) - NAMED} more columns"] if len(order) > NAMED else []
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def _rough(share: float) -> str:
    """In steps of 5%, so that few records do not show."""
    step = round(share * 20) * 5
    return "less than 5%" if step < 5 else "nearly all" if step == 100 else f"about {step}%"


def settled(
    names: Sequence[str],
    arrays: Sequence[Column],
    weights: FloatArray,
    rows: IntArray,
    squares: FloatArray,
    policy: str,
) -> tuple[list[Column], FloatArray, Missing]:
    """The distinct records that count and their weights, and what was missing. O(m) per column."""
    empty = np.zeros(len(rows), dtype=bool)
    gaps = [
        np.fromiter((v is None for v in a), bool, len(a)) if a.dtype == object else empty
        for a in arrays
    ]
    counts = tuple(
        (name, int(rows[gap].sum())) for name, gap in zip(names, gaps, strict=True) if gap.any()
    )
    if counts and policy == REFUSE:
        raise DpradError(_refusal(counts, int(rows.sum())))
    kept = ~np.logical_or.reduce(gaps) if policy == DROP else ~empty
    if not kept.any():
        raise DpradError(
            "every row has a missing value, so missing='drop' leaves none. Choose fewer columns."
        )
    single = float(weights[kept & (rows == 1)].sum() / (weights[kept].sum() or 1.0))
    worth = None if squares is weights else _worth(weights[kept], squares[kept])
    missing = Missing(counts, int(rows.sum()), int(rows[~kept].sum()), policy, single, worth)
    if not missing.dropped:
        return list(arrays), weights, missing
    # without missing values a column may be numeric again
    return [array(a[kept].tolist()) for a in arrays], weights[kept], missing


def _worth(weights: FloatArray, squares: FloatArray) -> float:
    """The square of the sum over the sum of squares; 0 if these are beyond floating point."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = float(np.square(weights.sum()) / squares.sum())
    return found if np.isfinite(found) else 0.0


def _refusal(counts: Sequence[tuple[str, int]], rows: int) -> str:
    names = " and ".join(repr(name) for name, _ in counts)
    what = f"column {names} has" if len(counts) == 1 else f"columns {names} have"
    return (
        f"{what} missing values ({listed(counts, rows)}). Pass missing='drop' to leave such rows "
        "out, or 'keep' to count missing as a category of its own."
    )
