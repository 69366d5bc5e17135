"""SMP: every person draws one attribute, names it, and spends the whole budget on it.

The output says which attribute it is about, so the risk is the average of those of the attributes,
each as if it alone were reported: exact wherever theirs is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError
from dprad.mechanisms.attributes.base import PROTOCOL, Attributes, outputs_of, support_share
from dprad.mechanisms.base import Card
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON
from dprad.numerics.arrays import Column, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SMP(Attributes):
    """One attribute of each record, at epsilon.

    An output is a tuple: the attribute, then one entry per attribute, of which only the named one
    says anything.

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
    >>> SMP(protocol="grr", sizes=(2, 3), epsilon=1.0).guarantee.epsilon
    1.0

    """

    card: ClassVar = Card(
        name="smp",
        title="several attributes, one of them drawn",
        takes=(EPSILON, PROTOCOL),
        reads="codes",
        cost="line",
    )

    @property
    def spent(self) -> float:
        """All of it."""
        return self.epsilon

    @property
    def guarantee(self) -> PureDP:
        """That of one attribute: the largest, for the outputs that name it."""
        return PureDP(self.epsilon if max(self.sizes) > 1 else 0.0, neighbours=REPLACE_ONE)

    @property
    def one_attribute(self) -> PureDP:
        """The same."""
        return self.guarantee

    def sample(self, records: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        """The attribute, and its output; the entries of the others are empty."""
        values = self.values(np.asarray(records).reshape(-1))
        named = rng.integers(len(self.sizes), size=len(values))
        entries = []
        for j, part in enumerate(self.parts):
            entry = part.sample(values[:, j], rng)
            entry[named != j] = 0
            entries.append(entry)
        return (named, *entries)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Of the named attribute."""
        named, *entries = outputs
        values = self.values(records)
        total: Any = -np.log(len(self.sizes))
        for j, (part, entry) in enumerate(zip(self.parts, entries, strict=True)):
            log = part.log_likelihood(entry, values[..., j])
            total = total + np.where(np.asarray(named) == j, log, 0.0)
        return np.asarray(total)

    @property
    def outcomes(self) -> int:
        """Those of one attribute, whichever it is."""
        return sum(outputs_of(part) for part in self.parts)

    def matrix(self, points: Column) -> FloatArray:
        """One block of outputs per attribute."""
        values, d = self.values(points), len(self.sizes)
        return np.concatenate([c[values[:, j]] / d for j, c in enumerate(self.channels())], axis=1)

    def checked(self, outputs: Any) -> Any:
        """A tuple: the attribute, and one entry each."""
        if not isinstance(outputs, tuple) or len(outputs) != 1 + len(self.sizes):
            raise DpradError("outputs of SMP must be a tuple: attribute, and one entry for each.")
        return tuple(np.asarray(o) for o in outputs)

    def understood(self, outputs: Any, support: Column) -> Any:  # noqa: ARG002
        """Pairs (attribute, report)."""
        try:
            named = np.array([row[0] for row in outputs], dtype=np.intp)
            given = [row[1] for row in outputs]
        except (TypeError, ValueError, IndexError):
            raise DpradError("run must return (attribute, report), as SMP does.") from None
        entries = []
        for j, part in enumerate(self.parts):
            blank = part.sample(np.zeros(len(given), dtype=np.intp), np.random.default_rng(0))
            blank[:] = 0
            own = np.flatnonzero(named == j)
            if len(own):
                blank[own] = part.understood([given[i] for i in own], np.arange(part.size))
            entries.append(blank)
        return (named, *entries)

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value, on average over the attributes."""
        return len(self.sizes) * super(SMP, self).variance(people)

    def estimate(self, outputs: Any) -> list[FloatArray]:
        """The estimated share of each value of each attribute, from those who reported it.

        Parameters
        ----------
        outputs
            The attribute, and one entry per attribute, as `sample` returns them.

        Returns
        -------
        list of ndarray
            One per attribute; unbiased, so shares may be below 0 or above 1.

        """
        named, *entries = self.checked(outputs)
        made = enumerate(zip(self.parts, entries, self.chances(), strict=True))
        return [
            (support_share(p, e[named == j]) - miss) / (hit - miss)
            for j, (p, e, (hit, miss)) in made
        ]
