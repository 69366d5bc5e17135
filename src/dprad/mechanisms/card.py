"""Card: the entry of a mechanism in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dprad.model.parameters import Parameter

Cost = Literal["quick", "line", "square", "draws"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The entry of a mechanism in the catalogue: command line, scenario files, web page.

    Parameters
    ----------
    name
        The short name.
    title
        A few plain words.
    takes
        The arguments a user may give; the first sets the noise.
    reads
        ``"codes"`` of categories, ``"numbers"`` of any size, numbers in a ``"range"``, or whole
        ``"records"``, as a table release does.
    cost
        What the exact risk costs for m values: next to nothing (``"quick"``), about O(m log m)
        (``"line"``), the square of their number or range (``"square"``), or ``"draws"`` if it is an
        estimate.
    words
        Further arguments, that are not numbers; the first is what the short name is set to in a
        scenario file, as in ``counts = ["age", "region"]``.

    """

    name: str
    title: str
    takes: tuple[Parameter, ...]
    reads: Literal["codes", "numbers", "range", "records"]
    cost: Cost = "square"
    words: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments."""
        return (*(p.name for p in self.takes), *self.words)
