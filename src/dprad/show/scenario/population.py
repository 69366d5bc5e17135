"""The [population] of a scenario: a table, counts, equally likely values, or nothing known."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dprad.data.source import Source
from dprad.data.tables import names_of
from dprad.data.text import Written
from dprad.errors import DpradError
from dprad.model.priors import Prior
from dprad.show.scenario.schema import SOURCES, Table, Wrong


def attempt(make: Callable[[], Any], place: tuple[Any, ...], wrong: Wrong) -> Any:
    """What is made, or None and an error with its place."""
    try:
        return make()
    except DpradError as error:
        wrong.add(place, str(error))
        return None


def prior_of(population: Table, folder: Path) -> Prior:
    """The prior that a [population] describes."""
    named = [s for s in SOURCES if s in population]
    if len(named) != 1:
        what = " and ".join(named) if named else "none"
        raise DpradError(f"give one of {', '.join(SOURCES)}, but got {what}.")
    source = named[0]
    about = {k: v for k, v in population.items() if k not in SOURCES}
    of_data = {"columns", "weight", "missing", "domain", "encoding", "decimal", "whole"}
    allowed = {"data": of_data, "builtin": {"columns"}, "counts": {"whole"}}
    for key in about:
        if key not in allowed.get(source, ()):
            raise DpradError(f"{key!r} does not go with {source}.")
    if source == "unknown":
        return Prior.unknown()
    if source == "uniform":
        return Prior.uniform(population["uniform"])
    if source == "counts":
        return _counted(_numbers(population["counts"]), bool(population.get("whole")))
    if source == "builtin":
        from dprad.data import patients

        return patients.prior(about.get("columns"))
    domain = about.pop("domain", None)
    if domain is not None:
        domain = range(domain[0], domain[1] + 1)
    return Prior.from_data(_path(population, folder), domain=domain, **about)


def source_of(population: Table, folder: Path) -> Source | None:
    """The file of a [population] that has one."""
    return Source.of(_path(population, folder)) if "data" in population else None


def _path(population: Table, folder: Path) -> str:
    path = Path(population["data"])
    return str(path if path.is_absolute() else folder / path)


def columns_of(population: Table, folder: Path, wrong: Wrong) -> tuple[str, ...] | None:
    """The columns of a population that could not be counted, if they can be told."""
    named = [s for s in SOURCES if s in population]
    if len(named) != 1 or named[0] == "unknown" or ("population", 0, "encoding") in wrong.keys:
        return None
    names: Any = ("value",)
    if named[0] == "builtin":
        from dprad.data.patients import COLUMNS

        names = COLUMNS
    elif named[0] == "data":
        written = Written.of(population.get("encoding"), ".")
        read = lambda: names_of(_path(population, folder), written=written)  # noqa: E731
        names = attempt(read, ("population", 0), wrong)
    chosen = population.get("columns", [])
    if names is not None and chosen and set(chosen) <= set(names):
        names = chosen
    return None if names is None else tuple(names)


def _numbers(counts: Table) -> dict[Any, float]:
    """Keys of a TOML table are text; if all look like whole numbers, they are."""
    if all(re.fullmatch(r"-?(0|[1-9]\d*)", k) for k in counts):
        return {int(k): v for k, v in counts.items()}
    return dict(counts)


def _counted(counts: dict[Any, float], whole: bool) -> Prior:
    """Whole numbers are rows that were counted, and may say little about the population; others
    are shares.
    """
    if sum(counts.values()) < math.inf and all(n == int(n) for n in counts.values()):
        counts = {value: int(n) for value, n in counts.items()}
    return Prior.from_counts(counts, whole=whole)
