"""The schema of a scenario file. Errors name the line, table and key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

from dprad.data.text import Written
from dprad.errors import (
    LONGEST,
    DpradError,
    did_you_mean,
    flat,
    is_line,
    number,
    one_of,
    record,
    records_shown,
    share,
    whole,
    written,
)
from dprad.mechanisms import catalogue
from dprad.mechanisms.tables.noise import LINES
from dprad.model.guarantees import ADD_REMOVE, REPLACE_ONE, UNKNOWN
from dprad.model.losses import LOSSES
from dprad.model.missing import POLICIES
from dprad.model.parameters import Parameter
from dprad.model.threats import KNOWS

Table = dict[str, Any]


def _text(value: Any, name: str) -> Any:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise DpradError(f"{name} must be text, but is {written(value)}.")
    return value


def _line(value: Any, name: str) -> Any:
    """Text that is shown: nothing in it may look like another line."""
    if not is_line(_text(value, name)):
        raise DpradError(
            f"{name} must be one line of printable text, at most {LONGEST} characters long and "
            f"without wide gaps, but is {flat(written(value))}."
        )
    return value


def _date(value: Any, name: str) -> str:
    """A date, written as text or as TOML's own."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", _text(value, name), re.ASCII):
            raise ValueError
        return date.fromisoformat(value).isoformat()
    except (ValueError, DpradError):
        raise DpradError(
            f'{name} must be a date, as in "2030-01-31", but is {written(value)}.'
        ) from None


def _names(value: Any, name: str) -> Any:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise DpradError(f"{name} must be a list of column names, but is {written(value)}.")
    return value


def _sentences(value: Any, name: str) -> Any:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise DpradError(f"{name} must be a list of sentences, but is {written(value)}.")
    return [_line(v, name) for v in value]


def _knows(value: Any, name: str) -> Any:
    if isinstance(value, str):
        hint = f"A column is named in a list: {name} = [{written(value)}]."
        return one_of(value, name, KNOWS, hint=hint)
    return _names(value, name)


def _query(value: Any, name: str) -> Any:
    return _line(value, name) if isinstance(value, str) else _names(value, name)


def _plain(value: Any, name: str, low: float, high: float) -> Any:
    if isinstance(value, bool | str):
        raise DpradError(f"{name} must be a number, but is {written(value)}.")
    return number(value, name, low=low, high=high)


def _number(low: float = 0.0, high: float = float("inf")) -> Callable[[Any, str], Any]:
    return lambda value, name: _plain(value, name, low, high)


def _share(value: Any, name: str) -> float:
    """A number, or a percentage as text."""
    if isinstance(value, bool):
        raise DpradError(f"{name} must be a number, but is {written(value)}.")
    return share(value, name)


def _encoding(value: Any, name: str) -> Any:
    Written.of(_text(value, name), ".")
    return value


def _confidence(value: Any, name: str) -> float:
    if not 0 < _share(value, name) < 1:
        raise DpradError(f"{name} must be strictly between 0 and 1, but is {written(value)}.")
    return _share(value, name)


def _range(value: Any, name: str) -> Any:
    if not isinstance(value, list) or len(value) != 2:
        raise DpradError(f"{name} must be two numbers, as in [0, 100], but is {written(value)}.")
    return [_plain(v, name, -float("inf"), float("inf")) for v in value]


def _counts(value: Any, name: str) -> Any:
    if not isinstance(value, Mapping) or not value:
        raise DpradError(
            f"{name} must be a table {{ value = weight, ... }}, but is something else."
        )
    return {
        k: _plain(v, f"{name}, weight {record(k, i)},", 0.0, float("inf"))
        for i, (k, v) in enumerate(value.items(), 1)
    }


def _yes(value: Any, name: str) -> Any:
    if value is not True:
        raise DpradError(f"{name} must be true or left out, but is {written(value)}.")
    return value


def _word(*choices: str) -> Callable[[Any, str], Any]:
    return lambda value, name: one_of(value, name, choices)


def _whole(low: int, high: float = float("inf")) -> Callable[[Any, str], Any]:
    def check(value: Any, name: str) -> int:
        if isinstance(value, bool | str):
            raise DpradError(f"{name} must be a whole number, but is {written(value)}.")
        if whole(value, name, low=low) > high:
            raise DpradError(
                f"{name} must be at most {high:,} in a scenario, but is {written(value)}."
            )
        return whole(value, name, low=low)

    return check


def _domain(value: Any, name: str) -> Any:
    low, high = _range(value, name)
    if low != int(low) or high != int(high) or low > high:
        raise DpradError(f"{name} must be two whole numbers low, high, but is {written(value)}.")
    return [int(low), int(high)]


def _cells(value: Any, name: str) -> Any:
    """Columns of a table; "total" or none for a single number."""
    return [] if value in ("total", []) else _names(value, name)


def _tables(value: Any, name: str) -> Any:
    if not isinstance(value, list) or not value:
        raise DpradError(f'{name} must be a list of tables, as in [["age"], ["age", "region"]].')
    return [_names(names, name) for names in value]


def _numbers(value: Any, name: str) -> Any:
    if not isinstance(value, list) or not value:
        raise DpradError(f"{name} must be a list of numbers, but is {written(value)}.")
    return [_plain(v, name, -float("inf"), float("inf")) for v in value]


def _where(value: Any, name: str) -> Any:
    return value if isinstance(value, Mapping) else _line(value, name)


def _declared(parameter: Parameter) -> Callable[[Any, str], Any]:
    """The check of a declared parameter."""
    if parameter.interval:
        return _range
    if parameter.choices:
        return _word(*parameter.choices)
    return _whole(0, parameter.most) if parameter.whole else _number(0.0, parameter.most)


Checks = dict[str, Callable[[Any, str], Any]]
POPULATION: Checks = {
    "builtin": _word("patients"),
    "data": _text,
    "counts": _counts,
    "uniform": _whole(1),
    "unknown": _yes,
    "columns": _names,
    "weight": _line,
    "missing": _word(*POLICIES),
    "encoding": _encoding,
    "decimal": _word(".", ","),
    "domain": _domain,
    "whole": _yes,
}
THREAT: Checks = {
    "name": _line,
    "knows": _knows,
    "target": _names,
    "loss": _word(*LOSSES),
    "eta": _number(),
}
RELEASE: Checks = {
    "name": _line,
    "mechanism": lambda v, n: one_of(v, n, catalogue.FAMILIES),
    "query": _query,
    "counts": _cells,
    "marginals": _tables,
    "sums": _line,
    "mean": _line,
    "histogram": _line,
    "by": _names,
    "bins": _numbers,
    "where": _where,
    "noise": _word(*LINES),
    "weights": _numbers,
    **{name: _declared(p) for name, p in catalogue.NUMBERS.items()},
    "neighbours": _word(REPLACE_ONE, ADD_REMOVE, UNKNOWN),
    "doubts": _sentences,
}
ACCEPTED: Checks = {"risk": _share, "worst": _yes, "by": _line, "on": _line, "review": _date}
AUDIT: Checks = {
    "trials": _whole(10, 10_000_000),
    "function": _text,
    "claim": _number(),
    "confidence": _confidence,
}
TOP = {
    "title": _line,
    "sensitive": _names,
    "population": POPULATION,
    "threats": THREAT,
    "releases": RELEASE,
    "accepted": ACCEPTED,
    "audit": AUDIT,
}
MANY = ("threats", "releases")
# Most errors that are listed.
MOST = 100
SOURCES = ("builtin", "data", "counts", "uniform", "unknown")


class Wrong:
    """Errors with their places; `spoiled`: tables that lack something, as it was wrong."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.lines = name, _places(text)
        self.errors: list[tuple[int, str]] = []
        self.spoiled: set[tuple[str, int]] = set()
        self.keys: set[tuple[str, int, str]] = set()

    def add(self, at: tuple[Any, ...], message: str) -> None:
        """`at`: table, number in an array of tables (0: not an array), key."""
        full: Any = (*at, *("", 0, "")[len(at) :])
        table, k, key = full
        self.spoiled.add((table, k))
        self.keys.add(full)
        place = self.lines.get((table, k, key)) or self.lines.get((table, k, "")) or 1
        where = f"[[{table}]] {k}" if table in MANY and k else f"[{table}]" if table else ""
        known = f"line {place}" + (f", {where}" if where else "")
        self.errors.append((place, f"{known}: {message}"))
        if len(self.errors) == MOST:
            self.stop()

    def stop(self) -> None:
        """Raise the errors, if any."""
        if not self.errors:
            return
        unique = list(dict.fromkeys(sorted(self.errors)))
        if len(unique) == 1:
            raise DpradError(f"{self.name}, {unique[0][1]}")
        lines = "".join(f"\n  {message}" for _, message in unique)
        more = " or more" if len(self.errors) == MOST else ""
        raise DpradError(f"{self.name} has {len(unique)}{more} errors:{lines}")


def _places(text: str) -> dict[tuple[str, int, str], int]:
    """The line of every table header and key. A rough scan suffices: the TOML was parsed before."""
    lines: dict[tuple[str, int, str], int] = {}
    table, k, count = "", 0, dict.fromkeys(MANY, 0)
    for i, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)\s*([\w-]+)", line)
        key = re.match(r"\s*[\"']?([\w-]+)[\"']?\s*[=.]", line)
        if header:
            table = header.group(2)
            if header.group(1) == "[[":
                count[table] = count.get(table, 0) + 1
            k = count.get(table, 0) if header.group(1) == "[[" else 0
            lines.setdefault((table, k, ""), i)
        elif key:
            lines.setdefault((table, k, key.group(1)), i)
    return lines


def structure(raw: Table, wrong: Wrong) -> Table:
    """The tables with valid keys and values of the right type."""
    good: Table = {name: [] for name in MANY}
    for key, value in raw.items():
        place = (key, 1, "") if key in MANY else (key, 0, "")
        if key not in TOP:
            known = did_you_mean(key, TOP) or f"Allowed are: {', '.join(TOP)}."
            many = (key, 1, "") if did_you_mean(key, MANY) else place
            place = next((p for p in (place, many) if wrong.lines.get(p)), ("", 0, key))
            what = written(key) if records_shown() or did_you_mean(key, TOP) else "this"
            wrong.spoiled |= {(name, 0) for name in TOP if did_you_mean(key, [name])}
            wrong.add(place, f"{what} is not allowed here. {known}")
        elif key in ("title", "sensitive"):
            _check(key, value, TOP[key], ("", 0, key), good, wrong)
        elif key in MANY:
            if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
                wrong.add(place, f"{key} must be written as [[{key}]], once for each.")
                wrong.spoiled.add((key, 0))
                continue
            for k, table in enumerate(value, 1):
                good[key].append(_table(table, TOP[key], key, k, wrong))  # type: ignore[arg-type]
        elif not isinstance(value, Mapping):
            wrong.add(("", 0, key), f"{key} must be a table, written as [{key}].")
            wrong.spoiled.add((key, 0))
        else:
            good[key] = _table(value, TOP[key], key, 0, wrong)  # type: ignore[arg-type]
    return good


def _table(raw: Mapping[str, Any], checks: Checks, table: str, k: int, wrong: Wrong) -> Table:
    good: Table = {}
    for key, value in raw.items():
        if key in checks:
            _check(key, value, checks[key], (table, k, key), good, wrong)
        else:
            hint = did_you_mean(key, checks) or f"Allowed are: {', '.join(checks)}."
            what = "this" if table == "population" and not records_shown() else written(key)
            wrong.add((table, k, key), f"{what} is not allowed here. {hint}")
    return good


def _check(key: str, value: Any, check: Any, place: Any, good: Table, wrong: Wrong) -> None:
    try:
        good[key] = check(value, key)
    except DpradError as error:
        text = str(error)
        if place[0] == "population" and not records_shown():
            hint = re.search(r" Did you mean .*", text)
            text = re.sub(r"but is .*", "but is something else.", text, flags=re.S)
            text += hint.group() if hint else ""
        wrong.add(place, text)
