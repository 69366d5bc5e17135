"""dprad compare: risk and error of several mechanisms side by side."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from dprad.errors import DpradError, number
from dprad.show.cli import options
from dprad.show.cli.options import OUTPUT, SUBJECT, Feared, Population
from dprad.show.cli.output import show, show_json

_NOBODY, _ANYONE = Population(), Feared()


def compare(
    *,
    mechanisms: Annotated[str, Parameter(group=SUBJECT)],
    epsilon: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    sigma: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    sensitivity: Annotated[float | None, Parameter(group=SUBJECT)] = None,
    clamp: Annotated[str | None, Parameter(group=SUBJECT)] = None,
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
    epsilon
        Values of epsilon, comma-separated.
    sigma
        Values of sigma, for gaussian and discrete-gaussian.
    sensitivity
        How far one record can move the number (default: the range of its values).
    clamp
        The interval to which noisy numbers are clipped, as low:high.
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
    values = {"epsilon": _numbers(epsilon, "--epsilon"), "sigma": _numbers(sigma, "--sigma")}
    subjects: list[Any] = []
    shared = {"--sensitivity": sensitivity, "--clamp": clamp}
    names = options.listed(mechanisms, "--mechanisms") or []
    taken = {f"--{t}" for name in names for t in options.card(name).takes}
    unused = shared | {"--epsilon": epsilon, "--sigma": sigma}
    options.without(
        "--mechanisms " + mechanisms, {o: v for o, v in unused.items() if o not in taken}
    )
    for name in names:
        takes = options.card(name).takes
        if not values[takes[0]]:
            raise DpradError(f"--mechanisms {name} needs values of --{takes[0]}.")
        given = {o: v for o, v in shared.items() if o[2:] in takes}
        family, known = options.parts(name, given, prior, threat)
        subjects += [family(**known, **{takes[0]: v}) for v in values[takes[0]]]
    table = dprad.compare(subjects, prior=prior, threat=threat)
    if json:
        show_json(table.to_dict())
    else:
        show(str(table))
    return 0


def _numbers(text: str | None, option: str) -> list[float]:
    values = options.listed(text, option) or []
    return [number(v, option) for v in values]
