"""Entry: one release of a ledger, as it stands after all lines about it."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dprad.errors import DpradError, argument, is_line, number, one_of, whole
from dprad.game.question import Question
from dprad.mechanisms import catalogue
from dprad.mechanisms.base import Mechanism
from dprad.model.guarantees import KINDS, Guarantee
from dprad.model.parameters import PEOPLE
from dprad.show.scenario.release import Release
from dprad.show.scenario.schema import RELEASE
from dprad.verbs.together import Part

State = Literal["planned", "published", "withdrawn"]
STATES: tuple[State, ...] = ("planned", "published", "withdrawn")
PERSON = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A release in a ledger.

    Parameters
    ----------
    name
        Its name; no two releases share one.
    date
        When it is or was published, as 2030-01-31.
    state
        "planned", "published" or "withdrawn".
    seen
        Whether it was published at some time. It then counts, even if it was withdrawn later.
    mechanism, numbers, query
        What is published, as in a scenario file; `mechanism` is None for a guarantee.
    fixed
        Arguments of a mechanism that follow from the records where a scenario names it: number of
        values, bounds. Given by Python only.
    doubts
        Why it may not hold as stated.
    unit
        Whose contribution the noise hides: "person", or something smaller, such as "visit".
    people
        The most units that belong to one person; None: not known, or the unit is a person.
    share
        The share of the population that it covers.
    data
        SHA-256 of the data, or None.
    scenario
        SHA-256 of the parts of the scenario file under which it was entered, or None.

    """

    name: str
    date: str
    state: State
    seen: bool
    mechanism: str | None
    numbers: dict[str, Any]
    query: Any
    fixed: dict[str, Any]
    doubts: tuple[str, ...] = ()
    unit: str = PERSON
    people: int | None = None
    share: float = 1.0
    data: str | None = None
    scenario: dict[str, str] | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Entry:
        """The entry of a line."""
        good = checked(row)
        return cls(**good, seen=good["state"] == "published")

    @property
    def counts(self) -> bool:
        """Whether it adds to the risk: planned, published, or withdrawn after people saw it."""
        return self.seen or self.state != "withdrawn"

    @property
    def release(self) -> Release:
        """What is published, as a scenario has it."""
        return Release(self.name, self.mechanism, self.numbers, self.query, self.doubts)

    @property
    def same(self) -> str:
        """Equal for entries that publish the same, to the same people."""
        about = (self.mechanism, sorted(self.numbers.items()), sorted(self.fixed.items()))
        return repr((*about, self.query, self.doubts, self.people))

    def matches(self, release: Release) -> bool:
        """Whether a scenario describes the same."""
        made = _published(release.mechanism, dict(release.numbers), {})
        theirs = (made["mechanism"], made["numbers"], _plain(release.query), release.doubts)
        return theirs == (self.mechanism, self.numbers, self.query, self.doubts)

    @property
    def unclear(self) -> bool:
        """Whether it hides less than a person, and how much of a person is not known."""
        return self.unit != PERSON and self.people is None and PEOPLE.name not in self.numbers

    def subject(self, question: Question) -> Any:
        """What `assess` takes."""
        if self.fixed and self.mechanism is not None:
            return catalogue.FAMILIES[self.mechanism](**self.numbers, **self.fixed)
        return self.release.subject(question.prior, question.threat)

    def part(self, question: Question) -> Part:
        """What is added up, for a person: with several units, the guarantee for all of them."""
        try:
            subject = self.subject(question)
            if self.people is None:
                return subject, self.query
            promise = subject.guarantee if isinstance(subject, Mechanism) else subject
            if promise is None:
                raise DpradError(f"it has no guarantee, so none for {self.people:,} of a person.")
            return promise.group(self.people), None
        except DpradError as error:
            raise DpradError(f"{self.name}: {error}") from None

    def check(self, question: Question) -> None:
        """Refuse what cannot be read from the records, as a risk would. O(m)."""
        subject = self.subject(question)
        if isinstance(subject, Mechanism):
            subject.read(self.release.posed(question))

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain data."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return plain | {"doubts": list(self.doubts)}


def described(subject: Any, query: Any) -> dict[str, Any]:
    """A mechanism, a guarantee, a release or an entry, by short name and numbers: all of it."""
    plain: dict[str, Any] = {"mechanism": None, "query": None, "fixed": {}, "doubts": ()}
    if isinstance(subject, Entry | Release):
        fixed = subject.fixed if isinstance(subject, Entry) else {}
        names = ("mechanism", "numbers", "query", "doubts")
        return plain | {name: getattr(subject, name) for name in names} | {"fixed": fixed}
    if isinstance(subject, Guarantee):
        if type(subject) not in KINDS:
            raise DpradError(
                f"a ledger takes guarantees that are a few numbers, but got a "
                f"{type(subject).__name__}. Give the GaussianDP or ApproxDP that it implies."
            )
        said = subject.describe()
        numbers = {p.name: said[p.name] for p in subject.takes}
        numbers["neighbours"] = subject.neighbours
        return plain | {"numbers": numbers, "doubts": subject.doubts}
    return plain | _mechanism(subject) | {"query": _plain(query)}


def _mechanism(subject: Any) -> dict[str, Any]:
    """A mechanism: what its card names, and what else was given."""
    card = subject.card if isinstance(subject, Mechanism) else None
    known = catalogue.FAMILIES | catalogue.TABLES
    if card is None or type(subject) is not known.get(card.name):
        raise DpradError(
            "a ledger takes a mechanism that has a short name (such as Laplace or GRR), or a "
            f"guarantee, but got a {type(subject).__name__}. Add the parts of a composition one by "
            "one, and of anything else the guarantee."
        )
    every = {f.name: getattr(subject, f.name) for f in fields(subject) if f.init}  # type: ignore[arg-type]
    numbers = {k: v for k, v in every.items() if k in card.names and v is not None}
    needed = {f.name for f in fields(subject) if f.init and f.default is MISSING}  # type: ignore[arg-type]
    first = {k: v for k, v in every.items() if k in needed or k in numbers}
    usual = type(subject)(**first)
    fixed = {
        k: v
        for k, v in every.items()
        if k not in numbers and (k in needed or v != getattr(usual, k))
    }
    numbers, fixed = ({k: _plain(v) for k, v in some.items()} for some in (numbers, fixed))
    if not all(isinstance(v, int | float | str | list) for v in (numbers | fixed).values()):
        raise DpradError(f"a ledger cannot keep all arguments of this {type(subject).__name__}.")
    return {"mechanism": card.name, "numbers": numbers, "fixed": fixed}


def checked(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a new entry, validated."""
    good: dict[str, Any] = {"name": _text(row["name"], "name"), "date": day(row["date"])}
    good["state"] = one_of(row["state"], "state", STATES[:2])
    good |= _published(row["mechanism"], dict(row["numbers"]), dict(row["fixed"]))
    good["query"] = _plain(row["query"])
    if good["query"] is not None:
        RELEASE["query"](good["query"], "query")
    good["doubts"] = tuple(_text(doubt, "doubts", longest=2000) for doubt in row["doubts"])
    good["share"] = number(row["share"], "share", low=0, high=1)
    if good["share"] == 0:
        raise DpradError("share must be positive, but is 0: nobody would be covered.")
    good |= {"unit": _text(row["unit"], "unit"), "people": row["people"]}
    if good["people"] is not None:
        good["people"] = RELEASE[PEOPLE.name](whole(row["people"], "people", low=1), "people")
        if good["unit"] == PERSON:
            raise DpradError("people says how many units one person has: give the unit as well.")
        if PEOPLE.name in good["numbers"]:
            raise DpradError("people is part of the promise already: leave it out here.")
    parts = {} if row["scenario"] is None else row["scenario"]
    hashes = [row["data"], *(parts.values() if isinstance(parts, dict) else [0])]
    if not all(isinstance(value, str | None) for value in hashes):
        raise DpradError("data and scenario must be hashes.")
    return good | {"data": row["data"], "scenario": row["scenario"]}


def _published(mechanism: Any, numbers: dict[str, Any], fixed: dict[str, Any]) -> dict[str, Any]:
    """What is published: a promise, a table release or a mechanism, as a scenario would have it."""
    fixed = {key: _frozen(value) for key, value in fixed.items()}
    if mechanism in catalogue.TABLES:
        numbers = {key: _frozen(value) for key, value in numbers.items()}
        catalogue.TABLES[mechanism](**numbers)
        return {"mechanism": mechanism, "numbers": numbers, "fixed": fixed}
    for key, value in numbers.items():
        RELEASE[one_of(key, "a number", RELEASE)](_plain(value), key)
    numbers = {key: _frozen(value) for key, value in numbers.items()}
    if mechanism is None:
        catalogue.promise(numbers)
        if fixed:
            raise DpradError("a promise has no arguments of a mechanism.")
    else:
        takes = catalogue.card(mechanism).names
        for key in numbers:
            one_of(key, f"a parameter of {mechanism}", takes)
        if takes[0] not in numbers:
            raise DpradError(f"{mechanism} needs {takes[0]}.")
        if fixed:
            catalogue.FAMILIES[mechanism](**numbers, **fixed)
    return {"mechanism": mechanism, "numbers": numbers, "fixed": fixed}


def _plain(value: Any) -> Any:
    """As JSON has it: lists, and numbers of Python."""
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value


def _frozen(value: Any) -> Any:
    """As a mechanism has it: tuples."""
    return tuple(_frozen(v) for v in value) if isinstance(value, tuple | list) else value


def day(value: Any) -> str:
    """A date as 2030-01-31."""
    text = value.isoformat() if isinstance(value, datetime.date) else str(value)
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
            raise ValueError
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise DpradError(
            f"date must be a date, as in 2030-01-31, but is {argument(value)}."
        ) from None


def digest(path: Any) -> str:
    """SHA-256 of a file. One scan."""
    try:
        if Path(path).exists() and not Path(path).is_file():  # a pipe or a device has no end
            raise DpradError(f"{path} is not a file.")
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DpradError(f"{path} cannot be read: {error.strerror}.") from None


def _text(value: Any, name: str, longest: int = 200) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise DpradError(f"{name} must be a short text, but is {argument(value)}.")
    if not is_line(value, longest):
        raise DpradError(f"{name} must be one line of printable text, but is {argument(value)}.")
    return value
