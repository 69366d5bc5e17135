"""How clearly each coordinate of outputs differs between records, in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.numerics.arrays import FloatArray, IntArray


@dataclass(slots=True, eq=False)
class Moments:
    """Of every coordinate and secret: how often it was there, and the sums of it and its square."""

    calls: IntArray
    times: FloatArray
    sums: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, width: int, tables: Iterable[FloatArray], secret: IntArray) -> Moments:
        """Of the rows of tables, one after the other, whose secrets are these."""
        values, place = np.unique(secret, return_inverse=True)
        shape = (len(values), width)
        found = cls(np.bincount(place), np.zeros(shape), np.zeros(shape), np.zeros(shape))
        middle: Any = None
        a = 0
        for table in tables:
            if middle is None:
                middle = np.nan_to_num(table[0])
                middle = np.pad(middle, (0, width - len(middle)))
            for line in table:
                x = np.clip(line - middle[: len(line)], -1e100, 1e100)
                there, z = ~np.isnan(x), place[a]
                x = np.where(there, x, 0.0)
                found.times[z, : len(x)] += there
                found.sums[z, : len(x)] += x
                found.squares[z, : len(x)] += x * x
                a += 1
        return found

    def apart(self) -> FloatArray:
        """How clearly each coordinate differs between secrets: its mean, its spread, or whether it
        is there at all; in deviations, roughly.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            times = np.maximum(self.times, 1.0)
            mean = self.sums / times
            spread = np.maximum(self.squares / times - mean**2, 0.0)
            noise = np.sqrt((spread * times).sum(axis=0) / times.sum(axis=0))
            root = np.sqrt(self.calls.min())
            gap = np.ptp(mean, axis=0)
            by_mean = np.where(gap > 1e-9 * np.abs(mean).max(axis=0), gap / noise * root, 0.0)
            wide = np.sqrt(spread) + 1e-9 * noise
            by_spread = np.log(wide.max(axis=0) / wide.min(axis=0)) * root
            share = self.times / self.calls[:, None]
            middle = share.mean(axis=0)
            by_share = np.ptp(share, axis=0) / np.sqrt(middle * (1 - middle)) * root
        each = np.stack([by_mean, by_spread, by_share])
        return np.asarray(np.nan_to_num(each, nan=0.0, posinf=1e300).max(axis=0))
