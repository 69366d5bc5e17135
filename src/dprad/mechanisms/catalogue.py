"""Mechanisms and promises by short name, for the command line, scenario files and the web page.

Nothing is listed here: every mechanism with a card is included, and so is every guarantee with one
parameter. What follows from the records (the number of values, their range) comes from the prior.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dprad import mechanisms
from dprad.errors import DpradError, one_of
from dprad.game.query import Query, numbers_needed, range_read
from dprad.mechanisms.base import Card, Mechanism
from dprad.mechanisms.tables.release import AMOUNTS
from dprad.model import guarantees
from dprad.model.guarantees import Guarantee
from dprad.model.parameters import PEOPLE, TIMES, UNITS, Parameter
from dprad.model.priors import Prior
from dprad.model.threats import Threat

# Beyond this, differences may exceed the range of floats.
HUGE = 10**300


def _cards(reads: tuple[str, ...]) -> dict[str, type[Mechanism]]:
    """All mechanisms with a card that read this: first those for categories, then for numbers."""
    kinds: list[Any] = [getattr(mechanisms, n) for n in mechanisms.__all__ if n != "DPSGD"]
    named = [(k.card, k) for k in kinds if k.card is not None and k.card.reads in reads]
    named.sort(key=lambda pair: (reads.index(pair[0].reads), pair[0].name))
    return {card.name: kind for card, kind in named}


# Noise on what is read from a record.
FAMILIES: dict[str, type[Mechanism]] = _cards(("codes", "numbers", "range"))
# Tables about many people, by what they are called in a scenario file.
TABLES: dict[str, type[Mechanism]] = _cards(("records",))
# Guarantees with one parameter, by its name.
PROMISES: dict[str, type[Guarantee]] = {
    kind.takes[0].name: kind for kind in guarantees.KINDS if len(kind.takes) == 1
}
# All numeric parameters of promises and mechanisms, by name.
NUMBERS: dict[str, Parameter] = {
    **{p.name: p for kind in guarantees.KINDS for p in kind.takes},
    **{p.name: p for kind in FAMILIES.values() if kind.card for p in kind.card.takes},
    **UNITS,
    **{p.name: p for kind in TABLES.values() if kind.card for p in kind.card.takes},
}
# Those that set the noise, and those that go with them.
NOISE: dict[str, Parameter] = {
    **{name: NUMBERS[name] for name in PROMISES},
    **{kind.card.takes[0].name: kind.card.takes[0] for kind in FAMILIES.values() if kind.card},
    **{name: NUMBERS[name] for name in AMOUNTS},
}
FIXED: dict[str, Parameter] = {name: p for name, p in NUMBERS.items() if name not in NOISE}


def card(name: str) -> Card:
    """The card of a mechanism or a table release."""
    about = TABLES[name].card if name in TABLES else None
    about = about or FAMILIES[one_of(name, "mechanism", FAMILIES)].card
    assert about is not None
    return about


def amount(name: str, given: dict[str, Any]) -> str:
    """The parameter that sets the noise: the first of the card, or the one given for tables."""
    if name not in TABLES:
        return card(name).takes[0].name
    named = next((key for key in AMOUNTS if given.get(key) is not None), None)
    return named or TABLES[name].turns(given) or AMOUNTS[0]


def parts(
    name: str, given: dict[str, Any], prior: Prior, threat: Threat, query: Query | None = None
) -> tuple[type[Mechanism], dict[str, Any]]:
    """The class and its arguments: those given, and those that follow from the records."""
    about = card(name)
    chosen = {k: v for k, v in given.items() if v is not None}
    for key in chosen:
        one_of(key, f"a parameter of {name}", about.names)
    if prior.kind != "finite":
        raise DpradError(f"{name} needs a population: a table, counts or equally likely values.")
    if name in TABLES:
        return TABLES[name], chosen
    values = range_read(prior, threat, query)
    if about.reads != "codes" and not isinstance(values, range) and values.dtype.kind not in "if":
        items = values.tolist()
        numbers_needed(items, prior, threat, query, name)
        if any(abs(v) > HUGE for v in items):
            raise DpradError(f"{name} reads numbers, but some are too large for it.")
    return FAMILIES[name], FAMILIES[name].arguments(values, chosen)


def promise(given: dict[str, Any]) -> Guarantee:
    """A guarantee from epsilon (and delta), mu, rho or tv, the neighbours, and the units."""
    chosen = {k: v for k, v in given.items() if v is not None}
    units = {k: chosen.pop(k) for k in UNITS if k in chosen}
    where = chosen.pop("neighbours", "")
    named = [k for k in PROMISES if k in chosen]
    if len(named) != 1:
        what = " and ".join(named) if named else "none"
        raise DpradError(f"a promise is one of {_listed()}, but got {what}.")
    made: Any = kind(set(chosen))
    return in_units(made(*(chosen[p.name] for p in made.takes), neighbours=where), units)


def in_units(guarantee: Guarantee, units: Mapping[str, int]) -> Guarantee:
    """The promise of so many releases, about so many records that change together."""
    return guarantee.repeated(units.get(TIMES.name, 1)).group(units.get(PEOPLE.name, 1))


def counted(made: type[Guarantee], units: Mapping[str, int]) -> Callable[..., Guarantee]:
    """A kind of guarantee, made in units; a function that can be calibrated."""
    if not units:
        return made

    def make(**arguments: Any) -> Guarantee:
        return in_units(made(**arguments), units)

    make.__name__ = made.__name__
    make.__signature__ = inspect.signature(made)  # type: ignore[attr-defined]
    return make


def kind(names: set[str]) -> type[Guarantee]:
    """The guarantee with these parameters."""
    for made in guarantees.KINDS:
        if {p.name for p in made.takes} == names:
            return made
    first, *others = sorted(names, key=lambda n: n not in PROMISES)
    for other in others:
        for home in guarantees.KINDS:
            beside = [p.name for p in home.takes if p.name != other]
            if len(beside) < len(home.takes) and first not in beside:
                raise DpradError(f"{other} goes with {' and '.join(beside)}, not with {first}.")
    raise DpradError(f"no promise is made of {' and '.join(sorted(names))}.")


def _listed() -> str:
    *most, last = PROMISES
    return f"{', '.join(most)} and {last}"
