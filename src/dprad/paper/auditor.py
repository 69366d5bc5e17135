"""LDP Auditor (Arcolezi and Gambs 2024, Revealing the true cost of locally differentially private
protocols: an auditing perspective), the baseline of the paper; written anew from its description.

Two values, 0 and m-1, and N runs on each. An attack guesses the value. TP counts the guesses "0" on
input 0, FP those on input m-1. With Clopper-Pearson ends, ``ln((TPR_low - delta) / FPR_high)``.

Each end is that of a two-sided interval of level 1 - alpha/2, so it fails with probability alpha/4
at most, and both hold with probability 1 - alpha/2. An epsilon-LDP mechanism has
``TPR <= e^epsilon FPR + delta``, so the number is a lower confidence bound on epsilon, a
certificate, for this pair of values and this attack. (The reference code seeds the runs on both
values alike; the union bound does not need them to be independent. Here they are.) It needs FP to
be seen or bounded away from 0: with FP = 0 it cannot exceed `ceiling`, 12.025 for N = 10^6. In
`dprad.audit` the records are drawn from the prior and hidden, several certificates share alpha, and
all runs count, whatever the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.mechanisms import bits as packed
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.support import SetMechanism
from dprad.numerics.arrays import IntArray
from dprad.numerics.intervals import clopper_pearson
from dprad.numerics.random import Seed
from dprad.paper.runs import Attack, Estimates, blocks, generators, guesser, known_size

RUNS, ALPHA = 1_000_000, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class LDPAudit(Estimates):
    """Repeated lower bounds on epsilon.

    Attributes
    ----------
    counts
        TP and FP of each repetition.
    confidence
        With which each bound holds by itself.

    """

    counts: tuple[tuple[int, int], ...]
    confidence: float


def lower_bound(
    tp: int, fp: int, runs: int, *, alpha: float = ALPHA, delta: float = 0.0
) -> float | None:
    """The bound from counts: TP and FP, each out of `runs`.

    Parameters
    ----------
    tp, fp
        How often the guess was the first value, on runs with the first and the second value.
    runs
        Runs on each value.
    alpha, delta
        Significance level; the delta of (epsilon, delta)-LDP.

    Returns
    -------
    float or None
        None if the lower end of TPR does not exceed delta.

    Examples
    --------
    >>> round(lower_bound(1_000_000, 0, 1_000_000), 3)
    12.025
    >>> lower_bound(0, 5, 10) is None
    True

    """
    n, level, slack = whole(runs, "runs", low=1), _level(alpha), _slack(delta)
    for value, name in ((tp, "tp"), (fp, "fp")):
        if whole(value, name, low=0) > n:
            raise DpradError(f"{name} must be at most runs, {n}, but is {value!r}.")
    low, _ = clopper_pearson(int(tp), n, 1.0 - level / 2)
    _, high = clopper_pearson(int(fp), n, 1.0 - level / 2)
    return math.log((low - slack) / high) if low > slack else None


def _level(alpha: float) -> float:
    if not 0 < number(alpha, "alpha", low=0, high=1) < 1:
        raise DpradError(f"alpha must be above 0 and below 1, but is {alpha!r}.")
    return float(alpha)


def _slack(delta: float) -> float:
    return number(delta, "delta", low=0, high=1)


def ceiling(runs: int, alpha: float = ALPHA) -> float:
    """The largest bound that so many runs on each value can give.

    Parameters
    ----------
    runs, alpha
        As for `lower_bound`.

    Returns
    -------
    float
        The bound if every guess is right.

    Examples
    --------
    >>> round(ceiling(1_000_000), 3)
    12.025

    """
    most = lower_bound(runs, 0, runs, alpha=alpha)
    assert most is not None
    return most


def ldp_auditor(
    run: Any,
    attack: Any = None,
    *,
    size: int | None = None,
    runs: int = RUNS,
    alpha: float = ALPHA,
    delta: float = 0.0,
    repetitions: int = 5,
    vectorised: bool = False,
    rng: Seed = 0,
) -> LDPAudit:
    """Bound epsilon from below, as LDP Auditor does.

    Parameters
    ----------
    run
        A mechanism, or a function ``run(record)`` or ``run(record, rng)`` of a record 0 .. size-1.
    attack
        ``attack(output)`` returns a guess. Default: for GRR, and for functions that return records,
        the output; for subset selection and unary encodings a random member of the set, or any
        value if it is empty.
    size
        The number of values; for a mechanism, its own.
    runs
        Runs on each of the two values, so twice as many in all.
    alpha, delta
        Significance level; the delta of (epsilon, delta)-LDP.
    repetitions
        Independent repetitions.
    vectorised
        Whether `run` and `attack` take many at once.
    rng
        Seed, `SeedSequence` or `Generator`.

    Returns
    -------
    LDPAudit
        Mean, deviation, and all bounds; each holds with probability 1 - alpha/2 by itself. Their
        mean and their maximum are no bounds.

    Examples
    --------
    >>> audit = ldp_auditor(GRR(epsilon=2.0, size=5), runs=20_000)
    >>> 1.8 < audit.epsilon < 2.0, audit.confidence
    (True, 0.995)

    """
    m, n = known_size(run, size), whole(runs, "runs", low=1)
    level, slack = _level(alpha), _slack(delta)
    guesses = guesser(run, attack, m, vectorised=vectorised, best=_attack)
    counts = []
    for random in generators(rng, repetitions):
        named = []
        for value in (0, m - 1):
            records = np.full(n, value, dtype=np.intp)
            named.append(sum(int((g == 0).sum()) for _, g in blocks(records, guesses, random)))
        counts.append((named[0], named[1]))
    return LDPAudit(
        estimates=tuple(lower_bound(*c, n, alpha=level, delta=slack) for c in counts),
        counts=tuple(counts),
        confidence=1.0 - level / 2,
    )


def _attack(mechanism: Mechanism) -> Attack:
    """The attack of LDP Auditor on a mechanism."""
    if isinstance(mechanism, GRR):
        return lambda outputs, _: outputs
    if not isinstance(mechanism, SetMechanism):
        raise DpradError(
            f"attack must be given for a {type(mechanism).__name__}; GRR, subset selection and "
            "unary encodings have one."
        )
    size = mechanism.reads_codes
    assert size is not None

    def member(outputs: Any, random: np.random.Generator) -> IntArray:
        guess = packed.pick(outputs, random)
        empty = guess < 0
        guess[empty] = random.integers(size, size=int(empty.sum()))
        return guess

    return member
