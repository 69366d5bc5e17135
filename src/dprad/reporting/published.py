"""What a report tells of a result: hundredths, rounded up.

Risks are exact functions of the population. Told to four digits, they give away whether one person
in a thousand has a rare value, or two. A report is handed to others, so its numbers, figures and
tables are made from results that were rounded before.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dprad.results import Audit, Calibration, Candidate, Comparison, Risk

SAID = (
    "Risks are rounded up to hundredths, and noise to two digits on the safe side, so that this "
    "report does not tell how many people have a rare value."
)


def published(result: Any) -> Any:
    """A result as it may be told to others."""
    if isinstance(result, Risk):
        return _risk(result)
    if isinstance(result, Calibration):
        value = result.value if isinstance(result.value, int) else _safe(result)
        error = None if result.error is None else _digits(result.error)
        return replace(result, risk=_risk(result.risk), value=value, error=error)
    if isinstance(result, Comparison):
        return Comparison(candidates=tuple(map(_candidate, result.candidates)))
    assert isinstance(result, Audit)
    return result  # counts of runs, not of people


def _risk(risk: Risk) -> Risk:
    rad = _up(risk.rad)
    out = None if risk.success_out is None else min(round(risk.success_out, 2), 1.0 - rad)
    low, high = risk.interval
    return replace(
        risk,
        rad=rad,
        interval=(math.floor(low * 100) / 100, _up(high)),
        success_out=out,
        success_in=None if out is None else round(out + rad, 2),
        rero=_up(risk.rero),
        baseline=None if risk.baseline is None else round(risk.baseline, 2),
        kappa=round(risk.kappa, 2),
        normalised=_up(risk.normalised),
        bounds=tuple(b if b.value is None else replace(b, value=_up(b.value)) for b in risk.bounds),
    )


def _candidate(candidate: Candidate) -> Candidate:
    return replace(candidate, risk=_risk(candidate.risk))


def _up(value: float) -> float:
    """Up to hundredths; what is next to nothing is less than one."""
    return min(1.0, math.ceil(value * 100 - 1e-9) / 100)


def _digits(value: float) -> float:
    """Two digits."""
    return float(f"{value:.2g}")


def _safe(plan: Calibration) -> float:
    """Two digits of a parameter, on the side of more noise."""
    if plan.value <= 0:
        return plan.value
    unit = 10.0 ** (math.floor(math.log10(plan.value)) - 1)
    count = plan.value / unit
    whole = math.floor(count + 1e-9) if plan.rising else math.ceil(count - 1e-9)
    return float(f"{whole * unit:.2g}")
