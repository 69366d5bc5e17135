"""The attack that gains most from the person taking part (the paper's Algorithm 1).

Given output o and knowledge x it names the guess g with the largest
``sum_{z in S(g) & fiber x} pi_z (p(o|z) - pbar(o))``, ties at random, and passes if that is
negative. Where the likelihood takes two values, inside and outside a support, that is the likeliest
record of the fiber inside; otherwise it comes from the posterior.

O(m + members of the success relation) per output; O(size of the fiber) with supports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.exact.posterior import expanded
from dprad.exact.posterior import part as part_of
from dprad.game.game import Table
from dprad.game.query import Query
from dprad.game.question import Question
from dprad.game.sets import Singletons, starts
from dprad.mechanisms import bits as packed
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.foreign import as_mechanism
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.mechanisms.hashing import Hashing
from dprad.mechanisms.support import SetMechanism
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.numerics.arrays import BoolArray, Column, FloatArray, IntArray
from dprad.numerics.random import Seed, seed
from dprad.runtime import memory

# Likelihoods held in memory at once.
BLOCK_ENTRIES = 2**20
# Gains that differ by less than this share of an output's probability are ties.
TIE = 1e-12


def optimal_attack(
    mechanism: Any,
    *,
    prior: Prior,
    threat: Threat | None = None,
    query: Query | None = None,
) -> OptimalAttack:
    """The attack with the largest extra risk, for a mechanism with a likelihood.

    Parameters
    ----------
    mechanism
        A mechanism with a likelihood.
    prior
        The population, as for `assess`.
    threat
        The attacker, as for `assess`.
    query
        What the mechanism reads from a record, as for `assess`.

    Returns
    -------
    OptimalAttack
        Call it as ``guesses = attack(outputs, known)``.

    Examples
    --------
    >>> import dprad
    >>> mechanism = dprad.mechanisms.GRR(epsilon=1.0, size=3)
    >>> attack = dprad.optimal_attack(mechanism, prior=dprad.Prior.uniform(3))
    >>> attack([2, 0]).tolist()
    [2, 0]

    """
    question = Question.of(prior, threat, query)
    return best_attack(as_mechanism(mechanism, "optimal_attack"), question)


def best_attack(mechanism: Mechanism, question: Question) -> OptimalAttack:
    """The same for a prepared question."""
    game, mechanism = question.table("optimal_attack"), mechanism.prepared(question)
    if not mechanism.likelihood:
        kind = mechanism.describe()["kind"]
        raise DpradError(
            f"optimal_attack needs a mechanism with a likelihood, but a {kind} has none."
        )
    read = mechanism.read(question)
    return OptimalAttack(mechanism, game, read, question.labels, _one_value_per_class(game, read))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OptimalAttack:
    """The result of `optimal_attack`.

    `read` and `labels` are what is read from and known about each record. `single` is what each
    class reads, if that is one value and each success set is one class.
    """

    mechanism: Mechanism
    game: Table
    read: Column
    labels: Column | None
    single: Column | None

    def __call__(self, outputs: Any, known: Any = None, rng: Seed = 0) -> Any:
        """One guess per output; None is a pass.

        Parameters
        ----------
        outputs
            Outputs of the mechanism.
        known
            One entry per output: the known value (a tuple if several columns are known), the record
            itself if everything is known, the label if `knows` is a function. Leave it out if
            nothing is known.
        rng
            Seed or generator that breaks ties.

        Returns
        -------
        ndarray
            Guesses, values of the target.

        """
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(seed(rng))
        outputs = self.mechanism.checked(outputs)
        codes = self.codes(outputs, self._fibers(known, _length(outputs)), rng)
        if self.game.spare is not None:
            # who must guess names somebody impossible instead of passing
            fiber = self._fibers(known, len(codes))
            codes = np.where(codes < 0, self.game.spare[fiber], codes)
        guesses = np.empty(len(codes), dtype=object)
        values = self.game.guesses.tolist()
        guesses[:] = [values[c] if c >= 0 else None for c in codes.tolist()]
        return guesses

    def _fibers(self, known: Any, count: int) -> IntArray:
        fiber_of = self.game.fiber_of
        if self.labels is None:
            if known is not None:
                raise DpradError("known must be left out: this attacker knows nothing.")
            return np.zeros(count, dtype=np.intp)
        shape = np.asarray(known).shape[:1] if known is not None else ()
        if shape != (count,):
            raise DpradError(
                f"known must have one entry for each of the {count} outputs, "
                f"but is {'missing' if known is None else 'of a different length'}."
            )
        number = dict(zip(self.labels.tolist(), fiber_of.tolist(), strict=True))
        given = known.tolist() if isinstance(known, np.ndarray) else list(known)
        try:
            return np.array([number[k] for k in given], dtype=np.intp)
        except (KeyError, TypeError):
            raise DpradError(
                "known must hold what is known about records of the prior, but holds other values."
            ) from None

    def codes(self, outputs: Any, fiber: IntArray, rng: np.random.Generator) -> IntArray:
        """Codes of the guesses, -1 for a pass; `fiber` is the code of what is known, -1 for
        unknown people.
        """
        game, count = self.game, len(fiber)
        sets = game.sets
        guess = np.full(count, -1, dtype=np.intp)
        if not len(sets.mass):
            return guess
        values = self.single if game.forced is None else None
        quick = None if values is None else _quick(self.mechanism, game, values, outputs, rng)
        if quick is not None:
            return quick(fiber)
        begin = starts(sets.fiber)
        ends = np.r_[begin[1:], len(sets.fiber)]
        bounds = dict(zip(sets.fiber[begin].tolist(), zip(begin, ends, strict=True), strict=True))
        inside = inside_of(self.mechanism) if values is not None else None
        width = max(len(self.game.pi), len(sets.mass))
        step = max(1, memory.block(BLOCK_ENTRIES) // width)
        lottery = rng.random(count)
        for a in range(0, count, step):
            part = slice(a, min(a + step, count))
            block = part_of(outputs, part)
            gain = None if inside is not None else self._gains(block)
            for x in np.unique(fiber[part]).tolist():
                if x not in bounds:
                    continue
                low, high = bounds[x]
                here = np.flatnonzero(fiber[part] == x)
                if inside is not None and values is not None:
                    assert isinstance(sets, Singletons)
                    hit = inside(part_of(block, here), values[sets.index[low:high]])
                    score = np.where(hit, sets.mass[low:high], -1.0)
                    limit = 0.0
                else:
                    assert gain is not None
                    score, limit = gain[low:high, here].T, -TIE
                best = score.max(axis=1)
                slack = TIE * np.abs(best) if inside is not None else TIE
                tied = score >= (best - slack)[:, None]
                # a random one of those that tie, by one random number per output
                pick = lottery[a + here] * tied.sum(axis=1)
                chosen = np.argmax(np.cumsum(tied, axis=1) > pick[:, None], axis=1)
                made = (best >= limit) | bool(game.must(np.array([x])).any())
                named = np.where(made, sets.guess[low:high][chosen], -1)
                guess[a + here] = named
        return guess

    def _gains(self, outputs: Any) -> FloatArray:
        """Posterior minus prior of each success set (rows) for each output."""
        game = self.game
        weight, points = game.at_values(self.read, game.pi)
        log = self.mechanism.log_likelihood(expanded(outputs), points[None, :])
        top = log.max(axis=1, keepdims=True)
        if np.any(top == -np.inf):
            raise DpradError("an output has probability zero for every record of the prior.")
        posterior = np.asarray(weight @ np.exp(log - top).T)
        posterior /= posterior.sum(axis=0)
        return np.asarray(game.sets.sums(posterior) - game.sets.mass[:, None])

    def __repr__(self) -> str:
        return f"<optimal attack on {type(self.mechanism).__name__}>"


def _one_value_per_class(game: Table, read: Column) -> Column | None:
    """What each class reads, if success sets are single classes and each reads one value."""
    if not isinstance(game.sets, Singletons) or read.dtype.kind not in "iu":
        return None
    kept = np.flatnonzero(game.pi > 0)
    pairs = np.unique(np.stack([game.class_of[kept], read[kept]], axis=1), axis=0)
    return pairs[:, 1] if len(pairs) == len(game.probabilities) else None


def _quick(
    mechanism: Mechanism, game: Table, values: Column, outputs: Any, rng: np.random.Generator
) -> Callable[[IntArray], IntArray] | None:
    """O(1) per output of randomised response, O(m/64) for bits over equally likely values."""
    sets = game.sets
    assert isinstance(sets, Singletons)
    value = values[sets.index]
    if isinstance(mechanism, GRR):
        if game.nothing_known:
            # the likeliest of the classes that read the same value, which comes first
            table = np.full(mechanism.size, -1, dtype=np.intp)
            table[value[::-1]] = sets.guess[::-1]
            return lambda fiber: table[outputs[: len(fiber)]]
        key = sets.fiber * mechanism.size + value
        order = np.argsort(key)
        if len(np.unique(key)) < len(key):
            return None

        def named(fiber: IntArray) -> IntArray:
            wanted = fiber * mechanism.size + outputs
            at = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
            return np.where((key[at] == wanted) & (fiber >= 0), sets.guess[at], -1)

        return named
    if not isinstance(mechanism, SetMechanism):
        return None
    if game.nothing_known and game.uniform and len(value) == mechanism.size:
        guess = np.full(mechanism.size + 1, -1, dtype=np.intp)
        guess[value] = sets.guess
        if np.all(guess[:-1] >= 0):  # every value belongs to one class
            return lambda fiber: guess[packed.pick(outputs, rng)[: len(fiber)]]
    return None


@singledispatch
def inside_of(mechanism: Any) -> Any:
    """Where the likelihood takes two values, ``inside(outputs, codes)``: outputs x codes."""
    assert mechanism is not None


@inside_of.register
def _grr(_: GRR) -> Any:
    return lambda outputs, codes: outputs[:, None] == codes


@inside_of.register
def _packed(_: SetMechanism) -> Any:
    return lambda outputs, codes: packed.contains(outputs[:, None], codes)


@inside_of.register
def _hashing(mechanism: Hashing) -> Any:
    def inside(outputs: Any, codes: IntArray) -> BoolArray:
        bucket = mechanism.bucket(outputs[:, :1], codes)
        return np.asarray(bucket == outputs[:, 1:].astype(np.int64))

    return inside


@inside_of.register
def _hadamard(mechanism: HadamardResponse) -> Any:
    return lambda outputs, codes: mechanism.inside(outputs[:, None], codes)


def _length(outputs: Any) -> int:
    return _length(outputs[0]) if isinstance(outputs, tuple) else len(outputs)
