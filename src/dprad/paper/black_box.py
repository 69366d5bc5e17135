"""The paper's audit of a black box (Eq. ldp_audit).

For m equally likely values and exact guesses, Corollary 2 bounds RAD by a function of epsilon
alone; its inverse at the measured RAD gamma is ``ln((gamma m + 1) / (1 - gamma m/(m - 1)))``, or
undefined where that cannot be evaluated (no guess is right, or all are). It is a point estimate:
for a mechanism that meets the bound, such as GRR, it is above the truth about half of the time, so
it is not a test; `dprad.audit` is. For others (OUE, subset selection) it is below the truth.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dprad.attacks.optimal import best_attack
from dprad.errors import number, whole
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.model.priors import Prior
from dprad.numerics.random import Seed
from dprad.paper.audit import PaperAudit
from dprad.paper.runs import Attack, blocks, generators, guesser, known_size


def black_box_epsilon(rad: float, size: int) -> float | None:
    """Epsilon from a measured RAD, for `size` equally likely values (Eq. ldp_audit).

    Parameters
    ----------
    rad
        The measured RAD of exact guesses.
    size
        The number of values, m.

    Returns
    -------
    float or None
        None where the formula cannot be evaluated. A negative RAD gives a negative number.

    Examples
    --------
    >>> round(black_box_epsilon(0.25, 2), 6)     # GRR that tells the truth 3 of 4 times: ln 3
    1.098612
    >>> black_box_epsilon(0.5, 2) is None        # every guess is right
    True

    """
    m, gamma = whole(size, "size", low=2), number(rad, "rad")
    above, below = gamma * m + 1.0, 1.0 - gamma * m / (m - 1)
    # a RAD of -1/m or 1 - 1/m, as counts give it, is not exact in binary
    tiny = 1e-12
    if above <= tiny * m or below <= tiny:
        return None
    return math.log(above) - math.log(below)


def black_box_audit(
    run: Any,
    attack: Any = None,
    *,
    size: int | None = None,
    trials: int = 1_000_000,
    repetitions: int = 5,
    vectorised: bool = False,
    rng: Seed = 0,
) -> PaperAudit:
    """Estimate epsilon of anything that can be run, as the paper does for a black box.

    A point estimate, above the truth about half of the time on a tight mechanism: not a test.
    `dprad.audit` is.

    Parameters
    ----------
    run
        A mechanism, or a function ``run(record)`` or ``run(record, rng)``; records are the whole
        numbers 0 .. size-1, all equally likely.
    attack
        ``attack(output)`` returns a guess, or None. Default: for a mechanism the optimal attack;
        for a function that returns records, the output itself.
    size
        The number of values, m; for a mechanism that reads codes, its own.
    trials
        Runs in each repetition: ``trials // size`` on each value, at least one.
    repetitions
        Independent repetitions.
    vectorised
        Whether `run` and `attack` take many at once.
    rng
        Seed, `SeedSequence` or `Generator`.

    Returns
    -------
    PaperAudit
        Mean, deviation, all estimates (None where undefined) and the measured RADs.

    Examples
    --------
    >>> def survey(record, rng):
    ...     return record if rng.random() < 0.75 else 1 - record
    >>> audit = black_box_audit(survey, size=2, trials=2000)
    >>> abs(audit.epsilon - 1.0986) < 0.2, audit.undefined
    (True, 0)

    """
    m = known_size(run, size)
    guesses = guesser(run, attack, m, vectorised=vectorised, best=_optimal)
    records = np.repeat(np.arange(m), max(1, whole(trials, "trials", low=1) // m))
    rads, estimates = [], []
    for random in generators(rng, repetitions):
        hits = made = 0
        for z, guess in blocks(records, guesses, random):
            hits += int((guess == z).sum())
            made += int((guess >= 0).sum())
        # somebody else is named by chance with probability 1/m
        rads.append((hits - made / m) / len(records))
        estimates.append(black_box_epsilon(rads[-1], m))
    return PaperAudit(estimates=tuple(estimates), rads=tuple(rads))


def _optimal(mechanism: Mechanism) -> Attack:
    m = mechanism.reads_codes
    assert m is not None
    best = best_attack(mechanism, Question.of(Prior.uniform(m)))
    return lambda outputs, random: best.codes(outputs, np.zeros(_count(outputs), np.intp), random)


def _count(outputs: Any) -> int:
    return len(outputs[0]) if isinstance(outputs, tuple) else len(outputs)
