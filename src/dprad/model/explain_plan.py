"""A calibration, and a search for the worst prior, as plain sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dprad.model.explain import (
    MEASURES,
    above,
    amount,
    below,
    beside,
    doubtful,
    people,
    reports,
    safely,
    sentence,
)

if TYPE_CHECKING:
    from dprad.model.results import Calibration, WorstPrior

# Beyond a bound by more than rounding.
ROUNDING = 1e-9


def calibration(plan: Calibration) -> str:
    """The value to set, and what it achieves."""
    what = {"rad": "extra risk", "worst": "extra risk of the most exposed person"}.get(
        plan.measure, MEASURES.get(plan.measure, f"bound {plan.measure}")
    )
    whom = f" on average over {people(plan.risk.threat)}" if plan.measure == "rad" else ""
    seen = plan.risk.subject
    when = f" after {reports(seen)}" if "reports" in seen else ""
    lines = [
        f"{plan.family} with {plan.parameter} = {safely(plan.value, plan.rising)} keeps the {what} "
        f"at or below {plan.max_risk:g}{whom}{when}. {_tightness(plan)}",
        *_every(plan),
    ]
    if plan.error is not None and math.isfinite(plan.error):
        lines.append(f"The noise stays within {amount(plan.error)} in 95 of 100 cases.")
    lines += [sentence(plan.risk, named=False), *doubtful(plan.risk.doubts)]
    return "\n".join([*lines, *beside(plan.risk)])


def briefly(plan: Calibration) -> str:
    """The value to set, for which population, and why it cannot be relied on, if so; in a line."""
    return " ".join([calibration(plan).split("\n")[0], *_every(plan), *doubtful(plan.risk.doubts)])


def _every(plan: Calibration) -> list[str]:
    """Why it is enough for every population, if it is; a sentence."""
    if plan.risk.any_prior is None or plan.measure not in ("rad", "worst"):
        return []
    return [
        "It is enough for every population: the table says little about its own, since too "
        "many rows are the only ones of their kind, or few rows count. Fewer columns, coarser "
        "values or more rows may need less noise, and so may a table that is the whole "
        "population, if you say so."
    ]


def _tightness(plan: Calibration) -> str:
    """Whether less noise would suffice: known only if what is kept is exact."""
    kind = plan.risk.worst_kind if plan.measure == "worst" else plan.risk.kind
    if plan.limited:
        return "It is the end of the range searched; less noise was not tried."
    if plan.measure not in MEASURES:
        return "Less noise would exceed the bound, but not necessarily the risk."
    summary = plan.measure in ("tv", "advantage", "summary")
    if summary or (kind == "exact" and plan.risk.any_prior is None):
        return "Any less noise would exceed it."
    if kind == "estimate":
        return "The risk is estimated: slightly less noise may suffice; more trials would show."
    return "Less noise is not known to keep it."


def worst(result: WorstPrior) -> str:
    """Lower and upper bound on the worst case, and how far the search went; or that they contradict
    each other.
    """
    sure, most = result.risk.interval[0], above(result.bound.rad)
    estimate = ", estimated" if result.risk.kind == "estimate" else ""
    tried = "1 prior was" if result.tried == 1 else f"{result.tried:,} priors were"
    end = "; then the search was stopped, so a riskier one may be near" if result.stopped else ""
    if sure > result.bound.rad + ROUNDING:
        return (
            f"The guarantee is wrong, or the likelihood is: a prior was found with extra risk "
            f"{result.risk.rad:.4f}{estimate}, at least {below(sure)}, and the guarantee allows at "
            f"most {most} ({result.bound.method}). {tried} tried{end}."
        )
    return (
        f"The extra risk of the worst prior is between {below(sure)} and {most}: a "
        f"prior was found with extra risk {result.risk.rad:.4f}{estimate}, and no prior exceeds "
        f"{most} ({result.bound.method}). {tried} tried{end}."
    )
