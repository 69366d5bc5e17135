"""Support mechanisms: the output names a set of values, and only in or out of it matters.

The probability of an output given record z takes two values, P_in if z is in its support set and
P_out if not, with a constant ratio. Everything a solver needs is how supports fall (`Supports`).
Randomised response, unary encodings, subset selection and local hashing are of this kind; Hadamard
response is not (its supports are dependent).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dprad.numerics.arrays import FloatArray


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


@runtime_checkable
class SupportMechanism(Protocol):
    """A mechanism whose outputs act through their support sets."""

    @property
    def size(self) -> int:
        """Number of values."""

    @property
    def supports(self) -> Supports:
        """How supports fall."""
