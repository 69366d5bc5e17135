"""dprad assess: the extra risk behind a promise or a mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from dprad.errors import DpradError, records_shown
from dprad.mechanisms import catalogue
from dprad.mechanisms.catalogue import FAMILIES, NUMBERS, PROMISES
from dprad.model.guarantees import KINDS
from dprad.model.parameters import UNITS
from dprad.show.cli import options
from dprad.show.cli.options import OUTPUT, SUBJECT, Feared, Population, without
from dprad.show.cli.output import show, show_json
from dprad.show.cli.scenario import alone, assessed
from dprad.show.cli.tables import Published

_NOBODY, _ANYONE, _NOTHING = Population(), Feared(), Published()
if TYPE_CHECKING:
    Numbers = Any
    _NONE: Any
else:
    Numbers = options.number_options(SUBJECT, *NUMBERS.values())
    _NONE = Numbers()
_MECHANISM = (
    f"Assess a mechanism instead: {options.named_mechanisms()}. It reads what --query says."
)


def assess(
    scenario: Path | None = None,
    /,
    *,
    numbers: Numbers = _NONE,
    neighbours: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    mechanism: Annotated[str | None, Parameter(group=SUBJECT, help=_MECHANISM)] = None,
    query: Annotated[str | None, Parameter(group=SUBJECT, help=options.QUERY)] = None,
    published: Published = _NOTHING,
    population: Population = _NOBODY,
    feared: Feared = _ANYONE,
    sensitive: Annotated[str | None, Parameter(group=options.THREAT)] = None,
    by: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    max_risk: Annotated[options.Share | None, Parameter(group=OUTPUT)] = None,
    worst: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
    bounds: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
    json: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
    form: Annotated[
        Literal["text", "junit", "sarif", "markdown"], Parameter(name="--format", group=OUTPUT)
    ] = "text",
) -> int:
    """What does this epsilon mean for this data and this attacker?

    Example: dprad assess --epsilon 1 --neighbours replace-one --uniform 20

    Parameters
    ----------
    scenario
        A scenario file (`dprad init` writes one) instead of all other options.
    numbers
        The promise, or the amount of noise.
    neighbours
        replace-one or add-remove: what the promise compares; unknown if nobody can say. Required
        for a promise.
    mechanism
        Assess a mechanism instead.
    query
        What the mechanism reads.
    published
        A table release instead.
    sensitive
        Without an attacker, a standard set is asked about: these columns are guessed (default:
        all).
    by
        Also the risk of each group of this column, or of each "record". Of a file, groups of fewer
        than ten people are not named, more than 25 different numbers are in rounded bands, and
        records are named by their place, unless with --show-records.
    max_risk
        The accepted extra risk, as 0.1 or 10%: exit with code 1 if it may be exceeded, and with 3
        if that cannot be told.
    worst
        Whether --max-risk is for the most exposed person, not for the average over people.
    bounds
        Also list the bounds that do not apply, and why.
    population
        What is known about the population.
    feared
        The attacker.
    json
        Print the whole result as JSON.
    form
        For pipelines, with rounded numbers: junit or sarif, which need an accepted risk, or
        markdown.

    """
    import dprad
    from dprad.model import explain
    from dprad.model.verdicts import headed, judge, ranked, upper

    if form != "text":
        without(
            f"--format {form}", {"--json": json or None, "--by": by, "--bounds": bounds or None}
        )
    if scenario is not None:
        alone(
            options.given(numbers)
            | {"--neighbours": neighbours, "--mechanism": mechanism}
            | {"--max-risk": max_risk, "--query": query, "--by": by, "--sensitive": sensitive}
            | {"--worst": worst or None}
            | published.given()
            | population.given()
            | feared.given()
        )
        return assessed(scenario, json=json, form=form)
    prior = population.prior()
    threat = feared.threat()
    read = options.queried(query, prior)
    given = options.given(numbers)
    subject: Any
    chosen: dict[str, Any] = {}
    table = published.release(given, neighbours, prior.columns)
    if table is not None:
        without(f"--{table[0]}", {"--mechanism": mechanism, "--query": query})
        subject = catalogue.TABLES[table[0]](**table[1])
    elif mechanism is None:
        promised = {f"--{p.name}" for kind in KINDS for p in kind.takes} | {f"--{u}" for u in UNITS}
        noise = {name: value for name, value in given.items() if name not in promised}
        without("a promise", noise | {"--query": query})
        subject = _promise(given, neighbours)
    else:
        taken = {f"--{name}" for family in FAMILIES for name in catalogue.card(family).names}
        others = {name: value for name, value in given.items() if name not in taken}
        without("--mechanism", others | {"--neighbours": neighbours})
        chosen = {name: value for name, value in given.items() if name in taken}
        subject = options.mechanism(mechanism, chosen, prior, threat, read)
    attackers = options.attackers(prior, feared, sensitive)
    if mechanism is not None and read is None and len(attackers) > 1 and len(prior.columns) > 1:
        read = list(prior.columns)
        subject = options.mechanism(mechanism, chosen, prior, threat, read)
    cases = [
        (name, dprad.assess(subject, prior=prior, threat=each, query=read))
        for name, each in attackers
    ]
    verdict = None if max_risk is None else judge(cases, max_risk, worst=worst)
    made = table or (mechanism, chosen)
    unasked = options.unasked(attackers, prior, *made, read)
    if form != "text":
        from dprad.show.cli.formats import of_cases, written

        show(written(of_cases(cases, verdict, made[0] or "the promise", unasked), form))
        return 0 if verdict is None else verdict.code
    name, risk = max(cases, key=lambda case: upper(case[1], worst=worst))
    groups = None
    if by is not None:
        asked = dict(attackers)[name]
        groups = _groups(subject, population, prior=prior, threat=asked, query=read, by=by)
    code = 0 if verdict is None else verdict.code
    if json:
        plain = risk.to_dict() | {"max_risk": max_risk}
        plain["verdict"] = None if verdict is None else verdict.to_dict()
        plain["unasked"] = unasked
        plain["attackers"] = [{"attacker": n, "risk": r.to_dict()} for n, r in cases if n]
        show_json(plain | ({} if groups is None else groups.to_dict()))
        return code
    if len(cases) > 1:
        show("\n".join(["The extra risk of taking part, by attacker:", *ranked(cases), ""]))
    show(f"{risk}\n\n{explain.details(risk, every_bound=bounds)}")
    if groups is not None:
        show(f"\n{groups}")
    if verdict is not None:
        show(f"\n{headed(verdict, unasked)}. {verdict}")
    options.tell(unasked, whole=verdict is not None and verdict.outcome == "accepted")
    return code


def _groups(subject: Any, population: Population, **asked: Any) -> Any:
    """The groups, without values of few people unless they are asked for."""
    import dprad
    from dprad.verbs.shown_groups import shown_groups

    if population.data is None or records_shown():
        return dprad.by_group(subject, **asked)
    people = 0 if population.weight is not None else asked["prior"].rows or 0
    return shown_groups(subject, **asked, people=people)


def _promise(given: dict[str, Any], neighbours: str | None) -> Any:
    numbers = {name.removeprefix("--"): value for name, value in given.items()}
    named = [f"--{name}" for name in PROMISES if numbers[name] is not None]
    if len(named) != 1:
        *most, last = (f"--{name}" for name in PROMISES)
        what = " and ".join(named) if named else "none"
        raise DpradError(f"give one of {', '.join(most)} and {last}, but got {what}.")
    return catalogue.promise(numbers | {"neighbours": neighbours or ""})
