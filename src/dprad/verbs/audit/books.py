"""Books of bets: counts only, from which the wealth against any claim follows.

A bettor's wealth is the product of its pays, and that of several the average of theirs; a claim is
refuted where it exceeds 1/alpha. Bets are booked by what was predicted and what came, so every
claim can be tested afterwards on the same runs, and books of chunks add up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.allowed import cell_bets, posterior_bets

# Predicted log-odds are rounded to this, so that they can be counted.
STEP = 0.02
# How much of the wealth is staked (1 - theta is kept aside), and the share of each such bettor.
STAKES, SHARES = np.array([1.0, 0.4]), np.array([0.75, 0.25])


@dataclass(slots=True)
class Odds:
    """Predicted posteriors: how often each was made, and which secret it was."""

    counts: dict[int, list[int]] = field(default_factory=dict)

    def add(self, odds: FloatArray, secret: IntArray) -> list[list[int]]:
        """Book predictions (log-odds of the second record) and secrets: what was added."""
        level, place = np.unique(np.rint(odds / STEP).astype(np.int64), return_inverse=True)
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

    def log_wealth(self, epsilons: Any) -> FloatArray:
        """Log of the average wealth against each epsilon."""
        epsilon = np.atleast_1d(np.asarray(epsilons, dtype=float))
        if not self.counts:
            return np.zeros(len(epsilon))
        level = np.array(sorted(self.counts))
        times = np.array([self.counts[k] for k in level.tolist()], dtype=float)
        pay = posterior_bets(level * STEP, epsilon)

        def total(stake: float) -> Any:
            return np.einsum("lz,lez->e", times, staked(stake, pay))

        return np.asarray(_mixed(total))


@dataclass(slots=True)
class Cells:
    """Predicted chances (a, b) of a set of outputs under the two records; what came, by secret and
    cell.
    """

    bets: list[tuple[float, float, IntArray]] = field(default_factory=list)

    def begin(self, a: float, b: float) -> None:
        """A new set, with these chances."""
        self.bets.append((a, b, np.zeros((2, 2), dtype=np.int64)))

    def add(self, inside: Any, secret: IntArray) -> list[list[int]]:
        """Book whether outputs were in the current set: what was added."""
        added = np.zeros((2, 2), dtype=np.int64)
        np.add.at(added, (secret, np.asarray(inside, dtype=np.intp)), 1)
        self.put(added.tolist())
        return added.tolist()

    def put(self, added: list[list[int]]) -> None:
        """Book counts by secret and cell, for the current set."""
        self.bets[-1][2][...] += np.array(added, dtype=np.int64)

    def log_wealth(self, claims: list[Guarantee]) -> FloatArray:
        """Log of the average wealth against each claim."""
        made = [(a, b, n) for a, b, n in self.bets if n.sum()]
        if not made:
            return np.zeros(len(claims))
        a, b = (np.array([bet[k] for bet in made]) for k in (0, 1))
        times = np.stack([n for _, _, n in made]).astype(float)
        totals = []
        for claim in claims:
            pay = cell_bets(a, b, claim)
            totals.append(_mixed(functools.partial(_total, times, pay)))
        return np.array(totals, dtype=float)


def _total(times: FloatArray, pay: FloatArray, stake: float) -> float:
    return float(np.sum(times * staked(stake, np.log(pay))))


def staked(stake: float, log_pay: FloatArray) -> FloatArray:
    """Log of what a stake becomes, the rest being kept: ``log(1 - stake + stake pay)``."""
    if stake == 1.0:
        return log_pay
    return np.asarray(np.logaddexp(math.log1p(-stake), math.log(stake) + log_pay))


def _mixed(log_wealth: Callable[[float], Any]) -> Any:
    """Log of the average over stakes."""
    each = np.stack(
        [np.asarray(log_wealth(s)) + math.log(w) for s, w in zip(STAKES, SHARES, strict=True)]
    )
    top = each.max(axis=0)
    return top + np.log(np.exp(each - top).sum(axis=0))
