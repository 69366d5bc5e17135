"""Every question of a scenario, answered: risks, calibrations, audits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from dprad.errors import DpradError, NoNoiseSufficesError, NothingToCalibrateError
from dprad.exact import Sampling
from dprad.game.question import Question
from dprad.model.audits import Audit
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.results import Calibration, Risk
from dprad.runtime.functions import load
from dprad.show.scenario.file import Scenario
from dprad.show.scenario.release import Release
from dprad.verbs.audit import audit

CALLS = 20_000


@dataclass(frozen=True, slots=True)
class Reason:
    """Why there is no plan: every value meets the accepted risk, none does, or an error."""

    text: str
    outcome: Literal["every", "none", "error"]

    @classmethod
    def of(cls, error: DpradError) -> Reason:
        """From the error that a calibration raised."""
        if isinstance(error, NothingToCalibrateError):
            return cls(str(error), "every")
        return cls(str(error), "none" if isinstance(error, NoNoiseSufficesError) else "error")


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The answers to a scenario. `risks`, `plans` and `reasons` have one row per release, one
    entry per threat.

    Parameters
    ----------
    scenario
        The scenario.
    risks
        The risks.
    plans
        Calibrations; None if no noise is needed, none is enough, or no risk is accepted.
    reasons
        Why there is no plan; None if there is one, or no risk is accepted.
    audits
        Pairs (name, audit).

    Examples
    --------
    >>> import dprad
    >>> answers = dprad.scenario.answer(dprad.scenario.builtin(), plans=False, audits=False)
    >>> len(answers.risks), len(answers.risks[0])
    (2, 2)

    """

    scenario: Scenario
    risks: tuple[tuple[Risk, ...], ...]
    plans: tuple[tuple[Calibration | None, ...], ...]
    reasons: tuple[tuple[Reason | None, ...], ...]
    audits: tuple[tuple[str, Audit], ...]

    @property
    def worst(self) -> tuple[str, str, Risk]:
        """The largest risk, with its release and threat."""
        cells = [
            (release.name, threat[0], risk)
            for release, row in zip(self.scenario.releases, self.risks, strict=True)
            for threat, risk in zip(self.scenario.threats, row, strict=True)
        ]
        # the first of equal ones
        return max(cells, key=lambda cell: cell[2].interval[1])

    @property
    def exceeded(self) -> bool:
        """Whether a risk may exceed the accepted one."""
        limit = self.scenario.accepted
        return limit is not None and any(r.interval[1] > limit for row in self.risks for r in row)

    def to_dict(self) -> dict[str, Any]:
        """The answers as plain data.

        Returns
        -------
        dict
            With keys title, accepted, exceeded, answers and audits.

        """
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
                    | {"calibration": planned, "reason": "" if reason is None else reason.text}
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
    """Answer all questions of a scenario.

    A scenario may name a function to audit. It is imported and run only with `allow_code`.

    Parameters
    ----------
    scenario
        A result of `load` or `builtin`.
    plans
        Whether to calibrate to the accepted risk.
    audits
        Whether to run audits.
    allow_code
        Whether the function named by the scenario may be run.

    Returns
    -------
    Answers
        Risks, plans and audits.

    Examples
    --------
    >>> import dprad
    >>> answers = dprad.scenario.answer(dprad.scenario.builtin(), plans=False, audits=False)
    >>> answers.exceeded
    True

    """
    about = scenario.audit or {}
    if audits and "function" in about and not allow_code:
        raise DpradError(
            f"{scenario.name} asks to import and run {about['function']!r}. If you trust that "
            "code, allow it: --allow-code (in Python: allow_code=True)."
        )
    rows = [
        [_cell(scenario, release, name, question, plans) for name, question in scenario.questions]
        for release in scenario.releases
    ]
    return Answers(
        scenario=scenario,
        risks=tuple(tuple(risk for risk, _, _ in row) for row in rows),
        plans=tuple(tuple(plan for _, plan, _ in row) for row in rows),
        reasons=tuple(tuple(reason for _, _, reason in row) for row in rows),
        audits=tuple(_audits(scenario)) if audits and scenario.audit is not None else (),
    )


def _cell(
    scenario: Scenario, release: Release, name: str, question: Question, planned: bool
) -> tuple[Risk, Calibration | None, Reason | None]:
    """A release against an attacker: its risk, and the noise for the accepted risk or why there
    is none.
    """
    try:
        risk = release.risk(question, Sampling())
    except DpradError as error:
        raise DpradError(f"{release.name}, against {name}: {error}") from None
    if scenario.accepted is None or not planned:
        return risk, None, None
    try:
        return risk, release.plan(question, scenario.accepted, Sampling()), None
    except DpradError as error:
        return risk, None, Reason.of(error)


def _audits(scenario: Scenario) -> list[tuple[str, Audit]]:
    """Audits of the named function, or of the mechanisms themselves."""
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
    audits = []
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
        audits.append((f"{release.name} ({name})", result))
    return audits
