"""Several attributes of a record, each categorical, reported by one local protocol.

Records are read as codes in mixed radix: the first column is the lowest digit. A guarantee is for
the whole record, as everywhere; `one_attribute` is what holds if a single attribute is replaced.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.data.tables import codes as coded
from dprad.errors import DpradError, number, one_of, whole
from dprad.game.query import columns_read
from dprad.game.question import Question
from dprad.mechanisms import bits as packed
from dprad.mechanisms.base import quotient
from dprad.mechanisms.categorical import categories
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.listed import Listed
from dprad.mechanisms.subset import SubsetSelection
from dprad.mechanisms.support import SetMechanism, SupportMechanism
from dprad.mechanisms.unary import OUE, SUE
from dprad.model.guarantees import PureDP
from dprad.model.parameters import EPSILON, Parameter
from dprad.numerics.arrays import Column, FloatArray, IntArray

KINDS: dict[str, Any] = {"grr": GRR, "sue": SUE, "oue": OUE, "subset": SubsetSelection}
PROTOCOL = Parameter(
    "protocol",
    "How one attribute is reported.",
    choices=("grr", "sue", "oue", "subset", "sue-z", "sue-r", "oue-z", "oue-r"),
)
# Largest epsilon: beyond it, e^epsilon times the number of attributes may exceed a float.
HIGHEST = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes(Listed):
    """Common to all; subclasses say how reports of attributes are combined."""

    protocol: str
    sizes: tuple[int, ...]
    epsilon: float

    offered: ClassVar[tuple[str, ...]] = tuple(KINDS)
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        name = one_of(self.protocol, "protocol", self.offered)
        try:
            sizes = tuple(whole(k, "a size", low=1) for k in self.sizes)
        except TypeError:
            sizes = ()
        if not sizes:
            raise DpradError(f"sizes must be a list of whole numbers, but is {self.sizes!r}.")
        if math.prod(sizes) >= 2**62:
            raise DpradError("the sizes multiply to more records than can be numbered.")
        checked = {
            "protocol": name,
            "sizes": sizes,
            "epsilon": number(self.epsilon, "epsilon", low=0, high=HIGHEST),
        }
        for key, value in checked.items():
            object.__setattr__(self, key, value)

    # -- what is read --------------------------------------------------------------------------
    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of possible records."""
        return math.prod(self.sizes)

    @property
    def reads_codes(self) -> int:
        """All combinations."""
        return self.size

    @classmethod
    def arguments(cls, values: Column | range, given: dict[str, Any]) -> dict[str, Any]:
        """The number of values of each attribute."""
        if isinstance(values, range):
            sizes: tuple[int, ...] = (len(values),)
        else:
            rows = [row if isinstance(row, tuple) else (row,) for row in values.tolist()]
            sizes = tuple(len(set(column)) for column in zip(*rows, strict=True))
        return {"protocol": "grr", **given, "sizes": sizes}

    def read(self, question: Question) -> Column:
        """The code of each record, from one column per attribute."""
        name, prior = type(self).__name__, question.prior
        columns = () if callable(question.query) else columns_read(
            prior, question.threat, question.query
        )  # fmt: skip
        if len(columns) != len(self.sizes):
            raise DpradError(
                f"{name} reads {len(self.sizes)} columns, one per attribute, but got "
                f"{len(columns)}. Name them with query=."
            )
        parts = [coded(prior.column(c)) for c in columns]
        found = tuple(len(values) for _, values in parts)
        if found != self.sizes:
            raise DpradError(
                f"{name} has sizes {self.sizes}, but the columns have {found} distinct values. Use "
                "these, in the order of the columns."
            )
        return self.joined(np.stack([code for code, _ in parts], axis=-1))

    def joined(self, rows: Any) -> IntArray:
        """The code of each row of attributes."""
        return np.asarray(rows, dtype=np.intp) @ self._radix

    def values(self, codes: Any) -> IntArray:
        """The attributes of each code, in the last axis."""
        given = categories(codes, self.size, type(self).__name__)
        return np.asarray((given[..., None] // self._radix) % np.array(self.sizes), dtype=np.intp)

    @property
    def _radix(self) -> IntArray:
        steps = np.cumprod(np.array([1, *self.sizes[:-1]], dtype=np.int64))
        return np.asarray(steps, dtype=np.intp)

    # -- the protocol of one attribute ---------------------------------------------------------
    @property
    @abstractmethod
    def spent(self) -> float:
        """The epsilon with which an attribute is reported, where it is."""

    @property
    def parts(self) -> tuple[SupportMechanism, ...]:
        """The mechanism of each attribute."""
        kind = KINDS[self.protocol.partition("-")[0]]
        return tuple(kind(epsilon=self.spent, size=k) for k in self.sizes)

    @property
    @abstractmethod
    def one_attribute(self) -> PureDP:
        """What is promised if one attribute is replaced and the others stay."""

    @property
    def outcomes(self) -> int:
        """Combinations of outputs."""
        return math.prod(outputs_of(part) for part in self.parts)

    def channels(self) -> list[FloatArray]:
        """Of each attribute: the probability of each output (columns) given each value."""
        return [np.exp(p.log_likelihood(every_output(p), _column(p))) for p in self.parts]

    def understood(self, outputs: Any, support: Column) -> Any:  # noqa: ARG002
        """One entry per attribute for each record."""
        try:
            rows = [tuple(row) for row in outputs]
            columns = [list(column) for column in zip(*rows, strict=True)]
        except (TypeError, ValueError):
            columns = []
        if len(columns) != len(self.sizes):
            raise DpradError(
                f"run must return {len(self.sizes)} entries, one per attribute, as "
                f"{type(self).__name__} does."
            )
        made = zip(self.parts, columns, strict=True)
        return tuple(p.understood(column, np.arange(p.size)) for p, column in made)

    def checked(self, outputs: Any) -> Any:
        """A tuple with one entry per attribute."""
        if not isinstance(outputs, tuple) or len(outputs) != len(self.sizes):
            raise DpradError(
                f"outputs of {type(self).__name__} must be a tuple, one entry per attribute."
            )
        return tuple(np.asarray(o) for o in outputs)

    def chances(self) -> list[tuple[FloatArray, FloatArray]]:
        """For each attribute: how likely a report supports each value, if it is the true one, and
        if it is not.
        """
        both = [part.supports.hit(1) for part in self.parts]
        rates = [(p[0], p[0] if len(p) < 2 else _other(part)) for part, p in
                 zip(self.parts, both, strict=True)]  # fmt: skip
        return [(np.full(k, a), np.full(k, b)) for k, (a, b) in zip(self.sizes, rates, strict=True)]

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value, on average over the attributes."""
        found = [
            quotient(float((other * (1 - other)).mean()), people * float(true[0] - other[0]) ** 2)
            for true, other in self.chances()
            if len(true) > 1
        ]
        return sum(found) / len(found) if found else 0.0

    def estimate(self, outputs: Any) -> list[FloatArray]:
        """The estimated share of each value of each attribute, from the outputs of many people.

        Parameters
        ----------
        outputs
            A tuple with one entry per attribute, as `sample` returns it.

        Returns
        -------
        list of ndarray
            One per attribute; unbiased, so shares may be below 0 or above 1.

        """
        made = zip(self.parts, self.checked(outputs), self.chances(), strict=True)
        return [(support_share(p, o) - miss) / (hit - miss) for p, o, (hit, miss) in made]


def _other(part: SupportMechanism) -> float:
    """The chance that a report supports a value that is not the true one."""
    hit, miss = part.supports.hit(1), part.supports.miss(1)
    # in the support: this one or not, the true one or not
    return float(1.0 - (hit[1] + miss[1])) if part.size > 1 else float(hit[0])


def support_share(part: SupportMechanism, outputs: Any) -> FloatArray:
    """The share of reports that support each value."""
    if isinstance(part, SetMechanism):
        return np.asarray(packed.unpack(np.asarray(outputs), part.size).mean(axis=0))
    counts = np.bincount(np.asarray(outputs), minlength=part.size)
    return np.asarray(counts / len(np.asarray(outputs)))


def every_output(part: SupportMechanism) -> Any:
    """All outputs of the protocol of one attribute."""
    if not isinstance(part, SetMechanism):
        return np.arange(part.size)
    if part.members is None:
        return packed.pack((np.arange(2**part.size)[:, None] >> np.arange(part.size)) & 1 == 1)
    chosen = np.array(list(itertools.combinations(range(part.size), part.members)))
    rows = np.zeros((len(chosen), part.size), dtype=bool)
    np.put_along_axis(rows, chosen, values=True, axis=1)
    return packed.pack(rows)


def outputs_of(part: SupportMechanism) -> int:
    """How many there are."""
    if not isinstance(part, SetMechanism):
        return part.size
    return 2**part.size if part.members is None else math.comb(part.size, part.members)


def _column(part: SupportMechanism) -> Any:
    return np.arange(part.size)[:, None]


def product_of(rows: list[FloatArray]) -> FloatArray:
    """Joint probabilities of independent outputs: rows of matrices multiplied out, one by one."""
    joint = rows[0]
    for other in rows[1:]:
        joint = (joint[:, :, None] * other[:, None, :]).reshape(len(joint), -1)
    return joint
