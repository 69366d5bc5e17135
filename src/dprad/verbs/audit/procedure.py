"""audit: real calls, hidden records, a statement that holds at the stated confidence.

1. The subject is called, never inspected. 2. The attack is fixed before the first counted run: that
of a named mechanism, the user's own, or learned from runs that are not counted. 3. Records of the
counted runs are independent draws from the prior, hidden from the attack. 4. Certificates share
alpha. 5. The model-based estimate is told apart: it refutes nothing.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np

from dprad import bounds
from dprad.attacks.optimal import OptimalAttack, optimal_attack
from dprad.errors import DpradError, number, record, whole
from dprad.game.game import Game, play
from dprad.game.reading import Query, reads
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.black_box import BlackBox, own_randomness
from dprad.model.guarantees import Guarantee, PureDP
from dprad.model.priors import Prior
from dprad.model.results import Audit
from dprad.model.threats import Threat
from dprad.numerics.arrays import Column
from dprad.runtime.progress import Meter, Stop
from dprad.runtime.workers import stream
from dprad.verbs.audit import fingerprint, independence, learning
from dprad.verbs.audit.certificates import HIGHEST
from dprad.verbs.audit.outputs import translated
from dprad.verbs.audit.state import State, decode, encode
from dprad.verbs.audit.tally import Tally
from dprad.verbs.audit.trials import (
    AGAIN,
    CHANGED,
    PATIENCE,
    REMEMBERED,
    Job,
    Plan,
    run_all,
    sample,
)
from dprad.verbs.audit.verdict import Hypothesis, conclude, enough
from dprad.verbs.simulate import player

# Delta at which a claim that is a whole curve is tested.
SMALL = 1e-6
# Share of the runs that a learned attack may study, and the most of them.
STUDY, MOST_STUDIED = 0.25, 20_000


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
    rng: int = 0,
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
        The function takes many records at once and returns one output a record.
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
    if not isinstance(claim, Guarantee):
        raise DpradError(
            "claim must be a guarantee, such as dprad.PureDP(1.0, neighbours='replace-one'), but "
            f"is {claim!r}."
        )
    threat = Threat() if threat is None else threat
    game = play(prior, threat)
    if not game.finite:
        raise DpradError(
            f"audit needs a prior that is a table of records, but the prior is {prior.kind}."
        )
    subject = _subject(run, vectorised)
    epsilon, delta = _point(claim)
    alpha = 1.0 - number(confidence, "confidence", low=0, high=1)
    if not 0 < alpha < 1:
        raise DpradError(f"confidence must lie strictly between 0 and 1, but is {confidence!r}.")
    n = whole(trials, "trials", low=10)
    seed = whole(rng, "rng", low=0, hint="It is a seed.")
    count = whole(workers, "workers", low=1)
    if precision is not None:
        precision = number(precision, "precision", low=0)
    read = reads(subject, prior, threat, query)
    assert prior.probabilities is not None and prior.support is not None
    own_randomness(subject, count)
    # looking at a clock, or at a half-finished audit, is looking at the runs
    sequential_test = sequential or state is not None or max_seconds is not None
    told = {"attack": attack, "model": model, "query": query, "vectorised": vectorised}
    file = State.open(
        state,
        fingerprint.key(
            subject, claim, prior, threat, game, read, n, confidence, sequential, seed, told
        ),
    )
    if file.lines and isinstance(subject, BlackBox) and not subject.takes_rng:
        raise DpradError(
            "this audit cannot be continued: the function has its own random numbers, and might "
            "repeat those of the first session. Let it take rng: run(record, rng)."
        )
    stop = Stop(begin, max_seconds)
    notes: list[str] = []
    if isinstance(subject, BlackBox) and not subject.takes_rng:
        notes.append(
            "this audit cannot be replayed: the function has random numbers of its own. Let it "
            "take rng, run(record, rng), and the same seed gives the same result"
        )
    if isinstance(subject, BlackBox) and subject.vectorised:
        independence.check(subject, read[prior.probabilities > 0], seed)
    exact = isinstance(run, Mechanism) and hasattr(run, "log_likelihood")
    model_at = model if model is not None else run if exact and hasattr(run, "epsilon") else None
    studied = 0

    if attack is None and (model is not None or hasattr(subject, "log_likelihood")):
        named = _named(model_at, epsilon) if model is not None else subject
        attack = optimal_attack(named, prior=prior, threat=threat, query=query)
    if attack is None:
        learned, studied = _learn(subject, prior, read, n, delta, alpha, seed, count, file, stop)
        a, b = learned.pair
        notes.append(
            f"compared record {record(_label(prior, a), a + 1)} and record "
            f"{record(_label(prior, b), b + 1)} of {prior.size:,}, in order, found by "
            f"{studied:,} calls that are not counted"
        )
        prior, threat = Prior.uniform(2), Threat()
        game = play(prior, threat)
        labels: Column = np.array([None, None], dtype=object)
        labels[:] = [_label_of(read, a), _label_of(read, b)]
        read = read[[a, b]]
        chosen: Any = learned
        model_at = None
    else:
        assert prior.support is not None
        labels = prior.support
        chosen = player(attack, game, prior, threat)
        if isinstance(subject, BlackBox) and isinstance(attack, OptimalAttack):
            chosen = translated(chosen, attack.mechanism, prior)
    counted = n - studied
    assert prior.probabilities is not None
    # a claim that is a whole curve limits the extra risk beyond any one of its points
    limit = bounds.least(bounds.evaluate(claim, game), "rad").value
    assert limit is not None
    test = Hypothesis(game, epsilon, delta, limit, alpha)
    _warn_if_hopeless(game, epsilon, delta, alpha, counted, sequential)

    job = Job(subject, read, labels, prior.probabilities, game, chosen, seed)
    tally = Tally()
    seen: list[Tally] = []
    plan = Plan(counted)
    done = {i: Tally.checked(p, plan, i) for i, p in file.done("runs").items()}
    firsts = {i: file.firsts["runs", i] for i in done}
    if file.done("refused") or not job.replay(plan, done, firsts):
        file.put("refused", 0, None, "")  # and it stays so
        raise DpradError(CHANGED)
    stored = {i: (part, firsts[i]) for i, part in done.items()}
    meter = Meter(progress, counted, begin)
    chunks = run_all(job.chunk, plan, stored, count, not isinstance(subject, BlackBox))
    try:
        for i, (part, first) in chunks:
            tally = tally + part
            file.put("runs", i, part.to_plain(), first)
            meter.show(tally.runs)
            if trace and (not seen or tally.runs >= 2 * seen[-1].runs):
                seen.append(tally)
            if i not in done and stop.now():
                break
            if sequential and enough(tally, test, precision):
                break
    except KeyboardInterrupt:
        notes.append("interrupted: this is what was known by then")
        sequential_test = True
    finally:
        chunks.close()
        meter.close()
    if tally.runs == 0:
        raise DpradError("the audit was stopped before the first runs were counted.")
    return conclude(
        tally, test, claim, sequential_test, model_at, prior, threat, query, notes, studied,
        seen, time.monotonic() - begin,
    )  # fmt: skip


# -- pieces --------------------------------------------------------------------------------------
def _subject(run: Any, vectorised: bool) -> Any:
    if isinstance(run, Mechanism) or hasattr(run, "sample"):
        return run
    if hasattr(run, "randomise"):
        return BlackBox(run.randomise, vectorised=False)
    return BlackBox(run, vectorised=vectorised)


def _point(claim: Guarantee) -> tuple[float, float]:
    """An (epsilon, delta) for replaced records that the claim implies."""
    promise = claim.replace_one()
    if promise.point is not None:
        return promise.point
    if isinstance(claim, PureDP):
        return 2 * claim.epsilon, 0.0
    return promise.epsilon_at(SMALL), SMALL


def _named(family: Any, epsilon: float) -> Any:
    """The mechanism it is supposed to be, at the epsilon that is claimed."""
    if callable(family) and not hasattr(family, "sample"):
        return family(min(epsilon, 20.0))
    return family


def _learn(
    subject: Any,
    prior: Prior,
    read: Column,
    trials: int,
    delta: float,
    alpha: float,
    seed: int,
    workers: int,
    file: State,
    stop: Stop,
) -> tuple[learning.Learned, int]:
    """Study some records; what was seen is kept in the state file."""
    assert prior.probabilities is not None and prior.support is not None
    chance = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    places = learning.candidates(prior.probabilities, chance)
    budget = int(min(STUDY * trials, MOST_STUDIED))
    each = max(4, budget // max(len(places), 1))
    support = prior.support

    def study(index: int, size: int, first: int) -> list[Any]:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, index)))
        place = int(places[index])
        records = np.repeat(read[[place]], size, axis=0)
        outputs = sample(subject, records, np.repeat(support[[place]], size), rng, first)
        return outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)

    done = _studied(file, len(places), each)
    single = isinstance(subject, BlackBox) and not subject.vectorised
    some = min(each, REMEMBERED) if single else each
    for i, outputs in list(done.items())[:AGAIN]:
        begin = time.monotonic()
        same = fingerprint.digest(study(i, some, 1)) == fingerprint.digest(outputs[:some])
        if same and some < each and (time.monotonic() - begin) * each / some <= PATIENCE:
            same = fingerprint.digest(study(i, each, 1)) == fingerprint.digest(outputs)
        if file.done("refused") or not same:
            file.put("refused", 0, None, "")  # and it stays so
            raise DpradError(CHANGED)
    found: dict[int, Any] = {}
    todo = [(i, each, i * each + 1) for i in range(len(places)) if i not in done]
    fresh = stream(study, todo, workers, threads=False)
    for i in range(len(places)):
        outputs = done[i] if i in done else next(fresh)
        if file.journal is not None:
            file.put("study", i, [encode(o) for o in outputs], "")
        found[int(places[i])] = outputs
        if stop.now():
            fresh.close()
            raise DpradError("max_seconds passed while the attack was still being learnt.")
    counted = trials - each * len(places)
    if counted < 10:
        raise DpradError(f"trials must leave runs to count: give more than {trials:,}.")
    chosen = learning.learn(found, trials=counted, delta=delta, alpha=alpha, seed=seed)
    return chosen, each * len(places)


def _studied(file: State, places: int, each: int) -> dict[int, list[Any]]:
    """Outputs of the records that were studied before, from a file that may have been forged."""
    try:
        found = {i: decode(outputs) for i, outputs in file.done("study").items()}
        if all(0 <= i < places and len(found[i]) == each for i in found):
            return found
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise DpradError("the state file is damaged: what was studied cannot be read.")


def _label(prior: Prior, place: int) -> Any:
    assert prior.support is not None
    value = prior.support[place]
    return value.item() if isinstance(value, np.generic) else value


def _label_of(read: Column, place: int) -> Any:
    value = read[place]
    return value.item() if isinstance(value, np.generic) else value


def _warn_if_hopeless(
    game: Game, epsilon: float, delta: float, alpha: float, runs: int, sequential: bool
) -> None:
    """Say beforehand if not even perfect guesses could refute the claim."""
    if delta > 0 or not game.nothing_known or game.luck is None:
        return
    chance = float(game.luck[game.luck > 0].min(initial=1.0))
    if not 0 < chance < 1 or epsilon > HIGHEST:
        return
    odds = math.log(chance / (1.0 - chance)) + epsilon
    cap = 1.0 / (1.0 + math.exp(-min(odds, 700.0)))
    needed = math.log(0.9 * alpha) / math.log(cap) if cap < 1 else math.inf
    if runs < needed:
        more = "some more" if sequential else f"{math.ceil(needed):,}" if needed < 1e15 else "no"
        warnings.warn(
            f"{runs:,} runs cannot refute epsilon = {epsilon:g}, not even if every guess is right; "
            f"that takes {more} runs at this confidence.",
            stacklevel=3,
        )
