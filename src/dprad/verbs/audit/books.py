"""Books of bets: counts only, from which the wealth against any claim follows.

A bettor's wealth is the product of its pays, and that of several the average of theirs; a claim is
refuted where it exceeds 1/alpha. Bets are booked by what was predicted and what came, so every
claim can be tested afterwards on the same runs, and books of chunks add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.allowed import posterior_bets
from dprad.verbs.audit.portfolio import portfolio

# Predicted log-odds are rounded to this, so that they can be counted.
STEP = 0.02
# Of a stake, the log of what it became.
Totals = Callable[[float], Any]
# How much of the wealth is staked (1 - theta is kept aside), and the share of each such bettor.
STAKES, SHARES = np.array([1.0, 0.4]), np.array([0.9, 0.1])
# The share of those who bet on the side of each prediction only, at these stakes: predictions that
# are right far more often than is allowed, but say so too loudly, would lose all else.
ASIDE, SIDES = 0.05, np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95])


@dataclass(slots=True)
class Odds:
    """Predicted posteriors: how often each was made, and which secret it was."""

    counts: dict[int, list[int]] = field(default_factory=dict)

    def path(self, odds: FloatArray, secret: IntArray, epsilon: float) -> FloatArray:
        """Log of the average wealth after each of these further calls, not booked yet."""
        level, at = _levels(odds), np.array([epsilon])
        pay = posterior_bets(level * STEP, at)[np.arange(len(secret)), 0, secret]
        right, wrong = (
            np.cumsum(x) + n for x, n in zip(_sides(level, secret), self._right, strict=True)
        )
        return _beside(_along(self._totals(at), pay), _sided(right, wrong, at))

    def add(self, odds: FloatArray, secret: IntArray) -> list[list[int]]:
        """Book predictions (log-odds of the second record) and secrets: what was added."""
        level, place = np.unique(_levels(odds), return_inverse=True)
        times = [np.bincount(place[secret == z], minlength=len(level)) for z in (0, 1)]
        added: list[list[int]] = np.stack([level, *times], axis=1).tolist()
        self.put(added)
        return added

    def put(self, added: list[list[int]]) -> None:
        """Book (level, times without, times with)."""
        for level, zero, one in added:
            here = self.counts.setdefault(level, [0, 0])
            here[0] += zero
            here[1] += one

    def copy(self) -> Odds:
        """As it stands."""
        return Odds({level: times.copy() for level, times in self.counts.items()})

    def log_wealth(self, epsilons: Any) -> FloatArray:
        """Log of the average wealth against each epsilon."""
        at = np.atleast_1d(np.asarray(epsilons, dtype=float))
        return _beside(_mixed(self._totals(at)), _sided(*self._right, at))

    @property
    def _right(self) -> tuple[int, int]:
        """How often a prediction was on the right side, and on the wrong one."""
        right = wrong = 0
        for level, times in self.counts.items():
            right += times[level > 0] if level else 0
            wrong += times[level < 0] if level else 0
        return right, wrong

    def _totals(self, epsilon: FloatArray) -> Totals:
        """Log of what each stake became, against each epsilon."""
        if not self.counts:
            return lambda _: np.zeros(len(epsilon))
        level = np.array(sorted(self.counts))
        times = np.array([self.counts[k] for k in level.tolist()], dtype=float)
        pay = posterior_bets(level * STEP, epsilon)
        return lambda stake: np.einsum("lz,lez->e", times, staked(stake, pay))


def _levels(odds: FloatArray) -> IntArray:
    return np.asarray(np.rint(odds / STEP).astype(np.int64))


def _sides(level: IntArray, secret: IntArray) -> tuple[Any, Any]:
    """Which predictions are on the right side, which on the wrong one; the middle is neither."""
    side = np.sign(level) * (2 * secret - 1)
    return side > 0, side < 0


def _sided(right: Any, wrong: Any, epsilon: FloatArray) -> FloatArray:
    """Log of the average wealth of those who bet on sides. Under a claim a side is right with a
    chance of at most e^epsilon / (1 + e^epsilon), whatever the output, so betting that it is right
    more often, at any stake, gains nothing in the mean.
    """
    pay = np.log1p(SIDES[:, None] * np.exp(-epsilon)), np.log1p(-SIDES)[:, None]
    each = np.asarray(right) * pay[0] + np.asarray(wrong) * pay[1]
    return np.asarray(np.logaddexp.reduce(each, axis=0) - math.log(len(SIDES)))


def _beside(wealth: Any, sided: FloatArray) -> FloatArray:
    """Log of the wealth of all."""
    return np.asarray(np.logaddexp(math.log1p(-ASIDE) + wealth, math.log(ASIDE) + sided))


@dataclass(slots=True)
class Cells:
    """Predicted laws of cells of a score (secret x cell), what `claim` pays for them, and what
    came.
    """

    claim: Guarantee
    bets: list[tuple[FloatArray, FloatArray, IntArray]] = field(default_factory=list)

    def begin(self, law: FloatArray) -> None:
        """New cells, with this law."""
        pay = portfolio(law[None], self.claim)[0]
        self.bets.append((law, pay, np.zeros(law.shape, dtype=np.int64)))

    def path(self, cell: IntArray, secret: IntArray) -> FloatArray:
        """Log of the average wealth after each of these further calls, not booked yet."""
        return _along(self._totals(self.claim), np.log(self.bets[-1][1][secret, cell]))

    def add(self, cell: IntArray, secret: IntArray) -> list[list[int]]:
        """Book the cells of outputs: what was added, by cell and secret."""
        added = np.zeros(self.bets[-1][2].shape, dtype=np.int64)
        np.add.at(added, (secret, cell), 1)
        plain: list[list[int]] = np.transpose(added).tolist()
        self.put(plain)
        return plain

    def put(self, added: list[list[int]]) -> None:
        """Book counts by cell and secret, for the current cells."""
        here = self.bets[-1][2]
        if [len(row) for row in added] != [here.shape[0]] * here.shape[1]:
            raise DpradError("the state file is damaged: its counts do not fit the bets.")
        here += np.array(added, dtype=np.int64).T

    def copy(self) -> Cells:
        """As it stands."""
        return Cells(self.claim, [(law, pay, times.copy()) for law, pay, times in self.bets])

    def log_wealth(self, claim: Guarantee) -> float:
        """Log of the average wealth against a claim."""
        return float(_mixed(self._totals(claim)))

    def _totals(self, claim: Guarantee) -> Totals:
        """Log of what each stake became."""
        made = [bet for bet in self.bets if bet[2].any()]
        if not made:
            return lambda _: 0.0
        wide = max(law.shape[1] for law, _, _ in made)
        times = _padded([n for _, _, n in made], wide)
        if claim == self.claim:
            pay = _padded([p for _, p, _ in made], wide)
        else:
            pay = portfolio(_padded([law for law, _, _ in made], wide), claim)
        seen = times > 0
        return lambda stake: times[seen] @ staked(stake, np.log(pay[seen]))


def _padded(tables: list[Any], wide: int) -> FloatArray:
    """Tables as one, with cells that never occur."""
    return np.stack([np.pad(t, ((0, 0), (0, wide - t.shape[1]))) for t in tables]).astype(float)


def staked(stake: float, log_pay: FloatArray) -> FloatArray:
    """Log of what a stake becomes, the rest being kept: ``log(1 - stake + stake pay)``."""
    if stake == 1.0:
        return log_pay
    return np.asarray(np.logaddexp(math.log1p(-stake), math.log(stake) + log_pay))


def _along(before: Totals, log_pay: FloatArray) -> FloatArray:
    """Log of the average wealth after each of some further pays."""
    return np.asarray(_mixed(lambda stake: before(stake) + np.cumsum(staked(stake, log_pay))))


def _mixed(log_wealth: Totals) -> Any:
    """Log of the average over stakes."""
    each = np.stack(
        [np.asarray(log_wealth(s)) + math.log(w) for s, w in zip(STAKES, SHARES, strict=True)]
    )
    top = each.max(axis=0)
    return top + np.log(np.exp(each - top).sum(axis=0))
