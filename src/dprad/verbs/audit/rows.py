"""Recorded runs, a claim about them, and what bets on them say."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprad.data.tables import Gap, array, codes, is_missing, read_rows
from dprad.errors import DpradError, column
from dprad.model.guarantees import ADD_REMOVE, ApproxDP, Guarantee, PureDP
from dprad.numerics.arrays import Column, IntArray
from dprad.verbs.audit.coordinates import part
from dprad.verbs.audit.evidence import Learned
from dprad.verbs.audit.findable import Tested, of_session
from dprad.verbs.audit.flatten import huge
from dprad.verbs.audit.plan import NOBODY, as_tested
from dprad.verbs.audit.session import Session
from dprad.verbs.audit.tally import Tally
from dprad.verbs.audit.trials import Calls, Chunks, packed

# Words for a data set without the person.
WITHOUT = ("out", "absent")


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Secrets by their place among the different values, and outputs. If one value means "without
    the person" it is the first (`in_out`).
    """

    secret: IntArray
    values: Column
    outputs: Any
    in_out: bool

    @classmethod
    def of(cls, table: Any, name: str, absent: Any) -> Runs:
        """From a data frame, a file, or a list of pairs."""
        if isinstance(table, list | tuple):
            secrets, outputs = _pairs(table)
        else:
            secrets, outputs = _columns(table, name)
        place, values = codes(secrets)
        if any(v is None for v in values.tolist()):
            raise DpradError("some rows have no secret. Drop them, if that has nothing to do with "
                             "their outputs.")  # fmt: skip
        if len(values) < 2:
            raise DpradError("the secrets are all the same; an audit compares at least two.")
        zero = _without(values, absent)
        if zero is not None:
            order = np.r_[zero, np.setdiff1d(np.arange(len(values)), zero)]
            place, values = np.argsort(order)[place], values[order]
        return cls(place, values, outputs, zero is not None)

    def take(self, where: Any) -> Any:
        """Some of the outputs."""
        return part(self.outputs, where)


def _pairs(table: Any) -> tuple[Column, Any]:
    pairs = [row if isinstance(row, list | tuple) else () for row in table]
    if not pairs or any(len(row) != 2 for row in pairs):
        raise DpradError("table must be a data frame, a file, or a list of pairs (secret, output).")
    outputs: Column = np.empty(len(pairs), dtype=object)
    outputs[:] = [y for _, y in pairs]
    return _secrets([z for z, _ in pairs]), packed(outputs.tolist())


def _columns(table: Any, name: str) -> tuple[Column, Any]:
    names, columns = read_rows(table, literal=True)
    column(name, names, name="secret")
    others = [c for n, c in zip(names, columns, strict=True) if n != name]
    if not others:
        raise DpradError("the table has no column of outputs beside the secret.")
    if len(others) == 1:
        outputs: Any = others[0]
    elif all(c.dtype.kind in "iufb" and not huge(c) for c in others):
        outputs = np.stack([c.astype(float) for c in others], axis=1)
    else:
        outputs = np.empty(len(others[0]), dtype=object)
        outputs[:] = list(zip(*(c.tolist() for c in others), strict=True))
    return _secrets(columns[names.index(name)]), outputs


def _secrets(values: Any) -> Column:
    try:
        found = array([None if _missing(v) else v for v in values])
        hash(found[0])
    except TypeError:
        raise DpradError("a secret must be a number or a word, not a list or the like.") from None
    return found


def _missing(value: Any) -> bool:
    """No secret, in whatever way that is written."""
    if isinstance(value, str):
        return not value.strip() or value.strip().lower() in ("nan", "+nan", "-nan")
    return isinstance(value, Gap) or is_missing(value)


def _without(values: Column, absent: Any) -> int | None:
    """Which value means: without the person."""
    listed: list[Any] = values.tolist()
    if absent is NOBODY:
        words = [v.strip().lower() if isinstance(v, str) else v for v in listed]
        return next((i for i, v in enumerate(words) if v in WITHOUT), None)
    if absent not in listed:
        raise DpradError("absent must be one of the values of the secret, but no row has it.")
    return listed.index(absent)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The runs and what is claimed about them."""

    runs: Runs
    claim: Guarantee
    tested: Guarantee
    point: tuple[float, float]
    alpha: float
    bits: bool
    seed: int

    @classmethod
    def of(cls, runs: Runs, claim: Guarantee, alpha: float, bits: bool, seed: int) -> Case:
        """Checked, and as it is tested."""
        if runs.in_out and claim.neighbours != ADD_REMOVE:
            raise DpradError(
                "the table compares data with and without a person, but the claim is, or may be, "
                "about replaced records. State what it promises with neighbours='add-remove'."
            )
        if claim.neighbours == ADD_REMOVE and not runs.in_out:
            raise DpradError(
                "the claim is about a person who is added or removed, but no secret is known to "
                "mean 'without the person'. Say which does, as in absent=0 (--absent 0). If each "
                "is the record of a person who is present, test the claim about replaced records "
                "that follows: claim.replace_one(), or twice the epsilon of a pure claim."
            )
        tested, point = as_tested(claim, runs.in_out)
        if isinstance(tested, ApproxDP) and point[1] == 0:
            tested = PureDP(point[0], neighbours=tested.neighbours)
        return cls(runs, claim, tested, point, alpha, bits, seed)

    def random(self, stream: int) -> np.random.Generator:
        """A stream of random numbers."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stream,)))

    def session(self) -> Session:
        """Nothing learned yet."""
        return Session(self.tested, self.seed, (), self.bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the bets, or the guesses, say."""

    evidence: str
    violated: bool
    low: float
    tally: Tally
    would_find: float | None
    notes: tuple[str, ...]
    secrets: int = 2
    wealth: tuple[tuple[int, float], ...] = ()
    studied: int = 0
    carried: tuple[tuple[str, float], ...] = ()
    differ: tuple[str, ...] = ()

    def beside(self, other: Said, share: float = 0.5) -> Said:
        """Two that share the error, this part of it and the rest: refuted is what either refutes.
        The more telling one is reported, with its part of the wealth, and the lesser epsilon that
        would have been found.
        """
        best, part = (self, share) if self.low >= other.low else (other, 1.0 - share)
        found = [said.would_find for said in (self, other) if said.would_find is not None]
        wealth = tuple((rows, log + math.log(part)) for rows, log in best.wealth)
        return replace(
            best,
            violated=self.violated or other.violated,
            wealth=wealth,
            would_find=min(found, default=None),
        )


# -- bets on two secrets ---------------------------------------------------------------------------
def bet(case: Case, session: Session, outputs: Any, secret: IntArray, error: float) -> Said:
    """Bet on rows in their order, chunk by chunk, at this chance of error."""
    evidence, chunks = Learned(session, case.point[1]), Chunks(len(secret))
    wealth = []
    for i in range(len(chunks)):
        where = np.arange(chunks.start(i), chunks.start(i) + chunks[i])
        evidence.add(Calls(secret[where], part(outputs, where), ""))
        wealth.append((evidence.tally.runs, evidence.log_wealth()))
    shares = {} if session.predictor is None else session.predictor.shares
    notes: tuple[str, ...] = ()
    if session.reader.floating and not case.bits:
        notes = ("outputs are numbers of many digits; bits=True also looks at their lowest bits",)
    notes += session.reader.notes()
    return Said(
        evidence=evidence.name,
        violated=evidence.log_wealth() >= -math.log(error),
        low=evidence.refuted(error, sequential=True),
        tally=evidence.tally,
        would_find=of_session(Tested(case.tested, case.point, error), session),
        notes=notes,
        wealth=tuple(wealth),
        differ=session.differ,
        carried=tuple(sorted(shares.items(), key=lambda item: -item[1])),
    )
