"""What every mechanism offers, as the solvers and attacks see it.

A mechanism is seen by an attacker who knows all other records: one record goes in, one output
comes out. Categorical mechanisms read codes 0 .. size-1 in the order of the prior's support.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import IntArray


@runtime_checkable
class Mechanism(Protocol):
    """Samples outputs, gives their log-likelihoods, and has a guarantee."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises, for replaced records."""

    def sample(self, records: Any, rng: np.random.Generator) -> Any:
        """One output a record."""

    def log_likelihood(self, outputs: Any, records: Any) -> Any:
        """Log-probability (or log-density) of outputs[i] given records[i]; broadcasts."""

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""


def check_parameters(mechanism: Any, *, highest: float = math.inf) -> None:
    """Validate epsilon, size and, where there is one, delta of a categorical mechanism."""
    found = {
        "epsilon": number(mechanism.epsilon, "epsilon", low=0, high=highest),
        "size": whole(mechanism.size, "size", low=1),
    }
    if hasattr(mechanism, "delta"):
        found["delta"] = number(mechanism.delta, "delta", low=0, high=1)
    for name, value in found.items():
        object.__setattr__(mechanism, name, value)


def quotient(above: float, below: float) -> float:
    """A variance: infinite where nothing is learnt, or where a float cannot hold it."""
    with np.errstate(all="ignore"):
        value = np.float64(above) / np.float64(below)
    return float("inf") if np.isnan(value) else float(value)


def categories(records: Any, size: int, name: str) -> IntArray:
    """Category codes 0 .. size-1, or a `DpradError`."""
    codes = np.asarray(records)
    if codes.dtype.kind not in "iu" or (codes.size and not 0 <= codes.min() <= codes.max() < size):
        raise DpradError(f"{name} reads category codes 0 .. {size - 1}, but got something else.")
    return codes.astype(np.intp)
