"""Verdict: is the risk accepted? Judged on the safe side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dprad.model import explain
from dprad.model.results import Risk

Outcome = Literal["accepted", "exceeded", "cannot be told"]
# Of a limit that holds for fewer attackers than should be asked about.
NARROW = "Accepted for the attackers of the scenario only"
# Of one attacker who was described by options, and what then is said.
ALONE = "Accepted for this attacker only"
ONE = "Asked about one attacker; another one may gain more."
WORDS: dict[str, str] = {
    "accepted": "Accepted",
    "exceeded": "Not accepted",
    "cannot be told": "Cannot be told",
}
# Why a prior that was counted is doubtful.
LITTLE = "it has few rows, only one value, or too many rows that are the only ones of their kind"
CODES: dict[str, int] = {"accepted": 0, "exceeded": 1, "cannot be told": 3}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The case that decides, and what follows.

    Parameters
    ----------
    outcome
        "accepted", "exceeded" or "cannot be told".
    limit
        The accepted risk.
    worst
        Whether the limit is for the most exposed person, not for the average over people.
    attacker
        The attacker who decides.
    risk
        Their risk.
    refuted
        What an audit refuted: no risk that rests on its promise holds, so nothing is accepted.

    """

    outcome: Outcome
    limit: float
    worst: bool
    attacker: str
    risk: Risk
    refuted: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """One or two words for a heading."""
        return WORDS[self.outcome]

    @property
    def code(self) -> int:
        """The exit code of a command: 0, 1, or 3 if it cannot be told."""
        return CODES[self.outcome]

    def __str__(self) -> str:
        if self.refuted:
            return broken(self.refuted)
        whose = "of the most exposed person" if self.worst else "on average over people"
        value = upper(self.risk, worst=self.worst)
        known = (self.risk.worst_kind if self.worst else self.risk.kind) == "exact"
        if self.outcome == "accepted":
            every = "" if self.limit < 1 else " That accepts everything (1% is written 1%)."
            every += apart(self.risk, worst=self.worst)
            return f"The extra risk {whose} stays within the accepted {self.limit:g}.{every}"
        if self.outcome == "exceeded":
            verb = "is" if known else "may be as high as"
            whom = f" ({self.attacker})" if self.attacker else ""
            return (
                f"The extra risk {whose} {verb} {explain.above(value)}, above the accepted "
                f"{self.limit:g}{whom}."
            )
        unsure = f"Whether the extra risk {whose} stays within the accepted {self.limit:g}"
        if self.risk.doubts:
            return f"{unsure} cannot be told: {' '.join(self.risk.doubts)}"
        return (
            f"{unsure} cannot be "
            f"told: {LITTLE}, so the table says little about the population, and what holds for "
            f"every population is {explain.above(free(self.risk, worst=self.worst))}. Choose fewer "
            "columns or coarser values, or say that the table is the whole population."
        )

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "outcome": self.outcome,
            "limit": self.limit,
            "of": "one person" if self.worst else "average",
            "attacker": self.attacker,
            "refuted": list(self.refuted),
        }


def upper(risk: Risk, *, worst: bool) -> float:
    """The upper end of what is judged."""
    interval = risk.worst_interval if worst else risk.interval
    return 1.0 if interval is None else interval[1]


def free(risk: Risk, *, worst: bool) -> float:
    """What holds for every population, where the prior is doubtful."""
    return 1.0 if risk.any_prior is None else risk.any_prior[worst]


def apart(risk: Risk, *, worst: bool) -> str:
    """What an accepted risk rests on where the prior is doubtful, as a further sentence."""
    if risk.any_prior is None:
        return ""
    return (
        " The table says little about the population; what counts is what holds for every "
        f"population, {explain.above(free(risk, worst=worst))}."
    )


def sure(risk: Risk, limit: float, *, worst: bool) -> bool:
    """Whether a risk within the limit can be relied on."""
    holds = risk.any_prior is None or free(risk, worst=worst) <= limit
    return holds and not risk.doubts


def headed(verdict: Verdict, unasked: str) -> str:
    """The word of a verdict: narrower, if what nobody asked about is said with it."""
    return narrow(unasked) if unasked and verdict.outcome == "accepted" else verdict.word


def narrow(unasked: str) -> str:
    """The word for a limit that is kept, where this is said with it."""
    return ALONE if unasked.startswith(ONE) else NARROW


def broken(refuted: Sequence[str]) -> str:
    """What follows from promises that an audit refuted."""
    return (
        f"An audit found that {', '.join(refuted)} lets out more than is promised or accepted: no "
        "risk stated here holds for it."
    )


def ranked(cases: Sequence[tuple[str, Risk]]) -> list[str]:
    """A table of attackers, their extra risk and that of the most exposed person, largest first."""
    rows = [("attacker", "average", "most exposed person")]
    for name, risk in sorted(cases, key=lambda case: -case[1].interval[1]):
        own = ""
        if risk.worst is not None and risk.worst_interval is not None:
            own = explain.bounded(risk.worst, risk.worst_interval, risk.worst_kind or "exact")
        rows.append((name, explain.number(risk), own))
    wide = [max(len(row[k]) for row in rows) for k in range(3)]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, wide, strict=True)) for row in rows)
    return [f"  {line.rstrip()}" for line in lines]


def judge(
    cases: Sequence[tuple[str, Risk]],
    limit: float,
    *,
    worst: bool = False,
    refuted: Sequence[str] = (),
) -> Verdict:
    """Judge by the largest risk. A doubtful guarantee cannot pass; of a doubtful prior, what holds
    for every prior must. Where an audit refuted a promise, nothing passes.
    """

    def outcome(risk: Risk) -> Outcome:
        if not upper(risk, worst=worst) <= limit:
            return "exceeded"
        return "accepted" if sure(risk, limit, worst=worst) else "cannot be told"

    order: tuple[Outcome, ...] = ("accepted", "cannot be told", "exceeded")
    attacker, risk = max(
        cases, key=lambda case: (order.index(outcome(case[1])), upper(case[1], worst=worst))
    )
    found = "exceeded" if refuted else outcome(risk)
    return Verdict(found, limit, worst, attacker, risk, tuple(refuted))
