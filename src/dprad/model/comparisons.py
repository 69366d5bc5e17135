"""Risk and error side by side: what `compare` returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from dprad.model import explain
from dprad.model.results import Result, Risk


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Candidate(Result):
    """One line of a comparison. `frontier`: no other has both less risk and less error."""

    brief: ClassVar = ("name", "risk", "error", "variance", "frontier")
    __hash__ = Result.__hash__

    name: str
    mechanism: Any
    risk: Risk
    error: float | None
    variance: float | None
    frontier: bool

    def to_dict(self) -> dict[str, Any]:
        """The candidate as plain data."""
        plain = {f: getattr(self, f) for f in self.__slots__}
        return plain | {"mechanism": self.risk.subject, "risk": self.risk.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Result):
    """Risk and error side by side, least risk first. Iterates over its candidates.

    Attributes
    ----------
    candidates
        One per mechanism, with `name`, `mechanism`, `risk`, `error`, `variance` and `frontier`
        (whether no other has both less risk and less error).

    Examples
    --------
    >>> import dprad
    >>> from dprad.mechanisms import GRR, OUE
    >>> table = dprad.compare([GRR(epsilon=1, size=5), OUE(epsilon=1, size=5)],
    ...                       prior=dprad.Prior.uniform(5))
    >>> len(table), table.candidates[0].name
    (2, 'OUE(epsilon=1, size=5)')

    """

    brief: ClassVar = ("candidates",)
    __hash__ = Result.__hash__

    candidates: tuple[Candidate, ...]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data: only numbers, strings, lists and dicts."""
        return {"candidates": [c.to_dict() for c in self.candidates]}

    def __str__(self) -> str:
        return explain.comparison(self)

    def _repr_html_(self) -> str:
        return explain.html_table(explain.rows(self))
