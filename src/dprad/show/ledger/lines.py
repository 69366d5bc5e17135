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


def applied(found: dict[str, Entry], rows: Sequence[dict[str, Any]], done: int) -> int:
    """Apply the lines after the first `done` to the entries found; how many are applied then."""
    for line in range(done, len(rows)):
        row = rows[line]
        if "torn" in row:
            continue
        try:
            if "mark" in row:
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
    begun = {_begun(row["torn"]) for row in rows if "torn" in row}
    return tuple(LEFT.format(name) for name in sorted(begun - {"", *known}))


def _begun(torn: Any) -> str:
    """The name of the release that an incomplete line is about; empty if that is not there."""
    found = re.match(r'\{"name": ("(?:[^"\\]|\\.)*")', str(torn))
    try:
        name = json.loads(found[1]) if found else ""
    except ValueError:
        return ""
    return name if is_line(name) else ""


def _state(value: Any) -> State:
    """A state that a later line may give."""
    return STATES[STATES.index(one_of(value, "state", STATES[1:]))]
