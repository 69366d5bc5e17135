"""Tally: the counts of runs. Counts only, so that chunks add up in any order.

Runs in which the attack passed say nothing about the posterior cap and are counted as passes. The
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


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of runs; `groups` maps the blind chance of a guess to (guesses, successes)."""

    runs: int = 0
    passes: int = 0
    groups: dict[float, tuple[int, int]] = field(default_factory=dict)
    plus: int = 0
    minus: int = 0

    @classmethod
    def of(cls, blind: FloatArray, right: BoolArray, other: BoolArray | None) -> Tally:
        """From runs: `blind` is NaN for a pass; `other` is as above, None if nothing is known."""
        made = ~np.isnan(blind)
        named, hit = blind[made], right[made]
        groups: dict[float, tuple[int, int]] = {}
        if len(named) and named.min() == named.max():
            groups[float(named[0])] = (len(named), int(np.count_nonzero(hit)))
        elif len(named):
            chance, place = np.unique(named, return_inverse=True)
            guesses = np.bincount(place, minlength=len(chance))
            hits = np.bincount(place, weights=hit, minlength=len(chance))
            rows = zip(chance, guesses, hits, strict=True)
            groups = {float(k): (int(n), round(s)) for k, n, s in rows}
        alone = np.zeros(len(blind), dtype=bool) if other is None else other
        return cls(
            runs=len(blind),
            passes=int(np.count_nonzero(~made)),
            groups=groups,
            plus=int(np.count_nonzero(right & ~alone)) if other is not None else 0,
            minus=int(np.count_nonzero(alone & ~right)) if other is not None else 0,
        )

    def __add__(self, more: Tally) -> Tally:
        groups = dict(self.groups)
        for k, (n, s) in more.groups.items():
            a, b = groups.get(k, (0, 0))
            groups[k] = (a + n, b + s)
        return Tally(
            self.runs + more.runs,
            self.passes + more.passes,
            groups,
            self.plus + more.plus,
            self.minus + more.minus,
        )

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
        return {**counts, "minus": self.minus, "groups": groups}

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
                and all(0 <= s <= n and 0.0 <= k <= 1.0 for k, (n, s) in tally.groups.items())
                and 0 <= tally.plus + tally.minus <= tally.runs
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            sound = False
        if not sound:
            raise DpradError(f"the state file is damaged: chunk {chunk} does not add up.")
        return tally

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Tally:
        """From the state file."""
        groups = {float(k): (int(n), int(s)) for k, n, s in plain["groups"]}
        return cls(
            int(plain["runs"]),
            int(plain["passes"]),
            groups,
            int(plain["plus"]),
            int(plain["minus"]),
        )
