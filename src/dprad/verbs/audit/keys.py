"""Keys of outputs: equal outputs have equal keys, however they came."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from dprad.numerics.arrays import FloatArray
from dprad.verbs.audit.named import FORM, ZEROS, Into
from dprad.verbs.audit.pieces import TOGETHER


def keys_of(table: FloatArray, dimensions: int) -> list[Any]:
    """Of the rows of an array: a number, a tuple, or a digest of many."""
    if dimensions == 1:
        return list(table[:, 0].tolist())
    if table.shape[1] < TOGETHER:
        return list(map(tuple, table.tolist()))
    return [_short(row) for row in table]


def _short(numbers: FloatArray) -> bytes:
    """Of many numbers: sixteen bytes, the same for equal ones."""
    return hashlib.blake2b((numbers + 0.0).tobytes(), digest_size=16).digest()


def key_of(output: Any, row: Into) -> Any:
    """The same for equal outputs, whether they came alone or in an array."""
    if len(row) == 1 and "output" in row:
        return row["output"]
    plain = isinstance(output, list | tuple) and FORM not in row
    if plain and all(isinstance(v, bool | int | float) and abs(v) < 2**53 for v in output):
        many = tuple(map(float, output))
        return many if len(many) < TOGETHER else _short(np.array(many))
    items = [(n, v if isinstance(v, float | str) else _short(v)) for n, v in row.items()]
    return tuple(sorted(items, key=lambda item: item[0]))


def negative_zeros(row: Into) -> int:
    """How many zeros are negative."""
    count = 0
    for value in row.values():
        if isinstance(value, float):
            count += value == 0 and math.copysign(1.0, value) < 0
        elif not isinstance(value, str):
            count += int(np.count_nonzero((value == 0) & np.signbit(value)))
    return count


def signed(key: Any, minus: int) -> Any:
    """Another key for an output with so many negative zeros."""
    return (ZEROS, minus, key) if minus else key
