"""Composed and Repeated: several releases about the same record, seen together.

Given the record, the releases are independent, so log-likelihoods add up. Here a step may not
depend on earlier outputs; the promise nevertheless composes adaptively. What the parts read is one
column if all read the same, else one column with a field per part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dprad.data.tables import codes
from dprad.errors import DpradError, whole
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.foreign import as_mechanism
from dprad.mechanisms.tables.published import Published
from dprad.model.guarantees import KINDS, Guarantee
from dprad.model.parameters import TIMES
from dprad.numerics.arrays import Column, FloatArray


@dataclass(frozen=True)
class Composed(Mechanism):
    """Several mechanisms run on the same record. An output is a tuple with one entry per
    mechanism.

    The risk is exact if all parts but one have few outputs (together below some millions of
    entries), and for Gaussian noise on the same value; otherwise it is an estimate. ``risk.kind``
    says which.

    Parameters
    ----------
    mechanisms
        A list of mechanisms.
    queries
        What each of them reads from a record, as `query` of `dprad.assess`; default: all read what
        the question says.

    Examples
    --------
    >>> import dprad
    >>> from dprad.mechanisms import GRR
    >>> two = Composed([GRR(epsilon=1.0, size=2), GRR(epsilon=0.5, size=3)], queries=["a", "b"])
    >>> round(two.guarantee.delta(1.5), 12)
    0.0
    >>> pairs = {(a, b): 1 for a in "xy" for b in "uvw"}
    >>> prior = dprad.Prior.from_counts(pairs, columns=["a", "b"])
    >>> dprad.assess(two, prior=prior).kind
    'exact'

    """

    mechanisms: tuple[Mechanism, ...] = field()
    queries: tuple[Query | None, ...] | None = None

    def __init__(self, mechanisms: Any, *, queries: Sequence[Query | None] | None = None) -> None:
        try:
            listed = tuple(mechanisms)
            made = {id(m): as_mechanism(m, "a composition") for m in listed}
            parts = tuple(made[id(m)] for m in listed)
        except (TypeError, DpradError):
            parts = ()
        if not parts:
            raise DpradError(
                f"mechanisms must be a list of one or more mechanisms, but is {mechanisms!r}."
            )
        if queries is None:
            _same_size(parts)
        elif isinstance(queries, str) or len(queries) != len(parts):
            raise DpradError(
                f"queries must be a list with one query for each of the {len(parts)} mechanisms, "
                f"but is {queries!r}."
            )
        object.__setattr__(self, "mechanisms", parts)
        asked = None if queries is None else tuple(map(_hashable, queries))
        object.__setattr__(self, "queries", asked)

    def read(self, question: Question) -> Column:
        """What each part reads: one column if all read the same, else one with a field per part."""
        if self.queries is None and len(set(map(id, self.mechanisms))) == 1:
            return self.mechanisms[0].read(question)
        if self.queries is None:
            asked: Sequence[Query | None] = [question.query] * len(self.mechanisms)
        elif question.query is not None:
            raise DpradError("this composition has a query for each part: leave out query=.")
        else:
            asked = self.queries
        seen: dict[Any, Column] = {}  # a repeated mechanism is asked once
        columns = []
        for part, query in zip(self.mechanisms, asked, strict=True):
            key = id(part), id(query) if callable(query) else _hashable(query)
            if key not in seen:
                seen[key] = part.read(replace(question, query=query))
            columns.append(seen[key])
        if all(column is columns[0] or _equal(column, columns[0]) for column in columns[1:]):
            return columns[0]
        kinds = [(f"part {k}", column.dtype) for k, column in enumerate(columns)]
        result = np.empty(len(columns[0]), dtype=kinds)
        for (name, _), column in zip(kinds, columns, strict=True):
            result[name] = column
        return result

    def split(self, records: Any) -> list[Any]:
        """What each part reads of these records."""
        names = getattr(getattr(records, "dtype", None), "names", None)
        if names is None:
            return [records] * len(self.mechanisms)
        return [records[name] for name in names]

    @property
    def runs(self) -> int:
        """How many releases there are, those of parts counted."""
        return sum(m.runs if isinstance(m, Composed) else 1 for m in self.mechanisms)

    @property
    def reads_codes(self) -> int | None:
        """As the parts do, if all do alike."""
        sizes = {m.reads_codes for m in self.mechanisms}
        return sizes.pop() if self.queries is None and len(sizes) == 1 else None

    @property
    def assumes(self) -> str | None:
        """What the parts assume."""
        return " ".join(dict.fromkeys(m.assumes for m in self.mechanisms if m.assumes)) or None

    @property
    def costly(self) -> bool:  # type: ignore[override]
        """Whether a part is."""
        return any(m.costly for m in self.mechanisms)

    @property
    def likelihood(self) -> bool:  # type: ignore[override]
        """Whether all parts have one."""
        return all(m.likelihood for m in self.mechanisms)

    def spread(self, count: int) -> list[Any]:
        """Values that the first part can read, if all read the same."""
        if self.queries is not None:
            raise DpradError("worst_prior takes a composition whose parts read the same value.")
        return self.mechanisms[0].spread(count)

    def checked(self, outputs: Any) -> Any:
        """A tuple with one entry per mechanism."""
        if not isinstance(outputs, tuple) or len(outputs) != len(self.mechanisms):
            raise DpradError("outputs of a composition must be a tuple, one entry per mechanism.")
        parts = zip(outputs, self.mechanisms, strict=True)
        return tuple(m.checked(o) for o, m in parts)

    @property
    def guarantee(self) -> Guarantee | None:
        """The composed promises; None if a part has no promise."""
        promises = {id(m): m.guarantee for m in self.mechanisms}
        return compose_all([promises[id(m)] for m in self.mechanisms])

    def prepared(self, question: Question) -> Mechanism:
        """Table releases become one, since they are about the same people."""
        asked = self.queries or [question.query] * len(self.mechanisms)
        made: dict[Any, Mechanism] = {}  # a repeated mechanism stays one
        parts = []
        for part, query in zip(self.mechanisms, asked, strict=True):
            key = id(part), id(query) if callable(query) else _hashable(query)
            if key not in made:
                made[key] = part.prepared(replace(question, query=query))
            parts.append(made[key])
        tables = [m for m in parts if isinstance(m, Published)]
        if len(tables) == len(parts):
            return Published.together(tables, self)
        changed = any(new is not old for new, old in zip(parts, self.mechanisms, strict=True))
        return Composed(parts, queries=self.queries) if changed else self

    def sample(self, records: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        """One output per mechanism and record."""
        parts = zip(self.mechanisms, self.split(records), strict=True)
        return tuple(m.sample(values, rng) for m, values in parts)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """The sum of the log-likelihoods."""
        parts = zip(self.mechanisms, outputs, self.split(records), strict=True)
        return np.asarray(sum(m.log_likelihood(o, values) for m, o, values in parts))

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        plain = {"kind": "Composed", "mechanisms": [m.describe() for m in self.mechanisms]}
        if self.queries is not None:
            plain["queries"] = [q if isinstance(q, str) else _words(q) for q in self.queries]
        return plain


def compose_all(promises: Sequence[Guarantee | None]) -> Guarantee | None:
    """The promise of several releases, equal ones by `repeated`, which is tighter; None if one is
    missing. One composition per distinct promise.
    """
    groups: list[tuple[Guarantee, int]] = []
    for promise in promises:
        if promise is None:
            return None
        for k, (known, times) in enumerate(groups):
            if known is promise or (isinstance(promise, KINDS) and known == promise):
                groups[k] = known, times + 1
                break
        else:
            groups.append((promise, 1))
    first, *others = [known.repeated(times) for known, times in groups]
    return first.compose(*others)


def _same_size(parts: Sequence[Mechanism]) -> None:
    if len({m.reads_codes for m in parts} - {None}) > 1:
        raise DpradError(
            "mechanisms must all read the same thing, but some read codes of other sizes: "
            f"{', '.join(type(m).__name__ for m in parts)}. Say with queries= what each reads."
        )


def _hashable(query: Any) -> Any:
    return tuple(query) if isinstance(query, list) else query


def _words(query: Any) -> Any:
    if query is None:
        return None
    return "a function" if callable(query) else list(query)


def _equal(one: Column, other: Column) -> bool:
    if one.dtype.kind != other.dtype.kind:  # codes are not numbers
        return False
    if one.dtype == object:
        return np.array_equal(codes(one)[1], codes(other)[1]) and np.array_equal(one, other)
    return np.array_equal(one, other)


class Repeated(Composed):
    """One mechanism run several times on the same record.

    Parameters
    ----------
    mechanism
        The mechanism.
    times
        Number of runs.

    Examples
    --------
    >>> from dprad.mechanisms import GRR
    >>> round(Repeated(GRR(epsilon=0.5, size=2), 4).guarantee.epsilon_at(0.0), 9)
    2.0

    """

    def __init__(self, mechanism: Mechanism, times: int) -> None:
        super().__init__([mechanism] * whole(times, "times", low=1, high=TIMES.high))

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        times, part = len(self.mechanisms), self.mechanisms[0].describe()
        return {"kind": "Repeated", "times": times, "mechanism": part}
