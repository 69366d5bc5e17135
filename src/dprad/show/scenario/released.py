"""The [[releases]] of a scenario: a mechanism, a table about many people, or only a promise."""

from __future__ import annotations

from dprad.mechanisms import catalogue
from dprad.model.guarantees import KINDS
from dprad.model.parameters import UNITS
from dprad.show.scenario.population import attempt
from dprad.show.scenario.release import Release
from dprad.show.scenario.schema import Table, Wrong


def release_of(table: Table, k: int, wrong: Wrong, spoiled: bool) -> Release | None:
    """The k-th of them; None if it is wrong, or was (`spoiled`)."""
    others = ("name", "mechanism", "query", "doubts")
    numbers = {key: v for key, v in table.items() if key not in others}
    named = [key for key in catalogue.TABLES if key in numbers]
    if named:
        return _published(table, numbers, named, k, wrong, spoiled)
    name = table.get("mechanism")
    if "clamp" in numbers:
        numbers["clamp"] = tuple(numbers["clamp"])
    if name is None:
        return None if spoiled else _promised(table, numbers, k, wrong)
    card = catalogue.card(name)
    strange = [key for key in numbers if key not in card.names]
    strange += [key for key in table if key == "doubts"]
    for key in strange:
        takes = ", ".join(card.names)
        wrong.add(("releases", k, key), f"{key!r} does not apply to {name}, which takes {takes}.")
    noise = card.takes[0].name
    if noise not in numbers and not spoiled:
        wrong.add(("releases", k), f"{name} needs {noise}.")
    if strange or spoiled or noise not in numbers:
        return None
    return Release(table.get("name", card.title), name, numbers, table.get("query"))


def _published(
    table: Table, numbers: Table, named: list[str], k: int, wrong: Wrong, spoiled: bool
) -> Release | None:
    """A table release: its name is the key that says what is published."""
    name, card = named[0], catalogue.card(named[0])
    others = [*named[1:], *(key for key in ("mechanism", "query", "doubts") if key in table)]
    for key in others:
        hint = " Say with where who is counted." if key == "query" else ""
        wrong.add(("releases", k, key), f"{key!r} does not go with {name}.{hint}")
    strange = [key for key in numbers if key not in card.names and key not in named]
    for key in strange:
        takes = ", ".join(card.names)
        wrong.add(("releases", k, key), f"{key!r} does not apply to {name}, which takes {takes}.")
    missed = [key for key in ("clamp", "bins") if key in card.names and key not in numbers]
    for key in missed:
        wrong.add(("releases", k), f"{name} needs {key}.")
    if others or strange or missed or spoiled:
        return None
    given = {key: v for key, v in numbers.items() if key != name} | {card.words[0]: numbers[name]}
    made = lambda: catalogue.TABLES[name](**given)  # noqa: E731
    if attempt(made, ("releases", k), wrong) is None:
        return None
    return Release(table.get("name", card.title), name, given, None)


def _promised(table: Table, numbers: Table, k: int, wrong: Wrong) -> Release | None:
    promised = {p.name for kind in KINDS for p in kind.takes}
    promised |= {"name", "neighbours", "doubts", *UNITS}
    alone = [key for key in table if key not in promised]
    for key in alone:
        wrong.add(("releases", k, key), f"{key!r} needs a mechanism, which is missing.")
    if alone or attempt(lambda: catalogue.promise(numbers), ("releases", k), wrong) is None:
        return None
    numbered = ", ".join(v if isinstance(v, str) else f"{k} = {v:g}" for k, v in numbers.items())
    doubts = tuple(table.get("doubts", ()))
    return Release(table.get("name", f"a promise ({numbered})"), None, numbers, None, doubts)
