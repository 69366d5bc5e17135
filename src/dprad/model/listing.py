"""The records of a finite prior: listed, or equally likely and not listed until they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dprad.numerics.arrays import Column, FloatArray, unlike
from dprad.runtime.memory import need

# Most values that are equally likely: numbers beyond are not whole in floating point.
MOST = 2**53
# Bytes per record while a question is answered.
RECORD = 180


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Records, sorted by their columns, and the probability of each."""

    support: Column
    probabilities: FloatArray

    def __post_init__(self) -> None:
        self.support.setflags(write=False)
        self.probabilities.setflags(write=False)

    @property
    def size(self) -> int:
        """The number of records."""
        return len(self.probabilities)

    @property
    def kappa(self) -> float:
        """Probability that two draws are the same record."""
        return min(1.0, float(np.sum(self.probabilities**2)))

    @property
    def unlike(self) -> float:
        """Probability that two draws differ, without cancellation."""
        return unlike(self.probabilities)

    @property
    def alone(self) -> bool:
        """Whether one record is all there is."""
        return int(np.count_nonzero(self.probabilities)) == 1

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last probability."""
        return float(self.probabilities[0]), float(self.probabilities[-1])

    def record(self, place: int) -> Any:
        """One of the records."""
        return self.support[place]


@dataclass(frozen=True)
class Equal:
    """The values 0 .. size-1, equally likely: arrays are made when somebody asks for them."""

    size: int

    @cached_property
    def support(self) -> Column:
        """All values; refused if they do not fit into memory."""
        self._fits()
        values = np.arange(self.size)
        values.setflags(write=False)
        return values

    @cached_property
    def probabilities(self) -> FloatArray:
        """All equal; refused if they do not fit into memory."""
        self._fits()
        result = np.full(self.size, 1.0 / self.size)
        result.setflags(write=False)
        return result

    def _fits(self) -> None:
        need(
            RECORD * self.size,
            f"A table of {self.size:,} values",
            "This question needs them one by one: choose fewer values.",
        )

    @property
    def kappa(self) -> float:
        """Probability that two draws are the same value."""
        return 1.0 / self.size

    @property
    def unlike(self) -> float:
        """Probability that two draws differ."""
        return (self.size - 1) / self.size

    @property
    def alone(self) -> bool:
        """Whether one value is all there is."""
        return self.size == 1

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last probability."""
        return 1.0 / self.size, 1.0 / self.size

    def record(self, place: int) -> Any:
        """One of the values."""
        return np.arange(place, place + 1)[0]

    def __getstate__(self) -> dict[str, int]:
        return {"size": self.size}


def alike(a: Listed | Equal | None, b: Listed | Equal | None) -> bool:
    """Whether two are the same records with the same probabilities."""
    if a is None or b is None:
        return a is b
    if isinstance(a, Equal) and isinstance(b, Equal):
        return a == b
    return a.size == b.size and _same(a.support, b.support) and _same(
        a.probabilities, b.probabilities
    )  # fmt: skip


def _same(a: Column, b: Column) -> bool:
    return a.dtype == b.dtype and bool(np.all(a == b))
