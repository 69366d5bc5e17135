"""What an entry says of its promise, and what it leaves open.

The registry has no field for the neighbours, nor for how often a release repeats: both are read
from its words, carefully. What is not said clearly is not known, and both readings are reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dprad.errors import DpradError
from dprad.model.guarantees import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    ApproxDP,
    Guarantee,
    Neighbours,
    PureDP,
)
from dprad.show.atlas.schema import Entry

_ADDS = (
    r"\bunbounded\b|\badd(ed|ing|ition)?\s*(/|or|and)\s*(of\s+)?(the\s+)?(remov|delet)|"
    r"symmetric (distance|difference)"
)
_ONE = (
    r"(a|an|any|one)( (?!is |not )[\w'\u2019]+){0,2} "
    r"(record|row|entry|user|person|individual|household|device)\b"
)
_CHANGES = (
    r"\bbounded neighbo|\bchange-one (distance|neighbo|adjacen)|\bhamming distance|"
    r"\breplace-one\b|"
    rf"\b(replac|substitut|modif)(y?ing|(ement|ion|ication) of) {_ONE}|"
    rf"\b{_ONE} (is|was|has been|may be|can be|being) (replaced|substituted|modified)\b"
)
_NOTHING = (
    r"\W*(n/a|none|none (are )?mentioned|no unprotected quantities( (are )?mentioned)?|"
    r"there (is no mention( of unprotected quantities)?|are no unprotected quantities))\W*"
)
# Releases in a year, the shortest period first.
PERIODS = (
    (r"6 hours|quarter-day", 1460, "quarter of a day"),
    (r"\bdaily\b|\b(every|each|per) day\b|-day\b", 365, "day"),
    (r"\bweekly\b|\b(every|each|per) week\b|-week\b", 52, "week"),
    (r"\bmonthly\b|\b(every|each|per) month\b|-month\b", 12, "month"),
    (r"\bquarterly\b|-quarter\b", 4, "quarter"),
)


@dataclass(frozen=True, slots=True)
class Read:
    """An entry, read: its promise by neighbours (empty: none, and `reason` says why), how often a
    year it repeats (1: it does not), and what is not known.
    """

    name: str
    curators: str
    date: str
    unit: str
    parameters: str
    promises: dict[Neighbours, Guarantee]
    stated: str
    times: int
    period: str
    reason: str
    unknown: tuple[str, ...]


def read_entry(entry: Entry) -> Read:
    """All of it."""
    parts = entry["deployment"]
    basic, loss = parts["basic"], parts.get("privacy_loss", {})
    numbers = loss.get("privacy_parameters", {})
    unknown: list[str] = []
    kind: Any = None
    reason = ""
    try:
        kind = _kind(parts.get("dp_variant", {}).get("variant_name"), numbers, unknown)
    except DpradError as error:
        reason = str(error)
    known, stated = neighbours(parts)
    both: tuple[Neighbours, ...] = (REPLACE_ONE, ADD_REMOVE) if known is None else (known,)
    times, period = repeats(parts, unknown)
    if known is None:
        unknown.append("whether a unit is added and removed, or replaced")
    unit = " ".join(str(loss.get("privacy_unit", "")).split())
    if not unit:
        unknown.append("what one unit of protection is")
    elif re.search(r"event|trip|tuple|contribution|record|aggregate", unit, re.IGNORECASE):
        unknown.append("how many such units one person has")
    bare = str(parts.get("dp_variant", {}).get("unprotected_quantities", ""))
    if bare.strip() and not re.fullmatch(_NOTHING, bare, re.IGNORECASE):
        unknown.append("what is learned from what is published or chosen without protection")
    return Read(
        name=" ".join(basic["name"].split()),
        curators=", ".join(basic["data_curators"]),
        date=str(basic["publication_date"]),
        unit=unit or "not stated",
        parameters=", ".join(f"{k} {v}" for k, v in numbers.items()) or "none",
        promises={} if kind is None else {n: kind(n) for n in both},
        stated=stated,
        times=times,
        period=period,
        reason=reason,
        unknown=tuple(unknown),
    )


def _kind(variant: str | None, numbers: dict[str, Any], unknown: list[str]) -> Any:
    """A function of the neighbours that makes the promise."""
    epsilon, rho = numbers.get("epsilon"), numbers.get("rho")
    delta = numbers.get("delta", 0.0)
    if epsilon is None and rho is None:
        raise DpradError("No privacy parameters are published.")
    if rho is not None:
        ZCDP(rho, neighbours=REPLACE_ONE)
        return lambda n: ZCDP(rho, neighbours=n)
    try:
        delta = float(delta)
    except ValueError:
        raise DpradError("Delta is a formula, not a number.") from None
    if variant == "Approximate DP" and "delta" not in numbers:
        raise DpradError("Delta is not published.")
    if variant not in ("Pure DP", "Approximate DP"):
        raise DpradError(f"An epsilon alone says too little of {variant or 'an unnamed variant'}.")
    if variant == "Pure DP" and delta > 0:
        unknown.append("whether the promise is pure: a delta is given too, and used here")
    size = float(epsilon or 0.0)
    ApproxDP(size, delta, neighbours=REPLACE_ONE)
    if delta == 0:
        return lambda n: PureDP(size, neighbours=n)
    return lambda n: ApproxDP(size, delta, neighbours=n)


def neighbours(parts: dict[str, Any]) -> tuple[Neighbours | None, str]:
    """What the promise compares, if the words on its unit say so, and in which words."""
    loss = parts.get("privacy_loss", {})
    words = " ".join(str(loss.get("privacy_unit_details", "")).split())
    adds, changes = (re.search(p, words, re.IGNORECASE) for p in (_ADDS, _CHANGES))
    local = parts.get("deployment_model", {}).get("model_name") == "Local"
    if local and not adds:
        # the local model compares any two values of one person's report
        return REPLACE_ONE, "replace-one (local model)"
    if adds and not changes and not local:
        return ADD_REMOVE, ADD_REMOVE
    if changes and not adds:
        return REPLACE_ONE, REPLACE_ONE
    return None, "contradictory" if adds else "not stated"


def repeats(parts: dict[str, Any], unknown: list[str]) -> tuple[int, str]:
    """How often a year the same promise is made about a person again, and the period."""
    model = parts.get("deployment_model", {})
    unit = str(parts.get("privacy_loss", {}).get("privacy_unit", ""))
    many = model.get("release_type") == "Many releases"
    found = _period(unit) or _period(str(model.get("release_type_details", "")))
    if found is None:
        if many:
            unknown.append("how often it is released")
        elif "release_type" not in model:
            unknown.append("whether it is released again")
        return 1, ""
    if not many:
        unknown.append(
            f"whether it repeats: it is called one release, but also said to be per {found[1]}"
        )
    if many and _period(unit) is None:
        unknown.append("whether the promise is for one release or for all of them")
    return found


def _period(words: str) -> tuple[int, str] | None:
    for pattern, times, name in PERIODS:
        if re.search(pattern, words, re.IGNORECASE):
            return times, name
    return None
