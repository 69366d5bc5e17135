"""What to change to meet the accepted risk: all releases together, by one common factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dprad.errors import DpradError
from dprad.game.question import Question
from dprad.model import explain
from dprad.model.verdicts import sure, upper
from dprad.runtime.progress import steps
from dprad.show.scenario.answers import Answers, promised, together
from dprad.show.scenario.file import Scenario
from dprad.show.scenario.release import Release

# Halvings of the range of factors, how far it reaches, and draws of a search.
STEPS, LEAST, DRAWS = 7, 1e-4, 2_000
# Steps back, if the final check with all attackers fails.
BACK, TRIES = 0.93, 6


@dataclass(frozen=True, slots=True)
class Advice:
    """A change for each release: its name, the parameter, the value now and the value that keeps
    the accepted risk, as text rounded to the safe side.
    """

    changes: tuple[tuple[str, str, str, str], ...]

    def __str__(self) -> str:
        parts = [f"{name}: {key} {new} instead of {old}" for name, key, old, new in self.changes]
        return "; ".join(parts)


def advice(answers: Answers) -> Advice | None:
    """The largest common factor on the noise of all releases that keeps the accepted risk for every
    attacker; None if it is kept already, or none is found.
    """
    scenario, verdict = answers.scenario, answers.verdict
    if verdict is None or verdict.outcome == "accepted":
        return None
    strongest = dict(scenario.questions)[verdict.attacker]
    low, high = LEAST, 1.0
    try:
        if not keeps(scenario, _weaker(scenario.releases, low), [strongest], DRAWS):
            return None
        for _ in steps("noise for all releases", range(STEPS)):
            middle = math.sqrt(low * high)
            kept = keeps(scenario, _weaker(scenario.releases, middle), [strongest], DRAWS)
            low, high = (middle, high) if kept else (low, middle)
        everyone = [question for _, question in scenario.questions]
        for _ in range(TRIES):
            changed = _weaker(scenario.releases, low)
            if keeps(scenario, changed, everyone):
                return _said(scenario.releases, changed)
            low *= BACK
    except DpradError:
        return None
    return None


def _weaker(releases: Sequence[Release], factor: float) -> list[Release]:
    """Every release with its noise changed by a factor below one, rounded to the safe side."""
    changed = []
    for release in releases:
        now = float(release.numbers[release.parameter])
        value = now * factor if release.rising else now / factor
        changed.append(release.at(_two_digits(value, release.rising)))
    return changed


def _two_digits(value: float, rising: bool) -> float:
    """Towards more noise."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    count = math.floor(value / unit + 1e-9) if rising else math.ceil(value / unit - 1e-9)
    return float(f"{count * unit:.2g}")


def keeps(
    scenario: Scenario,
    releases: Sequence[Release],
    questions: Sequence[Question],
    trials: int = 20_000,
) -> bool:
    """Whether these releases together surely stay within the accepted risk, whoever of these asks.
    What their promise allows is quick to know, and often enough.
    """
    limit = 1.0 if scenario.accepted is None else scenario.accepted
    for question in steps("attackers, with other noise", questions):
        risk = promised(releases, question)
        if risk is None or upper(risk, worst=scenario.worst) > limit:
            risk = together(releases, question, trials)
        kept = upper(risk, worst=scenario.worst) <= limit
        if not (kept and sure(risk, limit, worst=scenario.worst)):
            return False
    return True


def _said(before: Sequence[Release], after: Sequence[Release]) -> Advice:
    return Advice(
        tuple(
            (
                old.name,
                old.parameter,
                explain.amount(float(old.numbers[old.parameter])),
                explain.amount(float(new.numbers[new.parameter])),
            )
            for old, new in zip(before, after, strict=True)
        )
    )
