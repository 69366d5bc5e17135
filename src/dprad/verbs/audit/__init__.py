"""audit: real calls, hidden records, a statement that holds at the stated confidence.

1. The subject is called, never inspected. 2. The attack is fixed before the first counted run: that
of a named mechanism, the user's own, or learned from runs that are not counted. 3. Records of the
counted runs are independent draws from the prior, hidden from the attack. 4. Certificates share
alpha. 5. The model-based estimate is told apart: it refutes nothing.

An audit is a plan (`plan.py`), a target that is chosen before anything counts (`target.py`),
counted runs (`run.py`), and a conclusion (`conclude.py`).
"""

from __future__ import annotations

import time
from typing import Any

from dprad.game.query import Query
from dprad.game.question import Question
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.model.results import Audit
from dprad.model.threats import Threat
from dprad.numerics.random import Seed
from dprad.runtime.progress import Stop
from dprad.verbs.audit.conclude import conclude
from dprad.verbs.audit.plan import Plan, Settings
from dprad.verbs.audit.run import count
from dprad.verbs.audit.target import choose

__all__ = ["audit"]


def audit(
    run: Any,
    *,
    claim: Guarantee,
    prior: Prior,
    threat: Threat | None = None,
    attack: Any = None,
    model: Any = None,
    query: Query | None = None,
    vectorised: bool = False,
    trials: int = 100_000,
    confidence: float = 0.95,
    sequential: bool = False,
    precision: float | None = None,
    max_seconds: float | None = None,
    workers: int = 1,
    state: Any = None,
    progress: bool = False,
    trace: bool = False,
    rng: Seed = 0,
) -> Audit:
    """Call something many times and say whether it keeps its promise.

    Parameters
    ----------
    run
        A mechanism, or a function ``run(record)`` or ``run(record, rng)`` that returns an output;
        or an object with a method `randomise`.
    claim
        What is promised. It is tested in replace-one terms.
    prior, threat, query
        Whose records are drawn, and what counts as success. With a learned attack the prior only
        says which records there are: the two that tell most are compared.
    attack
        ``attack(outputs, known)``, fixed beforehand. Default: the optimal one of `model` (or of
        `run`, if that is a mechanism with a likelihood), else a learned one.
    model
        The mechanism it is supposed to be, for a model-based estimate: an object with an epsilon,
        or a function epsilon -> mechanism.
    vectorised
        The function takes many records at once and returns one output per record.
    trials, confidence, rng
        Calls, confidence, seed. A quarter of the calls (at most 20,000) are for learning, if that
        is needed, and not counted.
    sequential
        Look after every chunk and stop as soon as the claim is refuted; valid all the same.
    precision
        With `sequential`: stop also when the interval of RAD is no wider than this.
    max_seconds
        Stop after so many seconds with what is known then.
    workers
        Processes. The result does not depend on it.
    state
        A file that keeps what was counted; a killed audit goes on from there.
    progress
        Report on standard error.
    trace
        Keep what was known after 64, 128, ... runs, for `plots.plot_audit`.

    Returns
    -------
    Audit
        ``epsilon_lower`` is certified, ``epsilon_estimate`` (with a model) is not.

    Examples
    --------
    A coin that tells the truth too often: claimed epsilon 1, true epsilon ln 9.

    >>> import dprad
    >>> def coin(record, rng):
    ...     return record if rng.random() < 0.9 else 1 - record
    >>> result = dprad.audit(coin, claim=dprad.PureDP(1.0, neighbours="replace-one"),
    ...                      prior=dprad.Prior.uniform(2), trials=4000)
    >>> result.verdict, 1.9 < result.epsilon_lower < 2.2
    ('violated', True)

    """
    begin = time.monotonic()
    settings = Settings.of(
        trials=trials, confidence=confidence, sequential=sequential, precision=precision,
        workers=workers, progress=progress, trace=trace, rng=rng,
    )  # fmt: skip
    question = Question.of(prior, threat, query)
    plan = Plan.of(run, claim, question, attack, model, vectorised, settings)
    file = plan.open(state)
    stop = Stop(begin, max_seconds)
    target = choose(plan, file, stop)
    # looking at a clock, or at a half-finished audit, is looking at the runs
    looked = settings.sequential or state is not None or max_seconds is not None
    counts = count(plan, target, file, stop, begin)
    return conclude(plan, target, counts, looked or counts.interrupted, time.monotonic() - begin)
