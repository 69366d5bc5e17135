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


@dataclass(slots=True)
class Odds:
    """Predicted posteriors: how often each was made, and which secret it was."""

    counts: dict[int, list[int]] = field(default_factory=dict)

    def path(self, odds: FloatArray, secret: IntArray, epsilon: float) -> FloatArray:
        """Log of the average wealth after each of these further calls, not booked yet."""
        pay = posterior_bets(_levels(odds) * STEP, np.array([epsilon]))
        return _along(self._totals(np.array([epsilon])), pay[np.arange(len(secret)), 0, secret])

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
        return np.asarray(_mixed(self._totals(np.atleast_1d(np.asarray(epsilons, dtype=float)))))

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
