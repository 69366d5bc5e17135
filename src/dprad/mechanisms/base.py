"""What every mechanism is: the one abstract class, and what each subclass declares.

A mechanism is seen by an attacker who knows all other records: one record goes in, one output
comes out. Categorical mechanisms read codes 0 .. size-1 in the order of the prior's support.

A new mechanism is one file: a frozen, keyword-only dataclass that derives from `Categorical`,
`Additive`, `Bounded` or `Mechanism`, with a `Card` if it is to be known by a short name. Where it
derives from a family with a solver (`SupportMechanism`, `Finite`, `WholeNoise`, `Stepwise`,
`CutLaplace`) its risk is exact without another line.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.game.question import Question
from dprad.model.guarantees import Guarantee
from dprad.model.parameters import EPSILON, Goal, Parameter
from dprad.numerics.arrays import Column, FloatArray, IntArray

Cost = Literal["quick", "line", "square", "draws"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """How a mechanism is known by name: on the command line, in scenario files, on the page.

    Parameters
    ----------
    name, title
        The short name, and a few plain words.
    takes
        Names of the arguments that a user may give; the first says how much noise.
    reads
        ``"codes"`` of categories, ``"numbers"`` of any size, or numbers in a ``"range"``.
    cost
        What its exact risk costs as the m values grow: next to nothing (``"quick"``), O(m log m) or
        so (``"line"``), their square or range (``"square"``), or draws: it is an estimate.

    """

    name: str
    title: str
    takes: tuple[str, ...]
    reads: Literal["codes", "numbers", "range"]
    cost: Cost = "square"


class Mechanism(ABC):
    """Samples outputs, gives their log-likelihoods, and has a guarantee."""

    __slots__ = ()
    card: ClassVar[Card | None] = None
    # what says how much noise, and the largest value of it that is supported
    noise: ClassVar[Parameter | None] = None
    highest: ClassVar[float] = math.inf
    # whether it has a likelihood; all that is only called has none
    likelihood: ClassVar[bool] = True

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee | None:
        """What it promises, for replaced records; None if nobody said."""

    @abstractmethod
    def sample(self, records: Any, rng: np.random.Generator) -> Any:
        """One output per record."""

    @abstractmethod
    def read(self, question: Question) -> Column:
        """What it reads of each record of a finite prior, as `sample` takes it."""

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:  # noqa: ARG002
        """Log-probability (or log-density) of outputs[i] given records[i]; broadcasts."""
        raise DpradError(f"{type(self).__name__} has no likelihood.")

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output: the kind and the arguments."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
        return {"kind": type(self).__name__, **plain}

    # -- what some say, and others need not ------------------------------------------------------
    @property
    def assumes(self) -> str | None:
        """What must hold for its likelihood to be right, if anything."""
        return None

    def error(self, confidence: float = 0.95) -> float | None:  # noqa: ARG002
        """How far the output is from the record with the given probability; None: not a number."""
        return None

    def variance(self, people: int = 1) -> float | None:  # noqa: ARG002
        """Variance of what is estimated from `people` reports; None where nothing is."""
        return None

    def edges(self) -> Sequence[float]:
        """Values of `noise` at which the risk may jump or turn: it is monotone between them."""
        return ()

    @classmethod
    def first_guess(cls, goal: Goal) -> float | None:  # noqa: ARG003
        """A value of `noise` near which a search begins; None: anywhere."""
        return 1.0 if cls.noise is EPSILON else None

    @classmethod
    def arguments(cls, values: Column, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments that follow from the distinct values that are read, besides those given."""
        raise NotImplementedError

    def spread(self, count: int) -> list[Any]:  # noqa: ARG002
        """So many values that it can read, evenly spaced where they are numbers."""
        raise DpradError(f"worst_prior cannot tell which numbers a {type(self).__name__} reads.")

    def understood(self, outputs: Any, support: Column) -> Any:  # noqa: ARG002
        """What another implementation returned, in the form of this one's outputs."""
        return outputs

    def checked(self, outputs: Any) -> Any:
        """Outputs as an attack takes them: an array with one entry per output."""
        try:
            found = np.asarray(outputs)
            if found.ndim == 0 or found.dtype.kind not in "iufb":
                raise ValueError
        except ValueError:
            raise DpradError(
                f"outputs must be a list of what the mechanism returns, but is {outputs!r}."
            ) from None
        return found


class Categorical(Mechanism):
    """Reads category codes 0 .. size-1."""

    __slots__ = ()
    size: int

    def read(self, question: Question) -> Column:
        """The codes of the columns that are read."""
        return question.codes(self.size, type(self).__name__)

    @classmethod
    def arguments(cls, values: Column, given: dict[str, Any]) -> dict[str, Any]:
        """The number of values."""
        return {**given, "size": len(values)}

    def spread(self, count: int) -> list[Any]:  # noqa: ARG002
        """All codes."""
        return list(range(self.size))


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

    def understood(self, outputs: Any, support: Column) -> Any:  # noqa: ARG002
        """Numbers of outputs."""
        codes = np.asarray(outputs)
        if codes.dtype.kind not in "iub" or codes.min() < 0 or codes.max() >= self.count:
            raise DpradError(
                f"{type(self).__name__} returns a number from 0 to {self.count - 1}, but run did "
                "not."
            )
        return codes.astype(np.intp)


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
