"""audit: real calls, hidden records, a verdict that holds at the stated confidence.

1. The subject is called, never inspected. 2. The record of each call is drawn by us and hidden.
3. Bets on it are fixed by earlier calls only: those of a named mechanism, of the user's attack, or
learned on the way. 4. They are paid for what no mechanism with the claim could let them predict, so
a wealth above 1/alpha refutes it, whenever one stops. 5. The model-based estimate is kept apart: it
refutes nothing.

An audit is a plan (`plan.py`), a target chosen before anything counts (`target.py`), counted runs
(`run.py`), and a conclusion (`conclude.py`).
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

from dprad.game.query import Query
from dprad.game.question import Question
from dprad.mechanisms.foreign import ours
from dprad.model.audits import Audit, AuditInterrupt
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.numerics.random import Seed
from dprad.runtime.progress import Stop
from dprad.verbs.audit.conclude import INTERRUPTED, conclude
from dprad.verbs.audit.plan import NOBODY, Plan, Settings
from dprad.verbs.audit.run import count
from dprad.verbs.audit.state import State
from dprad.verbs.audit.target import Target, TooFewError, choose

__all__ = ["audit"]

# Beside the guesses of a model or an attack: the share of calls (and the most) that learned bets
# get, and their share of the error.
BESIDE, FEW, ERROR = 0.25, 5_000, 0.1


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
    absent: Any = NOBODY,
    bits: bool = False,
    rng: Seed = 0,
) -> Audit:
    """Call something many times and test whether it keeps its promise.

    Parameters
    ----------
    run
        A mechanism; a function ``run(record)`` or ``run(record, rng)`` that returns an output; or
        an object with a method `randomise`.
    claim
        The claimed guarantee. Without `absent`, it is tested in replace-one terms.
    prior
        The population from which records are drawn. With a learned attack it only lists the
        possible records: the two that are easiest to tell apart are compared.
    threat
        The attacker, as for `assess`.
    query
        What the mechanism reads from a record, as for `assess`.
    attack
        ``attack(outputs, known)``, fixed beforehand. Default: the optimal one for `model` (or for
        `run`, if that is a mechanism with a likelihood), else a learned one.
    model
        The supposed mechanism, for a model-based estimate: an object with an epsilon, or a function
        epsilon -> mechanism.
    vectorised
        Whether the function takes many records at once and returns one output per record.
    trials
        Number of calls. With more than two records, some (a tenth, but at least eight of each)
        choose which two to compare, and nothing is bet on these. With an attack or a model for a
        function, a quarter (5,000 at most) are bet on without it.
    confidence
        Confidence of the verdict, strictly between 0 and 1.
    absent
        What `run` is called with for a data set without the person. Then one record is compared
        with none, and an add-remove claim is tested as it stands.
    bits
        Also look at the lowest bits of floating-point outputs. Noise that is added in floating
        point betrays the number it was added to; sound implementations avoid that.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.
    sequential
        Check after every chunk and stop as soon as the claim is refuted; the result remains valid.
    precision
        With `sequential`: also stop when the interval of RAD is no wider than this.
    max_seconds
        Stop after this many seconds with what is known by then.
    workers
        Number of processes. It does not change the result.
    state
        A file that stores the counts; an interrupted audit resumes from it.
    progress
        Whether to report progress on standard error.
    trace
        Whether to keep what was known after 64, 128, ... runs, for `plots.plot_audit`.

    Returns
    -------
    Audit
        ``epsilon_lower`` is certified, ``epsilon_estimate`` (with a model) is not.

    Raises
    ------
    AuditInterrupt
        On Ctrl-C: a `KeyboardInterrupt` with what was known by then, ``stop.result``.

    Examples
    --------
    A coin that is truthful too often: the claimed epsilon is 1, the true one ln 9.

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
        workers=workers, progress=progress, trace=trace, bits=bits, rng=rng,
    )  # fmt: skip
    # watching a clock, or a half-finished audit, means watching the runs
    looked = settings.sequential or state is not None or max_seconds is not None
    question = Question.of(prior, threat, query)
    plan = Plan.of(run, claim, question, attack, model, vectorised, settings, absent)
    file = plan.open(state)
    target = choose(plan, file, Stop(begin, max_seconds))
    if target.session is not None or (ours(plan.subject) and not bits):
        return _counted(plan, target, file, Stop(begin, max_seconds), looked, begin)
    # it need not be what the model or the attack takes it for: some calls are bet on by
    # whatever outputs show
    most = None if max_seconds is None else (1.0 - BESIDE) * max_seconds
    few = min(FEW, int(BESIDE * settings.trials))
    by_guesses = plan.sharing(1.0 - ERROR, settings.trials - few)
    try:
        result = _counted(by_guesses, target, file, Stop(begin, most), looked, begin)
        if result.verdict == "consistent":
            learned, rest = plan.sharing(ERROR, few).learned, replace(file, part="beside ")
            result = _beside(learned, result, rest, Stop(begin, max_seconds), begin)
    except AuditInterrupt as stopped:
        partial = replace(stopped.result, confidence=1.0 - settings.alpha)
        raise AuditInterrupt(partial) from None
    return replace(result, confidence=1.0 - settings.alpha)


def _counted(
    plan: Plan, target: Target, file: State, stop: Stop, looked: bool, begin: float
) -> Audit:
    counts = count(plan, target, file, stop, begin)
    looked = looked or counts.interrupted
    result = conclude(plan, target, counts, looked, time.monotonic() - begin)
    if counts.interrupted:
        raise AuditInterrupt(result)
    made, asked = result.trials + result.studied, plan.settings.trials
    if made < asked and stop.now() and result.verdict == "consistent":
        note = f"max_seconds passed after {made:,} of {asked:,} calls"
        result = replace(result, notes=(*result.notes, note))
    return result


def _beside(plan: Plan, result: Audit, file: State, stop: Stop, begin: float) -> Audit:
    """What learned bets on some more calls say, where guesses refuted nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that few calls find little is in what they would find
            target = choose(plan, file, stop)
            found = _counted(plan, target, file, stop, True, begin)
    except AuditInterrupt as stopped:
        raise AuditInterrupt(_joined(result, stopped.result)) from None
    except KeyboardInterrupt:
        raise AuditInterrupt(_alone(result, INTERRUPTED)) from None
    except TooFewError:
        return _alone(result)
    return _joined(result, found)


def _alone(result: Audit, *notes: str) -> Audit:
    """Guesses that refuted nothing, without calls for learned bets."""
    note = "no calls were left to bet on what outputs show besides the guesses"
    return replace(result, would_find=None, notes=(*result.notes, note, *notes))


def _joined(result: Audit, found: Audit) -> Audit:
    """Guesses that refuted nothing, and learned bets on other calls."""
    calls = found.trials + found.studied
    unverified = result.unverified + found.unverified
    if found.verdict == "violated":
        note = (
            f"guesses refuted nothing in {result.trials:,} runs; learned bets on {calls:,} more did"
        )
        return replace(
            found,
            notes=(*found.notes, note),
            unverified=unverified,
            epsilon_estimate=result.epsilon_estimate,
            epsilon_interval=result.epsilon_interval,
        )
    note = f"{calls:,} more calls were bet on by what outputs show besides the guesses"
    notes = (*result.notes, note, *(n for n in found.notes if n == INTERRUPTED))
    return replace(result, would_find=found.would_find, notes=notes, unverified=unverified)
