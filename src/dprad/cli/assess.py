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
    sigma: Annotated[float | None, Parameter(group=_PROMISE)] = None,
    sensitivity: Annotated[float | None, Parameter(group=_PROMISE)] = None,
    clamp: Annotated[str | None, Parameter(group=_PROMISE)] = None,
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
        noise = {"--sigma": sigma, "--sensitivity": sensitivity, "--clamp": clamp}
        _without("a promise", noise)
        subject = _promise(epsilon, delta, mu, tv, neighbours)
    else:
        _without("--mechanism", {"--mu": mu, "--tv": tv, "--neighbours": neighbours})
        given: dict[str, Any] = {"--epsilon": epsilon, "--delta": delta, "--sigma": sigma}
        given |= {"--sensitivity": sensitivity, "--clamp": clamp}
        subject = _mechanism(mechanism, given, prior, threat)
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


# Which options each mechanism takes, in the words of its class.
_CODES = {"--epsilon": "epsilon", "--delta": "delta"}
_NUMBERS = {"--epsilon": "epsilon", "--sensitivity": "sensitivity", "--clamp": "clamp"}
_BOUNDED = {"--epsilon": "epsilon", "": "bounds"}  # bounds: the range of the values
_NOISE = {"--sigma": "sigma", "--sensitivity": "sensitivity", "--clamp": "clamp"}
_MECHANISMS = {
    "grr": ("GRR", _CODES),
    "oue": ("OUE", {"--epsilon": "epsilon"}),
    "sue": ("SUE", _CODES),
    "subset": ("SubsetSelection", {"--epsilon": "epsilon"}),
    "olh": ("OLH", _CODES),
    "blh": ("BLH", _CODES),
    "hadamard": ("HadamardResponse", {"--epsilon": "epsilon"}),
    "the": ("THE", {"--epsilon": "epsilon"}),
    "she": ("SHE", {"--epsilon": "epsilon"}),
    "laplace": ("Laplace", _NUMBERS),
    "geometric": ("Geometric", _NUMBERS),
    "staircase": ("Staircase", _NUMBERS),
    "gaussian": ("Gaussian", _NOISE),
    "discrete-gaussian": ("DiscreteGaussian", _NOISE),
    "duchi": ("Duchi", _BOUNDED),
    "piecewise": ("Piecewise", _BOUNDED),
    "hybrid": ("Hybrid", _BOUNDED),
    "exponential": ("ExponentialInterval", _BOUNDED),
}


def _mechanism(name: str, given: dict[str, Any], prior: Prior, threat: Threat) -> Any:
    from dprad import mechanisms
    from dprad.reading import columns_read
    from dprad.threats import target_values

    one_of(name, "--mechanism", _MECHANISMS)
    kind, options = _MECHANISMS[name]
    if prior.kind != "finite":
        raise DpradError(f"--mechanism {name} needs a population: give --data or --uniform.")
    needed = next(iter(options))
    if given[needed] is None:
        raise DpradError(f"--mechanism {name} needs {needed}.")
    _without(f"--mechanism {name}", {o: v for o, v in given.items() if o not in options})
    chosen = {options[o]: v for o, v in given.items() if o in options and v is not None}
    values = target_values(prior, columns_read(prior, threat))[1]
    numeric = values.dtype.kind in "if"
    if "bounds" in options.values():
        if numeric and len(values) > 1:
            chosen["bounds"] = (float(values[0]), float(values[-1]))
    elif "--sensitivity" not in options:
        chosen["size"] = len(values)
    else:
        if "clamp" in chosen:
            chosen["clamp"] = _interval(chosen["clamp"], "--clamp")
        if "sensitivity" not in chosen and numeric:
            chosen["sensitivity"] = float(values[-1] - values[0]) or 1.0
    return getattr(mechanisms, kind)(**chosen)


def _interval(text: str, option: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise DpradError(f"{option} must be two numbers, as in 0:100, but is {text!r}.") from None


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
