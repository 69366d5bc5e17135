"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The RAD of the best attack, its luck on absent people, and ReRo.

    `interval` contains the true RAD: always if the kind is "exact" (None: it is `rad`), with the
    requested confidence if it is "estimate".
    """

    rad: float
    success_out: float
    rero: float
    method: str
    kind: str = "exact"
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a risk is estimated where it cannot be computed: by so many draws, or more if the
    interval would otherwise reach further than `aim` to both sides.
    """

    trials: int = 20_000
    aim: float | None = None
    confidence: float = 0.95
    seed: int = 0
    workers: int = 1
