"""Every question of a scenario, answered: risks, calibrations, audits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dprad.errors import DpradError
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.priors import Prior
from dprad.model.results import Audit, Calibration, Risk
from dprad.model.threats import Threat
from dprad.runtime.functions import load
from dprad.show.scenario.file import Release, Scenario
from dprad.verbs.assess import assess
from dprad.verbs.audit import audit
from dprad.verbs.calibrate import calibrate

CALLS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """`risks` and `plans` have one line a release, one entry a threat.

    A plan is None where no noise is needed or none is enough (`reasons` says which), or if nothing
    was said about the accepted risk.
    """

    scenario: Scenario
    risks: tuple[tuple[Risk, ...], ...]
    plans: tuple[tuple[Calibration | None, ...], ...]
    reasons: tuple[tuple[str, ...], ...]
    audits: tuple[tuple[str, Audit], ...]

    @property
    def worst(self) -> tuple[str, str, Risk]:
        """The largest risk: its release, its threat."""
        cells = [
            (release.name, threat[0], risk)
            for release, row in zip(self.scenario.releases, self.risks, strict=True)
            for threat, risk in zip(self.scenario.threats, row, strict=True)
        ]
        # of equal ones the first
        return max(cells, key=lambda cell: cell[2].interval[1])

    @property
    def exceeded(self) -> bool:
        """Whether a risk may exceed what is accepted."""
        limit = self.scenario.accepted
        return limit is not None and any(r.interval[1] > limit for row in self.risks for r in row)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        scenario = self.scenario
        cells = []
        for release, risks, plans, reasons in zip(
            scenario.releases, self.risks, self.plans, self.reasons, strict=True
        ):
            for (threat, _), risk, plan, reason in zip(
                scenario.threats, risks, plans, reasons, strict=True
            ):
                planned = None if plan is None else plan.to_dict()
                cells.append(
                    {"release": release.name, "threat": threat, "risk": risk.to_dict()}
                    | {"calibration": planned, "reason": reason}
                )
        audits = [{"subject": name, **result.to_dict()} for name, result in self.audits]
        return {
            "title": scenario.title,
            "accepted": scenario.accepted,
            "exceeded": self.exceeded,
            "answers": cells,
            "audits": audits,
        }


def answer(
    scenario: Scenario, *, plans: bool = True, audits: bool = True, allow_code: bool = False
) -> Answers:
    """Ask all questions; calibrations and audits only if wanted.

    A scenario may name a function to audit. To import and run it is refused unless `allow_code`.
    """
    about = scenario.audit or {}
    if audits and "function" in about and not allow_code:
        raise DpradError(
            f"{scenario.name} asks to import and run {about['function']!r}. If you would run that "
            "code yourself, say so: --allow-code (in Python: allow_code=True)."
        )
    # by threat first: what it makes of the population is prepared once
    risks = _rows(
        [_risk(scenario, release, name, threat) for release in scenario.releases]
        for name, threat in scenario.threats
    )
    cells = _rows(
        [_plan(scenario, release, threat) if plans else (None, "") for release in scenario.releases]
        for _, threat in scenario.threats
    )
    return Answers(
        scenario=scenario,
        risks=risks,
        plans=tuple(tuple(plan for plan, _ in row) for row in cells),
        reasons=tuple(tuple(reason for _, reason in row) for row in cells),
        audits=tuple(_audits(scenario)) if audits and scenario.audit is not None else (),
    )


def _rows(columns: Iterable[list[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(zip(*columns, strict=True))


def _risk(scenario: Scenario, release: Release, name: str, threat: Any) -> Risk:
    """One cell; what cannot be answered says which."""
    prior = scenario.prior
    try:
        subject = release.subject(prior, threat)
        return assess(subject, prior=prior, threat=threat, query=release.query)
    except DpradError as error:
        raise DpradError(f"{release.name}, against {name}: {error}") from None


def _plan(scenario: Scenario, release: Release, threat: Any) -> tuple[Calibration | None, str]:
    """The least noise for the accepted risk, or why there is none."""
    if scenario.accepted is None:
        return None, ""
    try:
        return plan(release, scenario.prior, threat, scenario.accepted), ""
    except DpradError as error:
        return None, str(error)


def plan(release: Release, prior: Prior, threat: Threat, max_risk: float) -> Calibration:
    """The least noise of one release for an accepted risk."""
    if release.parameter == "tv":
        raise DpradError("noise for a total variation is not available: calibrate a mechanism.")
    family, arguments = release.parts(prior, threat, without=release.parameter)
    return calibrate(
        family,
        parameter=release.parameter,
        max_risk=max_risk,
        prior=prior,
        threat=threat,
        query=release.query,
        **arguments,
    )


def _audits(scenario: Scenario) -> list[tuple[str, Audit]]:
    """The function named, or the mechanisms themselves."""
    about = scenario.audit or {}
    trials = about.get("trials", CALLS)
    confidence = about.get("confidence", 0.95)
    question: dict[str, Any] = {"trials": trials, "confidence": confidence, "trace": True}
    if scenario.prior.kind != "finite":
        raise DpradError("an audit needs a population: records to call the function on.")
    if "function" in about:
        claim = PureDP(about["claim"], neighbours=REPLACE_ONE)
        run = load(about["function"], scenario.folder)
        name, threat = scenario.threats[0]
        result = audit(run, claim=claim, prior=scenario.prior, threat=threat, **question)
        note = f"this report imported and ran {about['function']}"
        return [(f"{about['function']} ({name})", replace(result, notes=(*result.notes, note)))]
    found = []
    for release in scenario.releases:
        if release.mechanism is None:
            continue
        name, threat = scenario.threats[0]
        subject = release.subject(scenario.prior, threat)
        result = audit(
            subject,
            claim=subject.guarantee,
            prior=scenario.prior,
            threat=threat,
            query=release.query,
            **question,
        )
        found.append((f"{release.name} ({name})", result))
    return found
