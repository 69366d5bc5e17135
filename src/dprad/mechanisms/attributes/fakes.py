"""RS+FD and RS+RFD: one attribute is drawn and reported, and the others get fake values.

The drawn attribute is hidden among the fakes, so it is reported with more than epsilon:
``e^eps' = d (e^epsilon - 1) + 1``, as published. With F_i the law of a fake,

    P(y|x) = prod_i F_i(y_i) (1/d) sum_j r_j ,      r_j = M_j(y_j|x_j) / F_j(y_j) ,

so r_j / sum_i r_i is the probability that attribute j was the real one.

**What is promised.** Sampling hides *which* attribute was reported, not the record. If all
attributes are replaced, an output that agrees with the old record everywhere is e^eps' times as
likely with it as with the new one, so the promise for the record is eps', not epsilon. If one
attribute is replaced, epsilon holds for equal sizes with uniform fakes (GRR) and for zeros (unary
encodings), and something between the two otherwise. ``protects="record"`` reports with epsilon
itself, which keeps epsilon for the record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, one_of
from dprad.mechanisms import bits as packed
from dprad.mechanisms.attributes.base import PROTOCOL, Attributes, every_output, product_of
from dprad.mechanisms.base import Card
from dprad.mechanisms.support import SupportMechanism
from dprad.mechanisms.unary import Bits
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON
from dprad.numerics.arrays import Column, FloatArray

PROTECTS = ("attribute", "record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faked(Attributes):
    """Common to both; subclasses define from which distribution fakes are drawn."""

    protects: str = "attribute"

    def __post_init__(self) -> None:
        Attributes.__post_init__(self)
        object.__setattr__(self, "protects", one_of(self.protects, "protects", PROTECTS))

    @property
    def fake_laws(self) -> tuple[FloatArray, ...]:
        """The distribution of fake values of each attribute."""
        return tuple(np.full(k, 1.0 / k) for k in self.sizes)

    @property
    def zeros(self) -> bool:
        """Whether a fake is a row of zeros, perturbed, rather than a value."""
        return self.protocol.endswith("-z")

    @property
    def spent(self) -> float:
        """As published, ln(d (e^epsilon - 1) + 1), or epsilon."""
        if self.protects == "record":
            return self.epsilon
        # to all digits, and without overflow
        d, e = len(self.sizes), self.epsilon
        return e + math.log(d - (d - 1) * math.exp(-e)) if e > 1 else math.log1p(d * math.expm1(e))

    # -- promises ------------------------------------------------------------------------------
    def describe(self) -> dict[str, Any]:
        """The arguments; and the epsilon of the whole record, where it is another one."""
        plain = Attributes.describe(self)
        if self.protects == "record":
            return plain
        return {**plain, "for_record": self.guarantee.epsilon}

    @property
    def guarantee(self) -> PureDP:
        """For the record: all attributes that can differ do."""
        varied = [j for j, k in enumerate(self.sizes) if k > 1]
        return PureDP(self._ratio(varied), neighbours=REPLACE_ONE)

    @property
    def one_attribute(self) -> PureDP:
        """The largest over the attributes."""
        varied = [j for j, k in enumerate(self.sizes) if k > 1]
        most = max((self._ratio([j]) for j in varied), default=0.0)
        return PureDP(most, neighbours=REPLACE_ONE)

    def _ratio(self, changed: list[int]) -> float:
        """The largest ratio of likelihoods if these attributes differ, in logarithms."""
        ends = [self._ends(j) for j in range(len(self.sizes))]
        if not changed:
            return 0.0
        if any(math.isinf(ends[j][0]) for j in changed):
            return self.spent  # no fake has this value: its report is the real one
        rest = sum(low for j, (_, _, low) in enumerate(ends) if j not in changed)
        above = sum(ends[j][0] for j in changed) + rest
        return math.log(above / (sum(ends[j][1] for j in changed) + rest))

    def _ends(self, j: int) -> tuple[float, float, float]:
        """Of r_j: its value for the likelier and for the unlikelier of two records, at the output
        that tells them apart most, and its least value.
        """
        part, law, odds = self.parts[j], self.fake_laws[j], math.exp(min(self.spent, 700.0))
        rare, common = float(law.min()), float(law.max())
        if isinstance(part, Bits):
            if self.zeros:
                low = (1 - part.p) / (1 - part.q)
                return part.p / part.q, low, low
            below = rare * odds + 1 - rare
            return odds / below, 1 / below, 1 / (rare + (1 - rare) * odds) if part.size > 1 else 1.0
        if part.size == 1:
            return 1.0, 1.0, 1.0
        true, other = float(part.supports.hit(0)[0]), float(part.supports.miss(0)[0])
        lie = other / (part.size - 1)
        if rare == 0.0:
            return math.inf, math.inf, lie / common
        return true / rare, lie / rare, lie / common

    # -- what is run ---------------------------------------------------------------------------
    def sample(self, records: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        """One output per attribute and record."""
        values = self.values(np.asarray(records).reshape(-1))
        real = rng.integers(len(self.sizes), size=len(values))
        entries = []
        for j, (part, law) in enumerate(zip(self.parts, self.fake_laws, strict=True)):
            entry = part.sample(values[:, j], rng)
            fake = self._fake(part, law, len(values), rng)
            entry[real != j] = fake[real != j]
            entries.append(entry)
        return tuple(entries)

    def _fake(
        self, part: SupportMechanism, law: FloatArray, count: int, rng: np.random.Generator
    ) -> Any:
        if isinstance(part, Bits) and self.zeros:
            return packed.bernoulli(part.q, count, part.size, rng)
        values = rng.choice(part.size, size=count, p=law)
        return part.sample(values, rng) if isinstance(part, Bits) else values

    def log_fakes(self, outputs: Any) -> list[FloatArray]:
        """Log-probability of each entry, were it a fake."""
        made = zip(self.parts, self.fake_laws, outputs, strict=True)
        return [self._log_fake(part, law, entry) for part, law, entry in made]

    def _log_fake(self, part: SupportMechanism, law: FloatArray, entry: Any) -> FloatArray:
        with np.errstate(divide="ignore"):
            if not isinstance(part, Bits):
                return np.asarray(np.log(law)[np.asarray(entry)])
            ones = packed.count(entry)
            nobody = ones * np.log(part.q) + (part.size - ones) * np.log1p(-part.q)
            if self.zeros:
                return np.asarray(nobody)
            up, down = np.log(part.p / part.q), np.log((1 - part.p) / (1 - part.q))
            shown = packed.unpack(entry, part.size) @ law
            return np.asarray(nobody + np.log(np.exp(up) * shown + np.exp(down) * (1 - shown)))

    def _log_by_real(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of the output and of each attribute being the real one (last axis)."""
        fakes, values = self.log_fakes(outputs), self.values(records)
        logs = []
        for j, (part, entry) in enumerate(zip(self.parts, outputs, strict=True)):
            others = sum((f for i, f in enumerate(fakes) if i != j), start=np.zeros(()))
            logs.append(part.log_likelihood(entry, values[..., j]) + others)
        return np.stack(np.broadcast_arrays(*logs), axis=-1) - math.log(len(self.sizes))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records; broadcasts."""
        logs = self._log_by_real(outputs, records)
        top = logs.max(axis=-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0])

    def real(self, outputs: Any, records: Any, probabilities: Any = None) -> FloatArray:
        """The probability that each attribute was the real one, given the outputs.

        Parameters
        ----------
        outputs
            A tuple with one entry per attribute, as `sample` returns it.
        records
            The record behind each output; with `probabilities`, all possible records.
        probabilities
            Prior probabilities of the records, if the attacker does not know which it was.

        Returns
        -------
        ndarray
            One row per output, one column per attribute.

        Examples
        --------
        An output that agrees with the record in the second attribute only:

        >>> two = RSFD(protocol="grr", sizes=(2, 2), epsilon=1.0)
        >>> two.real((np.array([1]), np.array([0])), np.array([0])).round(3).tolist()
        [[0.184, 0.816]]

        """
        if probabilities is None:
            logs = self._log_by_real(outputs, records)
        else:
            pi = np.asarray(probabilities, dtype=float)
            points = np.asarray(records)[pi > 0]
            wide = tuple(np.asarray(o)[:, None] for o in outputs)
            logs = self._log_by_real(wide, points) + np.log(pi[pi > 0])[:, None]
            logs = logs - logs.max(axis=(1, 2), keepdims=True)
            with np.errstate(divide="ignore"):
                logs = np.log(np.exp(logs).sum(axis=1))
        weight = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(weight / weight.sum(axis=-1, keepdims=True))

    def matrix(self, points: Column) -> FloatArray:
        """A mixture over the real attribute of products."""
        values, channels, d = self.values(points), self.channels(), len(self.sizes)
        every = tuple(every_output(part) for part in self.parts)
        fakes = [np.exp(log)[None, :] for log in self.log_fakes(every)]
        total: Any = 0.0
        for j in range(d):
            rows = [
                c[values[:, i]] if i == j else np.broadcast_to(f, (len(values), f.shape[1]))
                for i, (c, f) in enumerate(zip(channels, fakes, strict=True))
            ]
            total = total + product_of(rows) / d
        return np.asarray(total)

    def chances(self) -> list[tuple[FloatArray, FloatArray]]:
        """With a fake in all but one of d cases."""
        d, base = len(self.sizes), Attributes.chances(self)
        found: list[tuple[FloatArray, FloatArray]] = []
        for part, law, (true, other) in zip(self.parts, self.fake_laws, base, strict=True):
            fake = law
            if isinstance(part, Bits):
                fake = other if self.zeros else other + (true - other) * law
            found.append(((true + (d - 1) * fake) / d, (other + (d - 1) * fake) / d))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RSFD(Faked):
    """Random sampling plus fake data: fakes are uniform, or zeros.

    Parameters
    ----------
    protocol
        How an attribute is reported: "grr", or "sue" or "oue" with fakes that are zeros ("sue-z",
        "oue-z") or random values ("sue-r", "oue-r").
    sizes
        Number of values of each attribute.
    epsilon
        Privacy loss if one attribute is replaced, as published; of the record, if it `protects`
        that.
    protects
        ``"attribute"``, as published, or ``"record"``.

    Examples
    --------
    The published claim is 1:

    >>> two = RSFD(protocol="grr", sizes=(2, 2), epsilon=1.0)
    >>> round(two.guarantee.epsilon, 3), round(two.one_attribute.epsilon, 3)
    (1.49, 1.0)

    """

    offered: ClassVar[tuple[str, ...]] = ("grr", "sue-z", "sue-r", "oue-z", "oue-r")
    card: ClassVar = Card(
        name="rsfd",
        title="several attributes, fakes for all but one",
        takes=(EPSILON, PROTOCOL),
        reads="codes",
        cost="draws",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RSRFD(Faked):
    """Random sampling plus realistic fake data: fakes are drawn from given distributions.

    Parameters
    ----------
    protocol
        How an attribute is reported: "grr", "sue-r" or "oue-r".
    sizes
        Number of values of each attribute.
    epsilon
        Privacy loss if one attribute is replaced, as published; of the record, if it `protects`
        that.
    fakes
        The distribution of fake values, one list of probabilities per attribute.
    protects
        ``"attribute"``, as published, or ``"record"``.

    Examples
    --------
    >>> two = RSRFD(protocol="grr", sizes=(2, 2), epsilon=1.0, fakes=[[0.9, 0.1], [0.5, 0.5]])
    >>> round(two.guarantee.epsilon, 3), round(two.one_attribute.epsilon, 3)
    (1.49, 1.352)

    """

    fakes: Any

    offered: ClassVar[tuple[str, ...]] = ("grr", "sue-r", "oue-r")

    def __post_init__(self) -> None:
        Faked.__post_init__(self)
        try:
            laws = tuple(tuple(float(p) for p in law) for law in self.fakes)
        except (TypeError, ValueError):
            laws = ()
        fits = tuple(len(law) for law in laws) == self.sizes
        if not fits or any(min(law) < 0 or abs(sum(law) - 1) > 1e-9 for law in laws):
            raise DpradError(
                f"fakes must be one list of probabilities per attribute, of lengths {self.sizes}."
            )
        object.__setattr__(self, "fakes", laws)

    @property
    def fake_laws(self) -> tuple[FloatArray, ...]:
        """As given."""
        return tuple(np.array(law) / sum(law) for law in self.fakes)
