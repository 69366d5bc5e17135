"""What all table releases have in common: where people are counted, how much noise, what it keeps.

The description says how one person contributes to each cell, so the sensitivity follows from it,
under either neighbour relation. A person is in one cell of every table, with a value (1, if people
are counted). Without the person, each table moves by that value in one cell. If the person is
replaced, it moves in two cells, or by the difference of two values in one. The noise of all cells
is independent; what is promised is composed from these moves, cell by cell.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dprad.errors import DpradError, argument, number, one_of, whole
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.card import Card
from dprad.mechanisms.tables.noise import LINES, Noise, promise
from dprad.mechanisms.tables.published import Part, Published
from dprad.mechanisms.tables.quality import Quality, quality
from dprad.mechanisms.tables.table import Table
from dprad.model.guarantees import ADD_REMOVE, REPLACE_ONE, Guarantee
from dprad.model.guarantees.neighbours import EXPLAINED, Neighbours
from dprad.model.parameters import EPSILON, RHO, SCALE, TIMES, Goal, Parameter
from dprad.model.priors import Prior

AMOUNTS = (EPSILON.name, RHO.name, SCALE.name)
# Arguments of all table releases that are not numbers.
WORDS = ("noise", "neighbours", "where", "weights")


def described(name: str, title: str, *own: str | Parameter) -> Card:
    """The card of a table release with these arguments of its own."""
    numbers = tuple(p for p in own if isinstance(p, Parameter))
    words = tuple(p for p in own if isinstance(p, str))
    return Card(
        name=name, title=title, takes=(EPSILON, RHO, SCALE, TIMES, *numbers), reads="records",
        cost="draws", words=(*words, *WORDS),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TableRelease(Mechanism):
    """Base class of table releases. Use one of its subclasses.

    Parameters
    ----------
    noise
        ``"laplace"``, ``"geometric"``, ``"gaussian"`` or ``"discrete-gaussian"``, on every cell.
    epsilon
        Laplace and geometric noise: the privacy loss of all tables together.
    rho
        Gaussian noise: the zero-concentrated privacy loss of all tables together.
    scale
        Instead of these, the scale of the noise itself: b, or the standard deviation.
    neighbours
        What `epsilon` or `rho` compares: ``"replace-one"`` or ``"add-remove"``. Required with them.
    where
        Who is counted: ``{"smoker": "yes"}``, or a comparison such as ``'age >= 40'``.
    weights
        Shares of the tables in `epsilon` or `rho`; default: equal.
    times
        How often the same tables are published, each time with new noise and the whole budget.

    Examples
    --------
    >>> from dprad.mechanisms import Counts
    >>> issubclass(Counts, TableRelease)
    True

    """

    noise: str = "laplace"  # type: ignore[assignment, misc]
    epsilon: float | None = None
    rho: float | None = None
    scale: float | None = None
    neighbours: Neighbours | None = None
    where: str | Mapping[str, Any] | None = None
    weights: tuple[float, ...] | None = None
    times: int = 1
    noises: tuple[Noise, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        one_of(self.noise, "noise", LINES)
        self._set("where", predicate(self.where))
        self._set("times", whole(self.times, "times", low=1, high=TIMES.high))
        self._check()
        if self.neighbours is not None:
            one_of(self.neighbours, "neighbours", (REPLACE_ONE, ADD_REMOVE), hint=EXPLAINED)
        self._set("weights", self._weighed())
        self._set("noises", self._noises())

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    # -- defined by each kind ------------------------------------------------------------------
    @property
    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """The tables that are published."""

    def _check(self) -> None:
        """Refuse a description that makes no sense."""

    @property
    def shown(self) -> float:
        """The probability that the keys alone give somebody away; 0 if they are public."""
        return 0.0

    # -- noise ---------------------------------------------------------------------------------
    def _weighed(self) -> tuple[float, ...] | None:
        if self.weights is None:
            return None
        try:
            given = tuple(number(w, "weights", low=0) for w in self.weights)
        except TypeError:
            given = ()
        if len(given) != len(self.tables) or not all(given):
            raise DpradError(
                f"weights must be {len(self.tables)} positive numbers, one for each table, but is "
                f"{self.weights!r}."
            )
        if self.scale is not None:
            raise DpradError("weights share out epsilon or rho; leave them out with scale.")
        return given

    def _noises(self) -> tuple[Noise, ...]:
        named = [name for name in AMOUNTS if getattr(self, name) is not None]
        normal = Noise(self.noise, 1.0).normal
        wanted = RHO.name if normal else EPSILON.name
        if len(named) != 1 or named[0] not in (wanted, SCALE.name):
            what = " and ".join(named) if named else "neither"
            raise DpradError(
                f"{self.noise} noise is given by {wanted} or by scale, but got {what}."
            )
        amount = number(getattr(self, named[0]), named[0], low=0)
        self._set(named[0], amount)
        if named[0] == SCALE.name:
            if amount == 0:
                raise DpradError("scale must be positive, but is 0.")
            Noise(self.noise, amount).line()  # or an error
            return tuple(Noise(self.noise, amount) for _ in self.tables)
        if self.neighbours is None:
            raise DpradError(
                f"neighbours must say what {wanted} compares: 'replace-one' or 'add-remove'."
            )
        shares = np.asarray(self.weights or np.ones(len(self.tables)))
        budget = amount * shares / shares.sum()
        with np.errstate(divide="ignore"):
            moved = np.array(self.sensitivity(self.neighbours))
            scales = moved / np.sqrt(2 * budget) if normal else moved / budget
        noises = tuple(Noise(self.noise, float(s)) for s in scales)
        for noise in noises:
            if not noise.silent:
                noise.line()  # or an error
        return noises

    def sensitivity(self, neighbours: Neighbours) -> tuple[float, ...]:
        """How far one person can move each table: for Gaussian noise the length of that move,
        otherwise the sum over its cells.

        Parameters
        ----------
        neighbours
            ``"replace-one"`` or ``"add-remove"``.

        Returns
        -------
        tuple of float
            One number per table.

        Examples
        --------
        Fifty bins: 1 if a person comes or goes, 2 if one is replaced.

        >>> from dprad.mechanisms import Histogram
        >>> bins = Histogram(of="age", bins=range(0, 101, 2), scale=1.0)
        >>> bins.sensitivity("add-remove"), bins.sensitivity("replace-one")
        ((1.0,), (2.0,))

        """
        one_of(neighbours, "neighbours", (REPLACE_ONE, ADD_REMOVE), hint=EXPLAINED)
        order = 2 if Noise(self.noise, 1.0).normal else 1
        return tuple(
            max(float(np.linalg.norm(move, order)) if move else 0.0 for move in t.moves(neighbours))
            for t in self.tables
        )

    # -- as a mechanism ------------------------------------------------------------------------
    @property
    def guarantee(self) -> Guarantee:
        """What the noise keeps, for replaced records."""
        return self._promise(REPLACE_ONE)

    @property
    def stated(self) -> Guarantee:
        """What the noise keeps, for the neighbours that `epsilon` or `rho` speaks of."""
        return self._promise(self.neighbours or REPLACE_ONE)

    def _promise(self, neighbours: Neighbours) -> Guarantee:
        both = [t.moves(neighbours) for t in self.tables]
        moves = []
        for way in zip(*both, strict=True):
            pairs = zip(self.noises, way, strict=True)
            moved = Counter((noise, shift) for noise, shifts in pairs for shift in shifts)
            moves.append([(*which, count * self.times) for which, count in moved.items()])
        return promise(moves, neighbours)

    def prepared(self, question: Question) -> Published:
        """The release for the records of a question. O(m log m) per table."""
        if question.query is not None:
            raise DpradError(
                f"{type(self).__name__} says itself what it reads: leave out query=, and use by=, "
                "of= and where=."
            )
        prior = question.prior
        if prior.kind != "finite":
            raise DpradError(f"{type(self).__name__} needs a prior that is a table of records.")
        parts = [
            Part.of(table, noise, self.times, prior)
            for table, noise in zip(self.tables, self.noises, strict=True)
        ]
        return Published.of(parts, self, self.shown)

    def read(self, question: Question) -> Any:
        """What is read from each record: its number among the different contributions."""
        return self.prepared(question).place

    def sample(self, records: Any, rng: np.random.Generator) -> Any:  # noqa: ARG002
        """Refused: the cells follow from the records."""
        raise DpradError(
            f"{type(self).__name__} needs records to publish: give a prior to assess, simulate or "
            "audit it."
        )

    def error(self, confidence: float = 0.95) -> float | None:
        """The noise of a cell stays within this, in the table with the most noise."""
        if any(noise.silent for noise in self.noises):
            return float("inf")
        return float(max(noise.line().error(confidence) for noise in self.noises))

    def quality(self, prior: Prior, people: int | None = None) -> tuple[Quality, ...]:
        """How useful each table is: its noise, and the share of cells that it swamps.

        Parameters
        ----------
        prior
            The population.
        people
            How many people are in the tables; default: the rows from which the prior was counted.

        Returns
        -------
        tuple of Quality
            For every table ``typical``, ``error`` and ``swamped``.

        Examples
        --------
        One cell has ten people, the other one; noise of scale 2 exceeds a count n with probability
        ``exp(-n/2)``.

        >>> import dprad
        >>> from dprad.mechanisms import Counts
        >>> prior = dprad.Prior.from_counts({"common": 10, "rare": 1})
        >>> table = Counts(by=["value"], epsilon=1.0, neighbours="replace-one")
        >>> round(table.quality(prior, people=11)[0].swamped, 3)
        0.307

        """
        return quality(self.tables, self.noises, prior, people)

    def describe(self) -> dict[str, Any]:
        """What is published, as plain data: only what was given."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        kept = {k: v for k, v in own.items() if v is not None and (k, v) != ("times", 1)}
        return {"kind": type(self).__name__, **{k: _plain(v) for k, v in kept.items()}}

    @classmethod
    def turns(cls, fixed: Mapping[str, Any]) -> str | None:
        """The parameter that a calibration varies: epsilon, or rho for Gaussian noise."""
        kind = fixed.get("noise", "laplace")
        return RHO.name if kind in LINES and Noise(kind, 1.0).normal else EPSILON.name

    @classmethod
    def first_guess(cls, goal: Goal) -> float:  # noqa: ARG003
        """One."""
        return 1.0


def predicate(where: Any) -> str | None:
    """A predicate as text; ``{column: value}`` asks for equality, a list for one of its values."""
    if where is None or isinstance(where, str):
        return where
    if not isinstance(where, Mapping) or not where:
        raise DpradError(
            f"where must be a comparison such as 'age >= 40', or {{column: value}}, but is "
            f"{argument(where)}."
        )
    parts = []
    for name, value in where.items():
        if isinstance(value, list | tuple | set):
            parts.append(f"{_quoted(name, True)} in ({', '.join(map(_quoted, value))})")
        else:
            parts.append(f"{_quoted(name, True)} = {_quoted(value)}")
    return " and ".join(parts)


def _quoted(value: Any, name: bool = False) -> str:
    if not name and not isinstance(value, str):
        return repr(value)
    mark = '"' if name or '"' not in str(value) else "'"
    if mark in str(value):
        raise DpradError("where names a column or value with quotation marks, which it cannot ask.")
    return f"{mark}{value}{mark}"


def columns(names: Any, what: str) -> tuple[str, ...]:
    """Names of columns, each once, or a `DpradError`."""
    listed = (names,) if isinstance(names, str) else names
    if not isinstance(listed, Sequence) or not all(isinstance(n, str) for n in listed):
        raise DpradError(f"{what} must be a list of column names, but is {names!r}.")
    if len(set(listed)) < len(listed):
        raise DpradError(f"{what} must name each column once, but is {list(listed)!r}.")
    return tuple(listed)


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value
