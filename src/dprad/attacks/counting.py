"""Running an attack: its guesses as codes, its successes, and its luck.

For a fixed attack the record that was not in the data is independent of the output, so
``1{right} - luck`` is an unbiased estimate of RAD from one run: luck is the prior mass of the guess
if nothing is known, else whether the same attack is right about an independent record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dprad.attacks.optimal import OptimalAttack
from dprad.errors import DpradError, shown, told
from dprad.game.game import Table
from dprad.game.question import Question
from dprad.numerics.arrays import BoolArray, Column, FloatArray, IntArray
from dprad.numerics.intervals import betting, less_luck

Attack = Callable[..., Any]
# ``play(outputs, records, rng)`` returns codes of guesses, -1 for a pass
Play = Callable[[Any, IntArray, np.random.Generator], IntArray]


def counted(
    play: Play,
    game: Table,
    outputs: Any,
    records: IntArray,
    rng: np.random.Generator,
    others: Callable[[], IntArray],
) -> tuple[IntArray, BoolArray, FloatArray]:
    """Guesses, whether they are right, and their luck; `others` draws independent records."""
    guess = play(outputs, records, rng)
    right = game.hits(records, guess)
    if game.nothing_known:
        return guess, right, np.where(guess >= 0, game.luck[guess], 0.0)
    other = others()
    return guess, right, game.hits(other, play(outputs, other, rng)).astype(float)


def evenly_lucky(game: Table) -> float | None:
    """The luck of every guess, if nothing is known and it is the same for all."""
    luck = game.luck
    same = game.nothing_known and float(np.ptp(luck)) <= 1e-12 * float(luck.max())
    return float(luck.max()) if same else None


def interval_of(
    right: BoolArray, luck: FloatArray, game: Table, confidence: float
) -> tuple[float, float]:
    """Interval for the RAD of the attack: binomial if all guesses are equally lucky, else betting.

    The choice depends on the game, never on the runs.
    """
    each = evenly_lucky(game)
    if each is not None:
        made = int(np.count_nonzero(luck))
        return less_luck(int(right.sum()), made, len(right), each, confidence)
    low, high = betting((right - luck + 1.0) / 2, confidence)
    return 2 * low - 1, 2 * high - 1


def player(attack: Attack, question: Question) -> Play:
    """The attack on codes: ``play(outputs, records, rng)`` returns codes of guesses, -1 for a
    pass.
    """
    game, labels = question.table("an attack"), question.labels
    fiber_of = game.fiber_of
    if isinstance(attack, OptimalAttack) and _same(attack, game, labels):
        return lambda outputs, records, rng: attack.codes(outputs, fiber_of[records], rng)
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
                f"attack must return one guess per output, but returned {len(guesses)} for "
                f"{len(records)} outputs."
            )
        try:
            if question.threat.must_guess and any(g is None for g in guesses):
                raise DpradError("attack must always guess (must_guess=True), but passed (None).")
            codes = [-1 if g is None else number[g] for g in guesses]
        except (KeyError, TypeError):
            strange = next(g for g in guesses if g is not None and not _known(g, number))
            raise DpradError(
                "attack must guess values of the target, or None for a pass, but guessed "
                f"{shown(strange)}. Add values that never occur to the prior with domain=."
            ) from None
        return np.array(codes, dtype=np.intp)

    return called


def _known(guess: Any, number: dict[Any, int]) -> bool:
    try:
        return guess in number
    except TypeError:
        return False


def _same(attack: OptimalAttack, game: Table, labels: Column | None) -> bool:
    """Whether an attack was made for this very game, so that its codes have the same meaning."""
    made = attack.game
    if (attack.labels is None) != (labels is None):
        return False
    alike: list[Any] = [(made.guesses, game.guesses), (made.fiber_of, game.fiber_of)]
    if labels is not None:
        alike.append((attack.labels, labels))
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in alike)
