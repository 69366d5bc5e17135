"""What nested Monte Carlo needs of arrays: on NumPy, and on PyTorch (a GPU, if there is one)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.numerics.arrays import FloatArray

# Share of the line within which an edge of a window counts as its end: records there are rounded.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A continuous prior on an interval, with the distribution function at its two ends."""

    distribution: Any
    low: float
    high: float
    begin: float
    end: float

    def cdf(self, x: FloatArray) -> FloatArray:
        """How likely a record is at most x."""
        near = ROUNDING * (self.high - self.low)
        x = np.where(x >= self.high - near, self.high, np.where(x <= self.low + near, self.low, x))
        share = (np.asarray(self.distribution.cdf(x)) - self.begin) / (self.end - self.begin)
        return np.where(x >= self.high, 1.0, np.where(x <= self.low, 0.0, share))

    def mass(self, x: FloatArray, eta: float) -> FloatArray:
        """How likely a record is within eta of each x."""
        return np.asarray(self.cdf(x + eta) - self.cdf(x - eta))

    @property
    def whole(self) -> bool:
        """Whether the interval holds all of the distribution."""
        return self.begin == 0.0 and self.end == 1.0

    def records(self, shape: tuple[int, int], random: np.random.Generator) -> FloatArray:
        """Records, drawn independently."""
        if self.whole and hasattr(self.distribution, "rvs"):
            # far faster than inverting the distribution function
            return np.asarray(self.distribution.rvs(size=shape, random_state=random))
        u = self.begin + (self.end - self.begin) * random.random(shape)
        return np.asarray(np.clip(self.distribution.ppf(u), self.low, self.high))


class Numpy:
    """NumPy on the processor."""

    xp = np
    block = 2**20  # numbers held at once in one array: what fits into a cache

    def __init__(self, seed: Any) -> None:
        self.random = np.random.default_rng(seed)

    def uniform(self, low: float, high: float, count: int) -> FloatArray:
        """Uniform numbers."""
        return self.random.uniform(low, high, count)

    def records(self, line: Line, shape: tuple[int, int]) -> FloatArray:
        """Records of a prior."""
        return line.records(shape, self.random)

    def array(self, x: FloatArray) -> FloatArray:
        """An array of this kind."""
        return x

    def sorted(self, x: FloatArray) -> FloatArray:
        """Rows in ascending order."""
        x.sort(axis=1)
        return x

    def running(self, x: FloatArray) -> FloatArray:
        """Sums of the first 0, 1, ... numbers of each row."""
        sums = np.zeros((x.shape[0], x.shape[1] + 1))
        np.cumsum(x, axis=1, out=sums[:, 1:])
        return sums

    def at(self, x: FloatArray, places: Any) -> FloatArray:
        """Numbers at places of each row."""
        return np.take_along_axis(x, places, axis=1)

    def largest(self, x: FloatArray, count: int) -> tuple[FloatArray, Any]:
        """The largest numbers of each row, in descending order, and their places."""
        some = np.argpartition(-x, count, axis=1)[:, :count]
        order = np.argsort(-self.at(x, some), axis=1, kind="stable")
        places = np.take_along_axis(some, order, axis=1)
        return self.at(x, places), places

    def within(self, z: FloatArray, low: FloatArray, high: FloatArray, line: Line) -> Any:
        """For sorted rows: how many numbers lie below `low`, and how many not above `high`."""
        span, near = line.high - line.low, ROUNDING * (line.high - line.low)
        # one search for all rows: each is moved to a place of its own
        moved = 4 * span * np.arange(len(z))[:, None] - line.low
        flat = (z + moved).ravel()
        below = np.where(low <= line.low + near, line.low - span, low)
        above = np.where(high >= line.high - near, line.high + span, high)
        first = len(z[0]) * np.arange(len(z))[:, None]
        begin = np.searchsorted(flat, below + moved, "left") - first
        return begin, np.searchsorted(flat, above + moved, "right") - first


class Torch:
    """PyTorch, on a device of your choice."""

    block = 2**25

    def __init__(self, seed: Any, device: str) -> None:
        import torch

        self.xp: Any = torch
        self.device = device
        if device == "cpu":
            self.block = 2**20
        self.made = {"dtype": torch.float64, "device": device}
        sequence = np.random.SeedSequence(seed)
        self.generator = torch.Generator(device)
        self.generator.manual_seed(int(sequence.generate_state(1, np.uint64)[0] >> 1))
        self.random = np.random.default_rng(sequence)

    def uniform(self, low: float, high: float, count: int) -> Any:
        """Uniform numbers."""
        return low + (high - low) * self._uniform((count,))

    def _uniform(self, shape: tuple[int, ...]) -> Any:
        return self.xp.rand(shape, generator=self.generator, **self.made)

    def records(self, line: Line, shape: tuple[int, int]) -> Any:
        """Records of a prior: uniform and Beta drawn on the device, others by NumPy."""
        kind = getattr(getattr(line.distribution, "dist", None), "name", "")
        if not line.whole or kind not in ("uniform", "beta"):
            return self.array(line.records(shape, self.random))
        given = line.distribution
        shapes, move, scale = given.dist._parse_args(*given.args, **given.kwds)
        if kind == "uniform":
            share = self._uniform(shape)
        else:
            a, b = (
                self.xp._standard_gamma(self.xp.full(shape, float(s), **self.made), self.generator)
                for s in shapes
            )
            share = a / (a + b)
        return move + scale * share

    def array(self, x: FloatArray) -> Any:
        """An array of this kind."""
        return self.xp.as_tensor(x, device=self.device)

    def sorted(self, x: Any) -> Any:
        """Rows in ascending order."""
        return x.sort(dim=1).values

    def running(self, x: Any) -> Any:
        """Sums of the first 0, 1, ... numbers of each row."""
        return self.xp.nn.functional.pad(x.cumsum(1), (1, 0))

    def at(self, x: Any, places: Any) -> Any:
        """Numbers at places of each row."""
        return x.gather(1, places)

    def largest(self, x: Any, count: int) -> tuple[Any, Any]:
        """The largest numbers of each row, in descending order, and their places."""
        values, places = x.topk(count, dim=1)
        return values, places

    def within(self, z: Any, low: Any, high: Any, line: Line) -> Any:
        """For sorted rows: how many numbers lie below `low`, and how many not above `high`."""
        near = ROUNDING * (line.high - line.low)
        below = self.xp.where(low <= line.low + near, -np.inf, low)
        above = self.xp.where(high >= line.high - near, np.inf, high)
        begin = self.xp.searchsorted(z, below.contiguous())
        return begin, self.xp.searchsorted(z, above.contiguous(), right=True)
