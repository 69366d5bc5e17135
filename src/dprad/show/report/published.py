"""Results as published in a report: hundredths, rounded up.

Risks are exact functions of the population. Four digits would reveal whether one person in a
thousand has a rare value, or two. A report is shared with others, so its numbers, figures and
tables are made from rounded results.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dprad.model.audits import Audit
from dprad.model.comparisons import Candidate, Comparison
from dprad.model.results import Calibration, Risk
from dprad.show.scenario.answers import Reason

SAID = (
    "Risks are rounded up to hundredths, those of the most exposed person to 0.05, and noise to "
    "two digits on the safe side (to more where two would not do), so that this report does not "
    "reveal how many people have a rare value."
)
WHY = {
    "every": "every value stays within it",
    "none": "no value stays within it",
    "error": "could not be computed; calibrate says why",
}


def published(result: Any) -> Any:
    """A result rounded for publication."""
    if isinstance(result, Risk):
        return _risk(result)
    if isinstance(result, Calibration):
        whole = isinstance(result.value, int)
        value = result.value if whole else _safe(result.value, result.rising)
        error = None if result.error is None else two_digits(result.error)
        return replace(result, risk=_risk(result.risk), value=value, error=error)
    if isinstance(result, Comparison):
        return Comparison(candidates=tuple(map(_candidate, result.candidates)))
    assert isinstance(result, Audit)
    return _audit(result)


def why(reason: Reason | None) -> str:
    """Why there is no plan, without its message, which may hold numbers of the data."""
    return "" if reason is None else WHY[reason.outcome]


def planned(plan: Calibration, holds: Callable[[float], bool]) -> Calibration:
    """A plan with as few digits of its value as still keep the accepted risk.

    Rounding towards more noise is not enough where risk is not monotone.
    """
    exact = plan.value
    rounded: Calibration = published(plan)
    if isinstance(exact, int):
        return rounded
    for digits in range(2, 8):
        value = _safe(exact, plan.rising, digits)
        if holds(value):
            return replace(rounded, value=value)
    return replace(rounded, value=exact)


def _risk(risk: Risk) -> Risk:
    rad = _up(risk.rad)
    out = None if risk.success_out is None else min(round(risk.success_out, 2), 1.0 - rad)
    low, high = risk.interval
    return replace(
        risk,
        method=f"{risk.method}, rounded up" if risk.kind == "exact" else risk.method,
        rad=rad,
        interval=(math.floor(low * 100) / 100, _up(high)),
        success_out=out,
        success_in=None if out is None else round(out + rad, 2),
        rero=_up(risk.rero),
        baseline=None if risk.baseline is None else round(risk.baseline, 2),
        kappa=round(risk.kappa, 2),
        normalised=_up(risk.normalised),
        bounds=tuple(b if b.value is None else replace(b, value=_up(b.value)) for b in risk.bounds),
        **_of_one_person(risk),
    )


def _of_one_person(risk: Risk) -> dict[str, Any]:
    """The most exposed person, unnamed, and what holds for every prior.

    In steps of 0.05: this number falls with the share of the rarest record, which must not be read
    from it.
    """
    span, free = risk.worst_interval, risk.any_prior
    return {
        "worst": None if risk.worst is None else coarse(risk.worst),
        "worst_interval": None if span is None else (0.0, coarse(span[1])),
        "worst_kind": None if risk.worst_kind is None else "upper-bound",
        "worst_record": None,
        "any_prior": None if free is None else (_up(free[0]), _up(free[1])),
    }


def coarse(value: float) -> float:
    """Up to a multiple of 0.05."""
    return min(1.0, math.ceil(value * 20 - 1e-9) / 20)


def _candidate(candidate: Candidate) -> Candidate:
    error, variance = (
        None if x is None else two_digits(x) for x in (candidate.error, candidate.variance)
    )
    return replace(candidate, risk=_risk(candidate.risk), error=error, variance=variance)


def _audit(result: Audit) -> Audit:
    """Counts of runs and what follows from them: rates of rare values show in these too."""
    low, high = result.rad_interval
    guessed = min(int(two_digits(result.trials - result.passes)), result.trials)
    span = result.epsilon_interval
    return replace(
        result,
        rad=round(result.rad, 2),
        rad_interval=(math.floor(low * 100) / 100, math.ceil(high * 100) / 100),
        passes=result.trials - guessed,
        successes=min(int(two_digits(result.successes)), guessed),
        rad_claimed=_up(result.rad_claimed),
        epsilon_lower=_down(result.epsilon_lower),
        epsilon_claimed=round(result.epsilon_claimed, 2),
        epsilon_estimate=None
        if result.epsilon_estimate is None
        else round(result.epsilon_estimate, 2),
        epsilon_interval=None if span is None else (_down(span[0]), -_down(-span[1])),
        would_find=None if result.would_find is None else -_down(-result.would_find),
        notes=tuple(map(_note, result.notes)),
        trace=tuple((n, _down(low), e if e is None else round(e, 2)) for n, low, e in result.trace),
    )


def _note(note: str) -> str:
    """A note with rounded numbers, without the number of distinct records or a solver's words."""
    note = re.sub(r"^(no model-based estimate):.*", r"\1", note, flags=re.S)
    note = re.sub(r"( record number [\d,]+) of [\d,]+", r"\1", note)
    return re.sub(r"\d*\.\d{3,}(e-?\d+)?", lambda m: f"{_up(float(m.group())):.2f}", note)


def _down(value: float) -> float:
    return math.floor(value * 100) / 100 if math.isfinite(value) else value


def drawn(plan: Any) -> Any:
    """A plan of a ledger whose curve has the rounded risks."""
    up = coarse if plan.asked.worst else _up
    return replace(plan, curve=tuple((k, up(risk)) for k, risk in plan.curve))


def _up(value: float) -> float:
    """Up to hundredths; what is next to nothing is less than one."""
    return min(1.0, math.ceil(value * 100 - 1e-9) / 100)


def two_digits(value: float) -> float:
    """Two digits."""
    return float(f"{value:.2g}")


def _safe(value: float, rising: bool, digits: int = 2) -> float:
    """A few digits of a parameter, rounded towards more noise."""
    if value <= 0:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    count = value / unit
    whole = math.floor(count + 1e-9) if rising else math.ceil(count - 1e-9)
    return float(f"{whole * unit:.{digits}g}")
