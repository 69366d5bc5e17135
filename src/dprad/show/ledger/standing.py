"""Standing: what the releases of a ledger add up to, and what each of them added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dprad.errors import DpradError
from dprad.exact.solution import Sampling
from dprad.game.question import Question
from dprad.model import explain
from dprad.model.results import Risk
from dprad.model.verdicts import CODES, Verdict, headed, judge, ranked, upper
from dprad.runtime.progress import steps as stepwise
from dprad.show.ledger.entry import PERSON, Entry
from dprad.show.scenario.release import Release, unasked
from dprad.verbs.assess import answer
from dprad.verbs.together import Part, filtered, jointly, promised, together

# Most releases whose addition is computed, the last ones.
STEPS = 12
# Most releases that a sentence names.
NAMED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Attackers by name, each with a prepared question; the limit; what is counted; why no answer
    can be relied on, if so; what else a reader has to know; the releases of the scenario; and
    whether the range of the values is known anyway.
    """

    questions: tuple[tuple[str, Question], ...]
    max_risk: float | None
    worst: bool = False
    adaptive: bool = False
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    described: tuple[Release, ...] = ()
    public: bool = False

    def unasked(self, entries: Sequence[Entry]) -> str:
        """What these read, though no attacker is after it: sentences, or nothing."""
        threats = [question.threat for _, question in self.questions]
        return unasked([e.release for e in entries], self.questions[0][1].prior, threats)

    def about(self, entries: Sequence[Entry]) -> Asked:
        """With the doubt about entries that the scenario describes otherwise, if there are any."""
        return replace(self, doubts=(*self.doubts, *otherwise(entries, self.described)))


def otherwise(entries: Sequence[Entry], described: Sequence[Release]) -> tuple[str, ...]:
    """Which entries the scenario describes otherwise, in a sentence."""
    said = {release.name: release for release in described}
    other = [repr(e.name) for e in entries if e.name in said and not e.matches(said[e.name])]
    if not other:
        return ()
    left = len(other) - NAMED
    what = explain.listed([*other[:NAMED], f"{left:,} more"] if left > 0 else other)
    return (
        f"The scenario describes {what} otherwise than the ledger, so it is not known which was "
        "published. What is not as it was entered needs a name of its own.",
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One release in time: the joint risk up to it, the strongest attacker's."""

    entry: Entry
    risk: float
    added: float


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """The result of `Ledger.status`.

    Parameters
    ----------
    entries
        All releases of the ledger; `counted` are those that count.
    cases
        Pairs (attacker, risk of everything that counts, together), the largest first.
    steps
        For the last releases: the risk for the strongest attacker up to each, and what it added.
    filtered
        A risk that holds even if the noise of each release was chosen after earlier outputs were
        seen, under a limit set beforehand; None if releases are not Gaussian or pure.
    verdict
        Whether the limit is kept; None without one.
    asked
        The question.

    """

    entries: tuple[Entry, ...]
    cases: tuple[tuple[str, Risk], ...]
    steps: tuple[Step, ...]
    filtered: Risk | None
    asked: Asked

    @property
    def counted(self) -> tuple[Entry, ...]:
        """Releases that add to the risk."""
        return tuple(entry for entry in self.entries if entry.counts)

    @property
    def strongest(self) -> tuple[str, Risk]:
        """The attacker who gains most, and what."""
        return self.cases[0]

    @property
    def verdict(self) -> Verdict | None:
        """Whether the limit is kept; None without one."""
        if self.asked.max_risk is None or not self.cases:
            return None
        return judge(self.cases, self.asked.max_risk, worst=self.asked.worst)

    @property
    def unasked(self) -> str:
        """Which columns are read by what counts, though no attacker is after them: a sentence, or
        nothing.
        """
        return self.asked.unasked(self.counted)

    @property
    def word(self) -> str:
        """The word of the verdict, if there is one."""
        return "" if self.verdict is None else headed(self.verdict, self.unasked)

    @property
    def code(self) -> int:
        """The exit code of a command."""
        if self.verdict is not None:
            return self.verdict.code
        return CODES["cannot be told"] if self.asked.doubts else 0

    @property
    def covered(self) -> float:
        """At most this share of the population is in any release."""
        return min(1.0, sum(entry.share for entry in self.counted))

    def notes(self) -> list[str]:
        """What a reader has to know about the numbers."""
        lines = [
            *self.asked.notes,
            "The numbers are for somebody who is in all of these releases; fewer never tell more.",
        ]
        known = {e.name for e in self.entries}
        missing = [r.name for r in self.asked.described if r.name not in known]
        if missing:
            lines.append(
                f"The scenario also describes {explain.listed([repr(n) for n in missing])}, not "
                "in the ledger: what is not in the ledger does not count here."
            )
        if self.covered < 1.0:
            everybody = self.covered * self.strongest[1].interval[1]
            lines.append(
                f"At most {100 * self.covered:.3g}% of the population are in any of them, so the "
                f"average over the population is at most {explain.above(everybody)}, if those "
                "covered are a random part of it."
            )
        smaller = [e for e in self.counted if e.unit != PERSON and not e.unclear]
        if smaller:
            lines.append(
                f"{len(smaller):,} of them hide less than a person ({smaller[0].name}: one "
                f"{smaller[0].unit}). The numbers are for somebody with as many as were stated; "
                "for more they are higher."
            )
        gone = [e.name for e in self.counted if e.state == "withdrawn"]
        if gone:
            lines.append(f"{len(gone)} withdrawn after publication still count: they were seen.")
        kinds = {risk.kind for _, risk in self.cases}
        lines.append(
            "Guarantees were added up: this holds even if a release was chosen after earlier ones "
            "were seen."
            if self.asked.adaptive or kinds == {"upper-bound"}
            else "This holds for releases that were fixed beforehand; if you choose releases after "
            "seeing earlier ones, ask with adaptive (--adaptive)."
        )
        return lines

    def text(self, new: str = "") -> str:
        """All together, what each release added (`new` is marked), and what follows."""
        lines = []
        if self.cases:
            lines += ["", "All together, the extra risk of taking part, by attacker:"]
            lines += ranked(self.cases)
            lines += ["", f"What each release added ({self.strongest[0]}):"]
            wide = max(len(step.entry.name) for step in self.steps)
            for step in self.steps:
                here = "  <- this one" if step.entry.name == new else ""
                lines.append(
                    f"  {step.entry.date}  {step.entry.name.ljust(wide)}  {step.entry.state:<9}  "
                    f"{'+' if step.added >= 0 else '-'}{explain.above(abs(step.added))} to "
                    f"{explain.above(step.risk)}{here}"
                )
            lines += ["", *self.notes()]
            if self.verdict is None or self.verdict.outcome == "exceeded":
                lines += explain.doubtful(self.strongest[1].doubts)
            if self.filtered is not None:
                lines.append(
                    "If you also choose the noise of each release after seeing earlier outputs, "
                    f"count with {explain.above(upper(self.filtered, worst=self.asked.worst))}."
                )
        else:
            lines += explain.doubtful(self.asked.doubts)
        if self.verdict is not None:
            lines += ["", f"{self.word}. {self.verdict}"]
        lines += ["", self.unasked] if self.unasked else []
        return "\n".join(lines)

    def __str__(self) -> str:
        return (
            f"{len(self.entries):,} releases, of which {len(self.counted):,} count.\n{self.text()}"
        )

    def __repr__(self) -> str:
        return f"Standing({len(self.entries):,} releases)"

    def to_dict(self) -> dict[str, Any]:
        """The standing as plain data."""
        return {
            "releases": [entry.to_dict() | {"counts": entry.counts} for entry in self.entries],
            "attackers": [{"attacker": name, "risk": r.to_dict()} for name, r in self.cases],
            "steps": [{"name": s.entry.name, "risk": s.risk, "added": s.added} for s in self.steps],
            "max_risk": self.asked.max_risk,
            "worst": self.asked.worst,
            "adaptive": self.asked.adaptive,
            "filtered": None if self.filtered is None else self.filtered.rad,
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
            "unasked": self.unasked,
            "covered": self.covered,
            "notes": self.notes() if self.cases else [],
        }


def parts_of(entries: Sequence[Entry], question: Question) -> list[Part]:
    """Subjects and queries; equal releases share one subject."""
    made: dict[str, Part] = {}
    parts: list[Part] = []
    for entry in entries:
        key = entry.same
        if key not in made:
            made[key] = entry.part(question)
        parts.append(made[key])
    return parts


def doubts_of(entries: Sequence[Entry], asked: Asked) -> tuple[str, ...]:
    """Why these releases together cannot be accepted, whatever the number."""
    doubts = [*asked.doubts, *(doubt for entry in entries for doubt in entry.doubts)]
    small = [entry for entry in entries if entry.unclear]
    if small:
        what = f"{len(small):,} of the releases hide" if len(small) > 1 else "One release hides"
        doubts.append(
            f"{what} less than a person ({small[0].name}: one {small[0].unit}), and how many of "
            "these one person has is not said (people, --people)."
        )
    return tuple(dict.fromkeys(doubts))


def joint(
    entries: Sequence[Entry], asked: Asked, sampling: Sampling | None = None, *, own: bool = True
) -> tuple[tuple[str, Risk], ...]:
    """The risk of these releases together, for every attacker; the largest first."""
    if not entries:
        return ()
    names, questions = zip(*asked.questions, strict=True)
    if asked.adaptive:
        found = [promised(parts_of(entries, q), q) for q in questions]
        if any(risk is None for risk in found):
            raise DpradError("a release has no guarantee, so it cannot be counted adaptively.")
        risks = [risk for risk in found if risk is not None]
    else:
        risks = jointly(
            lambda q: parts_of(entries, q), questions, worst=asked.worst, sampling=sampling, own=own
        )
    doubts = doubts_of(entries, asked)
    cases = [(name, _doubted(risk, doubts)) for name, risk in zip(names, risks, strict=True)]
    return tuple(sorted(cases, key=lambda case: -upper(case[1], worst=asked.worst)))


def _doubted(risk: Risk, doubts: tuple[str, ...]) -> Risk:
    """A risk with further doubts, each of them once."""
    every = tuple(dict.fromkeys([*risk.doubts, *doubts]))
    return risk if every == risk.doubts else replace(risk, doubts=every)


def _one(parts: Sequence[Part], question: Question, asked: Asked) -> Risk:
    """The same for one attacker."""
    if not asked.adaptive:
        return together(parts, question, own=asked.worst)
    risk = promised(parts, question)
    assert risk is not None  # joint would have refused
    return risk


def standing_of(entries: tuple[Entry, ...], asked: Asked) -> Standing:
    """What counts, together, and what each of the last releases added."""
    counted = sorted((e for e in entries if e.counts), key=lambda e: e.date)
    asked = asked.about(counted)
    cases = joint(counted, asked)
    if not cases:
        return Standing(entries, (), (), None, asked)
    question = dict(asked.questions)[cases[0][0]]
    parts = parts_of(counted, question)
    first = max(0, len(counted) - STEPS)
    before = 0.0 if first == 0 else upper(_one(parts[:first], question, asked), worst=asked.worst)
    steps = []
    for k in stepwise("releases", range(first, len(counted))):
        last = k + 1 == len(counted)
        risk = cases[0][1] if last else _one(parts[: k + 1], question, asked)
        # more releases never tell less, though an estimate may say so
        now = max(before, upper(risk, worst=asked.worst))
        steps.append(Step(counted[k], now, now - before))
        before = now
    return Standing(entries, cases, tuple(steps), _filtered(counted, asked), asked)


def _filtered(entries: Sequence[Entry], asked: Asked) -> Risk | None:
    """The largest of all attackers; of a single release there is nothing to filter."""
    risks = []
    for _, question in asked.questions:
        spent = filtered(parts_of(entries, question)) if len(entries) > 1 else None
        if spent is None:
            return None
        risks.append(answer(spent, replace(question, query=None), Sampling()))
    return max(risks, key=lambda risk: upper(risk, worst=asked.worst))
