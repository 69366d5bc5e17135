"""BlackBox: a mechanism that can only be called.

It has no likelihood, so no exact risk: audit it, simulate an attack on it, or assess its promise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import Column


@dataclass(frozen=True, slots=True)
class BlackBox(Mechanism):
    """A function as a mechanism.

    Parameters
    ----------
    run
        ``run(record)`` or ``run(record, rng)`` returns one output.
    vectorised
        Whether ``run(records)`` or ``run(records, rng)`` takes many records and returns one output
        per record.
    guarantee
        The promise, if known.

    Examples
    --------
    >>> import numpy as np
    >>> coin = BlackBox(lambda record, rng: record ^ int(rng.random() < 0.25))
    >>> coin.sample([0, 1, 1], np.random.default_rng(0)).shape
    (3,)

    """

    run: Callable[..., Any]
    vectorised: bool = False
    guarantee: Guarantee | None = None

    likelihood: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.run):
            raise DpradError(
                f"run must be a function of a record, but is a {type(self.run).__name__}."
            )

    @property
    def takes_rng(self) -> bool:
        """Whether the function takes a generator: only then can runs be repeated."""
        return self._generator() is not None

    def bound(self, rng: np.random.Generator) -> Callable[[Any], Any]:
        """The function of its input alone, with random numbers from `rng` if it takes one.

        Parameters
        ----------
        rng
            A numpy `Generator`.

        Returns
        -------
        callable
            A function of a record (or records) alone.

        Examples
        --------
        >>> import numpy as np
        >>> BlackBox(lambda record: record + 1).bound(np.random.default_rng(0))(1)
        2

        """
        place = self._generator()
        if place is None:
            return self.run
        return partial(self.run, rng=rng) if place == "name" else lambda read: self.run(read, rng)

    def _generator(self) -> str | None:
        """How a generator is passed: by "place", by "name", or not at all."""
        try:
            parameters = inspect.signature(self.run).parameters.values()
        except (TypeError, ValueError):
            return None
        by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        needed = [p for p in by_place if p.default is p.empty]
        if any(p.name == "rng" and p.kind != p.POSITIONAL_ONLY for p in [*parameters][1:]):
            return "name"
        return "place" if len(needed) >= 2 else None

    @property
    def one_by_one(self) -> bool:
        """Whether it is called for each record separately."""
        return not self.vectorised

    def read(self, question: Question) -> Column:
        """A value for each record, or a tuple if several columns are read."""
        return question.records()

    def sample(self, records: Any, rng: np.random.Generator) -> Any:
        """One output per record, by calling it."""
        run = self.bound(rng)
        if self.vectorised:
            outputs = run(records)
            if len(outputs) != len(records):
                raise DpradError(
                    f"run must return one output per record, but returned {len(outputs)} for "
                    f"{len(records)} records."
                )
            return np.asarray(outputs)
        return np.asarray([run(r) for r in _plain(records)])

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {"kind": "BlackBox", "function": getattr(self.run, "__name__", "function")}


def _plain(records: Any) -> Any:
    """Records as Python values, so that a function sees what a user would pass."""
    return records.tolist() if isinstance(records, np.ndarray) else records


def own_randomness(subject: Any, workers: int) -> None:
    """Refuse several processes for a function with its own random numbers: they might repeat."""
    if workers > 1 and isinstance(subject, BlackBox) and not subject.takes_rng:
        raise DpradError(
            "workers must be 1 for a function with its own random numbers: other processes "
            "might repeat them, and runs would not be independent. Let it take rng: "
            "run(record, rng)."
        )
