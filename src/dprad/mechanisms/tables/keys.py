"""Keys that come from the data: a cell is published only if its noisy count exceeds a threshold.

A cell that nobody is in is never published, so a key that only one person has gives them away when
it appears. That happens with probability ``Pr[1 + noise > threshold]``. A cell that others are in
as well is published with noise or left out, which says no more than the noisy count itself.

Which of the two a cell is depends on the others. So that the risk is right whoever they are, the
attacker is given both: the noisy count of every cell, and with that probability the person's own
cells. Every table that can come about is computed from these. Whether the cells are given does not
depend on who the person is, so the risk is a weighted mean: of the tables without a threshold, and
of tables without noise. The privacy loss is infinite with that probability, else that of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, number
from dprad.mechanisms.tables.noise import Noise
from dprad.mechanisms.tables.release import TableRelease
from dprad.model.guarantees import Guarantee
from dprad.model.guarantees.base import of_directions
from dprad.model.guarantees.neighbours import Neighbours
from dprad.model.parameters import Goal

# A threshold that follows from delta is raised by this share, for rounding.
ROUNDING = 1e-12
# A probability is not rounded to zero: that would mean that all cells are published.
LEAST = 1e-300


def chance(noise: Noise, threshold: float) -> float:
    """Pr[1 + noise > threshold]: that a key of a single person is published."""
    if noise.silent:
        return 0.5
    away = threshold - 1.0
    if noise.kind == "laplace":
        tail = float(np.exp(-abs(away) / noise.scale)) / 2
        return tail if away >= 0 else 1.0 - tail
    if noise.kind == "gaussian":
        from scipy.special import ndtr

        return float(ndtr(-away / noise.scale))
    first = float(np.floor(away)) + 1.0
    if noise.kind == "geometric":
        fade = float(np.exp(-1.0 / noise.scale))
        tail = float(np.exp(-abs(first) / noise.scale)) / (1.0 + fade)
        return tail if first > 0 else 1.0 - fade * tail
    p = noise.line().probabilities()
    return float(p[int(np.clip(first + len(p) // 2, 0, len(p))) :].sum())


def threshold(noise: Noise, delta: float) -> float:
    """A threshold, as small as possible, at which `chance` is no larger than this."""
    if noise.silent or delta >= 1.0:
        return float(np.inf) if noise.silent and delta < 0.5 else -float(np.inf)
    if noise.kind == "laplace":
        away = -noise.scale * float(np.log(2 * delta))
        if delta > 0.5:
            away = noise.scale * float(np.log(2 * (1.0 - delta)))
        return 1.0 + away + ROUNDING * abs(away)
    if noise.kind == "gaussian":
        from scipy.special import ndtri

        away = -noise.scale * float(ndtri(delta))
        return 1.0 + away + ROUNDING * abs(away)
    high = 1.0
    while chance(noise, high) > delta:
        high *= 2
    low = -high
    while chance(noise, low) <= delta:
        low *= 2
    while high - low > 1:  # whole numbers
        middle = float(np.floor((low + high) / 2))
        low, high = (low, middle) if chance(noise, middle) <= delta else (middle, high)
    return high


@dataclass(frozen=True, kw_only=True)
class Keyed(TableRelease):
    """Base class of counts whose keys may come from the data.

    Parameters
    ----------
    threshold
        The names of the cells come from the data: only cells whose noisy count exceeds this are
        published. Default: the names are public, and every cell is published.
    delta
        Instead of `threshold`: the probability, at most, that a key which only one person has is
        published, in any of the tables. The threshold follows, and the promise has this delta.

    """

    threshold: float | None = None
    delta: float | None = None

    def _keys(self) -> None:
        """Refuse thresholds that make no sense."""
        if self.threshold is not None and self.delta is not None:
            raise DpradError("give threshold or delta, not both: one follows from the other.")
        if self.threshold is not None:
            self._set("threshold", number(self.threshold, "threshold", low=0))
        if self.delta is not None:
            self._set("delta", number(self.delta, "delta", low=0, high=1))
            if self.delta == 0:
                raise DpradError(
                    "delta must be positive: with 0, no key that comes from the data could be "
                    "published. Leave it out if the keys are public."
                )
        if (self.threshold, self.delta) != (None, None) and not all(t.by for t in self.tables):
            raise DpradError("threshold and delta are for cells: name columns with by=.")

    @property
    def thresholds(self) -> tuple[float, ...] | None:
        """What the noisy count of a key must exceed, for each table; None if all are published."""
        if self.threshold is not None:
            return tuple(self.threshold for _ in self.noises)
        if self.delta is None:
            return None
        return tuple(threshold(noise, self._share(self.delta)) for noise in self.noises)

    def _share(self, delta: float) -> float:
        """The part of delta for each table, such that all together keep it."""
        if delta == 1.0:
            return 1.0
        return -float(np.expm1(np.log1p(-delta) / len(self.noises)))

    @property
    def shown(self) -> float:
        """The probability that a person who shares no cell with anybody is seen in some table."""
        if self.delta is not None:  # of whole noise the probability is smaller, by less than a step
            stays = self.times * (np.log1p(-self.delta) if self.delta < 1 else -np.inf)
        elif self.threshold is not None:
            with np.errstate(divide="ignore"):
                each = [np.log1p(-chance(noise, self.threshold)) for noise in self.noises]
            stays = self.times * sum(each)
        else:
            return 0.0
        return max(-float(np.expm1(stays)), LEAST)

    @classmethod
    def first_guess(cls, goal: Goal) -> float:
        """One; refused if a threshold is fixed, as the risk may then fall with epsilon."""
        if goal.fixed.get("threshold") is not None:
            raise DpradError(
                "with a fixed threshold, more noise shows more keys that only one person has. To "
                "find the noise, give delta=: the threshold then follows."
            )
        return super().first_guess(goal)

    def _promise(self, neighbours: Neighbours) -> Guarantee:
        """That of the noise, with an infinite loss where somebody may be seen."""
        plain = super()._promise(neighbours)
        if not self.shown:
            return plain
        both = [_infinite(pair, self.shown) for pair in plain.directions]
        return of_directions(both[0], None if plain.symmetric else both[1], neighbours)


def _infinite(pair: Any, chance: float) -> Any:
    """The pair, with an infinite loss at this probability."""
    kept = 1.0 - chance
    return type(pair)(pair.step, pair.first, kept * pair.p, chance + kept * pair.p_infinity)
