"""The populations of the page, and what can be released from them."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dprad.data.files import Limits
from dprad.data.overview import Seen, overview
from dprad.data.source import Source
from dprad.errors import DpradError, flat
from dprad.mechanisms import catalogue
from dprad.model.parameters import EPSILON, MU, RHO
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.show.scenario.file import Scenario
from dprad.show.scenario.release import Release
from dprad.show.web import tables

# Promises and releases of a scenario stand in the menu of mechanisms.
PROMISE, RELEASE = "promise", "release"
# promises without a mechanism, by what sets their noise, and their titles
PROMISED = {PROMISE: EPSILON.name, "promise-mu": MU.name, "promise-rho": RHO.name}
_TITLES = ("epsilon, delta", "mu (Gaussian DP)", "rho (zero-concentrated DP)")
# The range of the slider of each parameter.
SLIDERS = {name: p.slider for name, p in catalogue.NUMBERS.items() if p.slider is not None}
# Limits on uploaded files.
LIMITS = Limits(columns=12, rows=5_000_000, distinct=20_000, seconds=30.0, width=200)
# Columns that are picked at first: at most this many, and about this many different records.
PICKED, RECORDS = 6, 10_000
# Noise on numbers is not offered for tables with more values than this: it would take too long.
MANY = 2000
# Most values, and their largest range, for mechanisms whose risk takes quadratic time.
FEW, SPAN = 300, 20_000.0


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """A prior and how it is written in a scenario file, in Python and as options."""

    title: str
    prior: Prior
    toml: str
    python: str
    options: str | None  # None: only a scenario file can express it
    releases: tuple[Release, ...] = ()
    attackers: tuple[tuple[str, Threat], ...] = ()
    counted: bool = False  # whether it may be said that the table is the whole population
    source: Source | None = None

    def whole(self) -> Population:
        """The same table, taken for the whole population."""
        python = self.python
        if python.startswith("dprad.Prior.from_data("):
            python = f"{python[:-1]}, whole=True)"
        prior = replace(self.prior, whole=True)
        return replace(
            self, prior=prior, toml=f"{self.toml}\nwhole = true", python=python, options=None
        )


def patients() -> Population:
    """The built-in table."""
    from dprad.data import patients as table

    return Population(
        "20,000 synthetic patients (built in)",
        table.prior(),
        'builtin = "patients"',
        "patients.prior()",
        "--data patients.csv",
    )


def uniform(size: int) -> Population:
    """Equally likely values."""
    return Population(
        f"{size} equally likely values",
        Prior.uniform(size),
        f"uniform = {size}",
        f"dprad.Prior.uniform({size})",
        f"--uniform {size}",
    )


def of_scenario(scenario: Scenario) -> Population:
    """A scenario's population, with its attackers and releases."""
    about = scenario.population
    return Population(
        f"{scenario.title} (scenario)",
        scenario.prior,
        "\n".join(f"{k} = {toml_of(v)}" for k, v in about.items()),
        f"dprad.scenario.load({scenario.name!r}).prior",
        _options(about),
        scenario.releases,
        scenario.threats,
        "data" in about and "whole" not in about,
        scenario.source,
    )


def from_file(path: str, name: str, columns: Sequence[str] | None = None) -> Population:
    """Columns of a user's table, within limits; errors use the user's name for it."""
    if columns is not None and len(columns) > LIMITS.columns:
        raise DpradError(
            f"{len(columns)} columns are picked; records of so many are nearly all different. "
            f"Pick those that matter, {LIMITS.columns} at most."
        )
    try:
        source = Source.of(path)
        prior = Prior.from_data(path, columns=columns, limits=LIMITS)
        source = source.kept()
    except DpradError as error:
        raise _named(error, path, name) from None
    about = {"data": name} | ({} if columns is None else {"columns": list(columns)})
    chosen = "" if columns is None else f", columns={list(columns)!r}"
    return Population(
        name,
        prior,
        "\n".join(f"{k} = {toml_of(v)}" for k, v in about.items()),
        f"dprad.Prior.from_data({name!r}{chosen})",
        _options(about),
        counted=True,
        source=source,
    )


def look(path: str, name: str) -> list[Seen]:
    """What there is to pick from in a user's table."""
    if name.endswith(".gz"):
        raise DpradError(f"data: {name!r} is packed. Unpack it, and load it again.")
    try:
        return overview(path, LIMITS)
    except DpradError as error:
        raise _named(error, path, name) from None


def picked(seen: Sequence[Seen]) -> list[str]:
    """A few columns to begin with: those with fewest values, as long as records stay few."""
    able = [s for s in seen if s.fits]
    several = [s for s in able if (s.distinct or 0) > 1] or able[:1]
    chosen: list[str] = []
    records = 1
    for column in sorted(several, key=lambda s: s.distinct or 0):
        records *= column.distinct or 1
        if chosen and (len(chosen) == PICKED or records > RECORDS):
            break
        chosen.append(column.name)
    return [s.name for s in seen if s.name in chosen]


def _named(error: DpradError, path: str, name: str) -> DpradError:
    named = flat(name)
    said = str(error).replace(path, named).replace(repr(path)[1:-1], named)
    hint = " On this page: save it as UTF-8, then load it again." if "encoding=" in said else ""
    return DpradError(said + hint)


# -- what can be released ----------------------------------------------------------------------
def readable(population: Population) -> dict[str, tuple[str, ...]]:
    """What each mechanism can read here: columns, or "" for the whole record. O(records)."""
    prior = population.prior
    if prior.kind != "finite":
        return {}
    columns = prior.columns
    places = ("", *columns) if len(columns) > 1 else ("",)
    able = {place: _able(prior, place) for place in places}
    own = {
        name: tuple(place for place in places if name in able[place])
        for name in catalogue.FAMILIES
        if any(name in able[place] for place in places)
    }
    return own | tables.places(prior, (prior.size or 0) <= MANY)


def _able(prior: Prior, place: str) -> set[str]:
    """Mechanisms that can read a column, or the whole record, quickly enough."""
    columns = prior.columns
    size, numeric, span = prior.size or 0, False, 0.0
    if place or len(columns) == 1:
        values = prior.column(place or columns[0])
        numeric = values.dtype.kind in "if" and len(values) > 1
        span = float(values.max()) - float(values.min()) if numeric else 0.0
    few = size <= MANY
    kinds = ("codes", "numbers", "range") if numeric and few else ("codes",)
    costs = {"quick", "line", "square"} if few else {"quick"}
    if numeric and (size > FEW or not math.isfinite(span) or span > SPAN):
        costs = costs - {"square"}
    cards = [c for c in map(catalogue.card, catalogue.FAMILIES) if c.reads in kinds]
    return {c.name for c in cards if c.cost in costs}


def menu(population: Population) -> dict[str, str]:
    """Names and titles of what can be released here."""
    own = {f"{RELEASE} {k}": f"{r.name} (scenario)" for k, r in enumerate(population.releases)}
    promises = {p: f"only a promise: {t}" for p, t in zip(PROMISED, _TITLES, strict=True)}
    return own | promises | {n: catalogue.card(n).title for n in readable(population)}


def base(population: Population, mechanism: str) -> Release | None:
    """The scenario's release that is selected, if any."""
    kind, _, number = mechanism.partition(" ")
    return population.releases[int(number)] if kind == RELEASE else None


def parameter_of(population: Population, mechanism: str) -> str:
    """The parameter that sets the noise."""
    own = base(population, mechanism)
    if own is not None:
        return own.parameter
    return PROMISED.get(mechanism) or catalogue.card(mechanism).takes[0].name


def released(
    population: Population,
    mechanism: str,
    value: float,
    *,
    reads: str = "",
    delta: float = 0.0,
    neighbours: str = "replace-one",
) -> Release:
    """A release as a scenario has it."""
    own = base(population, mechanism)
    if own is not None:
        return own.at(value)
    name = parameter_of(population, mechanism)
    if mechanism in PROMISED:
        numbers = {name: value} | ({"delta": delta} if delta > 0 and name == "epsilon" else {})
        said = ", ".join(f"{k} = {v:g}" for k, v in numbers.items())
        title = f"any mechanism with {said} ({neighbours})"
        return Release(title, None, {**numbers, "neighbours": neighbours}, None)
    columns = population.prior.columns
    several = len(columns) > 1
    if mechanism in tables.TABLES:
        return tables.table(population.prior, mechanism, reads, {name: value}, neighbours)
    query = reads or (list(columns) if several else None)
    of = f" of {reads or 'the whole record'}" if several else ""
    return Release(f"{catalogue.card(mechanism).title}{of}", mechanism, {name: value}, query)


# -- words of other languages ------------------------------------------------------------------
def _options(about: dict[str, Any]) -> str | None:
    """The population as options, if possible."""
    if "uniform" in about:
        return f"--uniform {about['uniform']}"
    if "data" not in about or "whole" in about or any("," in c for c in about.get("columns", [])):
        return None
    parts = [f"--data {shlex.quote(about['data'])}"]
    if "columns" in about:
        parts.append(f"--columns {shlex.quote(','.join(about['columns']))}")
    parts += [
        f"--{k} {shlex.quote(about[k])}"
        for k in ("weight", "missing", "encoding", "decimal")
        if k in about
    ]
    parts += ["--domain {}:{}".format(*about["domain"])] if "domain" in about else []
    return " ".join(parts)


def toml_of(value: Any) -> str:
    """Strings, lists and numbers of TOML are those of JSON; tables are not."""
    if isinstance(value, dict):
        inside = ", ".join(f"{toml_of(str(k))} = {toml_of(v)}" for k, v in value.items())
        return "{ " + inside + " }"
    text = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")
