"""dprad calibrate: the least noise for an accepted risk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from dprad.errors import DpradError, NothingToCalibrateError, one_of
from dprad.mechanisms import catalogue
from dprad.mechanisms.catalogue import FAMILIES, FIXED, TABLES, amount
from dprad.model.guarantees import KINDS
from dprad.model.parameters import NOISE_MULTIPLIER, UNITS
from dprad.model.verdicts import judge, ranked
from dprad.runtime import progress
from dprad.show.cli import options
from dprad.show.cli.options import OUTPUT, Feared, Population, Whole, without
from dprad.show.cli.output import show, show_json
from dprad.show.cli.scenario import alone, calibrated
from dprad.show.cli.tables import Published

_GOAL = Group("The accepted risk, and what is calibrated", sort_key=1)
_PROMISES = {kind.short: kind for kind in KINDS}
_PROMISE = (
    "Instead of a mechanism: "
    + ", ".join(f"{kind.short} ({' and '.join(p.name for p in kind.takes)})" for kind in KINDS)
    + "."
)


_NOBODY, _ANYONE, _NOTHING = Population(), Feared(), Published()
if TYPE_CHECKING:
    Numbers = Any
    _NONE: Any
else:
    Numbers = options.number_options(_GOAL, *FIXED.values())
    _NONE = Numbers()


def calibrate(
    scenario: Path | None = None,
    /,
    *,
    max_risk: Annotated[options.Share | None, Parameter(group=_GOAL)] = None,
    worst: Annotated[bool, Parameter(group=_GOAL, negative=())] = False,
    mechanism: Annotated[str | None, Parameter(group=_GOAL)] = None,
    promise: Annotated[str | None, Parameter(group=_GOAL, help=_PROMISE)] = None,
    query: Annotated[str | None, Parameter(group=_GOAL, help=options.QUERY)] = None,
    neighbours: Annotated[str | None, Parameter(group=_GOAL)] = None,
    numbers: Numbers = _NONE,
    sample_rate: Annotated[float | None, Parameter(group=_GOAL)] = None,
    steps: Annotated[Whole | None, Parameter(group=_GOAL)] = None,
    published: Published = _NOTHING,
    population: Population = _NOBODY,
    feared: Feared = _ANYONE,
    sensitive: Annotated[str | None, Parameter(group=options.THREAT)] = None,
    json: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
) -> int:
    """How much noise keeps the extra risk within an accepted limit?

    Example: dprad calibrate --max-risk 0.1 --mechanism laplace --uniform 101 --loss absolute
    --eta 5

    Parameters
    ----------
    scenario
        A scenario file (`dprad init` writes one) instead of all other options.
    max_risk
        The accepted extra risk, as 0.1 or 10%.
    worst
        Whether that is for the most exposed person, not for the average over people.
    mechanism
        What adds the noise: a name as for `dprad assess`, or dpsgd (with --sample-rate and
        --steps).
    promise
        Instead of a mechanism.
    query
        What the mechanism reads.
    neighbours
        With --promise or a table: replace-one or add-remove, or unknown.
    numbers
        What else the promise or the mechanism takes.
    sample_rate
        Probability that a record takes part in a step of dpsgd; 1 for full batch.
    steps
        Number of steps of dpsgd.
    published
        A table release instead.
    population
        What is known about the population.
    feared
        The attacker.
    sensitive
        Without an attacker, the noise is enough for a standard set: these columns are guessed
        (default: all).
    json
        Print the whole result as JSON.

    """
    if scenario is not None:
        alone(
            {"--max-risk": max_risk, "--mechanism": mechanism, "--promise": promise}
            | {"--neighbours": neighbours, "--sample-rate": sample_rate, "--steps": steps}
            | {"--query": query, "--worst": worst or None, "--sensitive": sensitive}
            | options.given(numbers)
            | published.given()
            | population.given()
            | feared.given()
        )
        return calibrated(scenario, json=json)
    if max_risk is None:
        raise DpradError("give the accepted risk (--max-risk 0.1) or a scenario file.")
    prior = population.prior()
    threat = feared.threat()
    read = options.queried(query, prior)
    table = published.release(options.given(numbers), neighbours, prior.columns)
    if [mechanism, promise, table].count(None) != 2:
        raise DpradError("give one of --mechanism and --promise, or a table such as --counts.")
    attackers = options.attackers(prior, feared, sensitive)
    if mechanism in FAMILIES and read is None and len(attackers) > 1 and len(prior.columns) > 1:
        read = list(prior.columns)
    training = {"--sample-rate": sample_rate, "--steps": steps}
    given = options.given(numbers) | training | {"--neighbours": neighbours}
    if table is not None:
        without(f"--{table[0]}", training | {"--query": query})
        family, turned = TABLES[table[0]], {**table[1], "parameter": amount(*table)}
    elif promise is not None:
        family, turned = _promised(promise, given | {"--query": query})
    elif mechanism == "dpsgd":
        family, turned = _training(given | {"--query": query})
    else:
        family, turned = _noise(mechanism or "", given, prior, threat, read)
    asked = {"prior": prior, "query": read}
    unasked = options.unasked(attackers, prior, *(table or (mechanism, {})), read)
    try:
        plan, cases = _for_all(attackers, family, turned | {"worst": worst}, max_risk, asked)
    except NothingToCalibrateError as error:
        raise NothingToCalibrateError(f"{error} {unasked}".strip()) from None
    if json:
        named = [{"attacker": name, "risk": risk.to_dict()} for name, risk in cases if name]
        show_json(plan.to_dict() | {"attackers": named, "unasked": unasked})
        return 0
    public = population.public or options.asks(read, prior)
    show(str(plan) if mechanism not in FAMILIES else _text(plan, str(mechanism), given, public))
    if len(cases) > 1:
        show("\n".join(["", "It is enough for every one of these attackers:", *ranked(cases)]))
    options.tell(unasked)
    return 0


def _for_all(
    attackers: list[tuple[str, Any]],
    family: Any,
    turned: dict[str, Any],
    max_risk: float,
    asked: dict[str, Any],
) -> tuple[Any, list[tuple[str, Any]]]:
    """The least noise that is enough for every attacker, and their risks then. It is found for one
    after the other, until the noise found for one is enough for all.
    """
    import dprad

    left, plan = dict(attackers), None
    known: dict[str, Any] = {}
    name, threat = attackers[-1]
    while True:
        del left[name]
        if len(attackers) > 1:
            progress.known(f"{name}:")
        try:
            plan = dprad.calibrate(family, max_risk=max_risk, threat=threat, **asked, **turned)
            known = {name: plan.risk}  # from more draws
        except NothingToCalibrateError:
            if not left and plan is None:
                raise
        if not left:
            break
        verdict = None
        if plan is not None:
            cases = [(n, dprad.assess(plan.mechanism, threat=t, **asked)) for n, t in left.items()]
            verdict = judge(cases, max_risk, worst=turned["worst"])
            if verdict.outcome == "accepted":
                break
        name = next(iter(left)) if verdict is None else verdict.attacker
        threat = left[name]
    assert plan is not None
    cases = [
        (n, known.get(n) or dprad.assess(plan.mechanism, threat=t, **asked)) for n, t in attackers
    ]
    return plan, cases


def _text(plan: Any, mechanism: str, given: dict[str, Any], public: bool) -> str:
    """The plan as text, which does not tell the range of the data."""
    from dprad.show.ranges import useful

    chosen = {option[2:]: v for option, v in given.items() if v is not None}
    noise = {plan.parameter: getattr(plan.mechanism, plan.parameter)}
    found = useful(plan.mechanism, mechanism, chosen | noise, public=public)
    if not found.relative or found.error is None:
        return str(replace(plan, error=found.error))
    first, *rest = str(replace(plan, error=None)).split("\n")
    said = f"The noise stays within {found.said[0]} of the data in 95 of 100 cases."
    return "\n".join([first, said, *rest])


def _only(what: str, given: dict[str, Any], *names: str) -> dict[str, Any]:
    """The options that apply here, by their names in Python; all others are refused."""
    without(what, {name: value for name, value in given.items() if name not in names})
    return {name[2:].replace("-", "_"): given[name] for name in names}


def _promised(promise: str, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    kind = _PROMISES[one_of(promise, "--promise", _PROMISES)]
    rest = tuple(f"--{p.name}" for p in kind.takes[1:])
    units = tuple(f"--{name}" for name in UNITS)
    chosen = _only(f"--promise {promise}", given, "--neighbours", *rest, *units)
    counted = {name: n for name in UNITS if (n := chosen.pop(name)) is not None}
    for name in rest:
        if given[name] is None:
            raise DpradError(f"--promise {promise} needs {name}.")
    chosen["neighbours"] = chosen["neighbours"] or ""
    return catalogue.counted(kind, counted), chosen | {"parameter": kind.takes[0].name}


def _training(given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    from dprad import accounting

    needed = ("--sample-rate", "--steps")
    chosen = _only("--mechanism dpsgd", given, *needed)
    missed = [name for name in needed if given[name] is None]
    if missed:
        raise DpradError(f"--mechanism dpsgd needs {' and '.join(missed)}.")
    return accounting.dpsgd, chosen | {"parameter": NOISE_MULTIPLIER.name}


def _noise(
    mechanism: str, given: dict[str, Any], prior: Any, threat: Any, query: Any
) -> tuple[Any, dict[str, Any]]:
    rest = tuple(f"--{name}" for name in FIXED)
    _only(f"--mechanism {mechanism}", given, *rest)
    chosen = {name: given[name] for name in rest}
    family, known = options.parts(mechanism, chosen, prior, threat, query)
    return family, known | {"parameter": options.card(mechanism).takes[0].name}
