"""The paper's audit of a known mechanism, by name, for comparison.

Equally many runs on every record, the optimal attack, the point estimate of RAD pushed through the
inverse of the exact RAD (Theorem 2); five repetitions, their mean and deviation. If the estimated
RAD is above all that the mechanism can reach, the estimate is undefined. On a correct, tight
mechanism the estimate exceeds the truth about half of the time: it is not a test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprad.attacks.optimal import best_attack
from dprad.errors import DpradError, whole
from dprad.exact import Sampling
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.model.parameters import EPSILON
from dprad.model.priors import Prior
from dprad.numerics.random import Seed
from dprad.paper.runs import Estimates, blocks, generators
from dprad.verbs.assess import answer
from dprad.verbs.audit import model


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperAudit(Estimates):
    """The repeated estimates of epsilon, and the measured RAD behind each.

    Attributes
    ----------
    rads
        One per repetition.

    """

    rads: tuple[float, ...]


def paper_audit(
    mechanism: Any,
    *,
    prior: Prior,
    trials: int = 100_000,
    repetitions: int = 5,
    rng: Seed = 0,
) -> PaperAudit:
    """Estimate epsilon of a mechanism as the paper does: ``trials // size`` runs on each record.

    Examples
    --------
    >>> from dprad.mechanisms import GRR
    >>> audit = paper_audit(GRR(epsilon=2.0, size=5), prior=Prior.uniform(5), trials=20_000)
    >>> abs(audit.epsilon - 2.0) < 0.1
    True

    """
    if not isinstance(mechanism, Mechanism) or mechanism.noise is not EPSILON:
        raise DpradError(
            "the paper's audit takes a mechanism with an epsilon, such as GRR. For a function, use "
            "black_box_audit."
        )
    question = Question.of(prior)
    if not question.game.uniform:
        raise DpradError("the paper's audit takes a uniform prior, such as Prior.uniform(10).")
    game = question.table("the paper's audit")
    attack = best_attack(mechanism, question)
    read = mechanism.read(question)
    records = np.repeat(np.arange(len(read)), max(1, whole(trials, "trials", low=1) // len(read)))

    def guesses(z: Any, random: np.random.Generator) -> Any:
        outputs = mechanism.sample(read[z], random)
        return attack.codes(outputs, np.zeros(len(z), dtype=np.intp), random)

    def curve(epsilon: float) -> float:
        at: Any = mechanism
        return answer(replace(at, epsilon=epsilon), question, Sampling()).rad

    highest = min(model.HIGHEST, mechanism.highest)
    rads, estimates = [], []
    for random in generators(rng, repetitions):
        hits = made = 0
        for z, guess in blocks(records, guesses, random):
            hits += int(game.hits(z, guess).sum())
            made += int((guess >= 0).sum())
        # a guess is right by chance with probability 1/m, a pass never
        rad = (hits - made / len(read)) / len(records)
        fit = model.estimate(curve, rad, (rad, rad), highest=highest, monotone=False)
        rads.append(rad)
        estimates.append(fit.epsilon if np.isfinite(fit.epsilon) else None)
    return PaperAudit(estimates=tuple(estimates), rads=tuple(rads))
