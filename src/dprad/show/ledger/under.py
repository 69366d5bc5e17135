"""What the answers of a ledger rest on besides its lines: the scenario, which anybody may edit.

Every line keeps the SHA-256 of the population, of its data, of the attackers and of the accepted
risk. A scenario that says something else today is told, and so is a release that it describes
otherwise than the ledger: then nothing is accepted. Its title and other releases may change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dprad.errors import DpradError
from dprad.show.ledger.entry import Entry, digest
from dprad.show.scenario.file import tables, text_of

DATA = "data"
_PARTS = {
    "population": ("population",),
    "attackers": ("threats", "sensitive"),
    "accepted risk": ("accepted",),
}
_JUDGED = ("risk", "worst")


def under(scenario: Path) -> dict[str, str]:
    """SHA-256 of each part of a scenario file. Reads the data once."""
    raw = tables(text_of(scenario), str(scenario))
    accepted = raw.get("accepted")
    if isinstance(accepted, dict):
        raw["accepted"] = {k: v for k, v in accepted.items() if k in _JUDGED}
    found = {name: _hash([raw.get(key) for key in keys]) for name, keys in _PARTS.items()}
    population = raw.get("population")
    if isinstance(population, dict) and isinstance(population.get("data"), str):
        found[DATA] = digest(scenario.parent / population["data"])
    return found


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def changed(entries: Sequence[Entry], scenario: Path) -> tuple[str, ...]:
    """What of the scenario is not as it was when releases were entered, in sentences."""
    try:
        now = under(scenario)
    except DpradError as error:
        return (f"The scenario of these releases is not there as it was: {error}",)
    lines = []
    for part in (*_PARTS, DATA):
        other = [
            e for e in entries if e.scenario is not None and e.scenario.get(part) != now.get(part)
        ]
        if other:
            lines.append(
                f"Since {_listed(other)} entered, the {part} of {scenario.name} changed: what was "
                "said then was about something else."
            )
    strange = [e for e in entries if e.data is not None and DATA in now and e.data != now[DATA]]
    if strange:
        lines.append(
            f"{len(strange):,} of the releases ({strange[0].name!r}) were made from other data "
            f"than {scenario.name} names: the numbers are for the population in {scenario.name}."
        )
    return tuple(lines)


def _listed(entries: Sequence[Entry]) -> str:
    first = repr(entries[0].name)
    more = len(entries) - 1
    return f"{first} was" if not more else f"{first} and {more:,} more were"
