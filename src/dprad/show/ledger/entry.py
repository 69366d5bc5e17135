"""Entry: one release of a ledger, as it stands after all lines about it."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from dprad.errors import DpradError, number, one_of
from dprad.mechanisms import catalogue
from dprad.mechanisms.base import Mechanism
from dprad.model.guarantees import KINDS, Guarantee
from dprad.show.scenario.release import Release
from dprad.show.scenario.schema import RELEASE

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
    unit
        Whose contribution the noise hides: "person", or something smaller, such as "visit".
    share
        The share of the population that it covers.
    data
        SHA-256 of the data, or None.
    scenario
        SHA-256 of the scenario file under which it was entered, or None.

    """

    name: str
    date: str
    state: State
    seen: bool
    mechanism: str | None
    numbers: dict[str, Any]
    query: Any
    unit: str = PERSON
    share: float = 1.0
    data: str | None = None
    scenario: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it adds to the risk: planned, published, or withdrawn after people saw it."""
        return self.seen or self.state != "withdrawn"

    @property
    def release(self) -> Release:
        """What is published, as a scenario has it."""
        return Release(self.name, self.mechanism, self.numbers, self.query)

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain data."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def described(subject: Any, query: Any) -> dict[str, Any]:
    """A mechanism, a guarantee or a release, by short name and numbers."""
    if isinstance(subject, Release):
        return {"mechanism": subject.mechanism, "numbers": subject.numbers, "query": subject.query}
    if isinstance(subject, Guarantee):
        if not isinstance(subject, KINDS):
            raise DpradError(
                f"a ledger takes guarantees that are a few numbers, but got a "
                f"{type(subject).__name__}. Give the GaussianDP or ApproxDP that it implies."
            )
        plain = subject.describe()
        numbers = {p.name: plain[p.name] for p in subject.takes}
        return {"mechanism": None, "numbers": numbers | {"neighbours": subject.neighbours},
                "query": None}  # fmt: skip
    card = subject.card if isinstance(subject, Mechanism) else None
    if card is None:
        raise DpradError(
            "a ledger takes a mechanism that has a short name (such as Laplace or GRR), or a "
            f"guarantee, but got a {type(subject).__name__}. Add the parts of a composition one by "
            "one, and of anything else the guarantee."
        )
    numbers = {k: getattr(subject, k) for k in card.names if getattr(subject, k) is not None}
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in numbers.items()}
    query = list(query) if isinstance(query, tuple) else query
    return {"mechanism": card.name, "numbers": plain, "query": query}


def checked(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a new entry, validated."""
    good: dict[str, Any] = {"name": _text(row["name"], "name"), "date": day(row["date"])}
    good["state"] = one_of(row["state"], "state", STATES[:2])
    mechanism = row["mechanism"]
    numbers = {k: RELEASE[one_of(k, "a number", RELEASE)](v, k) for k, v in row["numbers"].items()}
    if mechanism is None:
        catalogue.promise(numbers)
    else:
        takes = catalogue.card(mechanism).names
        for key in numbers:
            one_of(key, f"a parameter of {mechanism}", takes)
        if takes[0] not in numbers:
            raise DpradError(f"{mechanism} needs {takes[0]}.")
    if row["query"] is not None:
        RELEASE["query"](row["query"], "query")
    share = number(row["share"], "share", low=0, high=1)
    if share == 0:
        raise DpradError("share must be positive, but is 0: nobody would be covered.")
    good |= {"mechanism": mechanism, "numbers": numbers, "query": row["query"], "share": share}
    good |= {"unit": _text(row["unit"], "unit"), "data": row["data"], "scenario": row["scenario"]}
    return good


def day(value: Any) -> str:
    """A date as 2030-01-31; today if there is none."""
    if value is None:
        return datetime.date.today().isoformat()
    text = value.isoformat() if isinstance(value, datetime.date) else str(value)
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
            raise ValueError
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise DpradError(f"date must be a date, as in 2030-01-31, but is {value!r}.") from None


def digest(path: Any) -> str:
    """SHA-256 of a file. One scan."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DpradError(f"{path} cannot be read: {error.strerror}.") from None


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 200:
        raise DpradError(f"{name} must be a short text, but is {value!r}.")
    return value
