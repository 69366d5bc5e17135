"""SPL: the budget is split, and every attribute is reported with its share of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.mechanisms.attributes.base import PROTOCOL, Attributes, product_of
from dprad.mechanisms.base import Card
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON
from dprad.numerics.arrays import Column, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SPL(Attributes):
    """Every attribute at epsilon/d. An output is a tuple with one entry per attribute.

    Parameters
    ----------
    protocol
        How one attribute is reported: "grr", "sue", "oue" or "subset".
    sizes
        Number of values of each attribute.
    epsilon
        Privacy loss of the whole record.

    Examples
    --------
    >>> both = SPL(protocol="grr", sizes=(2, 3), epsilon=1.0)
    >>> both.guarantee.epsilon, both.one_attribute.epsilon
    (1.0, 0.5)

    """

    card: ClassVar = Card(
        name="spl",
        title="several attributes, split budget",
        takes=(EPSILON, PROTOCOL),
        reads="codes",
        cost="draws",
    )

    @property
    def spent(self) -> float:
        """An equal share."""
        return self.epsilon / len(self.sizes)

    @property
    def guarantee(self) -> PureDP:
        """Of the attributes that can differ."""
        varied = sum(k > 1 for k in self.sizes)
        return PureDP(self.spent * varied, neighbours=REPLACE_ONE)

    @property
    def one_attribute(self) -> PureDP:
        """One share."""
        return PureDP(self.spent if max(self.sizes) > 1 else 0.0, neighbours=REPLACE_ONE)

    def sample(self, records: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        """One output per attribute and record."""
        values = self.values(np.asarray(records).reshape(-1))
        return tuple(p.sample(values[:, j], rng) for j, p in enumerate(self.parts))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """The sum over the attributes."""
        values = self.values(records)
        made = enumerate(zip(self.parts, outputs, strict=True))
        return np.asarray(sum(p.log_likelihood(o, values[..., j]) for j, (p, o) in made))

    def matrix(self, points: Column) -> FloatArray:
        """The product of the channels."""
        values = self.values(points)
        return product_of([c[values[:, j]] for j, c in enumerate(self.channels())])
