"""Plan: the least noise for the next releases, so that all together stay within the limit.

One factor changes the noise of all new releases, and is found by bisection on the joint risk; the
values found are rounded towards more noise and assessed again. Releases whose errors matter
unequally (weights w) get noise whose standard deviation is proportional to ``w^-p``: with p = 1/4
the weighted error is least for Gaussian noise on one value (precisions add up), with p = 1/3 where
epsilons add up, and p = 0 is equal noise. The best of the three is taken. Costs about 20 joint
assessments for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dprad.errors import (
    CannotBeToldError,
    DpradError,
    NoNoiseSufficesError,
    number,
    one_of,
    whole,
)
from dprad.exact.solution import Sampling
from dprad.mechanisms.base import Mechanism, quotient
from dprad.mechanisms.catalogue import NUMBERS
from dprad.model import explain
from dprad.model.parameters import TV
from dprad.model.results import Risk
from dprad.model.verdicts import judge, upper
from dprad.runtime.progress import steps
from dprad.show.ledger.entry import Entry
from dprad.show.ledger.standing import Asked, doubts_of, joint
from dprad.show.ranges import useful

# Exponents that are tried, the precision of a factor, how far it may go, and points of a curve.
EXPONENTS, CLOSE, FAR, POINTS = (0.25, 1 / 3, 0.0), 1.01, 1e6, 12
# Most releases that are planned at once.
MOST = 1000
# How risks are estimated during the search, and at its end, where they cannot be computed.
ROUGH, FINAL = Sampling(trials=4_000), Sampling(trials=20_000, seed=1)
_NONE = "no noise was found that keeps all releases within the accepted {:g}."


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The result of `Ledger.plan`.

    Parameters
    ----------
    like
        The release that is repeated, with the noise of now.
    parameter
        What sets its noise: epsilon, sigma or mu.
    values
        The least noise of each new release.
    attacker, risk
        The strongest attacker against all releases, old and new, and their risk.
    curve
        Pairs (number of new releases, joint risk) with the noise of now.
    affordable
        How many new releases with the noise of now can be accepted, of the computed points.
    errors
        Of each new release, how far the noise stays within in 95 of 100 cases; None if unknown.
    reach
        The same as text, in units of the range of the data if that sets the noise; or empty.
    asked
        The question.
    unasked
        Which columns are read by a release, though no attacker is after them: a sentence, or
        nothing.

    """

    like: Entry
    parameter: str
    values: tuple[float, ...]
    attacker: str
    risk: Risk
    curve: tuple[tuple[int, float], ...]
    affordable: int
    errors: tuple[float | None, ...]
    reach: tuple[str, ...]
    asked: Asked
    unasked: str = ""

    def __str__(self) -> str:
        asked, count = self.asked, len(self.values)
        assert asked.max_risk is not None
        now = self.like.numbers[self.parameter]
        like = f"like {self.like.name!r} ({self.parameter} = {explain.amount(now)})"
        lines = [f"Published again with the same noise, {like}, the joint extra risk is:"]
        lines += [f"  after {k:>3} more: {explain.above(r)}" for k, r in self.curve]
        if self.affordable == count:
            lines.append(f"All {count} stay within the accepted {asked.max_risk:g}.")
        else:
            lines.append(
                f"{self.affordable} of {count} stay within the accepted {asked.max_risk:g}."
            )
        few = list(dict.fromkeys(explain.amount(v) for v in self.values))
        what = few[0] if len(few) == 1 else ", ".join(explain.amount(v) for v in self.values)
        each = "" if count == 1 else f" for each of the {count}"
        lines.append(f"The least noise that stays within it: {self.parameter} = {what}{each}.")
        if all(self.reach):
            far = ", ".join(self.reach if len(set(self.reach)) > 1 else self.reach[:1])
            lines.append(f"The noise then stays within {far} in 95 of 100 cases.")
        whose = "most exposed person" if asked.worst else "average over people"
        lines.append(
            f"Joint extra risk then, {whose}: {explain.above(upper(self.risk, worst=asked.worst))} "
            f"({self.attacker})."
        )
        lines += [*asked.notes, *([self.unasked] if self.unasked else [])]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "like": self.like.to_dict(),
            "parameter": self.parameter,
            "values": list(self.values),
            "attacker": self.attacker,
            "risk": self.risk.to_dict(),
            "curve": [{"releases": k, "risk": r} for k, r in self.curve],
            "affordable": self.affordable,
            "errors": list(self.errors),
            "max_risk": self.asked.max_risk,
            "notes": list(self.asked.notes),
            "unasked": self.unasked,
        }


def planned(
    entries: tuple[Entry, ...],
    like: str | None,
    asked: Asked,
    releases: int,
    weights: Sequence[float] | None,
) -> Plan:
    """The plan; refused if no noise suffices, because the past alone exceeds the limit."""
    counted = [e for e in entries if e.counts]
    if not counted:
        raise DpradError("the ledger has no release to plan with: add one first.")
    known = {e.name: e for e in entries}
    base = counted[-1] if like is None else known[one_of(like, "like", known)]
    count = whole(releases, "releases", low=1)
    if count > MOST:
        raise DpradError(f"releases must be at most {MOST:,}, but is {releases!r}.")
    if asked.max_risk is None:
        raise DpradError("a plan needs an accepted risk: give max_risk (--max-risk).")
    if base.release.parameter == TV.name:
        raise DpradError("a total variation cannot be planned: use a mechanism.")
    if weights is not None and len(weights) != count:
        raise DpradError(f"weights must be {count} numbers, one for each new release.")
    matter = [number(w, "weights", low=1e-9) for w in weights or [1.0] * count]
    asked = asked.about(counted)
    doubts = doubts_of([*counted, base], asked)
    if doubts:
        raise CannotBeToldError(f"No noise can be recommended: {' '.join(doubts)}")
    now = joint(counted, asked, own=False)
    _possible(now, asked)
    most = joint([*counted, *(_at(base, 1.0, k) for k in range(count))], asked, own=False)
    # along the way only those who gain most now, or at the end; at last all of them
    led = _only(asked, {now[0][0], most[0][0]})
    curve, kept = _curve(counted, base, count, led)
    kept = min(kept, count if _kept(most, asked) else count - 1)
    tried = EXPONENTS if len(set(matter)) > 1 else EXPONENTS[-1:]
    found = []
    for p in tried:
        pace = [w**p for w in matter]
        made = _least(lambda t, pace=pace: [_at(base, t * f, k) for k, f in enumerate(pace)],  # type: ignore[misc]
                      counted, led, asked)  # fmt: skip
        found.append((sum(w * _error(e, asked) for w, e in zip(matter, made, strict=True)), made))
    new = min(found, key=lambda pair: pair[0])[1]
    attacker, risk = joint([*counted, *new], asked, FINAL)[0]  # the draws that it was judged by
    parameter = base.release.parameter
    values = tuple(float(e.numbers[parameter]) for e in new)
    errors, reach = zip(*(_reach(e, asked) for e in new), strict=True)
    left = asked.unasked((*counted, base))
    return Plan(base, parameter, values, attacker, risk, curve, kept, errors, reach, asked, left)


def _possible(now: Sequence[tuple[str, Risk]], asked: Asked) -> None:
    """Refuse to plan where no noise can help, and say why."""
    assert asked.max_risk is not None
    verdict = judge(now, asked.max_risk, worst=asked.worst)
    if verdict.outcome == "exceeded":
        raise NoNoiseSufficesError(
            f"the releases of now already exceed the accepted {asked.max_risk:g}: no noise of "
            "further ones can keep it."
        )
    if verdict.outcome == "cannot be told":
        raise CannotBeToldError(str(verdict))


def _kept(cases: Sequence[tuple[str, Risk]], asked: Asked) -> bool:
    assert asked.max_risk is not None
    return judge(cases, asked.max_risk, worst=asked.worst).outcome == "accepted"


def _curve(
    counted: list[Entry], base: Entry, count: int, asked: Asked
) -> tuple[tuple[tuple[int, float], ...], int]:
    """The joint risk after some of the new releases, with the noise of now; and after how many of
    them it is accepted.
    """
    step = max(1, math.ceil(count / POINTS))
    points = sorted({*range(0, count + 1, step), count})
    result: list[tuple[int, float]] = []
    kept, held = 0, True
    for k in steps("points of the curve", points):
        cases = joint([*counted, *(_at(base, 1.0, j) for j in range(k))], asked, ROUGH, own=False)
        most = upper(cases[0][1], worst=asked.worst)
        result.append((k, max(most, result[-1][1] if result else 0.0)))  # more never tell less
        held = held and _kept(cases, asked)
        kept = k if held else kept
    return tuple(result), kept


def _at(base: Entry, factor: float, place: int) -> Entry:
    """A new release with less noise by this factor."""
    parameter, rising = base.release.parameter, base.release.rising
    now = float(base.numbers[parameter])
    value = _digits(now * factor if rising else now / factor, rising)
    if factor == 1.0:
        value = now
    limits = NUMBERS[parameter]
    value = min(max(value, limits.low), limits.most)
    numbers = {**base.numbers, parameter: value}
    name = f"{base.name} +{place + 1}"
    return replace(base, name=name, numbers=numbers, state="planned", seen=False)


def _digits(value: float, rising: bool) -> float:
    """Three digits, towards more noise."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    count = math.floor(value / unit + 1e-9) if rising else math.ceil(value / unit - 1e-9)
    return float(f"{count * unit:.3g}")


def _only(asked: Asked, names: set[str]) -> Asked:
    """The same question, about some of the attackers."""
    return replace(asked, questions=tuple(case for case in asked.questions if case[0] in names))


def _least(
    make: Callable[[float], list[Entry]], counted: list[Entry], led: Asked, asked: Asked
) -> list[Entry]:
    """The releases with the least noise that keep the limit, first for some attackers, and at last
    for all.
    """

    def keeps(factor: float) -> bool:
        return _kept(joint([*counted, *make(factor)], led, ROUGH, own=False), led)

    low = high = 1.0
    if keeps(1.0):
        while high < FAR and keeps(high * 2):
            high *= 2
        low, high = high, high * 2
    else:
        while low > 1 / FAR and not keeps(low / 2):
            low /= 2
        low, high = low / 2, low
        if low < 1 / FAR:
            raise NoNoiseSufficesError(_NONE.format(asked.max_risk))
    while high / low > CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    # again with other draws, and more of them
    while not _kept(joint([*counted, *make(low)], asked, FINAL, own=False), asked):
        low /= CLOSE
        if low < 1 / FAR:
            raise NoNoiseSufficesError(_NONE.format(asked.max_risk))
    return make(low)


def _error(entry: Entry, asked: Asked) -> float:
    """The variance of a release, or what is proportional to it."""
    subject = entry.subject(asked.questions[0][1])
    variance = subject.variance(1000) if isinstance(subject, Mechanism) else None
    if variance is not None:
        return float(variance)
    value = float(entry.numbers[entry.release.parameter])
    square = value * value  # a power that is too large would be an OverflowError
    return quotient(1.0, square) if entry.release.rising else square


def _reach(entry: Entry, asked: Asked) -> tuple[float | None, str]:
    """How far the noise stays within, exactly, and as text without the range of the data."""
    question, release = asked.questions[0][1], entry.release
    subject = entry.subject(question)
    if not isinstance(subject, Mechanism) or release.mechanism is None:
        return None, ""
    public = asked.public or bool(entry.fixed) or release.asks(question.prior)
    found = useful(subject, release.mechanism, release.numbers, public=public)
    return subject.error(0.95), found.said[0] + (" of the data" if found.relative else "")
