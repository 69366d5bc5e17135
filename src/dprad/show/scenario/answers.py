"""Every question of a scenario, answered: risks, calibrations, audits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dprad.errors import DpradError, NoNoiseSufficesError, NothingToCalibrateError
from dprad.exact import Sampling
from dprad.game.question import Question
from dprad.model import explain
from dprad.model.audits import Audit, AuditInterrupt
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.results import Calibration, Risk
from dprad.model.verdicts import Verdict, headed, judge, ranked, upper
from dprad.runtime.functions import load
from dprad.runtime.progress import known, steps
from dprad.show.scenario.file import Scenario
from dprad.show.scenario.release import Release, unasked
from dprad.verbs import together as verbs
from dprad.verbs.audit import audit
from dprad.verbs.together import Part

CALLS = 20_000
# Claims that differ by a smaller share are the same.
SAME = 1e-9
# Up to this many attackers, noise is calibrated for each.
FEW = 4


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
    joint
        The risk of all releases together, one entry per threat.
    risks
        The risk of each release alone.
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
    joint: tuple[Risk, ...]
    risks: tuple[tuple[Risk, ...], ...]
    plans: tuple[tuple[Calibration | None, ...], ...]
    reasons: tuple[tuple[Reason | None, ...], ...]
    audits: tuple[tuple[str, Audit], ...]

    @property
    def strongest(self) -> tuple[str, Risk]:
        """The attacker who gains most from all releases together, and what."""
        names = (name for name, _ in self.scenario.threats)
        return max(zip(names, self.joint, strict=True), key=lambda case: self.upper(case[1]))

    @property
    def unasked(self) -> str:
        """Which columns are read by a release, though no attacker is after them: a sentence, or
        nothing.
        """
        asked = self.scenario
        return unasked(asked.releases, asked.prior, [threat for _, threat in asked.threats])

    def upper(self, risk: Risk) -> float:
        """The upper end of what the scenario accepts or not."""
        return upper(risk, worst=self.scenario.worst)

    @property
    def verdict(self) -> Verdict | None:
        """Whether the accepted risk is kept by all releases together; None without one."""
        scenario = self.scenario
        if scenario.accepted is None:
            return None
        cases = [(n, risk) for (n, _), risk in zip(scenario.threats, self.joint, strict=True)]
        return judge(cases, scenario.accepted, worst=scenario.worst, refuted=self.refuted)

    @property
    def refuted(self) -> tuple[str, ...]:
        """What an audit refuted: a promise, or that the risk is accepted."""
        most = 1.0 if self.scenario.accepted is None else self.scenario.accepted
        return tuple(
            name
            for name, found in self.audits
            if found.verdict == "violated" or found.rad_interval[0] > most
        )

    @property
    def code(self) -> int:
        """The exit code of a command."""
        return int(bool(self.refuted)) if self.verdict is None else self.verdict.code

    def __str__(self) -> str:
        names = [name for name, _ in self.scenario.threats]

        def table(risks: Sequence[Risk]) -> list[str]:
            return ranked(list(zip(names, risks, strict=True)))

        lines = [f"Scenario: {self.scenario.title}"]
        if len(self.scenario.releases) > 1:
            lines += ["", "All releases together:", *table(self.joint)]
        for release, row in zip(self.scenario.releases, self.risks, strict=True):
            lines += ["", f"Release '{release.name}':", *table(row)]
        name, strongest = self.strongest
        lines += ["", str(strongest).split("\n")[0], f"(attacker: {name})"]
        if self.verdict is not None:
            lines += ["", f"{headed(self.verdict, self.unasked)}. {self.verdict}"]
        lines += ["", self.unasked] if self.unasked else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Answers({self.scenario!r})"

    def to_dict(self) -> dict[str, Any]:
        """The answers as plain data.

        Returns
        -------
        dict
            With keys title, accepted, verdict, unasked, together, answers and audits.

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
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
            "unasked": self.unasked,
            "together": [
                {"threat": name, "risk": risk.to_dict()}
                for (name, _), risk in zip(scenario.threats, self.joint, strict=True)
            ],
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
    >>> answers.verdict.outcome
    'exceeded'

    """
    about = scenario.audit or {}
    if audits and "function" in about and not allow_code:
        raise DpradError(
            f"{scenario.name} asks to import and run {about['function']!r}. If you trust that "
            "code, allow it: --allow-code (in Python: allow_code=True)."
        )
    cases = [(release, *case) for release in scenario.releases for case in scenario.questions]
    found = [_risk(*case) for case in steps("attackers and releases", cases)]
    many = len(scenario.questions)
    risks = [found[k : k + many] for k in range(0, len(found), many)]
    joint = risks[0] if len(scenario.releases) == 1 else _jointly(scenario)
    planned = [
        _plans(scenario, release, row) if plans else [(None, None)] * len(row)
        for release, row in steps("noise", list(zip(scenario.releases, risks, strict=True)))
    ]
    audited = tuple(_audits(scenario)) if audits and scenario.audit is not None else ()
    doubt = _untold(scenario, audited)
    if doubt:
        joint, *risks = (
            [replace(r, doubts=(*r.doubts, doubt)) for r in x] for x in (joint, *risks)
        )
    return Answers(
        scenario=scenario,
        joint=tuple(joint),
        risks=tuple(map(tuple, risks)),
        plans=tuple(tuple(plan for plan, _ in row) for row in planned),
        reasons=tuple(tuple(reason for _, reason in row) for row in planned),
        audits=audited,
    )


def _risk(release: Release, name: str, question: Question) -> Risk:
    try:
        risk = release.risk(question, Sampling())
    except DpradError as error:
        raise DpradError(f"{release.name}, against {name}: {error}") from None
    known(f"{release.name}, {name}: extra risk {explain.number(risk)}")
    return risk


def _jointly(scenario: Scenario) -> list[Risk]:
    """All releases together, for every attacker: from the composed promise, and by the joint
    posterior for the largest, until that is no longer the largest.
    """
    questions = [question for _, question in scenario.questions]
    return verbs.jointly(
        lambda question: _parts(scenario.releases, question), questions, worst=scenario.worst
    )


def together(releases: Sequence[Release], question: Question, trials: int = 20_000) -> Risk:
    """The risk of all releases together."""
    return verbs.together(_parts(releases, question), question, Sampling(trials=trials))


def promised(releases: Sequence[Release], question: Question) -> Risk | None:
    """What the composed promise of all releases allows; None if one promises nothing."""
    return verbs.promised(_parts(releases, question), question)


def _parts(releases: Sequence[Release], question: Question) -> list[Part]:
    return [(r.subject(question.prior, question.threat), r.query) for r in releases]


def _plans(
    scenario: Scenario, release: Release, risks: list[Risk]
) -> list[tuple[Calibration | None, Reason | None]]:
    """For each attacker the noise for the accepted risk, or why there is none; with many attackers
    only for the one who gains most.
    """
    if scenario.accepted is None:
        return [(None, None)] * len(risks)
    ends = [upper(risk, worst=scenario.worst) for risk in risks]
    rows: list[tuple[Calibration | None, Reason | None]] = []
    for end, (name, question) in zip(ends, scenario.questions, strict=True):
        if len(risks) > FEW and end < max(ends):
            rows.append((None, None))
            continue
        known(f"{release.name}, {name}, noise:")
        try:
            made = release.plan(question, scenario.accepted, Sampling(), worst=scenario.worst)
            rows.append((made, None))
        except DpradError as error:
            rows.append((None, Reason.of(error)))
    return rows


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
        title = f"{about['function']} ({name})"
        question |= {"claim": claim, "prior": scenario.prior, "threat": threat}
        result = _audited(title, run, question)
        note = f"this report imported and ran {about['function']}"
        return [(title, replace(result, notes=(*result.notes, note)))]
    audits = []
    for release in scenario.releases:
        if release.mechanism is None:
            continue
        name, threat = scenario.threats[0]
        subject = release.subject(scenario.prior, threat)
        asked = {"prior": scenario.prior, "threat": threat, "query": release.query}
        title = f"{release.name} ({name})"
        claimed = {"claim": subject.guarantee}
        audits.append((title, _audited(title, subject, question | claimed | asked)))
    return audits


def _untold(scenario: Scenario, audits: Sequence[tuple[str, Audit]]) -> str:
    """Why the audit of a function says nothing about what is released, if it does not."""
    about = scenario.audit or {}
    if "function" not in about or not audits:
        return ""
    ((_, found),) = audits
    if not found.conclusive:
        return f"The audit of {about['function']} is too short to find anything: raise trials."
    _, question = scenario.questions[0]
    promises = [verbs.promise([part]) for part in _parts(scenario.releases, question)]
    less = about["claim"] * (1 - SAME)
    if all(p is not None and p.replace_one().delta(less) == 0.0 for p in promises):
        return (
            f"The audit of {about['function']} tested a claim of {about['claim']:g}, which is "
            "weaker than what every release here promises: name the claim of what it publishes."
        )
    return ""


def _audited(title: str, run: Any, question: dict[str, Any]) -> Audit:
    """An audit. What it found is known even if it, or what follows, is interrupted."""
    try:
        result = audit(run, **question)
    except AuditInterrupt as stopped:
        known(f"{title}, an interrupted audit: {str(stopped.result).splitlines()[0]}")
        raise
    known(f"{title}, audit: {str(result).splitlines()[0]}")
    return result
