"""Several releases about the same people, seen together by one attacker.

Mechanisms by their joint posterior, exactly where that is possible; a guarantee among them, or a
mechanism that has no likelihood, by composing guarantees, which holds for adaptive choices too. The
smaller of the two counts, where both apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dprad.data.tables import joint_codes
from dprad.errors import DpradError
from dprad.exact.solution import Sampling
from dprad.game.game import Classes
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.composed import Composed, compose_all
from dprad.model.guarantees import Guarantee
from dprad.model.results import Risk
from dprad.verbs.assess import answer

# Fewest draws, and about how many likelihoods are computed.
FEWEST, WORK = 2_000, 1.5e7

Part = tuple[Any, Any]  # a mechanism or a guarantee, and a query


def composed(parts: Sequence[Part]) -> Composed | None:
    """All parts as one mechanism; None if one is a guarantee, or has no likelihood."""
    run = [subject for subject, _ in parts if isinstance(subject, Mechanism)]
    if len(run) < len(parts) or not all(m.likelihood for m in run):
        return None
    return Composed(run, queries=[query for _, query in parts])


def promise(parts: Sequence[Part]) -> Guarantee | None:
    """The composed guarantee of all parts; None if one has none."""
    return compose_all([s.guarantee if isinstance(s, Mechanism) else s for s, _ in parts])


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


def together(parts: Sequence[Part], question: Question, sampling: Sampling | None = None) -> Risk:
    """The risk of all parts together."""
    sampling = Sampling() if sampling is None else sampling
    if len(parts) == 1:
        return answer(parts[0][0], replace(question, query=parts[0][1]), sampling)
    found, whole = promised(parts, question), composed(parts)
    if whole is not None and not whole.costly and isinstance(question.game, Classes):
        posed = replace(question, query=None)
        size = joint_codes(whole.split(whole.read(posed)))[1]
        draws = int(min(sampling.trials, max(FEWEST, WORK / size)))
        if draws * size <= 2 * WORK:
            seen = answer(whole, posed, replace(sampling, trials=draws))
            if found is None or seen.interval[1] < found.interval[1]:
                found = seen
    if found is None:
        raise DpradError(
            "the releases cannot be added up: one has neither a likelihood nor a promise."
        )
    return found
