"""A function to try `dprad audit` on: randomised response that is truthful too often."""

from __future__ import annotations

import numpy as np


def coin(record: int, rng: np.random.Generator) -> int:
    """Claimed to be 1-DP, but it lies in only one of ten cases, so its epsilon is ln 9 = 2.197."""
    return record if rng.random() < 0.9 else 1 - record
