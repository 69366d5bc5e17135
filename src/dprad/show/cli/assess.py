"""dprad assess: the extra risk behind a promise or a mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from dprad.errors import DpradError, number
from dprad.show.cli import options
from dprad.show.cli.options import OUTPUT, SUBJECT, Feared, Population, without
from dprad.show.cli.output import show, show_json
from dprad.show.cli.scenario import alone, assessed

_NOBODY, _ANYONE = Population(), Feared()


def assess(
    scenario: Path | None = None,
    /,
    *,
    epsilon: Annotated[float | None, Parameter(group=SUBJECT)] = None,
    delta: Annotated[float | None, Parameter(group=SUBJECT)] = None,
    mu: Annotated[float | None, Parameter(group=SUBJECT)] = None,
    tv: Annotated[float | None, Parameter(group=SUBJECT)] = None,
    neighbours: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    mechanism: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    sigma: Annotated[float | None, Parameter(group=SUBJECT)] = None,
    sensitivity: Annotated[float | None, Parameter(group=SUBJECT)] = None,
    clamp: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    population: Population = _NOBODY,
    feared: Feared = _ANYONE,
    max_risk: Annotated[float | None, Parameter(group=OUTPUT)] = None,
    bounds: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
    json: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
) -> int:
    """What does this epsilon mean for this data and this attacker?

    Example: dprad assess --epsilon 1 --neighbours replace-one --uniform 20

    Parameters
    ----------
    scenario
        A scenario file (`dprad init` writes one) instead of all other options.
    epsilon
        Promise epsilon-DP, or (epsilon, delta)-DP with --delta.
    delta
        The delta that goes with --epsilon.
    mu
        Promise mu-Gaussian DP.
    tv
        Promise a total variation.
    neighbours
        replace-one or add-remove: what the promise compares. Required for a promise.
    mechanism
        Assess a mechanism instead. For categories grr, oue, sue, subset, olh, blh, hadamard, the,
        she; for numbers laplace, geometric, staircase, duchi, piecewise, hybrid, exponential (all
        with --epsilon), gaussian, discrete-gaussian (with --sigma). It reads the target, or the
        only column.
    sigma
        Standard deviation of gaussian noise.
    sensitivity
        How far one record can move the number (default: the range of its values).
    clamp
        The interval to which noisy numbers are moved, as low:high.
    max_risk
        Exit with code 1 if the extra risk may exceed this.
    bounds
        Also list the bounds that do not apply, and why.
    population
        What is known of the population.
    feared
        What is feared.
    json
        Print the whole result as JSON.

    """
    import dprad
    from dprad.model import explain

    if scenario is not None:
        alone(
            {"--epsilon": epsilon, "--delta": delta, "--mu": mu, "--tv": tv, "--sigma": sigma}
            | {"--neighbours": neighbours, "--mechanism": mechanism, "--clamp": clamp}
            | {"--sensitivity": sensitivity, "--max-risk": max_risk}
            | population.given()
            | feared.given()
        )
        return assessed(scenario, json=json)
    limit = None if max_risk is None else number(max_risk, "--max-risk", low=0, high=1)
    prior = population.prior()
    threat = feared.threat()
    subject: Any
    if mechanism is None:
        noise = {"--sigma": sigma, "--sensitivity": sensitivity, "--clamp": clamp}
        without("a promise", noise)
        subject = _promise(epsilon, delta, mu, tv, neighbours)
    else:
        without("--mechanism", {"--mu": mu, "--tv": tv, "--neighbours": neighbours})
        given: dict[str, Any] = {"--epsilon": epsilon, "--delta": delta, "--sigma": sigma}
        given |= {"--sensitivity": sensitivity, "--clamp": clamp}
        subject = options.mechanism(mechanism, given, prior, threat)
    risk = dprad.assess(subject, prior=prior, threat=threat)
    exceeded = limit is not None and risk.interval[1] > limit
    if json:
        show_json(risk.to_dict() | {"max_risk": limit, "exceeded": exceeded})
    else:
        show(f"{risk}\n\n{explain.details(risk, every_bound=bounds)}")
        if limit is not None:
            verdict = "may exceed" if exceeded else "stays within"
            show(f"\nThe extra risk {verdict} the accepted {limit:g}.")
    return int(exceeded)


def _promise(
    epsilon: float | None,
    delta: float | None,
    mu: float | None,
    tv: float | None,
    neighbours: str | None,
) -> Any:
    from dprad.mechanisms import catalogue

    numbers = {"epsilon": epsilon, "mu": mu, "tv": tv}
    given = [f"--{n}" for n, v in numbers.items() if v is not None]
    if len(given) != 1:
        what = " and ".join(given) if given else "none"
        raise DpradError(f"give one of --epsilon, --mu and --tv, but got {what}.")
    if epsilon is None:
        without(given[0], {"--delta": delta})
    return catalogue.promise(numbers | {"delta": delta, "neighbours": neighbours or ""})
