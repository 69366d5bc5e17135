"""dprad assess: the extra risk behind a promise or a mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from dprad.cli.output import show, show_json
from dprad.errors import DpradError, number, one_of

if TYPE_CHECKING:
    from dprad.priors import Prior
    from dprad.threats import Threat

_PROMISE = Group("What is promised or run", sort_key=1)
_PRIOR = Group("What is known of the population (default: nothing)", sort_key=2)
_THREAT = Group("What is feared", sort_key=3)
_OUTPUT = Group("Output", sort_key=4)


def assess(
    *,
    epsilon: Annotated[float | None, Parameter(group=_PROMISE)] = None,
    delta: Annotated[float | None, Parameter(group=_PROMISE)] = None,
    mu: Annotated[float | None, Parameter(group=_PROMISE)] = None,
    tv: Annotated[float | None, Parameter(group=_PROMISE)] = None,
    neighbours: Annotated[str | None, Parameter(group=_PROMISE)] = None,
    mechanism: Annotated[str | None, Parameter(group=_PROMISE)] = None,
    data: Annotated[str | None, Parameter(group=_PRIOR)] = None,
    columns: Annotated[str | None, Parameter(group=_PRIOR)] = None,
    weight: Annotated[str | None, Parameter(group=_PRIOR)] = None,
    missing: Annotated[str | None, Parameter(group=_PRIOR)] = None,
    domain: Annotated[str | None, Parameter(group=_PRIOR)] = None,
    uniform: Annotated[float | None, Parameter(group=_PRIOR)] = None,
    knows: Annotated[str, Parameter(group=_THREAT)] = "nothing",
    target: Annotated[str | None, Parameter(group=_THREAT)] = None,
    loss: Annotated[str, Parameter(group=_THREAT)] = "exact",
    eta: Annotated[float, Parameter(group=_THREAT)] = 0.0,
    max_risk: Annotated[float | None, Parameter(group=_OUTPUT)] = None,
    bounds: Annotated[bool, Parameter(group=_OUTPUT, negative=())] = False,
    json: Annotated[bool, Parameter(group=_OUTPUT, negative=())] = False,
) -> int:
    """What does this epsilon mean for this data and this attacker?

    Example: dprad assess --epsilon 1 --neighbours replace-one --data people.csv
    --columns age,diagnosis --knows age --target diagnosis

    Parameters
    ----------
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
        Assess a mechanism exactly: grr (randomised response, with --epsilon).
    data
        A CSV or Parquet file, one row a person; may be larger than memory.
    columns
        The columns that make a record, comma-separated (default: all).
    weight
        A column of survey weights.
    missing
        keep missing values as a category (default), drop such rows, or refuse them.
    domain
        Possible whole values of the only column, as low:high.
    uniform
        Instead of --data: so many equally likely values 0, 1, 2, ...
    knows
        nothing, everything, or the columns the attacker knows, comma-separated.
    target
        The columns he is after, comma-separated (default: the whole record).
    loss
        exact, absolute (a numeric column) or haversine (latitude,longitude; metres).
    eta
        A guess counts if its loss is at most this.
    max_risk
        Exit with code 1 if the extra risk may exceed this.
    bounds
        Also list the bounds that do not apply, and why.
    json
        Print the whole result as JSON.

    """
    import dprad
    from dprad import explain

    limit = None if max_risk is None else number(max_risk, "--max-risk", low=0, high=1)
    prior = _prior(data, columns, weight, missing, domain, uniform)
    threat = _threat(knows, target, loss, eta)
    subject: Any
    if mechanism is None:
        subject = _promise(epsilon, delta, mu, tv, neighbours)
    else:
        others = {"--delta": delta, "--mu": mu, "--tv": tv, "--neighbours": neighbours}
        _without("--mechanism grr", others)
        subject = _mechanism(mechanism, epsilon, prior, threat)
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
    import dprad

    given = [n for n, v in (("--epsilon", epsilon), ("--mu", mu), ("--tv", tv)) if v is not None]
    if len(given) != 1:
        what = " and ".join(given) if given else "none"
        raise DpradError(f"give one of --epsilon, --mu and --tv, but got {what}.")
    if epsilon is None:
        _without(given[0], {"--delta": delta})
    where = neighbours or ""
    if mu is not None:
        return dprad.GaussianDP(mu, neighbours=where)
    if tv is not None:
        return dprad.TotalVariation(tv, neighbours=where)
    assert epsilon is not None
    if delta is None:
        return dprad.PureDP(epsilon, neighbours=where)
    return dprad.ApproxDP(epsilon, delta, neighbours=where)


def _mechanism(name: str, epsilon: float | None, prior: Prior, threat: Threat) -> Any:
    from dprad.assessment import columns_read
    from dprad.mechanisms import GRR
    from dprad.threats import target_values

    one_of(name, "--mechanism", ["grr"])
    if epsilon is None:
        raise DpradError("--mechanism grr needs --epsilon.")
    if prior.kind != "finite":
        raise DpradError("--mechanism grr needs a population: give --data or --uniform.")
    return GRR(epsilon=epsilon, size=len(target_values(prior, columns_read(prior, threat))[1]))


def _prior(
    data: str | None,
    columns: str | None,
    weight: str | None,
    missing: str | None,
    domain: str | None,
    uniform: float | None,
) -> Prior:
    from dprad.priors import Prior

    if data is None:
        table = {"--columns": columns, "--weight": weight, "--missing": missing, "--domain": domain}
        for name, value in table.items():
            if value is not None:
                raise DpradError(f"{name} goes with --data, which is missing.")
        return Prior.unknown() if uniform is None else Prior.uniform(uniform)  # type: ignore[arg-type]
    if uniform is not None:
        raise DpradError("give --data or --uniform, not both.")
    values = None
    if domain is not None:
        low, _, high = domain.partition(":")
        try:
            values = range(int(low), int(high) + 1)
        except ValueError:
            raise DpradError(
                f"--domain must be two whole numbers, as in 0:100, but is {domain!r}."
            ) from None
    return Prior.from_data(
        data,
        columns=_listed(columns, "--columns"),
        weight=weight,
        missing=missing or "keep",
        domain=values,
    )


def _threat(knows: str, target: str | None, loss: str, eta: float) -> Threat:
    from dprad.threats import KNOWS, Threat

    known = knows if knows in KNOWS else _listed(knows, "--knows")
    assert known is not None
    return Threat(knows=known, target=_listed(target, "--target"), loss=loss, eta=eta)


def _listed(names: str | None, option: str) -> list[str] | None:
    if names is None:
        return None
    found = [n.strip() for n in names.split(",") if n.strip()]
    if not found:
        raise DpradError(f"{option} must name columns, separated by commas, but is {names!r}.")
    return found


def _without(option: str, others: dict[str, Any]) -> None:
    for name, value in others.items():
        if value is not None:
            raise DpradError(f"{name} has no meaning with {option}; leave it out.")
