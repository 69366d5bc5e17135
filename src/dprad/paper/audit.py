"""The paper's audit, by name, for comparison (Eq. ldp_audit).

Equally many runs on every record, the optimal attack, the point estimate of RAD pushed through the
inverse of the exact RAD; five repetitions, their mean and deviation. On a correct, tight mechanism
the estimate exceeds the truth about half of the time: it is not a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.attacks.optimal import best_attack
from dprad.errors import DpradError, whole
from dprad.exact import Sampling
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.model.parameters import EPSILON
from dprad.model.priors import Prior
from dprad.verbs.assess import answer
from dprad.verbs.audit import model


@dataclass(frozen=True, slots=True)
class PaperAudit:
    """Mean and standard deviation of the repeated estimates of epsilon."""

    epsilon: float
    deviation: float
    estimates: tuple[float, ...]


def paper_audit(
    mechanism: Any,
    *,
    prior: Prior,
    trials: int = 100_000,
    repetitions: int = 5,
    rng: int = 0,
) -> PaperAudit:
    """Estimate epsilon of a mechanism as the paper does: ``trials // size`` runs on each record.

    Examples
    --------
    >>> from dprad.mechanisms import GRR
    >>> audit = paper_audit(GRR(epsilon=2.0, size=5), prior=Prior.uniform(5), trials=20_000)
    >>> abs(audit.epsilon - 2.0) < 0.1
    True

    """
    import dataclasses

    if not isinstance(mechanism, Mechanism) or mechanism.noise is not EPSILON:
        raise DpradError("the paper's audit takes a mechanism with an epsilon, such as GRR.")
    question = Question.of(prior)
    if not question.game.uniform:
        raise DpradError("the paper's audit takes a uniform prior, such as Prior.uniform(10).")
    game = question.table("the paper's audit")
    attack = best_attack(mechanism, question)
    read = mechanism.read(question)
    each = max(1, whole(trials, "trials", low=1) // len(read))
    estimates = []
    for k in range(whole(repetitions, "repetitions", low=1)):
        random = np.random.default_rng(np.random.SeedSequence(rng, spawn_key=(k,)))
        hits = 0
        step = max(1, 2**20 // len(read))
        records = np.repeat(np.arange(len(read)), each)
        for a in range(0, len(records), max(step, 1024)):
            z = records[a : a + max(step, 1024)]
            outputs = mechanism.sample(read[z], random)
            guess = attack.codes(outputs, np.zeros(len(z), dtype=np.intp), random)
            hits += int(game.hits(z, guess).sum())
        rad = hits / len(records) - 1.0 / len(read)

        def curve(epsilon: float) -> float:
            at: Any = mechanism
            return answer(dataclasses.replace(at, epsilon=epsilon), question, Sampling()).rad

        highest = min(24.0, mechanism.highest)
        fit = model.estimate(curve, rad, (rad, rad), highest=highest, monotone=False)
        estimates.append(fit.epsilon)
    every = np.array(estimates)
    return PaperAudit(float(every.mean()), float(every.std()), tuple(estimates))
