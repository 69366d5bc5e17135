"""dprad audit: call a function many times and test whether it keeps its promise."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Group, Parameter

from dprad.errors import DpradError
from dprad.model.parameters import CLAMP, RHO, SCALE, TIMES
from dprad.runtime.functions import load
from dprad.show.cli import options
from dprad.show.cli.options import OUTPUT, Feared, Population, Whole
from dprad.show.cli.output import show, show_json
from dprad.show.cli.tables import Published

_CLAIM = Group("The claim", sort_key=1)
_RUNS = Group("Runs", sort_key=5)
_TABLE = Group("Instead of calling something: runs in a table", sort_key=6)
_NOBODY, _ANYONE = Population(), Feared()
_MODEL = Group("The supposed table, if it publishes one", sort_key=2)
Numbers = options.number_options(_MODEL, CLAMP, RHO, SCALE, TIMES)
_NONE, _NUMBERLESS = Published(), Numbers()


def audit(
    subject: str | None = None,
    /,
    *,
    claim: Annotated[float, Parameter(group=_CLAIM)],
    delta: Annotated[float | None, Parameter(group=_CLAIM)] = None,
    neighbours: Annotated[str | None, Parameter(group=_CLAIM)] = None,
    model: Annotated[str | None, Parameter(group=_CLAIM)] = None,
    records: Annotated[str | None, Parameter(group=_CLAIM)] = None,
    absent: Annotated[str | None, Parameter(group=_CLAIM)] = None,
    outputs: Annotated[str | None, Parameter(group=_TABLE)] = None,
    secret: Annotated[str | None, Parameter(group=_TABLE)] = None,
    one_run: Annotated[bool, Parameter(group=_TABLE, negative=())] = False,
    published: Published = _NONE,
    numbers: Numbers = _NUMBERLESS,  # type: ignore[valid-type]
    population: Population = _NOBODY,
    feared: Feared = _ANYONE,
    trials: Annotated[Whole, Parameter(group=_RUNS)] = 100_000,
    confidence: Annotated[options.Share, Parameter(group=_RUNS)] = 0.95,
    sequential: Annotated[bool, Parameter(group=_RUNS, negative=())] = False,
    max_seconds: Annotated[float | None, Parameter(group=_RUNS)] = None,
    vectorised: Annotated[bool, Parameter(group=_RUNS, negative=())] = False,
    bits: Annotated[bool, Parameter(group=_RUNS, negative=())] = False,
    workers: Annotated[Whole, Parameter(group=_RUNS)] = 1,
    cluster: Annotated[str | None, Parameter(group=_RUNS)] = None,
    state: Annotated[str | None, Parameter(group=_RUNS)] = None,
    seed: Annotated[Whole, Parameter(group=_RUNS)] = 0,
    json: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
) -> int:
    """Does this implementation keep its promise? Exit code 1 if it does not, 3 if that cannot be
    told: no violation, however large, could have been found.

    Example: dprad audit dprad.examples:coin --claim 1 --neighbours replace-one --records 0,1
    --trials 4000

    Or, from a table: dprad audit --outputs runs.csv --claim 1 --neighbours add-remove

    Parameters
    ----------
    subject
        package.module:function, called as function(record) or function(record, rng). Or an object
        with a method `randomise`, a mechanism, or a measurement that can be called. Not needed
        with --outputs.
    claim
        The claimed epsilon.
    delta
        The claimed delta.
    neighbours
        replace-one or add-remove: what the claim compares. Required.
    model
        The supposed mechanism (a name as for `dprad assess`): gives the attack, and an estimate of
        epsilon. Default: bets are learned on the way.
    records
        Records to run it on, comma-separated; or give a population below.
    absent
        What the function is called with for data without the person ("none": Python's None). An
        add-remove claim is then tested as it stands. With --outputs: the secret that means this.
    outputs
        A CSV or Parquet file with one row per run: a secret (in or out, or two records), and what
        came out in the other columns. Nothing is called.
    secret
        The column of the secret (default: secret).
    one_run
        The rows are secrets of one data set that was released once.
    published
        The table that it is supposed to publish, instead of --model, with the claimed epsilon
        unless --rho or --scale is given.
    numbers
        Numbers of this table.
    population
        What is known about the population.
    feared
        The attacker.
    trials
        Number of calls.
    confidence
        Confidence of the verdict, as 0.95 or 95%.
    sequential
        Stop as soon as the claim is refuted.
    max_seconds
        Stop after this many seconds with what is known by then.
    vectorised
        The function takes many records at once.
    bits
        Also look at the lowest bits of floating-point outputs.
    workers
        Number of processes. It does not change the result.
    cluster
        A Dask cluster to run on, as tcp://host:8786. It does not change the result.
    state
        A file that stores the counts; an interrupted audit resumes from it.
    seed
        Seed of all random numbers.
    json
        Print the whole result as JSON.

    """
    import dprad
    from dprad.mechanisms import catalogue

    stated = {"epsilon": claim, "delta": delta, "neighbours": neighbours or ""}
    more = {} if absent is None else {"absent": _absent(absent)}
    if outputs is not None:
        called = {
            "A subject": subject, "--model": model, "--records": records, **population.given(),
            **published.given(), **options.given(numbers),
            **feared.given(), "--sequential": sequential or None, "--max-seconds": max_seconds,
            "--vectorised": vectorised or None, "--cluster": cluster, "--state": state,
            "--trials": None if trials == 100_000 else trials,
            "--workers": None if workers == 1 else workers,
        }  # fmt: skip
        options.without("--outputs", called)
        result = dprad.audit_outputs(
            outputs, claim=catalogue.promise(stated), secret=secret or "secret", bits=bits,
            confidence=confidence, rng=seed, one_run=one_run, **more,
        )  # fmt: skip
        return _shown(result, json)
    options.without("a subject", {"--secret": secret, "--one-run": one_run or None})
    if subject is None:
        raise DpradError("give what to call, as package.module:function, or --outputs runs.csv.")
    run = load(subject)
    prior = _records(records, population)
    threat = feared.threat()
    promise = catalogue.promise(stated)
    named = _supposed(published, options.given(numbers), claim, neighbours, prior)
    if named is not None:
        options.without("a table", {"--model": model})
    elif model is not None:
        if model in catalogue.TABLES:
            raise DpradError(f"a table is described by its own options: --{model} instead.")
        named = options.mechanism(model, {"--epsilon": claim}, prior, threat)
    try:
        with options.hands(workers, cluster) as many:
            result = dprad.audit(
                run, **more, bits=bits, claim=promise, prior=prior, threat=threat, model=named,
                trials=trials, confidence=confidence, sequential=sequential,
                max_seconds=max_seconds, vectorised=vectorised, workers=many, state=state, rng=seed,
            )  # fmt: skip
    except dprad.AuditInterrupt as stopped:
        _shown(stopped.result, json)
        return 130
    return _shown(result, json)


def _supposed(
    published: Published, numbers: dict[str, Any], claim: float, neighbours: str | None, prior: Any
) -> Any:
    """The table that is supposed to be published; None if none is described."""
    from dprad.mechanisms import catalogue

    if numbers["--rho"] is None and numbers["--scale"] is None and any(published.given().values()):
        numbers = numbers | {"--epsilon": claim}
    table = published.release(numbers, neighbours, prior.columns)
    if table is None:
        options.without("anything but a table", numbers)
        return None
    return catalogue.TABLES[table[0]](**table[1])


def _shown(result: Any, json: bool) -> int:
    """Print it: the exit code."""
    if json:
        show_json(result.to_dict())
    else:
        show(str(result))
    return int(result.verdict == "violated") if result.conclusive else 3


def _records(records: str | None, population: Population) -> Any:
    """The records to run it on: by name, or those of the population."""
    import dprad

    prior = population.prior()
    if records is not None:
        if prior.kind == "finite":
            raise DpradError("give --records or a population, not both.")
        listed = options.listed(records, "--records") or []
        return dprad.Prior.from_counts(dict.fromkeys(map(_value, listed), 1.0))
    if prior.kind != "finite":
        raise DpradError("give the records to run it on: --records 0,1 or --data or --uniform.")
    return prior


def _absent(text: str) -> Any:
    """What stands for nobody."""
    return None if text.lower() == "none" else _value(text)


def _value(text: str) -> Any:
    """A record from the command line: a whole number, a number, or a word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
