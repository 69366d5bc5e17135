"""dprad assess: the extra risk behind a promise or a mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from dprad.errors import DpradError
from dprad.mechanisms import catalogue
from dprad.mechanisms.catalogue import FAMILIES, NUMBERS, PROMISES
from dprad.model.guarantees import KINDS
from dprad.show.cli import options
from dprad.show.cli.options import OUTPUT, SUBJECT, Feared, Population, without
from dprad.show.cli.output import show, show_json
from dprad.show.cli.scenario import alone, assessed

_NOBODY, _ANYONE = Population(), Feared()
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
    population: Population = _NOBODY,
    feared: Feared = _ANYONE,
    max_risk: Annotated[options.Share | None, Parameter(group=OUTPUT)] = None,
    bounds: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
    json: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
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
        replace-one or add-remove: what the promise compares. Required for a promise.
    mechanism
        Assess a mechanism instead.
    query
        What the mechanism reads.
    max_risk
        Exit with code 1 if the extra risk may exceed this, as 0.1 or 10%.
    bounds
        Also list the bounds that do not apply, and why.
    population
        What is known about the population.
    feared
        The attacker.
    json
        Print the whole result as JSON.

    """
    import dprad
    from dprad.model import explain

    if scenario is not None:
        alone(
            options.given(numbers)
            | {"--neighbours": neighbours, "--mechanism": mechanism}
            | {"--max-risk": max_risk, "--query": query}
            | population.given()
            | feared.given()
        )
        return assessed(scenario, json=json)
    prior = population.prior()
    threat = feared.threat()
    read = options.queried(query, prior)
    given = options.given(numbers)
    subject: Any
    if mechanism is None:
        promised = {f"--{p.name}" for kind in KINDS for p in kind.takes}
        noise = {name: value for name, value in given.items() if name not in promised}
        without("a promise", noise | {"--query": query})
        subject = _promise(given, neighbours)
    else:
        taken = {f"--{name}" for family in FAMILIES for name in catalogue.card(family).names}
        others = {name: value for name, value in given.items() if name not in taken}
        without("--mechanism", others | {"--neighbours": neighbours})
        chosen = {name: value for name, value in given.items() if name in taken}
        subject = options.mechanism(mechanism, chosen, prior, threat, read)
    risk = dprad.assess(subject, prior=prior, threat=threat, query=read)
    exceeded = max_risk is not None and risk.interval[1] > max_risk
    if json:
        show_json(risk.to_dict() | {"max_risk": max_risk, "exceeded": exceeded})
    else:
        show(f"{risk}\n\n{explain.details(risk, every_bound=bounds)}")
        if max_risk is not None:
            verdict = "may exceed" if exceeded else "stays within"
            show(f"\nThe extra risk {verdict} the accepted {max_risk:g}.")
    return int(exceeded)


def _promise(given: dict[str, Any], neighbours: str | None) -> Any:
    numbers = {name.removeprefix("--"): value for name, value in given.items()}
    named = [f"--{name}" for name in PROMISES if numbers[name] is not None]
    if len(named) != 1:
        *most, last = (f"--{name}" for name in PROMISES)
        what = " and ".join(named) if named else "none"
        raise DpradError(f"give one of {', '.join(most)} and {last}, but got {what}.")
    return catalogue.promise(numbers | {"neighbours": neighbours or ""})
