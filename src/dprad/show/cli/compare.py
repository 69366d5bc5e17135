"""dprad compare: risk and error of several mechanisms side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from dprad.errors import DpradError, number
from dprad.mechanisms.catalogue import FAMILIES, FIXED, NOISE, TABLES
from dprad.mechanisms.tables.release import AMOUNTS
from dprad.model import explain
from dprad.show.cli import options
from dprad.show.cli.options import OUTPUT, SUBJECT, Feared, Population
from dprad.show.cli.output import show, show_json
from dprad.show.cli.tables import Published

_NOBODY, _ANYONE, _NOTHING = Population(), Feared(), Published()
if TYPE_CHECKING:
    from dprad.model.comparisons import Comparison

    Noise = Any
    Numbers = Any
    _NO_NOISE: Any
    _NONE: Any
else:
    named = [card.takes[0] for card in map(options.card, FAMILIES)]
    Noise = options.list_options(SUBJECT, *dict.fromkeys([*named, *map(NOISE.get, AMOUNTS)]))
    Numbers = options.number_options(SUBJECT, *FIXED.values())
    _NO_NOISE, _NONE = Noise(), Numbers()


def compare(
    *,
    mechanisms: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    noise: Noise = _NO_NOISE,
    numbers: Numbers = _NONE,
    query: Annotated[str | None, Parameter(group=SUBJECT, help=options.QUERY)] = None,
    neighbours: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    published: Published = _NOTHING,
    population: Population = _NOBODY,
    feared: Feared = _ANYONE,
    json: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
) -> int:
    """Which mechanism has the least risk for the least error?

    Example: dprad compare --mechanisms grr,oue,subset --epsilon 0.5,1,2 --uniform 20

    Parameters
    ----------
    mechanisms
        Names as for `dprad assess`, comma-separated.
    noise
        Values, comma-separated.
    numbers
        What else the mechanisms take.
    query
        What they read.
    neighbours
        For a table: replace-one or add-remove.
    published
        A table release instead of mechanisms; --noise may name several kinds, comma-separated.
    population
        What is known about the population.
    feared
        The attacker.
    json
        Print the whole result as JSON.

    """
    import dprad

    prior = population.prior()
    threat = feared.threat()
    read = options.queried(query, prior)
    values = {name: _numbers(text, f"--{name}") for name, text in vars(noise).items()}
    shared = options.given(numbers)
    if published != _NOTHING:
        options.without("a table", {"--mechanisms": mechanisms, "--query": query})
        tables = _tables(published, values, shared, neighbours, prior.columns)
        compared = dprad.compare(tables, prior=prior, threat=threat)
        show_json(compared.to_dict()) if json else show(str(compared))
        return 0
    if mechanisms is None:
        raise DpradError("give --mechanisms, or a table such as --counts.")
    options.without("--mechanisms", {"--neighbours": neighbours})
    names = options.listed(mechanisms, "--mechanisms") or []
    taken = {f"--{t}" for name in names for t in options.card(name).names}
    unused = shared | {f"--{name}": text for name, text in vars(noise).items()}
    options.without(
        "--mechanisms " + mechanisms, {o: v for o, v in unused.items() if o not in taken}
    )
    subjects: list[Any] = []
    made: dict[int, tuple[str, dict[str, Any]]] = {}
    for name in names:
        card = options.card(name)
        first = card.takes[0].name
        if not values[first]:
            raise DpradError(f"--mechanisms {name} needs values of --{first}.")
        given = {o: v for o, v in shared.items() if o[2:] in card.names}
        family, known = options.parts(name, given, prior, threat, read)
        chosen = {o[2:]: v for o, v in given.items() if v is not None}
        for v in values[first]:
            subjects.append(family(**known, **{first: v}))
            made[id(subjects[-1])] = (name, chosen | {first: v})
    table = dprad.compare(subjects, prior=prior, threat=threat, query=read)
    if json:
        show_json(table.to_dict())
    else:
        public = population.public or options.asks(read, prior)
        show(_text(table, made, public))
    return 0


def _text(table: Comparison, made: dict[int, tuple[str, dict[str, Any]]], public: bool) -> str:
    """The table as text, which does not tell the range of the data."""
    from dprad.show.ranges import SAID, restated, useful

    def of(mechanism: Any) -> Any:
        return useful(mechanism, *made[id(mechanism)], public=public)

    shown, numbers = restated(table, of)
    head, *rows = explain.rows(shown)
    cells = [head]
    for row, one in zip(rows, numbers, strict=True):
        cells.append((*row[:3], *one.said) if one.relative else row)
    said = [SAID] if any(one.relative for one in numbers) else []
    return "\n".join([explain.aligned(cells), *said])


def _tables(
    published: Published, values: dict[str, list[float]], shared: dict[str, Any],
    neighbours: str | None, columns: tuple[str, ...],
) -> list[Any]:  # fmt: skip
    """One release for every kind of noise and every amount of it."""
    made = []
    for kind in options.listed(published.noise, "--noise") or ["laplace"]:
        one = replace(published, noise=kind)
        for name in AMOUNTS:
            for value in values[name]:
                about = one.release(shared | {f"--{name}": value}, neighbours, columns)
                assert about is not None  # it was asked for
                table, given = about
                if name in ("scale", TABLES[table].turns(given)):
                    made.append(TABLES[table](**given))
    if not made:
        raise DpradError("give --epsilon, --rho or --scale, as the noise takes it.")
    return made


def _numbers(text: str | None, option: str) -> list[float]:
    values = options.listed(text, option) or []
    return [number(v, option) for v in values]
