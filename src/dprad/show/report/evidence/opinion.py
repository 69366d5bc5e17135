"""The three questions of Opinion 05/2014, as far as the threat model can express them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dprad.errors import DpradError
from dprad.game.question import Question
from dprad.model.results import Risk
from dprad.runtime.progress import steps
from dprad.show.scenario import Answers, Scenario
from dprad.show.scenario.answers import together
from dprad.show.scenario.release import Release
from dprad.verbs.attackers import standard

OPINION = (
    "Article 29 Data Protection Working Party, Opinion 05/2014 on Anonymisation Techniques "
    "(WP 216), 10 April 2014"
)
ELSEWHERE = "Columns that the scenario leaves out."


@dataclass(frozen=True, slots=True)
class Asked:
    """One of the questions: what its numbers mean, the attackers, and what no number answers."""

    name: str
    asks: str
    means: tuple[str, ...]
    rows: tuple[tuple[str, Risk], ...]
    not_assessed: tuple[str, ...]
    gaps: bool  # whether some attackers have no number


@dataclass(frozen=True, slots=True)
class Kind:
    """A question, and which attackers ask it."""

    name: str
    asks: str
    means: str
    asked_by: Callable[[Question], bool]
    open: tuple[str, ...]


def _membership(question: Question) -> bool:
    return bool(question.describe()["membership"])


def _whole(question: Question) -> bool:
    target, columns = question.threat.target, question.prior.columns
    return not _membership(question) and (target is None or set(target) == set(columns))


def _part(question: Question) -> bool:
    """Also the only column: then the record and the attribute are the same."""
    if _membership(question):
        return False
    return not _whole(question) or len(question.prior.columns) == 1


KINDS = (
    Kind(
        "Singling out",
        "Can somebody's record be picked out?",
        "The attacker names the whole record of a person (all columns of the scenario), and is "
        "right. A record that many people have counts too, although it picks out none of them.",
        _whole,
        (
            "A description that fits one row only, without naming its whole record.",
            ELSEWHERE,
        ),
    ),
    Kind(
        "Linkability",
        "Can records of the same person be linked?",
        "Membership: the attacker has the whole record of a person and says whether it is in the "
        "data, which links a known record to the data. 'In the data' is how often they say so if "
        "it is; 'not in the data' is how often they say so if somebody else is there instead. "
        "There is nothing to guess blindly.",
        _membership,
        (
            "Linking with other data sets, and with releases that the scenario does not list.",
            "Linking from a part of the record.",
        ),
    ),
    Kind(
        "Inference",
        "Can a value be deduced from others?",
        "The attacker guesses a column of a person, from nothing or from the columns they know, "
        "and is right. What the other columns tell about it without this person is in the blind "
        "guess, and is not extra risk.",
        _part,
        (
            "What the release teaches about people in general, and so about those who did not "
            "take part.",
            ELSEWHERE,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Case:
    """An attacker with a risk, or why there is none."""

    name: str
    question: Question
    risk: Risk | None
    reason: str = ""


def opinion(answers: Answers) -> tuple[Asked, ...]:
    """Every question with the scenario's attackers and the standard ones, for all releases
    together. Costs one assessment per standard attacker that the scenario does not name.
    """
    scenario = answers.scenario
    named = [
        Case(name, question, risk)
        for (name, question), risk in zip(scenario.questions, answers.joint, strict=True)
    ]
    cases = [*named, *_others(scenario)]
    return tuple(_asked(kind, scenario, cases) for kind in KINDS)


def _asked(kind: Kind, scenario: Scenario, cases: list[Case]) -> Asked:
    mine = [case for case in cases if kind.asked_by(case.question)]
    rows = tuple((case.name, case.risk) for case in mine if case.risk is not None)
    means, rest = [kind.means], list(kind.open)
    if kind.asked_by is _membership and len(scenario.releases) > 1:
        means.append(
            "Two releases of one person: the numbers are for all releases together, and the "
            "attacker is taken to know which outputs are this person's."
        )
    elif kind.asked_by is _membership:
        rest.insert(0, "Linking two releases: the scenario has only one.")
    if not mine:
        known = scenario.prior.kind == "finite"
        why = "too many columns, and none is named" if known else "no columns are known"
        rest.insert(0, f"This question: {why}.")
    gaps = [f"{case.name}: {case.reason}." for case in mine if case.risk is None]
    return Asked(kind.name, kind.asks, tuple(means), rows, (*gaps, *rest), bool(gaps))


def _others(scenario: Scenario) -> list[Case]:
    """The standard attackers that the scenario does not name."""
    prior = scenario.prior
    targets = [q.threat.target for _, q in scenario.questions if _part(q)]
    columns = list(dict.fromkeys(c for target in targets for c in target or ()))
    try:
        usual = standard(prior, columns or None)
    except DpradError:  # too many columns: only who asks about the whole record
        first, *_, last = standard(prior, prior.columns[:1])
        usual = [first, last]
    present = [threat for _, threat in scenario.threats]
    missing = [(name, threat) for name, threat in usual if threat not in present]
    releases = _reading(scenario)
    cases = []
    for name, threat in steps("other attackers", missing):
        cases.append(_case(name, Question.of(prior, threat), releases))
    return cases


def _case(name: str, question: Question, releases: list[Release] | None) -> Case:
    if releases is None:
        return Case(name, question, None, "the scenario does not say what a mechanism reads")
    try:
        return Case(name, question, together(releases, question))
    except DpradError:  # its text may hold numbers of the data
        return Case(name, question, None, "could not be computed")


def _reading(scenario: Scenario) -> list[Release] | None:
    """The releases with what they read, whoever asks; None if that depends on the attacker."""
    prior = scenario.prior
    targets = {question.threat.target_columns(prior) for _, question in scenario.questions}
    releases = []
    for release in scenario.releases:
        plain = release.mechanism is not None and release.query is None and len(prior.columns) > 1
        if plain and len(targets) != 1:
            return None
        names = list(next(iter(targets))) if plain else []
        query = (names if len(names) > 1 else names[0]) if plain else release.query
        releases.append(replace(release, query=query))
    return releases
