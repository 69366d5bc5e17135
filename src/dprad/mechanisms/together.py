"""Together: several mechanisms, each reading its own part of a record, seen by one attacker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprad.data.tables import codes, joint_codes
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.composed import Composed
from dprad.numerics.arrays import Column, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Together(Composed):
    """Several mechanisms with different queries, prepared for one question; see `Together.of`.

    `place` is the combination of values that each record of the question shows; `values` has, for
    each mechanism, what it reads in each combination. Given the record, outputs are independent.
    """

    values: tuple[Column, ...]
    place: IntArray

    def __init__(
        self, mechanisms: tuple[Mechanism, ...], values: tuple[Column, ...], place: IntArray
    ) -> None:
        for name, value in (("mechanisms", mechanisms), ("values", values), ("place", place)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, parts: Sequence[tuple[Mechanism, Any]], question: Question) -> Together:
        """Two or more pairs (mechanism, query), for the records of a question. O(m log m)."""
        asked = [(m, replace(question, query=query)) for m, query in parts]
        asked = [(m.prepared(q), q) for m, q in asked]
        read = [m.read(q) for m, q in asked]
        place, count = joint_codes([codes(r)[0] for r in read])
        first = np.empty(count, dtype=np.intp)
        first[place[::-1]] = np.arange(len(place))[::-1]
        return cls(tuple(m for m, _ in asked), tuple(r[first] for r in read), place)

    def read(self, question: Question) -> Column:  # noqa: ARG002
        """The combinations, as prepared."""
        return self.place

    @property
    def reads_codes(self) -> int:
        """The number of combinations."""
        return len(self.values[0])

    def sample(self, records: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        """One output per mechanism and record."""
        parts = zip(self.mechanisms, self.values, strict=True)
        return tuple(m.sample(values[records], rng) for m, values in parts)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """The sum of the log-likelihoods, each computed once for every value that is read."""
        parts = zip(self.mechanisms, outputs, self.values, strict=True)
        return np.asarray(sum(m.log_likelihood(o, values[records]) for m, o, values in parts))

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {"kind": "Together", "mechanisms": [m.describe() for m in self.mechanisms]}
