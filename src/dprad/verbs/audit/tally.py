"""Tally: the counts of runs. Counts only, so that chunks add up in any order.

Runs in which the attack passed say nothing about the posterior and are counted as passes. The
others are grouped by `blind`, the prior chance of the guess given what was known. `plus` and
`minus` count runs in which the attack was right about the record but not about an independent one,
and vice versa; they are kept if something is known, for the extra risk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.numerics.arrays import BoolArray, FloatArray

# Chance -> (bets, successes).
Groups = dict[float, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of runs; `groups` maps the blind chance of a guess to (guesses, successes), `bets`
    that of a set of records on which was bet.
    """

    runs: int = 0
    passes: int = 0
    groups: Groups = field(default_factory=dict)
    plus: int = 0
    minus: int = 0
    bets: Groups | None = None

    @classmethod
    def of(
        cls,
        blind: FloatArray,
        right: BoolArray,
        other: BoolArray | None,
        bets: tuple[FloatArray, BoolArray] | None = None,
    ) -> Tally:
        """From runs: `blind` is NaN for a pass; `other` is as above, None if nothing is known."""
        made = ~np.isnan(blind)
        groups = _grouped(blind, right)
        alone = np.zeros(len(blind), dtype=bool) if other is None else other
        return cls(
            runs=len(blind),
            passes=int(np.count_nonzero(~made)),
            groups=groups,
            plus=int(np.count_nonzero(right & ~alone)) if other is not None else 0,
            minus=int(np.count_nonzero(alone & ~right)) if other is not None else 0,
            bets=None if bets is None else _grouped(*bets),
        )

    def __add__(self, more: Tally) -> Tally:
        bets = None
        if self.bets is not None or more.bets is not None:
            bets = _added(self.bets or {}, more.bets or {})
        return Tally(
            self.runs + more.runs,
            self.passes + more.passes,
            _added(self.groups, more.groups),
            self.plus + more.plus,
            self.minus + more.minus,
            bets,
        )

    @property
    def staked(self) -> Groups:
        """What the certificate bets on: sets of records if there are such bets, else guesses."""
        return self.groups if self.bets is None else self.bets

    @property
    def successes(self) -> int:
        """Runs in which the guess was right."""
        return sum(s for _, s in self.groups.values())

    def terms(self, *, known: bool) -> tuple[FloatArray, FloatArray]:
        """The distinct values of the one-sample estimator of RAD, and how often each occurred."""
        if known:
            rest = self.runs - self.plus - self.minus
            return np.array([1.0, -1.0, 0.0]), np.array([self.plus, self.minus, rest], dtype=float)
        values, counts = [0.0], [float(self.passes)]
        for k, (n, s) in self.groups.items():
            values += [1.0 - k, -k]
            counts += [float(s), float(n - s)]
        return np.array(values), np.array(counts)

    def to_plain(self) -> dict[str, Any]:
        """For the state file."""
        groups = [[k, n, s] for k, (n, s) in sorted(self.groups.items())]
        counts = {"runs": self.runs, "passes": self.passes, "plus": self.plus}
        bets = None if self.bets is None else [[k, n, s] for k, (n, s) in sorted(self.bets.items())]
        return {**counts, "minus": self.minus, "groups": groups, "bets": bets}

    @classmethod
    def checked(cls, plain: Any, plan: Any, chunk: int) -> Tally:
        """From a state file that may have been edited: the counts of a chunk of this plan."""
        try:
            tally = cls.from_plain(plain)
            made = sum(n for n, _ in tally.groups.values())
            sound = (
                0 <= chunk < len(plan)
                and tally.runs == plan[chunk]
                and tally.passes + made == tally.runs
                and _possible(tally.groups)
                and (tally.bets is None or _possible(tally.bets))
                and sum(n for n, _ in tally.staked.values()) <= tally.runs
                and 0 <= tally.plus + tally.minus <= tally.runs
            )
        except (AssertionError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
            sound = False
        if not sound:
            raise DpradError(f"the state file is damaged: chunk {chunk} does not add up.")
        return tally

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Tally:
        """From the state file."""
        groups, bets = (
            None if g is None else {float(k): (int(n), int(s)) for k, n, s in g}
            for g in (plain["groups"], plain["bets"])
        )
        assert groups is not None
        return cls(
            int(plain["runs"]),
            int(plain["passes"]),
            groups,
            int(plain["plus"]),
            int(plain["minus"]),
            bets,
        )


def _grouped(chance: FloatArray, hit: BoolArray) -> Groups:
    """Guesses and successes by chance; NaN is not counted."""
    made = ~np.isnan(chance)
    named, right = chance[made], hit[made]
    if not len(named):
        return {}
    if named.min() == named.max():
        return {float(named[0]): (len(named), int(np.count_nonzero(right)))}
    chances, place = np.unique(named, return_inverse=True)
    guesses = np.bincount(place, minlength=len(chances))
    hits = np.bincount(place, weights=right, minlength=len(chances))
    rows = zip(chances, guesses, hits, strict=True)
    return {float(k): (int(n), round(s)) for k, n, s in rows}


def _added(one: Groups, two: Groups) -> Groups:
    groups = dict(one)
    for k, (n, s) in two.items():
        a, b = groups.get(k, (0, 0))
        groups[k] = (a + n, b + s)
    return groups


def _possible(groups: Groups) -> bool:
    return all(0 <= s <= n and 0.0 <= k <= 1.0 for k, (n, s) in groups.items())
