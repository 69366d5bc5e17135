"""least_error: which mechanism tells most, if all must keep the same risk?"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dprad.errors import DpradError, NoNoiseSufficesError, one_of
from dprad.game.query import Query
from dprad.model.comparisons import Candidate, Comparison
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.numerics.random import Seed
from dprad.verbs.calibrate import calibrate
from dprad.verbs.compare import compare


def least_error(
    families: Iterable[Any],
    *,
    max_risk: float,
    prior: Prior,
    threat: Threat | None = None,
    query: Query | None = None,
    trials: int = 20_000,
    rng: Seed = 0,
    **fixed: Any,
) -> Comparison:
    """Several mechanisms, each with the least noise for an accepted risk; least error first.

    Each is calibrated by itself and assessed again, so the cost is that of `calibrate` for each.
    Those that no noise brings to the accepted risk are left out.

    Parameters
    ----------
    families
        Mechanism classes, such as ``[LOSUE, LGRR]``.
    max_risk
        The accepted extra risk, as for `calibrate`.
    prior
        The population, as for `assess`.
    threat
        The attacker, as for `assess`.
    query
        What the mechanisms read from a record, as for `assess`.
    trials
        Number of draws, where a risk is estimated.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.
    **fixed
        Other arguments, given to those classes that take them, such as ``reports=30``.

    Returns
    -------
    Comparison
        The first candidate has the least error; mechanisms without one come last.

    Examples
    --------
    A month of daily reports about one of 100 values, with an extra risk of 5% at most:

    >>> import dprad
    >>> from dprad.mechanisms import LGRR, LOLOHA, LOSUE, LSUE
    >>> table = dprad.least_error([LSUE, LOSUE, LGRR, LOLOHA], max_risk=0.05, reports=30,
    ...                           prior=dprad.Prior.uniform(100))
    >>> [type(c.mechanism).__name__ for c in table]
    ['LOLOHA', 'LSUE', 'LOSUE', 'LGRR']

    """
    kinds = list(families)
    takes = [set(inspect.signature(kind).parameters) for kind in kinds]
    for name in fixed:
        one_of(name, "an argument", set().union(*takes) if takes else ())
    made = []
    for kind, names in zip(kinds, takes, strict=True):
        own = {k: v for k, v in fixed.items() if k in names}
        try:
            plan = calibrate(
                kind, max_risk=max_risk, prior=prior, threat=threat, query=query, trials=trials,
                rng=rng, **own,
            )  # fmt: skip
        except NoNoiseSufficesError:
            continue
        made.append(plan.mechanism)
    if not made:
        raise DpradError(f"none of these mechanisms keeps the extra risk at or below {max_risk:g}.")
    table = compare(made, prior=prior, threat=threat, query=query, trials=trials, rng=rng)
    return replace(table, candidates=tuple(sorted(table, key=_error)))


def _error(candidate: Candidate) -> float:
    found = candidate.variance if candidate.error is None else candidate.error
    return math.inf if found is None else found
