"""Several releases about the same people, seen together by one attacker.

Mechanisms by their joint posterior, exactly where that is possible; a guarantee among them, or a
mechanism that has no likelihood, by composing guarantees, which holds for adaptive choices too. The
smaller of the two counts, where both apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dprad.data.tables import joint_codes
from dprad.errors import DpradError
from dprad.exact.products import runs
from dprad.exact.solution import Sampling
from dprad.game.game import Classes
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.composed import Composed, Repeated, compose_all
from dprad.model.guarantees import REPLACE_ONE, GaussianDP, Guarantee, PureDP
from dprad.model.results import Risk
from dprad.model.verdicts import upper
from dprad.runtime.progress import part
from dprad.verbs.assess import answer

# Fewest draws, and about how many likelihoods are computed.
FEWEST, WORK = 2_000, 1.5e7
# So many runs of a draw are no more work than one.
RUNS = 20
# An estimate with a shorter interval is not compared with what the guarantees allow.
TIGHT = 0.01

_OWN = ("worst", "worst_interval", "worst_kind", "worst_record")

Part = tuple[Any, Any]  # a mechanism or a guarantee, and a query


def composed(parts: Sequence[Part]) -> Composed | None:
    """All parts as one mechanism; None if one is a guarantee, or has no likelihood."""
    run = [subject for subject, _ in parts if isinstance(subject, Mechanism)]
    if len(run) < len(parts) or not all(m.likelihood for m in run):
        return None
    alike: dict[Any, list[Part]] = {}
    for subject, query in parts:
        alike.setdefault((id(subject), repr(query)), []).append((subject, query))
    several = [(same[0], len(same)) for same in alike.values()]
    made = [m if times == 1 else Repeated(m, times) for (m, _), times in several]
    return Composed(made, queries=[query for (_, query), _ in several])


def promise(parts: Sequence[Part]) -> Guarantee | None:
    """The composed guarantee of all parts; None if one has none."""
    return compose_all(_promises(parts))


def _promises(parts: Sequence[Part]) -> list[Guarantee | None]:
    own = {id(s): s.guarantee if isinstance(s, Mechanism) else s for s, _ in parts}
    return [own[id(s)] for s, _ in parts]


def filtered(parts: Sequence[Part]) -> GaussianDP | None:
    """What also holds if each amount of noise was chosen after earlier outputs were seen, as long
    as the limit was set beforehand: a privacy filter, which adds up mu^2. Pure epsilon-DP is
    mu-GDP with ``mu = 2 Phi^-1(e^eps / (1 + e^eps))``. None if a part is neither.
    """
    from scipy.special import expit, ndtri

    total = 0.0
    doubts: list[str] = []
    for one in _promises(parts):
        if not isinstance(one, GaussianDP | PureDP):
            return None
        mu = one.mu if isinstance(one, GaussianDP) else -2 * float(ndtri(expit(-one.epsilon)))
        total += (mu if one.neighbours == REPLACE_ONE else 2 * mu) ** 2
        doubts += one.doubts
    return GaussianDP(math.sqrt(total), neighbours=REPLACE_ONE).doubted(*doubts)


def promised(parts: Sequence[Part], question: Question) -> Risk | None:
    """What the composed guarantee allows; None if a part has none."""
    whole = promise(parts)
    if whole is None:
        return None
    risk = answer(whole, replace(question, query=None), Sampling())
    said = (
        f"The guarantees of {len(parts):,} releases were composed. This also holds if a release "
        "was chosen after earlier ones were seen."
    )
    return risk if len(parts) == 1 else replace(risk, assumptions=(said, *risk.assumptions))


def together(
    parts: Sequence[Part],
    question: Question,
    sampling: Sampling | None = None,
    *,
    own: bool = True,
) -> Risk:
    """The risk of all parts together; also of one person if `own` is asked for."""
    sampling = Sampling() if sampling is None else sampling
    if len(parts) == 1:
        return answer(parts[0][0], replace(question, query=parts[0][1]), sampling, own=own)
    seen, whole = None, composed(parts)
    question = question if whole is None or whole.costly else question.listed
    if whole is not None and not whole.costly and isinstance(question.game, Classes):
        posed = replace(question, query=None)
        read = whole.read(posed)
        size = joint_codes(whole.split(read))[1]
        draws = int(min(sampling.trials, max(FEWEST, WORK / size)))
        if draws * size * max(1.0, runs(whole, read) / RUNS) <= 2 * WORK:
            seen = answer(whole, posed, replace(sampling, trials=draws), own=own)
    if seen is not None and seen.interval[1] - seen.interval[0] <= TIGHT:
        return seen  # a bound cannot be lower by more than this
    known = [risk for risk in (seen, promised(parts, question)) if risk is not None]
    if not known:
        raise DpradError(
            "the releases cannot be added up: one has neither a likelihood nor a promise."
        )
    least = min(known, key=lambda risk: risk.interval[1])
    own_least = min(known, key=lambda risk: upper(risk, worst=True))
    return least if own_least is least else replace(least, **_own(own_least))


def _own(risk: Risk) -> dict[str, Any]:
    """What it says of the most exposed person."""
    return {name: getattr(risk, name) for name in _OWN}


def jointly(
    parts: Callable[[Question], Sequence[Part]],
    questions: Sequence[Question],
    *,
    worst: bool,
    sampling: Sampling | None = None,
    own: bool = True,
) -> list[Risk]:
    """All parts together, for every attacker: from the composed promise, and by the joint posterior
    for the largest, until that is no longer the largest.
    """
    given = [parts(question) for question in questions]
    risks: list[Risk | None] = [None]
    if len(questions) > 1:  # to know whom to ask about first
        risks = [promised(some, question) for some, question in zip(given, questions, strict=True)]
    seen: set[int] = set()
    alone: dict[str, Any] | None = None  # of one person: the same whatever the attacker knows
    while True:
        ends = [1.0 if risk is None else upper(risk, worst=worst) for risk in risks]
        k = max(range(len(ends)), key=ends.__getitem__)
        if k in seen:
            return [risk for risk in risks if risk is not None]
        apart = questions[k].threat.group is not None or any(q is None for _, q in given[k])
        asks = (own or worst) and (apart or alone is None)
        with part(f"all together, {len(seen)} of at most {len(questions)} attackers asked"):
            found = together(given[k], questions[k], sampling, own=asks)
        if alone is not None and not apart and found.worst is None:
            found = replace(found, **alone)
        elif not apart and found.worst is not None:
            alone = _own(found)
        risks[k] = found
        seen.add(k)
