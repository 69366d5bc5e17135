"""Mechanisms that read categories, and those of them with few outputs."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.mechanisms.base import Mechanism
from dprad.numerics.arrays import Column, FloatArray, IntArray

# Steps of a whole number (buckets, members of a set) that a search for the noise considers; beyond
# them it changes by less than a hundred-thousandth at each.
MOST_EDGES = 100_000

# A channel computed on demand: a block of its size x outputs matrix, by codes and outputs.
Entries = Callable[[slice | IntArray, slice], FloatArray]


class Categorical(Mechanism):
    """Reads category codes 0 .. size-1."""

    __slots__ = ()
    size: int

    @property
    def reads_codes(self) -> int | None:
        """All of them."""
        return self.size

    @classmethod
    def arguments(cls, values: Column | range, given: dict[str, Any]) -> dict[str, Any]:
        """The number of values."""
        return {**given, "size": len(values)}


class Finite(Categorical):
    """A categorical mechanism with outputs 0 .. K-1: its risk is an exact sum over them."""

    __slots__ = ()
    method: ClassVar[str] = "sum over the outputs"

    @property
    @abstractmethod
    def count(self) -> int:
        """K, the number of outputs."""

    def entries(self, rows: slice | IntArray, columns: slice) -> FloatArray:
        """Probabilities of some outputs given some codes."""
        codes, outputs = np.arange(self.size)[rows], np.arange(columns.start, columns.stop)
        return np.exp(self.log_likelihood(outputs, codes[:, None]))

    @property
    def light(self) -> bool:
        """Whether it is soon sent to another machine."""
        return True

    def part(self, columns: slice) -> Entries:
        """The entries of some outputs, which are then counted from 0."""
        return shifted(self.entries, columns.start)

    def understood(self, outputs: Any, support: Column) -> Any:  # noqa: ARG002
        """Output numbers."""
        codes = np.asarray(outputs)
        if codes.dtype.kind not in "iub" or codes.min() < 0 or codes.max() >= self.count:
            raise DpradError(
                f"run must return a number from 0 to {self.count - 1}, as "
                f"{type(self).__name__} does."
            )
        return codes.astype(np.intp)

    def checked(self, outputs: Any) -> Any:
        """Output numbers, within the range."""
        codes, name = super().checked(outputs), type(self).__name__
        inside = codes.dtype.kind in "iub" and (not codes.size or codes.min() >= 0)
        if not inside or codes.max(initial=0) >= self.count:
            raise DpradError(f"outputs of {name} are numbers from 0 to {self.count - 1}.")
        return codes.astype(np.intp)


def shifted(entries: Entries, start: int) -> Entries:
    """The same, with outputs counted from `start`."""
    return lambda rows, columns: entries(rows, slice(columns.start + start, columns.stop + start))


def check_parameters(mechanism: Any, *, highest: float = math.inf) -> None:
    """Validate epsilon, size and, where there is one, delta of a categorical mechanism."""
    checked: dict[str, Any] = {
        "epsilon": number(mechanism.epsilon, "epsilon", low=0, high=highest),
        "size": whole(mechanism.size, "size", low=1),
    }
    if any(f.name == "delta" for f in fields(mechanism)):
        checked["delta"] = number(mechanism.delta, "delta", low=0, high=1)
    for name, value in checked.items():
        object.__setattr__(mechanism, name, value)


def categories(records: Any, size: int, name: str) -> IntArray:
    """Category codes 0 .. size-1, or a `DpradError`."""
    codes = np.asarray(records)
    if codes.dtype.kind not in "iu" or (codes.size and not 0 <= codes.min() <= codes.max() < size):
        raise DpradError(f"{name} reads category codes 0 .. {size - 1}, but got something else.")
    return codes.astype(np.intp)
