"""Composed and Repeated: several releases about the same record, seen together.

Given the record the releases are independent, so log-likelihoods add up. What each step does may
not depend on earlier outputs here; the promise composes adaptively all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprad.errors import DpradError, whole
from dprad.mechanisms.base import Mechanism
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import FloatArray


@dataclass(frozen=True)
class Composed:
    """Mechanisms run on the same record. An output is a tuple with one entry a mechanism.

    Examples
    --------
    >>> from dprad.mechanisms import GRR
    >>> two = Composed([GRR(epsilon=1.0, size=3), GRR(epsilon=0.5, size=3)])
    >>> round(two.guarantee.delta(1.5), 12)
    0.0

    """

    mechanisms: tuple[Mechanism, ...] = field()

    def __init__(self, mechanisms: Any) -> None:
        try:
            parts = tuple(mechanisms)
        except TypeError:
            parts = ()
        if not parts or not all(isinstance(m, Mechanism) for m in parts):
            raise DpradError(
                f"mechanisms must be a list of one or more mechanisms, but is {mechanisms!r}."
            )
        sizes = {getattr(m, "size", None) for m in parts}
        if len(sizes) > 1:
            raise DpradError(
                "mechanisms must all read the same thing, but some read codes of other sizes, or "
                f"numbers: {', '.join(type(m).__name__ for m in parts)}."
            )
        object.__setattr__(self, "mechanisms", parts)
        if None not in sizes:
            object.__setattr__(self, "size", sizes.pop())
        assumed = dict.fromkeys(m.assumes for m in parts if hasattr(m, "assumes"))
        if assumed:
            object.__setattr__(self, "assumes", " ".join(assumed))

    @property
    def guarantee(self) -> Guarantee | None:
        """The promises composed; None if a part does not say what it promises."""
        promises = [m.guarantee for m in self.mechanisms]
        if any(p is None for p in promises):
            return None
        return promises[0].compose(*promises[1:])

    def sample(self, records: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        """One output a mechanism and record."""
        return tuple(m.sample(records, rng) for m in self.mechanisms)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """The sum of the log-likelihoods."""
        parts = zip(self.mechanisms, outputs, strict=True)
        return np.asarray(sum(m.log_likelihood(o, records) for m, o in parts))

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {"kind": "Composed", "mechanisms": [m.describe() for m in self.mechanisms]}


class Repeated(Composed):
    """One mechanism run so many times on the same record.

    Examples
    --------
    >>> from dprad.mechanisms import GRR
    >>> round(Repeated(GRR(epsilon=0.5, size=2), 4).guarantee.epsilon_at(0.0), 9)
    2.0

    """

    def __init__(self, mechanism: Mechanism, times: int) -> None:
        super().__init__([mechanism] * whole(times, "times", low=1))

    @property
    def guarantee(self) -> Guarantee | None:
        """The promise repeated."""
        promise = self.mechanisms[0].guarantee
        return None if promise is None else promise.repeated(len(self.mechanisms))

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        times, part = len(self.mechanisms), self.mechanisms[0].describe()
        return {"kind": "Repeated", "times": times, "mechanism": part}
