"""Composed and Repeated: several releases about the same record, seen together.

Given the record, the releases are independent, so log-likelihoods add up. Here a step may not
depend on earlier outputs; the promise nevertheless composes adaptively.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprad.errors import DpradError, whole
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.foreign import as_mechanism
from dprad.mechanisms.tables.published import Published
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import Column, FloatArray


@dataclass(frozen=True)
class Composed(Mechanism):
    """Several mechanisms run on the same record. An output is a tuple with one entry per
    mechanism.

    Parameters
    ----------
    mechanisms
        A list of mechanisms that read the same thing.

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
        try:
            parts = tuple(as_mechanism(m, "a composition") for m in parts)
        except DpradError:
            parts = ()
        if not parts:
            raise DpradError(
                f"mechanisms must be a list of one or more mechanisms, but is {mechanisms!r}."
            )
        sizes = {m.reads_codes for m in parts}
        if len(sizes) > 1:
            raise DpradError(
                "mechanisms must all read the same thing, but some read codes of other sizes, or "
                f"numbers: {', '.join(type(m).__name__ for m in parts)}."
            )
        object.__setattr__(self, "mechanisms", parts)

    def read(self, question: Question) -> Column:
        """What the parts read; all must read the same."""
        unlike = {id(m): m for m in self.mechanisms}.values()  # a repeated mechanism is asked once
        first, *others = [m.read(question) for m in unlike]
        if not all(np.array_equal(first, other) for other in others):
            names = ", ".join(type(m).__name__ for m in self.mechanisms)
            raise DpradError(
                f"the mechanisms of a composition ({names}) read different things from a "
                "record. Say with query= which column all of them read."
            )
        return first

    @property
    def reads_codes(self) -> int | None:
        """As the parts do."""
        return self.mechanisms[0].reads_codes

    @property
    def assumes(self) -> str | None:
        """What the parts assume."""
        return " ".join(dict.fromkeys(m.assumes for m in self.mechanisms if m.assumes)) or None

    @property
    def costly(self) -> bool:  # type: ignore[override]
        """Whether a part is."""
        return any(m.costly for m in self.mechanisms)

    def spread(self, count: int) -> list[Any]:
        """Values that the first part can read."""
        return self.mechanisms[0].spread(count)

    def checked(self, outputs: Any) -> Any:
        """A tuple with one entry per mechanism."""
        if not isinstance(outputs, tuple) or len(outputs) != len(self.mechanisms):
            raise DpradError("outputs of a composition must be a tuple, one entry per mechanism.")
        parts = zip(outputs, self.mechanisms, strict=True)
        return tuple(m.checked(o) for o, m in parts)

    @property
    def guarantee(self) -> Guarantee | None:
        """The composed promises; None if a part has no promise."""
        promises = [p for m in self.mechanisms if (p := m.guarantee) is not None]
        if len(promises) < len(self.mechanisms):
            return None
        return promises[0].compose(*promises[1:])

    def prepared(self, question: Question) -> Mechanism:
        """Table releases become one, since they are about the same people."""
        parts = [m.prepared(question) for m in self.mechanisms]
        tables = [m for m in parts if isinstance(m, Published)]
        if len(tables) == len(parts):
            return Published.together(tables, self)
        return self if parts == list(self.mechanisms) else Composed(parts)

    def sample(self, records: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        """One output per mechanism and record."""
        return tuple(m.sample(records, rng) for m in self.mechanisms)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """The sum of the log-likelihoods."""
        parts = zip(self.mechanisms, outputs, strict=True)
        return np.asarray(sum(m.log_likelihood(o, records) for m, o in parts))

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {"kind": "Composed", "mechanisms": [m.describe() for m in self.mechanisms]}


class Repeated(Composed):
    """One mechanism run several times on the same record.

    Parameters
    ----------
    mechanism
        The mechanism.
    times
        Number of runs.

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
        """The repeated promise."""
        promise = self.mechanisms[0].guarantee
        return None if promise is None else promise.repeated(len(self.mechanisms))

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        times, part = len(self.mechanisms), self.mechanisms[0].describe()
        return {"kind": "Repeated", "times": times, "mechanism": part}
