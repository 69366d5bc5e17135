"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Solution:
    """What a solver finds: the RAD of the best attack, its luck on absent people, and ReRo.

    The true RAD lies in [rad - error, rad].
    """

    rad: float
    success_out: float
    rero: float
    method: str
    error: float = 0.0
