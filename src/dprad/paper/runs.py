"""Common to the baselines for audits: guesses about runs, and estimates that may be undefined.

The values are the codes 0 .. m-1. An estimator that cannot be evaluated gives None, which is kept
and counted; there is no mean of repetitions of which one is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, whole
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.black_box import BlackBox
from dprad.numerics.arrays import IntArray
from dprad.numerics.random import Seed, seed

# Runs at once: their outputs, packed bits over thousands of values, take a few megabytes.
BLOCK = 8192
# Codes of guesses for an array of records: -1 is a pass.
Guesses = Callable[[IntArray, np.random.Generator], IntArray]
# Codes of guesses for an array of outputs.
Attack = Callable[[Any, np.random.Generator], IntArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Estimates of epsilon from repeated experiments.

    Attributes
    ----------
    estimates
        One per repetition; None where the estimator is undefined.

    Examples
    --------
    >>> found = Estimates(estimates=(1.0, 2.0))
    >>> found.epsilon, found.deviation, found.undefined
    (1.5, 0.5, 0)
    >>> print(Estimates(estimates=(1.0, None)))
    no mean: 1 of 2 estimates undefined

    """

    estimates: tuple[float | None, ...]

    @property
    def undefined(self) -> int:
        """How many repetitions have no estimate."""
        return sum(e is None for e in self.estimates)

    @property
    def defined(self) -> tuple[float, ...]:
        """The others."""
        return tuple(e for e in self.estimates if e is not None)

    @property
    def epsilon(self) -> float | None:
        """The mean; None if an estimate is undefined."""
        return None if self.undefined else float(np.mean(self.defined))

    @property
    def deviation(self) -> float | None:
        """The standard deviation (of these numbers); None if an estimate is undefined."""
        return None if self.undefined else float(np.std(self.defined))

    def above(self, epsilon: float) -> int:
        """How many estimates exceed a value; undefined ones do not count.

        Parameters
        ----------
        epsilon
            The value, such as the truth.

        Returns
        -------
        int
            Their number.

        Examples
        --------
        >>> Estimates(estimates=(1.0, 2.0, None)).above(1.5)
        1

        """
        return sum(e > epsilon for e in self.defined)

    def __str__(self) -> str:
        if self.undefined:
            return f"no mean: {self.undefined} of {len(self.estimates)} estimates undefined"
        return f"{self.epsilon:.4g} (deviation {self.deviation:.2g})"


def generators(rng: Seed, repetitions: int) -> Iterable[np.random.Generator]:
    """An independent stream for each repetition."""
    first = seed(rng)
    for k in range(whole(repetitions, "repetitions", low=1)):
        yield np.random.default_rng(np.random.SeedSequence(first, spawn_key=(k,)))


def blocks(records: IntArray, guesses: Guesses, random: np.random.Generator) -> Any:
    """Records and the codes guessed for them, some at a time."""
    for a in range(0, len(records), BLOCK):
        part = records[a : a + BLOCK]
        yield part, guesses(part, random)


def known_size(run: Any, size: int | None) -> int:
    """The number of values: as given, or that of the mechanism."""
    own = None
    if isinstance(run, Mechanism) and not isinstance(run, BlackBox):
        own = run.reads_codes
        if own is None:
            raise DpradError(
                f"run must read the values 0 .. size-1, as GRR does, but a {type(run).__name__} "
                "reads numbers."
            )
    if size is None and own is None:
        raise DpradError("size must be given for a function: it takes the values 0 .. size-1.")
    count = whole(own if size is None else size, "size", low=2)
    if own is not None and own != count:
        raise DpradError(f"size must be that of the mechanism, {own}, but is {count}.")
    return count


def guesser(
    run: Any, attack: Any, size: int, *, vectorised: bool, best: Callable[[Mechanism], Attack]
) -> Guesses:
    """Run something on records and guess them.

    `best` is the attack on a mechanism if none is given. Without an attack, the outputs of a
    function are the guesses; they must be records.
    """
    mechanism = run if isinstance(run, Mechanism) and not isinstance(run, BlackBox) else None
    if attack is not None and not callable(attack):
        raise DpradError(f"attack must be a function of an output, but is {attack!r}.")
    box = None
    if mechanism is None:
        box = run if isinstance(run, BlackBox) else BlackBox(run, vectorised=vectorised)
    chosen = best(mechanism) if attack is None and mechanism is not None else None

    def guesses(records: IntArray, random: np.random.Generator) -> IntArray:
        if mechanism is not None:
            outputs = mechanism.sample(records, random)
            if chosen is not None:
                return chosen(outputs, random)
        else:
            assert box is not None
            one = box.bound(random)
            outputs = one(records) if box.vectorised else [one(r) for r in records.tolist()]
        if attack is None:
            return _records(outputs, len(records), size)
        named = attack(outputs) if vectorised else [attack(o) for o in outputs]
        return _codes(named, len(records), size)

    return guesses


def _codes(named: Any, count: int, size: int) -> IntArray:
    """Guesses as codes; None, and anything that is not a value, is a pass."""
    given = _listed(named)
    if given is None or len(given) != count:
        got = "something else" if given is None else f"{len(given)}"
        raise DpradError(
            f"attack must return one guess per output, but returned {got} for {count}."
        )
    return np.array([g if _value(g, size) else -1 for g in given], dtype=np.intp)


def _records(outputs: Any, count: int, size: int) -> IntArray:
    """Outputs that are guesses themselves."""
    given = _listed(outputs)
    if given is None or len(given) != count or not all(_value(o, size) for o in given):
        raise DpradError(
            f"attack must be given: the outputs of run are not all values 0 .. {size - 1}, so they "
            "cannot be guesses themselves."
        )
    return np.array(given, dtype=np.intp)


def _listed(values: Any) -> list[Any] | None:
    """One entry per run; None if it is no sequence."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    return list(values) if isinstance(values, list | tuple) else None


def _value(guess: Any, size: int) -> bool:
    return isinstance(guess, int | np.integer) and 0 <= int(guess) < size
