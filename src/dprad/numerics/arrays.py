"""Array types used in the package, and functions on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dprad.errors import DpradError, argument

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]


def distinct(values: Column) -> tuple[Column, IntArray]:
    """The distinct values in order, and the place of each; sorted values are not sorted again."""
    if values.dtype.names is not None:
        return _combinations(values)
    if len(values) and bool(np.all(values[1:] > values[:-1])):
        return values, np.arange(len(values))
    if len(values) and values[0] == values[-1] and bool(np.all(values == values[0])):
        return values[:1], np.broadcast_to(np.intp(0), len(values))
    unique, place = np.unique(values, return_inverse=True)
    return unique, place.reshape(-1).astype(np.intp, copy=False)


def _combinations(values: Column) -> tuple[Column, IntArray]:
    """The same for values with several fields: distinct combinations."""
    place = np.zeros(len(values), dtype=np.intp)
    for name in values.dtype.names or ():
        unique, rank = distinct(values[name])
        place = distinct(place * len(unique) + rank)[1]
    return values[np.unique(place, return_index=True)[1]], place


def complements(probabilities: FloatArray, times: Any = 1) -> FloatArray:
    """``1 - p`` without cancellation: for the largest, the sum of all others.

    `times` says how often each probability occurs, if equal ones are listed once.
    """
    result = np.asarray(1.0 - probabilities)
    if len(probabilities):
        top = int(np.argmax(probabilities))
        others = np.broadcast_to(times, probabilities.shape).copy()
        others[top] -= 1
        result[top] = others @ probabilities
    return result


# Differences from a record more likely than this lose digits: little is left for the others.
HEAVY = 1.0 - 1e-6


def gains(joint: FloatArray, probabilities: FloatArray, total: FloatArray) -> FloatArray:
    """``pi_c (p(o|c) - pbar(o))`` of classes (rows) and outputs, to all digits.

    From the joint probabilities ``pi_c p(o|c)`` and their sum over classes. The result does not
    change if the same number is subtracted from all p(o|c). If one class has nearly all
    probability, its own is subtracted, so that all terms are as small as the result. `joint` may be
    overwritten.
    """
    pi = probabilities[:, None]
    heavy = int(np.argmax(probabilities))
    if probabilities[heavy] <= HEAVY:
        joint -= pi * total
        return joint
    joint = joint - pi * (joint[heavy] / probabilities[heavy])
    joint[heavy] = 0.0
    joint -= pi * joint.sum(axis=0)
    return joint


def unlike(probabilities: FloatArray) -> float:
    """Probability that two independent draws differ, ``1 - kappa``, without cancellation."""
    return min(1.0, float(probabilities @ complements(probabilities)))


def real(value: Any, name: str) -> FloatArray:
    """A number or an array of numbers, none of them NaN."""
    try:
        result = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise DpradError(
            f"{name} must be a number or an array of numbers, but is {argument(value)}."
        ) from None
    if np.any(np.isnan(result)):
        raise DpradError(f"{name} must be a number, but is NaN.")
    return result


def like(given: Any, result: FloatArray) -> Any:
    """A float for a number, an array for an array."""
    return float(result) if np.ndim(given) == 0 else result
