"""Support mechanisms: the output names a set of values, and only membership in it matters.

The probability of an output given record z takes two values, P_in if z is in its support set and
P_out if not, with a constant ratio. A solver needs only the distribution of the supports
(`Supports`). Randomised response, unary encodings, subset selection and local hashing are of this
kind; Hadamard response is not (its supports are dependent).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms import bits
from dprad.mechanisms.categorical import Categorical
from dprad.numerics.arrays import Column, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Supports:
    """The law of the support set, exchangeable in the values.

    `log_ratio` is log P_in/P_out. `hit(n)` gives, for k = 0 .. n, the probability given z that z is
    in the support and k given others are not; `miss(n)` that neither z nor k given others are;
    `full(k)` that z and k given others all are.
    """

    log_ratio: float
    hit: Callable[[int], FloatArray]
    miss: Callable[[int], FloatArray]
    full: Callable[[int], float]


class SupportMechanism(Categorical):
    """A mechanism whose outputs matter only through their support sets: closed-form risk."""

    __slots__ = ()

    @property
    @abstractmethod
    def supports(self) -> Supports:
        """The distribution of the support set."""

    @property
    def independent(self) -> bool:
        """Whether, given the record, each other value is in the support set by itself."""
        return False

    @property
    def members(self) -> int | None:
        """The size of every support set; None if it varies."""
        return None


class SetMechanism(SupportMechanism):
    """A support mechanism whose outputs are the sets themselves, as packed bits."""

    __slots__ = ()

    def understood(self, outputs: Any, support: Column) -> Any:  # noqa: ARG002
        """Rows of bits, or lists of members."""
        if isinstance(outputs, np.ndarray) and outputs.dtype == np.uint64:
            return outputs
        given, m = outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs), self.size
        rows = np.zeros((len(given), m), dtype=bool)
        try:
            for i, row in enumerate(given):
                whole_row = len(row) == m and set(row) <= {0, 1}
                rows[i] = row if whole_row else False
                if not whole_row:
                    rows[i, [int(v) for v in row]] = True
        except (TypeError, ValueError, IndexError):
            raise DpradError(
                f"run must return {m} bits, or a list of codes 0 .. {m - 1}, as "
                f"{type(self).__name__} does."
            ) from None
        return bits.pack(rows)
