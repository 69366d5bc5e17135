"""Which data sets a guarantee compares. There is no default, since it matters by up to two."""

from __future__ import annotations

import functools
from typing import Any, Literal, TypeVar

from dprad.errors import DpradError

Neighbours = Literal["replace-one", "add-remove", "unknown"]
REPLACE_ONE: Neighbours = "replace-one"
ADD_REMOVE: Neighbours = "add-remove"
UNKNOWN: Neighbours = "unknown"
EXPLAINED = (
    "Say neighbours='replace-one' if the promise compares data sets in which one person's record "
    "is exchanged, or 'add-remove' if it compares data sets with and without the person (the "
    "default of Opacus and dp-accounting). It matters: an add-remove epsilon is worth up to twice "
    "as much when a record is replaced. Where nobody can say, 'unknown' counts the worse reading."
)
_Kind = TypeVar("_Kind", bound=type)


def explains_neighbours(cls: _Kind) -> _Kind:
    """Class decorator for guarantees: explains missing or misspelt neighbours."""
    of: Any = cls
    made = of.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **given: Any) -> None:
        if "neighbors" in given:
            raise DpradError("neighbors is spelt neighbours here: neighbours='replace-one'.")
        if not given.get("neighbours"):
            raise DpradError(f"neighbours is missing. {EXPLAINED}")
        made(self, *args, **given)

    of.__init__ = init
    return cls
