"""What a file holds: its columns, their types, and about how many values each has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dprad.data.files import ROWS, SMALL, Limits, opened
from dprad.data.text import quoted

_KINDS = (
    ("VARCHAR", "text"),
    ("BOOLEAN", "yes or no"),
    ("DATE", "date"),
    ("TIME", "time"),
    ("INTERVAL", "time"),
    ("DOUBLE", "number"),
    ("FLOAT", "number"),
    ("DECIMAL", "number"),
    ("UUID", "identifier"),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A column: its name, the type in a word, about how many distinct values it has (None: not
    counted), and whether these are short enough to be read.
    """

    name: str
    kind: str
    distinct: int | None
    fits: bool


def overview(path: Any, limits: Limits) -> list[Seen]:
    """The columns of a file. One pass over its first rows, at most 200,000; no value is kept."""
    with opened(path, False, False, limits, columns=()) as (table, _):
        first, found = table.limit(ROWS), []
        kinds = dict(zip(table.columns, map(str, table.types), strict=True))
        small = [name for name, kind in kinds.items() if SMALL.fullmatch(kind)]
        asked = [
            f"approx_count_distinct({quoted(c)}), "
            + (f"max(strlen({quoted(c)}))" if kinds[c] == "VARCHAR" else "0")
            for c in small
        ]
        told = list(first.aggregate(", ".join(asked)).fetchall()[0]) if small else []
        counts = dict(zip(small, zip(told[::2], told[1::2], strict=True), strict=True))
        for name, kind in kinds.items():
            distinct, longest = counts.get(name, (None, None))
            fits = distinct is not None and (longest or 0) <= limits.text
            found.append(Seen(name, _word(kind), distinct, fits))
        return found


def _word(kind: str) -> str:
    for start, word in _KINDS:
        if kind.startswith(start):
            return word
    return "whole number" if "INT" in kind else "other"
