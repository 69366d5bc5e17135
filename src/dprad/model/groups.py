"""Risk by group: what `by_group` returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from dprad.model import explain
from dprad.model.results import Result, Risk

# Most lines of a printed table.
LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Group(Result):
    """The risk of one group of people.

    Attributes
    ----------
    name
        The value, band or record.
    share
        Its share of the population.
    rad, interval, kind
        The extra risk of a member, as in `Risk`.
    success_in, success_out
        How often the attacker is right about a member, with them in the data and without; None
        where only a bound is known.
    worst
        The largest own risk of a single member.

    """

    brief: ClassVar = ("share", "rad", "interval", "kind", "worst")
    __hash__ = Result.__hash__

    name: Any
    share: float
    rad: float
    interval: tuple[float, float]
    kind: str
    success_in: float | None
    success_out: float | None
    worst: float

    def to_dict(self) -> dict[str, Any]:
        """The group as plain data."""
        plain = {f: getattr(self, f) for f in self.__slots__}
        return plain | {"name": _plain(self.name), "interval": list(self.interval)}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Groups(Result):
    """Risk by group, most exposed first. Iterates over its groups.

    Attributes
    ----------
    groups
        One `Group` for each.
    overall
        The risk of everybody together.
    method
        What gave the numbers.
    note
        What is not shown, and why.

    """

    brief: ClassVar = ("groups", "method")
    __hash__ = Result.__hash__

    groups: tuple[Group, ...]
    overall: Risk
    method: str
    note: str = ""

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """The table as plain data: numbers, strings, lists and dicts."""
        plain = {"groups": [g.to_dict() for g in self.groups], "overall": self.overall.to_dict()}
        return plain | ({"groups_note": self.note} if self.note else {})

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The table as text, with a heading."""
        heading = ("group", "share", "extra risk", "largest for one person")
        return [heading, *(_row(group) for group in self.groups[:LINES])]

    def __str__(self) -> str:
        rows = self.rows if self.groups else []
        widths = [max(len(row[k]) for row in rows) for k in range(4 if rows else 0)]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
        if len(self.groups) > LINES:
            lines.append(f"... and {len(self.groups) - LINES:,} more")
        lines += [self.note] if self.note else []
        lines.append(f"Everybody, on average: extra risk {explain.number(self.overall)}.")
        lines += explain.doubtful(self.overall.doubts)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return explain.html_table(self.rows)


def _row(group: Group) -> tuple[str, ...]:
    bound = group.kind == "upper-bound"
    return (
        named(group.name),
        part(group.share),
        explain.bounded(group.rad, group.interval, group.kind),
        f"at most {explain.above(group.worst)}" if bound else explain.nearest(group.worst),
    )


def part(share: float) -> str:
    """A share in percent, to two digits."""
    return f"{float(f'{100 * share:.2g}'):g}%"


def named(name: Any) -> str:
    """The name of a group as text."""
    return ", ".join(str(part) for part in name) if isinstance(name, tuple | list) else str(name)


def _plain(name: Any) -> Any:
    """As JSON has it: dates, times, decimals and bytes are text."""
    if isinstance(name, tuple | list):
        return [_plain(part) for part in name]
    return name if name is None or isinstance(name, bool | int | float | str) else str(name)
