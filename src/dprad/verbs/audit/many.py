"""Many secrets under a pure claim: predict all of them at once (Theorem H1).

Given the output, the claim bounds the posterior s of the secret: ``s_j / pi_j <= e^eps s_k / pi_k``
for all j and k. The allowed posterior closest to a predicted one is that one, clipped (`project`).
Predictions come from counts of whole outputs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.books import SHARES, STAKES, staked
from dprad.verbs.audit.coordinates import Reader
from dprad.verbs.audit.rows import Case, Said
from dprad.verbs.audit.session import GRID, first_crossing
from dprad.verbs.audit.tally import Tally
from dprad.verbs.audit.trials import Chunks

# How many rows the prior counts for beside those seen; a bettor for each.
WEIGHTS = (2.0, 40.0, 800.0)
# The largest exponent of a float.
LARGEST = 700.0
# The largest violation that is tried, how often each is, and the deviations that luck may take.
MOST, TRIED, SPREAD = 30.0, 4, 2.0


def project(r: Any, pi: Any, epsilon: float) -> FloatArray:
    """The allowed posteriors closest to the rows of `r`: ``clip(r, a pi, a e^eps pi)``, with the a
    for which they sum to one. That sum grows with a, linearly between breakpoints: bisection finds
    the right two, and the rest is solved.

    Examples
    --------
    >>> import math
    >>> project([0.9, 0.1], [0.5, 0.5], math.log(4)).round(6).tolist()
    [0.8, 0.2]

    """
    told, prior = np.asarray(r, dtype=float), np.asarray(pi, dtype=float)
    rows = np.atleast_2d(told)
    ratio, most = rows / prior, math.exp(min(epsilon, LARGEST))
    breaks = np.sort(np.concatenate([ratio / most, ratio], axis=1), axis=1)
    place = np.arange(len(rows))
    low, high = np.zeros(len(rows), dtype=np.intp), np.full(len(rows), breaks.shape[1] - 1)
    for _ in range(
        max(1, breaks.shape[1].bit_length())
    ):  # at the highest one the sum is at least 1
        middle = (low + high) // 2
        a = breaks[place, middle][:, None]
        enough = np.clip(rows, a * prior, a * most * prior).sum(axis=1) >= 1.0
        low, high = (
            np.where(enough, low, np.minimum(middle + 1, high)),
            np.where(enough, middle, high),
        )
    upper = breaks[place, high]
    lower = np.where(high > 0, breaks[place, np.maximum(high - 1, 0)], 0.0)
    inside = (lower + (upper - lower) / 2)[:, None]
    raised, lowered = ratio < inside, ratio > inside * most
    slope = (prior * raised).sum(axis=1) + most * (prior * lowered).sum(axis=1)
    free = (rows * ~(raised | lowered)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        solved = np.where(slope > 0, (1.0 - free) / slope, upper)
    a = np.clip(solved, lower, upper)[:, None]
    return np.asarray(np.clip(rows, a * prior, a * most * prior).reshape(told.shape))


@dataclass(slots=True)
class Many:
    """Counts of outputs by secret, and the bets that were placed by them.

    A bet is a predicted posterior for each of `WEIGHTS`, and how often each secret came.
    """

    prior: FloatArray
    seen: dict[Hashable, FloatArray] = field(default_factory=dict)
    predicted: list[FloatArray] = field(default_factory=list)
    came: list[FloatArray] = field(default_factory=list)
    rows: int = 0
    guesses: dict[float, tuple[int, int]] = field(default_factory=dict)

    def take(self, keys: Sequence[Hashable], secret: IntArray) -> None:
        """Bet on some rows, then learn from them."""
        self.rows += len(secret)
        here: dict[Hashable, FloatArray] = {}
        for key, z in zip(keys, secret.tolist(), strict=True):
            here.setdefault(key, np.zeros(len(self.prior)))[z] += 1.0
        for key, times in here.items():
            before = self.seen.get(key)
            if before is not None:  # otherwise the prior is the best prediction, and pays nothing
                told = [(before + w * self.prior) / (before.sum() + w) for w in WEIGHTS]
                self.predicted.append(np.stack(told))
                self.came.append(times)
                best = int(np.argmax(before / self.prior))
                made, right = self.guesses.get(float(self.prior[best]), (0, 0))
                more = int(times.sum()), int(times[best])
                self.guesses[float(self.prior[best])] = made + more[0], right + more[1]
            self.seen[key] = times if before is None else before + times

    def log_wealth(self, epsilon: float) -> float:
        """Log of the average wealth against this epsilon."""
        if not self.came:
            return 0.0
        told, times = np.stack(self.predicted), np.stack(self.came)
        logs = []
        for j in range(len(WEIGHTS)):
            pay = told[:, j] / project(told[:, j], self.prior, epsilon)
            for stake, share in zip(STAKES, SHARES, strict=True):
                total = float(np.sum(times * staked(float(stake), np.log(pay))))
                logs.append(total + math.log(share / len(WEIGHTS)))
        return float(np.logaddexp.reduce(logs))

    @property
    def tally(self) -> Tally:
        """Guesses of the secret that an output speaks for."""
        made = sum(n for n, _ in self.guesses.values())
        return Tally(self.rows, self.rows - made, self.guesses)


def _would_find(claimed: float, prior: FloatArray, rows: int, needed: float) -> float | None:
    """The least epsilon of randomised response that so many rows would have refuted, by trying."""

    def found(epsilon: float) -> bool:
        wealth = [_played(epsilon, claimed, prior, rows, seed) for seed in range(TRIED)]
        return float(np.mean(wealth) - SPREAD * np.std(wealth, ddof=1)) >= needed

    if rows == 0 or claimed >= MOST or not found(MOST):
        return None
    low, high = claimed, MOST
    while high - low > 0.02 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def _played(epsilon: float, claimed: float, prior: FloatArray, rows: int, seed: int) -> float:
    """Log of the wealth against the claim after rows of randomised response."""
    rng, size, book = np.random.default_rng(seed), len(prior), Many(prior)
    secret = rng.choice(size, rows, p=prior)
    lies = rng.random(rows) * (math.exp(epsilon) + size - 1) >= math.exp(epsilon)
    told = np.where(lies, (secret + rng.integers(1, size, rows)) % size, secret)
    chunks = Chunks(rows)
    for i in range(len(chunks)):
        where = slice(chunks.start(i), chunks.start(i) + chunks[i])
        book.take(told[where].tolist(), secret[where])
    return book.log_wealth(claimed)


def bet_on_all(case: Case, order: IntArray, prior: FloatArray, error: float) -> Said:
    """Bet on rows in this order, chunk by chunk, at this chance of error."""
    book, reader, chunks = Many(prior), Reader(), Chunks(len(order))
    for i in range(len(chunks)):
        where = order[chunks.start(i) : chunks.start(i) + chunks[i]]
        book.take(reader.rows(case.runs.take(where)).keys, case.runs.secret[where])
    wealth = book.log_wealth(case.point[0])
    needed = -math.log(error)
    made = len(order) - book.tally.passes  # only outputs that came before are bet on
    return Said(
        evidence="bets on all secrets",
        violated=wealth >= needed,
        low=first_crossing(book.log_wealth, needed, GRID[::4]),
        tally=book.tally,
        would_find=_would_find(case.point[0], prior, made, needed),
        notes=(),
        secrets=len(prior),
        wealth=((len(order), wealth),),
    )
