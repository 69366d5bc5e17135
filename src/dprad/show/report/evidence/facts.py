"""What the pack says, as plain data: rounded results, methods, exclusions, hashes, dates."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import dprad
from dprad.errors import DpradError
from dprad.model.audits import Audit
from dprad.model.results import Risk
from dprad.model.verdicts import Outcome, Verdict, headed, judge
from dprad.show.report.evidence.opinion import OPINION, Asked, opinion
from dprad.show.report.published import SAID, published
from dprad.show.scenario import EXAMPLE, Answers, Scenario

FORMAT = "dprad evidence 1"
TOGETHER = "all releases together"
PAPER = (
    "Guerra-Balboa, Sauer, Arcolezi, Strufe: Understanding Disclosure Risk in Differential "
    "Privacy with Applications to Noise Calibration and Auditing (2026), arXiv:2603.12142"
)
# Where a bound is proved: a page of docs/theory.
PAGES = {
    "theorem-b": "optimum",
    "theorem-c": "unified",
    "theorem-c-moments": "renyi",
    "proposition-w": "water-filling",
    "theorem-e1": "absent-record",
    "theorem-e2": "absent-record",
    "proposition-f": "absent-prior",
    "proposition-g": "static",
    "theorem-1": "total-variation",
    "theorem-3": "trade-off",
    "theorem-3-finite": "trade-off",
    "proposition-1": "trade-off",
    "theorem-4": "perfect",
    "corollary-2": "perfect",
}
EXCLUSIONS = {
    "Invariants": "Totals, counts or other facts that are published exactly, beside the releases.",
    "Tuning on raw data": "Columns, bounds, models or amounts of noise that were chosen by looking "
    "at the data without privacy.",
    "Side channels": "Timing, memory, logs, error messages, floating-point noise and weak random "
    "numbers.",
    "Other releases": "Whatever is or will be published about the same people and is not in the "
    "scenario.",
    "Groups": "What is learned about families or other groups: every number is about one person.",
    "The implementation": "The numbers are for the mechanism as described. Only an audit looks at "
    "what runs, and a consistent audit proves nothing.",
}
_RISK = (
    *("kind", "method", "rad", "interval", "success_out", "success_in", "rero", "baseline"),
    *("worst", "worst_interval", "worst_kind", "any_prior", "doubts"),
)
_AUDIT = (
    *("verdict", "epsilon_lower", "epsilon_claimed", "delta", "confidence", "trials", "rad"),
    *("rad_interval", "would_find", "evidence", "notes", "unverified"),
)


def facts(answers: Answers, command: str, day: date) -> dict[str, Any]:
    """All of it. Assesses the standard attackers that the scenario does not name."""
    scenario = answers.scenario
    asked = opinion(answers)
    risks = [risk for line in (answers.joint, *answers.risks) for risk in line]
    risks += [risk for one in asked for _, risk in one.rows]
    every = [published(risk) for risk in risks]
    return {
        "format": FORMAT,
        "title": scenario.title,
        "made": day.isoformat(),
        "made_by": f"dprad {dprad.__version__}",
        "command": command,
        "review": scenario.decided.get("review", _next_year(day).isoformat()),
        "accepted": None
        if scenario.accepted is None
        else {"risk": scenario.accepted, "of": "one person" if scenario.worst else "average"}
        | {key: scenario.decided.get(key) for key in ("by", "on")},
        "verdict": _verdict(answers, asked),
        "rounding": SAID,
        "opinion": {
            "source": OPINION,
            "questions": [
                {"name": one.name, "asks": one.asks, "means": list(one.means)}
                | {"rows": [row(name, risk, _outcome(answers, risk)) for name, risk in one.rows]}
                | {"not_assessed": list(one.not_assessed)}
                for one in asked
            ],
        },
        "risks": rows(answers),
        "audits": [{"subject": name, **_audit(published(found))} for name, found in answers.audits],
        "methods": _methods(every, audited=bool(answers.audits)),
        "assumptions": list(dict.fromkeys(line for risk in every for line in risk.assumptions)),
        "exclusions": EXCLUSIONS,
        "inputs": _inputs(scenario),
    }


def input_of(scenario: Scenario) -> bytes | None:
    """The scenario file as it was read; None if it contains counts of people."""
    if "counts" in scenario.population:
        return None
    if scenario.text == EXAMPLE:
        return EXAMPLE.encode()
    raw = Path(scenario.name).read_bytes()
    if raw.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n") != scenario.text:
        raise DpradError(f"{scenario.name} was changed while it was answered; try again.")
    return raw


def _next_year(day: date) -> date:
    """The same day; the first of March after a 29th of February."""
    try:
        return day.replace(year=day.year + 1)
    except ValueError:
        return date(day.year + 1, 3, 1)


def _verdict(answers: Answers, asked: tuple[Asked, ...]) -> dict[str, Any] | None:
    """With a word about attackers who are asked about here, and not by the scenario."""
    verdict = answers.verdict
    if verdict is None:
        return None
    left = [answers.unasked, _others(answers, asked)] if verdict.outcome == "accepted" else []
    said = " ".join([sentence(verdict), *filter(None, left)])
    word = headed(verdict, "".join(left))
    return verdict.to_dict() | {"word": word, "sentence": said}


def _others(answers: Answers, asked: tuple[Asked, ...]) -> str:
    """What is said of attackers that the scenario does not name; nothing if all are accepted."""
    if any(_outcome(answers, risk) != "accepted" for one in asked for _, risk in one.rows):
        return "Others, who are asked about in the evidence, are not within the limit."
    if any(one.gaps for one in asked):
        return "Others, who are named in the evidence, could not be assessed."
    return ""


def sentence(verdict: Verdict) -> str:
    """A verdict with a rounded number."""
    return str(replace(verdict, risk=published(verdict.risk)))


def row(attacker: str, risk: Risk, outcome: Outcome | None) -> dict[str, Any]:
    """A risk as published. Plain parts only: the summary of the prior and the arguments of a
    mechanism tell about the data.
    """
    shown = published(risk)
    plain = {key: getattr(shown, key) for key in _RISK}
    if shown.threat["membership"]:
        plain |= {"baseline": None, "rero": None}  # there is nothing to guess
    return {"attacker": attacker, "threat": shown.threat, "outcome": outcome, **plain}


def rows(answers: Answers) -> list[dict[str, Any]]:
    """All releases together, if there are several, and each alone: judged, then rounded.

    What is accepted of all together is accepted of each, which tells no more.
    """
    scenario = answers.scenario
    parts = list(zip((r.name for r in scenario.releases), answers.risks, strict=True))
    lines = [(TOGETHER, answers.joint), *parts] if len(parts) > 1 else parts
    found = []
    for release, risks in lines:
        cases = zip(scenario.threats, risks, answers.joint, strict=True)
        for (attacker, _), risk, joint in cases:
            outcome = _outcome(answers, joint)
            outcome = _outcome(answers, risk) if outcome != "accepted" else outcome
            found.append({"release": release, **row(attacker, risk, outcome)})
    return found


def _outcome(answers: Answers, risk: Risk) -> Outcome | None:
    limit = answers.scenario.accepted
    return (
        None if limit is None else judge([("", risk)], limit, worst=answers.scenario.worst).outcome
    )


def _audit(found: Audit) -> dict[str, Any]:
    plain = {key: getattr(found, key) for key in _AUDIT}
    return plain | {"sentences": str(found).split("\n")}


def _methods(risks: list[Risk], *, audited: bool) -> list[dict[str, str]]:
    """How the numbers were found, and where that is proved."""
    used = {"The game, and what extra risk is": "game"}
    for risk in risks:
        names = {bound.title: bound.name for bound in risk.bounds}
        used[risk.method] = PAGES.get(names.get(risk.method, ""), "exact")
    used["Releases added up, and kinds of promises"] = "guarantees"
    if audited:
        used["What may be concluded from runs"] = "audit"
    pages = [{"method": name, "proof": f"docs/theory/{page}.md"} for name, page in used.items()]
    return [*pages, {"method": PAPER, "proof": "docs/theory/errata.md"}]


def _inputs(scenario: Scenario) -> list[dict[str, Any]]:
    """Names and hashes of what was read."""
    text = input_of(scenario)
    withheld = "It contains counts of people: neither it nor its hash, by trying, may tell them."
    name = Path(scenario.name).name
    found: list[dict[str, Any]] = [
        {"what": "scenario", "name": name, "sha256": None, "note": withheld}
        if text is None
        else {"what": "scenario", "name": name, "sha256": hashlib.sha256(text).hexdigest()}
    ]
    if scenario.source is not None:
        name = Path(scenario.population["data"]).name
        found.append({"what": "data", "name": name, "sha256": scenario.source.sha256()})
    return found
