"""simulate: run an attack against a mechanism and count (the one-sample estimator).

For a fixed attack the record that was not in the data is independent of the output, so

    X = 1{right about z} - P(o),   z ~ prior, o ~ M(z),   RAD = E[X],

P(o) the prior mass of the records that the attack would be right about. One run, one bounded
number; no second set of runs. Nothing known: P is the mass of the guess. Otherwise an independent
record z1 gives the unbiased ``1{right about z} - 1{right about z1}``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dprad.attacks.optimal import OptimalAttack
from dprad.errors import DpradError, number, shown, told, whole
from dprad.game.game import Game, play
from dprad.game.reading import Query, reads
from dprad.mechanisms.black_box import own_randomness
from dprad.model.priors import Prior
from dprad.model.results import Risk
from dprad.model.threats import Threat
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray
from dprad.numerics.intervals import betting, clopper_pearson
from dprad.runtime.progress import tell
from dprad.runtime.workers import stream

# Runs that are held at once, and the numbers they may take.
BLOCK_RUNS = 2**13
BLOCK_ENTRIES = 2**22
# Tasks for each worker.
TASKS = 4

Attack = Callable[..., Any]


def simulate(
    mechanism: Any,
    attack: Attack,
    *,
    prior: Prior,
    threat: Threat | None = None,
    query: Query | None = None,
    trials: int = 10_000,
    confidence: float = 0.95,
    rng: int = 0,
    workers: int = 1,
) -> Risk:
    """The extra risk that *this* attack makes, estimated from runs.

    Parameters
    ----------
    mechanism
        Anything with `sample`; `BlackBox` makes one of a function.
    attack
        ``attack(outputs, known)`` returns one guess an output, a value of the target (a tuple if
        there are several target columns) or None for a pass. `known` is None if the attacker knows
        nothing, else an array with one entry an output. Or what `optimal_attack` made.
    prior, threat, query
        As for `assess`.
    trials, confidence, rng, workers
        Runs, confidence of the interval, seed, processes. Workers do not change the result of an
        attack that depends on its arguments alone.

    Returns
    -------
    Risk
        Of kind "estimate"; ``rad`` and ``interval`` are those of the attack, not of the best one.

    Examples
    --------
    >>> import dprad
    >>> coin = dprad.mechanisms.GRR(epsilon=1.0, size=2)
    >>> prior = dprad.Prior.uniform(2)
    >>> risk = dprad.simulate(coin, lambda outputs, known: outputs, prior=prior)
    >>> risk.interval[0] < dprad.assess(coin, prior=prior).rad < risk.interval[1]
    True

    """
    threat = Threat() if threat is None else threat
    game = play(prior, threat)
    if not game.finite:
        raise DpradError(
            f"simulate needs a prior that is a table of records, but the prior is {prior.kind}."
        )
    if not hasattr(mechanism, "sample"):
        raise DpradError(
            f"simulate takes a mechanism, but got a {type(mechanism).__name__}. Wrap a function: "
            "mechanisms.BlackBox(function)."
        )
    if not callable(attack):
        raise DpradError(f"attack must be a function, but is a {type(attack).__name__}.")
    n = whole(trials, "trials", low=2)
    level = number(confidence, "confidence", low=0, high=1)
    seed = whole(rng, "rng", low=0, hint="It is a seed.")
    own_randomness(mechanism, whole(workers, "workers", low=1))
    assert prior.probabilities is not None and game.guesses is not None
    read = reads(mechanism, prior, threat, query)
    play_attack = player(attack, game, prior, threat)
    step = max(16, min(BLOCK_RUNS, BLOCK_ENTRIES // len(read)))

    def runs(index: int, count: int) -> tuple[BoolArray, FloatArray]:
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
        z = random.choice(len(read), size=count, p=prior.probabilities)
        outputs = mechanism.sample(read[z], random)
        guess = play_attack(outputs, z, random)
        right = hits(game, z, guess)
        if game.nothing_known:
            assert game.luck is not None
            return right, np.where(guess >= 0, game.luck[guess], 0.0)
        other = random.choice(len(read), size=count, p=prior.probabilities)
        return right, hits(game, other, play_attack(outputs, other, random)).astype(float)

    def several(blocks: list[tuple[int, int]]) -> list[tuple[BoolArray, FloatArray]]:
        return [runs(*each) for each in blocks]

    plan = list(enumerate(min(step, n - a) for a in range(0, n, step)))
    # what is sent to a process may be large, so not for every block
    many = 1 if workers == 1 else -(-len(plan) // (TASKS * workers))
    tasks = [(plan[a : a + many],) for a in range(0, len(plan), many)]
    found: list[tuple[BoolArray, FloatArray]] = []
    for some in stream(several, tasks, workers, threads=False):
        found += some
        tell("runs", min(n, step * len(found)), n)
    right, luck = (np.concatenate(part) for part in zip(*found, strict=True))
    terms = right - luck
    rad = float(terms.mean())
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
        subject=mechanism.describe() if hasattr(mechanism, "describe") else {"kind": "function"},
        threat=threat.describe(),
        prior=repr(prior),
        assumptions=(
            "The numbers are those of this attack; a better one may gain more.",
            "The prior describes the population.",
            "Records of different people are independent draws from the prior.",
        ),
    )


def interval_of(
    right: BoolArray, luck: FloatArray, game: Game, confidence: float
) -> tuple[float, float]:
    """From exact binomial intervals where all guesses are equally lucky, else for terms in [-1, 1].

    Which one is decided by the game, never by the runs. All guesses with luck c: RAD is
    Pr[right] - c Pr[not a pass], and both are proportions (a tenth of alpha for the second).
    """
    blind = game.luck
    assert blind is not None
    if game.nothing_known and float(np.ptp(blind)) <= 1e-12 * float(blind.max()):
        n, alpha, each = len(right), 1.0 - confidence, float(blind.max())
        low, high = clopper_pearson(int(right.sum()), n, 1.0 - 0.9 * alpha)
        least, most = clopper_pearson(int(np.count_nonzero(luck)), n, 1.0 - 0.1 * alpha)
        return low - each * most, high - each * least
    low, high = betting((right - luck + 1.0) / 2, confidence)
    return 2 * low - 1, 2 * high - 1


def hits(game: Game, records: IntArray, guess: IntArray) -> BoolArray:
    """Which guesses (codes, -1 for a pass) are right about which records."""
    assert game.target_of is not None and game.right is not None
    hit = np.zeros(len(records), dtype=bool)
    made = guess >= 0
    hit[made] = game.right(game.target_of[records[made]], guess[made])
    return hit


def player(
    attack: Attack, game: Game, prior: Prior, threat: Threat
) -> Callable[[Any, IntArray, np.random.Generator], IntArray]:
    """The attack on codes: ``play(outputs, records, rng)`` gives codes of guesses, -1: a pass."""
    assert game.fiber_of is not None and game.guesses is not None
    fiber_of = game.fiber_of
    if isinstance(attack, OptimalAttack) and _same(attack.game, game, attack.labels, threat, prior):
        return lambda outputs, records, rng: attack.codes(outputs, fiber_of[records], rng)
    labels = threat.known(prior)
    number = {v: i for i, v in enumerate(game.guesses.tolist())}

    def called(outputs: Any, records: IntArray, rng: np.random.Generator) -> IntArray:  # noqa: ARG001
        try:
            given = attack(outputs, None if labels is None else labels[records])
        except DpradError:
            raise
        except Exception as error:
            raise DpradError(f"attack failed: {told(error)}.") from None
        try:
            guesses = given.tolist() if isinstance(given, np.ndarray) else list(given)
            len(guesses)
        except TypeError:
            raise DpradError(
                f"attack must return a list of guesses, but returned {shown(given)}."
            ) from None
        if len(guesses) != len(records):
            raise DpradError(
                f"attack must return one guess an output, but returned {len(guesses)} for "
                f"{len(records)} outputs."
            )
        try:
            codes = [-1 if g is None else number[g] for g in guesses]
        except (KeyError, TypeError):
            strange = next(g for g in guesses if g is not None and not _known(g, number))
            raise DpradError(
                "attack must guess values of the target, or None for a pass, but guessed "
                f"{shown(strange)}. Values that never occur can be put into the prior with domain=."
            ) from None
        return np.array(codes, dtype=np.intp)

    return called


def _known(guess: Any, number: dict[Any, int]) -> bool:
    try:
        return guess in number
    except TypeError:
        return False


def _same(made: Game, game: Game, labels: Any, threat: Threat, prior: Prior) -> bool:
    """Whether an attack was made for this very game, so that its codes mean the same."""
    assert made.guesses is not None and game.guesses is not None
    own = threat.known(prior)
    if (labels is None) != (own is None):
        return False
    alike = [(made.guesses, game.guesses), (made.fiber_of, game.fiber_of)]
    if labels is not None:
        alike.append((labels, own))
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in alike)
