"""Lines: what the lines of a ledger say, and what an incomplete one leaves open."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from dprad.errors import DpradError, is_line, one_of
from dprad.show.ledger.entry import STATES, Entry, State

TORN = (
    "The last line of the ledger is incomplete: a writer was stopped, or the end was cut off, and "
    "a release may be missing. Look which, and add it again."
)
LEFT = (
    "A line of the ledger was incomplete when the next one was added, so the release {!r} may be "
    "missing. Add it again (and mark it as withdrawn if it was never published)."
)
OTHERWISE = (
    "A line of the ledger about {!r} was incomplete, and describes it otherwise than it was added "
    "again. Add it as it is described there, under another name (and mark it as withdrawn if it "
    "was never published)."
)
SEEN = "A line about {!r} was incomplete: it counts as published from then on."
UNNAMED = (
    "A line of the ledger was incomplete and did not say which release it was about. If one is "
    "missing, add it again."
)
# What a line says of what is published, beside numbers.
PUBLISHED = ("mechanism", "query", "doubts", "unit", "people")
# How a line begins that adds a release, or changes its state; and what is left of the state.
_BEGUN = re.compile(
    r'\{"(?P<what>name|mark)": (?P<name>"(?:[^"\\]|\\.)*")(?:, "state": (?P<state>"withdrawn"))?'
)


def applied(found: dict[str, Entry], rows: Sequence[dict[str, Any]], done: int) -> int:
    """Apply the lines after the first `done` to the entries found; how many are applied then."""
    for line in range(done, len(rows)):
        row = rows[line]
        try:
            if "torn" in row:
                name = _seen(row, found)
                if name:
                    found[name] = replace(found[name], state="published", seen=True)
            elif "mark" in row:
                entry, state = found[row["mark"]], _state(row["state"])
                seen = entry.seen or state == "published"
                found[row["mark"]] = replace(entry, state=state, seen=seen)
            else:
                found[row["name"]] = Entry.of(row)
        except (KeyError, TypeError, ValueError):
            raise DpradError(
                f"line {line + 1} of the ledger is of a kind that this version does not know."
            ) from None
    return len(rows)


def missing(rows: Sequence[dict[str, Any]], known: Collection[str]) -> tuple[str, ...]:
    """Which releases may be missing because their lines were incomplete, in sentences."""
    lost = set()
    for torn in (str(row["torn"]) for row in rows if "torn" in row):
        what, name, _ = _begun(torn)
        if what == "name" and name not in known:
            lost.add(LEFT.format(name))
        elif what == "name" and not any(_agrees(row, name, _members(torn)) for row in rows):
            lost.add(OTHERWISE.format(name))
    return tuple(sorted(lost))


def _agrees(row: dict[str, Any], name: str, said: dict[str, Any]) -> bool:
    """Whether a line adds what an incomplete one described, as far as that can be read: under the
    same name, or under another if the numbers can be read.
    """
    if "numbers" not in said:
        return row.get("name") == name
    if "name" not in row or _given(row["numbers"]) != _given(said["numbers"]):
        return False
    return all(row.get(key) == said[key] for key in PUBLISHED if key in said)


def _given(numbers: Any) -> Any:
    """Without what may be left out."""
    return {k: v for k, v in numbers.items() if v} if isinstance(numbers, dict) else numbers


def _members(torn: str) -> dict[str, Any]:
    """The members of an incomplete object of JSON that are whole."""
    found: dict[str, Any] = {}
    read, at = json.JSONDecoder().raw_decode, 1
    try:
        while True:
            key, at = read(torn, at)
            value, at = read(torn, at + len(": "))
            if at == len(torn):  # it may go on
                return found
            found[key], at = value, at + len(", ")
    except (ValueError, TypeError, RecursionError):
        return found


def told(rows: Sequence[dict[str, Any]], known: Collection[str]) -> tuple[str, ...]:
    """What else incomplete lines leave open, in sentences."""
    torn = [row for row in rows if "torn" in row]
    seen = dict.fromkeys(name for row in torn if (name := _seen(row, known)))
    unnamed = any(not _begun(row["torn"])[0] for row in torn)
    return (*(SEEN.format(name) for name in seen), *((UNNAMED,) if unnamed else ()))


def _seen(row: dict[str, Any], known: Collection[str]) -> str:
    """The release that an incomplete line may have marked as published; empty if none."""
    what, name, state = _begun(row["torn"])
    return name if what == "mark" and name in known and not state else ""


def _begun(torn: Any) -> tuple[str, str, str]:
    """Whether an incomplete line adds or marks a release, its name, and whether that is withdrawn;
    empty as far as that is not there.
    """
    found = _BEGUN.match(str(torn))
    try:
        name = json.loads(found["name"]) if found else ""
    except ValueError:
        return "", "", ""
    if found is None or not is_line(name):
        return "", "", ""
    return found["what"], name, found["state"] or ""


def _state(value: Any) -> State:
    """A state that a later line may give."""
    return STATES[STATES.index(one_of(value, "state", STATES[1:]))]
