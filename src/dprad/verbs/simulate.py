"""simulate: run an attack against a mechanism and count (the one-sample estimator).

For a fixed attack the record that was not in the data is independent of the output, so

    X = 1{right about z} - P(o),   z ~ prior, o ~ M(z),   RAD = E[X],

where P(o) is the prior mass of the records that the attack would be right about. Each run gives one
bounded number; no second set of runs is needed. If nothing is known, P is the mass of the guess.
Otherwise an independent record z1 gives the unbiased ``1{right about z} - 1{right about z1}``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dprad.attacks.counting import Play, counted, interval_of, player
from dprad.errors import DpradError, number, whole
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.black_box import own_randomness
from dprad.mechanisms.foreign import as_mechanism
from dprad.model.priors import Prior
from dprad.model.results import Risk
from dprad.model.threats import Threat
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.numerics.random import Seed, seed
from dprad.runtime.progress import tell
from dprad.runtime.workers import stream

# Runs held in memory at once, and the numbers they may take.
BLOCK_RUNS = 2**13
BLOCK_ENTRIES = 2**22
# Tasks per worker.
TASKS = 4


def simulate(
    mechanism: Any,
    attack: Callable[..., Any],
    *,
    prior: Prior,
    threat: Threat | None = None,
    query: Query | None = None,
    trials: int = 10_000,
    confidence: float = 0.95,
    rng: Seed = 0,
    workers: int = 1,
) -> Risk:
    """The extra risk that a given attack achieves, estimated from runs.

    Parameters
    ----------
    mechanism
        Any object with `sample`; wrap a function in `BlackBox`.
    attack
        ``attack(outputs, known)`` returns one guess per output: a value of the target (a tuple if
        there are several target columns), or None for a pass. `known` is None if the attacker knows
        nothing, else an array with one entry per output. The result of `optimal_attack` works too.
    prior
        The population, as for `assess`.
    threat
        The attacker, as for `assess`.
    query
        What the mechanism reads from a record, as for `assess`.
    trials
        Number of runs.
    confidence
        Confidence level of the interval, between 0 and 1.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.
    workers
        Number of processes. It does not change the result of an attack that depends only on its
        arguments.

    Returns
    -------
    Risk
        Of kind "estimate"; ``rad`` and ``interval`` are those of this attack, not of the best one.

    Examples
    --------
    >>> import dprad
    >>> coin = dprad.mechanisms.GRR(epsilon=1.0, size=2)
    >>> prior = dprad.Prior.uniform(2)
    >>> risk = dprad.simulate(coin, lambda outputs, known: outputs, prior=prior)
    >>> risk.interval[0] < dprad.assess(coin, prior=prior).rad < risk.interval[1]
    True

    """
    question = Question.of(prior, threat, query)
    game = question.table("simulate")
    subject = as_mechanism(mechanism, "simulate").prepared(question)
    if not callable(attack):
        raise DpradError(f"attack must be a function, but is a {type(attack).__name__}.")
    n = whole(trials, "trials", low=2)
    level = number(confidence, "confidence", low=0, high=1)
    own_randomness(subject, whole(workers, "workers", low=1))
    right, luck = _runs(subject, question, player(attack, question), n, seed(rng), workers)
    rad = float((right - luck).mean())
    return Risk(
        rad=rad,
        interval=interval_of(right, luck, game, level),
        kind="estimate",
        method=f"simulated attack, {n:,} runs",
        success_in=float(right.mean()),
        success_out=float(luck.mean()),
        rero=float(right.mean()),
        baseline=game.p_plus,
        kappa=prior.kappa,
        normalised=rad / prior.unlike if prior.unlike > 0 else 0.0,
        bounds=(),
        subject=subject.describe(),
        threat=question.describe(),
        prior=repr(prior),
        assumptions=(
            "The numbers are for this attack; a better one may gain more.",
            "The prior describes the population.",
            "Records of different people are independent draws from the prior.",
        ),
    )


def _runs(
    subject: Mechanism, question: Question, play: Play, n: int, start: int, workers: int
) -> tuple[BoolArray, FloatArray]:
    """Whether the attack was right in each of n runs, and its luck."""
    game, read = question.table("simulate"), subject.read(question)
    step = max(16, min(BLOCK_RUNS, BLOCK_ENTRIES // len(read)))

    def runs(index: int, count: int) -> tuple[BoolArray, FloatArray]:
        random = np.random.default_rng(np.random.SeedSequence(start, spawn_key=(index,)))
        z = random.choice(len(read), size=count, p=game.pi)
        outputs = subject.sample(read[z], random)

        def others() -> IntArray:
            return random.choice(len(read), size=count, p=game.pi)

        return counted(play, game, outputs, z, random, others)[1:]

    def several(blocks: list[tuple[int, int]]) -> list[tuple[BoolArray, FloatArray]]:
        return [runs(*each) for each in blocks]

    plan = list(enumerate(min(step, n - a) for a in range(0, n, step)))
    # the data sent to a process may be large, so do not send it for every block
    many = 1 if workers == 1 else -(-len(plan) // (TASKS * workers))
    tasks = [(plan[a : a + many],) for a in range(0, len(plan), many)]
    done: list[tuple[BoolArray, FloatArray]] = []
    for some in stream(several, tasks, workers, threads=False):
        done += some
        tell("runs", min(n, step * len(done)), n)
    right, luck = (np.concatenate(part) for part in zip(*done, strict=True))
    return right, luck
