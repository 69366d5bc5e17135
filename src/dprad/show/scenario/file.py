"""Reading a scenario: TOML in, a `Scenario` out, or every error of the file at once.

Each error names its line, its table and key, what is allowed and what stands there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprad.errors import DpradError, did_you_mean, number, one_of, record, records_shown, whole
from dprad.mechanisms import catalogue
from dprad.model.priors import Prior
from dprad.model.threats import Threat

Table = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """Checked questions: everything in it can be asked."""

    title: str
    name: str
    text: str
    prior: Prior
    population: Table
    threats: tuple[tuple[str, Threat], ...]
    releases: tuple[Release, ...]
    accepted: float | None
    audit: Table | None
    folder: Path


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A mechanism by its short name with its numbers, or a promise (`mechanism` is None)."""

    name: str
    mechanism: str | None
    numbers: Table
    query: Any

    @property
    def parameter(self) -> str:
        """What says how much noise: epsilon, sigma, mu or tv."""
        if self.mechanism is not None:
            return catalogue.FAMILIES[self.mechanism].noise
        return next(k for k in catalogue.PROMISES if k in self.numbers)

    def subject(self, prior: Prior, threat: Threat) -> Any:
        """What `assess` takes."""
        if self.mechanism is None:
            return catalogue.promise(self.numbers)
        family, arguments = self.parts(prior, threat)
        return family(**arguments)

    def parts(self, prior: Prior, threat: Threat, *, without: str = "") -> tuple[Any, Table]:
        """The class and its arguments, all but one if `without` names it."""
        numbers = {k: v for k, v in self.numbers.items() if k != without}
        if self.mechanism is not None:
            return catalogue.parts(self.mechanism, numbers, prior, threat, self.query)
        import dprad

        kind = "ApproxDP" if "delta" in numbers else catalogue.PROMISES[self.parameter]
        return getattr(dprad, kind), numbers


# -- what may stand where --------------------------------------------------------------------------
def _text(value: Any, name: str) -> Any:
    if not isinstance(value, str) or not value.strip():
        raise DpradError(f"{name} must be text, but is {value!r}.")
    return value


def _names(value: Any, name: str) -> Any:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise DpradError(f"{name} must be a list of column names, but is {value!r}.")
    return value


def _knows(value: Any, name: str) -> Any:
    if isinstance(value, str):
        hint = f"A column is named in a list: {name} = [{value!r}]."
        return one_of(value, name, ["nothing", "everything"], hint=hint)
    return _names(value, name)


def _query(value: Any, name: str) -> Any:
    return value if isinstance(value, str) else _names(value, name)


def _plain(value: Any, name: str, low: float, high: float) -> Any:
    if isinstance(value, bool | str):
        raise DpradError(f"{name} must be a number, but is {value!r}.")
    return number(value, name, low=low, high=high)


def _number(low: float = 0.0, high: float = float("inf")) -> Callable[[Any, str], Any]:
    return lambda value, name: _plain(value, name, low, high)


def _range(value: Any, name: str) -> Any:
    if not isinstance(value, list) or len(value) != 2:
        raise DpradError(f"{name} must be two numbers, as in [0, 100], but is {value!r}.")
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
        raise DpradError(f"{name} must be true (or be left out), but is {value!r}.")
    return value


def _word(*choices: str) -> Callable[[Any, str], Any]:
    return lambda value, name: one_of(value, name, choices)


def _whole(low: int, high: float = float("inf")) -> Callable[[Any, str], Any]:
    def check(value: Any, name: str) -> int:
        if isinstance(value, bool | str):
            raise DpradError(f"{name} must be a whole number, but is {value!r}.")
        if whole(value, name, low=low) > high:
            raise DpradError(f"{name} must be at most {high:,} in a scenario, but is {value!r}.")
        return whole(value, name, low=low)

    return check


def _domain(value: Any, name: str) -> Any:
    low, high = _range(value, name)
    if low != int(low) or high != int(high) or low > high:
        raise DpradError(f"{name} must be two whole numbers low, high, but is {value!r}.")
    return [int(low), int(high)]


Checks = dict[str, Callable[[Any, str], Any]]
POPULATION: Checks = {
    "builtin": _word("patients"),
    "data": _text,
    "counts": _counts,
    "uniform": _whole(1),
    "unknown": _yes,
    "columns": _names,
    "weight": _text,
    "missing": _word("keep", "drop", "refuse"),
    "domain": _domain,
}
THREAT: Checks = {
    "name": _text,
    "knows": _knows,
    "target": _names,
    "loss": _word("exact", "absolute", "haversine"),
    "eta": _number(),
}
RELEASE: Checks = {
    "name": _text,
    "mechanism": lambda v, n: one_of(v, n, catalogue.FAMILIES),
    "query": _query,
    "epsilon": _number(),
    "delta": _number(0.0, 1.0),
    "mu": _number(),
    "tv": _number(0.0, 1.0),
    "sigma": _number(),
    "sensitivity": _number(),
    "clamp": _range,
    "neighbours": _word("replace-one", "add-remove"),
}
ACCEPTED: Checks = {"risk": _number(0.0, 1.0)}
AUDIT: Checks = {
    "trials": _whole(10, 10_000_000),
    "function": _text,
    "claim": _number(),
    "confidence": _number(0.0, 1.0),
}
TOP = {
    "title": _text,
    "population": POPULATION,
    "threats": THREAT,
    "releases": RELEASE,
    "accepted": ACCEPTED,
    "audit": AUDIT,
}
MANY = ("threats", "releases")
# Bytes of a scenario file.
LONGEST = 1_000_000
SOURCES = ("builtin", "data", "counts", "uniform", "unknown")


def load(path: Any) -> Scenario:
    """The scenario in a file."""
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise DpradError(f"{file} is not a file.")
        if file.stat().st_size > LONGEST:
            raise DpradError(f"{file} is too long for a scenario file.")
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DpradError(
            f"{file}: there is no such file. `dprad init` writes an example."
        ) from None
    except (OSError, UnicodeDecodeError):
        raise DpradError(
            f"{file} cannot be read: it is not text in UTF-8, or not allowed."
        ) from None
    return parse(text, name=str(file), folder=file.parent)


def builtin() -> Scenario:
    """The example, on built-in data."""
    from dprad.show.scenario import EXAMPLE

    return parse(EXAMPLE, name="example", folder=Path())


def parse(text: str, *, name: str, folder: Path) -> Scenario:
    """The scenario in a text; raises one `DpradError` that lists everything that is wrong."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        text = re.sub(r"'[^']*'", "...", str(error))  # a name may be that of a person
        raise DpradError(f"{name} is not TOML: {text}.") from None
    except (ValueError, RecursionError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else "has a huge number"
        raise DpradError(f"{name} {what}.") from None
    wrong = _Wrong(name, text)
    checked = _structure(raw, wrong)
    wrong.stop()
    found = _meaning(checked, text, folder, wrong)
    wrong.stop()
    assert found is not None
    return found


class _Wrong:
    """Errors, each with its place."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.lines = name, _places(text)
        self.found: list[tuple[int, str]] = []

    def add(self, place: tuple[Any, ...], message: str) -> None:
        """`place`: table, number in an array of tables (0: the only one), key."""
        full: Any = (*place, *("", 0, "")[len(place) :])
        table, k, key = full
        line = self.lines.get((table, k, key)) or self.lines.get((table, k, "")) or 1
        where = f"[[{table}]] {k}" if table in MANY and k else f"[{table}]" if table else ""
        known = f"line {line}" + (f", {where}" if where else "")
        self.found.append((line, f"{known}: {message}"))

    def stop(self) -> None:
        """Raise what there is."""
        if not self.found:
            return
        unique = list(dict.fromkeys(sorted(self.found)))
        if len(unique) == 1:
            raise DpradError(f"{self.name}, {unique[0][1]}")
        lines = "".join(f"\n  {message}" for _, message in unique)
        raise DpradError(f"{self.name} has {len(unique)} errors:{lines}")


def _places(text: str) -> dict[tuple[str, int, str], int]:
    """The line of every table header and key. A rough scan will do: TOML was parsed before."""
    found: dict[tuple[str, int, str], int] = {}
    table, k, count = "", 0, dict.fromkeys(MANY, 0)
    for i, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)\s*([\w-]+)", line)
        key = re.match(r"\s*[\"']?([\w-]+)[\"']?\s*[=.]", line)
        if header:
            table = header.group(2)
            if header.group(1) == "[[":
                count[table] = count.get(table, 0) + 1
            k = count.get(table, 0) if header.group(1) == "[[" else 0
            found.setdefault((table, k, ""), i)
        elif key:
            found.setdefault((table, k, key.group(1)), i)
    return found


def _structure(raw: Table, wrong: _Wrong) -> Table:
    """Right keys with values of the right kind."""
    good: Table = {name: [] for name in MANY}
    for key, value in raw.items():
        place = (key, 1, "") if key in MANY else (key, 0, "")
        if key not in TOP:
            known = did_you_mean(key, TOP) or f"There are: {', '.join(TOP)}."
            place = place if wrong.lines.get(place) else ("", 0, key)
            what = repr(key) if records_shown() or did_you_mean(key, TOP) else "this"
            wrong.add(place, f"{what} has no meaning here. {known}")
        elif key == "title":
            _check(key, value, _text, ("", 0, key), good, wrong)
        elif key in MANY:
            if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
                wrong.add(place, f"{key} must be written as [[{key}]], once for each.")
                continue
            for k, table in enumerate(value, 1):
                good[key].append(_table(table, TOP[key], key, k, wrong))  # type: ignore[arg-type]
        elif not isinstance(value, Mapping):
            wrong.add(("", 0, key), f"{key} must be a table, written as [{key}].")
        else:
            good[key] = _table(value, TOP[key], key, 0, wrong)  # type: ignore[arg-type]
    return good


def _table(raw: Mapping[str, Any], checks: Checks, table: str, k: int, wrong: _Wrong) -> Table:
    good: Table = {}
    for key, value in raw.items():
        if key in checks:
            _check(key, value, checks[key], (table, k, key), good, wrong)
        else:
            hint = did_you_mean(key, checks) or f"There are: {', '.join(checks)}."
            what = "this" if table == "population" and not records_shown() else repr(key)
            wrong.add((table, k, key), f"{what} has no meaning here. {hint}")
    return good


def _check(key: str, value: Any, check: Any, place: Any, good: Table, wrong: _Wrong) -> None:
    try:
        good[key] = check(value, key)
    except DpradError as error:
        text = str(error)
        if place[0] == "population" and not records_shown():
            hint = re.search(r" Did you mean .*", text)
            text = re.sub(r"but is .*", "but is something else.", text, flags=re.S)
            text += hint.group() if hint else ""
        wrong.add(place, text)


def _meaning(checked: Table, text: str, folder: Path, wrong: _Wrong) -> Scenario | None:
    """Population, threats and releases that go together."""
    from dprad.game.game import play

    population = checked.get("population", {"unknown": True})
    prior = _attempt(lambda: _prior(population, folder), ("population", 0), wrong)
    if not checked["releases"]:
        wrong.add((), "there must be at least one [[releases]]: a mechanism, or a promise.")
    threats: list[tuple[str, Threat]] = []
    for k, table in enumerate(checked["threats"] or [{}], 1):
        arguments = {key: v for key, v in table.items() if key != "name"}
        place = ("threats", k) if checked["threats"] else ()
        threat = _attempt(lambda a=arguments: Threat(**a), place, wrong)  # type: ignore[misc]
        if threat is None:
            continue
        if prior is not None and _attempt(lambda t=threat: play(prior, t), place, wrong) is None:  # type: ignore[misc]
            continue
        threats.append((table.get("name", f"attacker {k}"), threat))
    releases = [_release(table, k, wrong) for k, table in enumerate(checked["releases"], 1)]
    if prior is not None:
        for k, release in enumerate(releases, 1):
            if release is None:
                continue
            for _, threat in threats:
                asked = lambda r=release, t=threat: r.subject(prior, t)  # noqa: E731
                if _attempt(asked, ("releases", k), wrong) is None:
                    break
    audit = checked.get("audit")
    if audit is not None:
        _audited(audit, prior, releases, wrong)
    if wrong.found or prior is None:
        return None
    return Scenario(
        title=checked.get("title", "What does epsilon mean here?"),
        name=wrong.name,
        text=text,
        prior=prior,
        population=population,
        threats=tuple(threats),
        releases=tuple(r for r in releases if r is not None),
        accepted=checked.get("accepted", {}).get("risk"),
        audit=audit,
        folder=folder,
    )


def _audited(
    audit: Table, prior: Prior | None, releases: list[Release | None], wrong: _Wrong
) -> None:
    """An audit needs something to call, and records to call it on."""
    if ("function" in audit) != ("claim" in audit):
        wrong.add(("audit", 0), "function and claim go together: what is audited, and for what.")
    elif "function" not in audit and all(r is None or r.mechanism is None for r in releases):
        wrong.add(("audit", 0), "there is nothing to audit: no mechanism above, and no function.")
    if prior is not None and prior.kind != "finite":
        wrong.add(("audit", 0), "an audit needs a population: records to call the function on.")
    if not 0 < audit.get("confidence", 0.95) < 1:
        wrong.add(("audit", 0, "confidence"), "confidence must be strictly between 0 and 1.")


def _attempt(make: Callable[[], Any], place: tuple[Any, ...], wrong: _Wrong) -> Any:
    try:
        return make()
    except DpradError as error:
        wrong.add(place, str(error))
        return None


def _release(table: Table, k: int, wrong: _Wrong) -> Release | None:
    numbers = {key: v for key, v in table.items() if key not in ("name", "mechanism", "query")}
    name = table.get("mechanism")
    if "clamp" in numbers:
        numbers["clamp"] = tuple(numbers["clamp"])
    if name is None:
        noisy = {"sigma", "sensitivity", "clamp", "query"}
        alone = [key for key in table if key in noisy]
        for key in alone:
            wrong.add(("releases", k, key), f"{key!r} goes with a mechanism, which is missing.")
        if alone or _attempt(lambda: catalogue.promise(numbers), ("releases", k), wrong) is None:
            return None
        told = ", ".join(v if isinstance(v, str) else f"{k} = {v:g}" for k, v in numbers.items())
        return Release(table.get("name", f"a promise ({told})"), None, numbers, None)
    family = catalogue.FAMILIES[name]
    strange = [key for key in numbers if key not in family.takes]
    for key in strange:
        takes = ", ".join(family.takes)
        wrong.add(("releases", k, key), f"{key!r} has no meaning with {name}; it takes {takes}.")
    if family.noise not in numbers:
        wrong.add(("releases", k), f"{name} needs {family.noise}.")
    if strange or family.noise not in numbers:
        return None
    return Release(table.get("name", family.title), name, numbers, table.get("query"))


def _prior(population: Table, folder: Path) -> Prior:
    named = [s for s in SOURCES if s in population]
    if len(named) != 1:
        what = " and ".join(named) if named else "none"
        raise DpradError(f"give one of {', '.join(SOURCES)}, but got {what}.")
    source = named[0]
    about = {k: v for k, v in population.items() if k not in SOURCES}
    allowed = {"data": {"columns", "weight", "missing", "domain"}, "builtin": {"columns"}}
    for key in about:
        if key not in allowed.get(source, ()):
            raise DpradError(f"{key!r} does not go with {source}.")
    if source == "unknown":
        return Prior.unknown()
    if source == "uniform":
        return Prior.uniform(population["uniform"])
    if source == "counts":
        return Prior.from_counts(_numbers(population["counts"]))
    if source == "builtin":
        from dprad.data import patients

        return patients.prior(about.get("columns"))
    path = str(population["data"])
    if not Path(path).is_absolute():
        path = str(folder / path)
    domain = about.pop("domain", None)
    if domain is not None:
        domain = range(domain[0], domain[1] + 1)
    return Prior.from_data(path, domain=domain, **about)


def _numbers(counts: Table) -> dict[Any, float]:
    """Keys of a TOML table are text; where all are whole numbers they are meant as such."""
    if all(re.fullmatch(r"-?(0|[1-9]\d*)", k) for k in counts):
        return {int(k): v for k, v in counts.items()}
    return dict(counts)
