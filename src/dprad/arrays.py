"""Names for the arrays that pass through the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]


def complements(probabilities: FloatArray, times: Any = 1) -> FloatArray:
    """``1 - p`` without cancellation: for the largest, the sum of all others.

    `times` says how often each probability occurs, where equal ones are listed once.
    """
    result = np.asarray(1.0 - probabilities)
    if len(probabilities):
        top = int(np.argmax(probabilities))
        others = np.broadcast_to(times, probabilities.shape).copy()
        others[top] -= 1
        result[top] = others @ probabilities
    return result


def unlike(probabilities: FloatArray) -> float:
    """Probability that two independent draws differ, ``1 - kappa``, without cancellation."""
    return min(1.0, float(probabilities @ complements(probabilities)))
