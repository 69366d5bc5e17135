"""The noise of a table: its kind, its scale, and how well it hides a shift of one cell.

`scale` is the b of Laplace and geometric noise (probability falls by e in b steps) and the standard
deviation of Gaussian noise. In a cell that moves by v, an output o has the log-ratio
``(|o| - |o - v|)/b`` or ``(o v - v^2/2)/scale^2``; everything else cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from dprad.mechanisms.gaussian import DiscreteGaussian, Gaussian
from dprad.mechanisms.laplace import Geometric, Laplace
from dprad.model.guarantees import GaussianDP, Guarantee, PureDP
from dprad.model.guarantees.base import of_directions
from dprad.model.guarantees.neighbours import Neighbours
from dprad.model.privacy_loss import MAX_LOSS, PrivacyLoss
from dprad.numerics.arrays import FloatArray

LINES: dict[str, Any] = {
    "laplace": Laplace,
    "geometric": Geometric,
    "gaussian": Gaussian,
    "discrete-gaussian": DiscreteGaussian,
}
# Total losses for which a distribution of losses is computed; outside, epsilon alone is promised.
SMALL = 1e-6
# A shift may exceed another by this share from rounding alone.
ROUNDING = 1e-12

Shift = tuple[float, int]


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent noise on every cell."""

    kind: str
    scale: float

    @property
    def normal(self) -> bool:
        """Whether it is Gaussian, continuous or discrete."""
        return "gaussian" in self.kind

    @property
    def whole(self) -> bool:
        """Whether it adds whole numbers to whole numbers."""
        return bool(LINES[self.kind].whole)

    @property
    def silent(self) -> bool:
        """Whether there is so much of it that nothing is said."""
        return bool(np.isinf(self.scale))

    def line(self, span: float = 1.0) -> Any:
        """The mechanism that adds it to a single number of this range."""
        kind = LINES[self.kind]
        if self.normal:
            return kind(sigma=self.scale, sensitivity=span)
        return kind(epsilon=span / self.scale, sensitivity=span)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Noise of this shape."""
        if self.silent:
            return np.where(rng.random(shape) < 0.5, -np.inf, np.inf)
        if self.kind == "laplace":
            return rng.laplace(0.0, self.scale, shape)
        return np.asarray(self.line().sample(np.zeros(shape), rng))

    def log_density(self, outputs: FloatArray) -> FloatArray:
        """Log-probability (or -density) of a cell to which nobody contributes."""
        if self.silent:
            return np.full(outputs.shape, -np.log(2.0))
        return np.asarray(self.line().log_likelihood(outputs, 0.0))

    def ratio(self, outputs: FloatArray, values: Any) -> FloatArray:
        """Log-ratio of these outputs, with such contributions against without."""
        if self.silent:
            return np.zeros(np.broadcast_shapes(outputs.shape, np.shape(values)))
        if self.normal:
            return np.asarray((outputs - values / 2) * (values / self.scale**2))
        return np.asarray((np.abs(outputs) - np.abs(outputs - values)) / self.scale)

    def of_mean(self, times: int) -> Noise:
        """That of the mean of several outputs, which says all that they do if it is Gaussian."""
        return Noise(self.kind, self.scale / float(np.sqrt(times)))

    def _pair(self, shift: float) -> PrivacyLoss:
        """Two data sets that differ by this shift in one cell."""
        if self.normal:
            return self.line(shift).guarantee.loss  # type: ignore[no-any-return]
        loss = shift / self.scale
        if self.kind == "geometric" and shift == 1:
            return PrivacyLoss.of_point(loss, 0.0)
        if self.kind == "geometric":
            return PrivacyLoss.of_profile(lambda e: _geometric(e, int(shift), self.scale), loss)
        return PrivacyLoss.of_profile(lambda e: -np.expm1(np.minimum(e - loss, 0.0) / 2), loss)


def promise(moves: Sequence[Sequence[tuple[Noise, float, int]]], where: Neighbours) -> Guarantee:
    """What noise on several cells promises, if two data sets may differ by one of these moves.

    A move lists the noise of a cell, its shift, and the number of such cells. The cells are
    independent, so their losses add up: exact for Gaussian noise, else rounded up.
    """
    whole = [[m for m in move if m[1] > 0 and not m[0].silent] for move in moves]
    parts = [move for move in whole if move]
    if not parts:
        return PureDP(0.0, neighbours=where)
    if all(noise.kind == "gaussian" for move in parts for noise, _, _ in move):
        square = max(sum(n * (s / noise.scale) ** 2 for noise, s, n in move) for move in parts)
        return GaussianDP(float(np.sqrt(square)), neighbours=where)
    pure = all(not noise.normal for move in parts for noise, _, _ in move)
    total = max(sum(n * s / noise.scale for noise, s, n in move) for move in parts)
    if pure and not SMALL <= total <= MAX_LOSS:
        return PureDP(total, neighbours=where)
    pairs = [_composed(move) for move in parts]
    if not pure and len(pairs) == 1:
        return of_directions(pairs[0], None, where)
    top = total if pure else max(float(pair.losses[-1]) for pair in pairs)

    def delta(epsilon: FloatArray) -> FloatArray:
        most = np.max([pair.delta(epsilon) for pair in pairs], axis=0)
        return np.where(pure & (epsilon >= total * (1 - ROUNDING)), 0.0, most)

    return of_directions(PrivacyLoss.of_profile(delta, top), None, where)


def _composed(move: Sequence[tuple[Noise, float, int]]) -> PrivacyLoss:
    return reduce(PrivacyLoss.compose, (n._pair(s).repeated(count) for n, s, count in move))


def _geometric(epsilon: FloatArray, shift: int, scale: float) -> FloatArray:
    """The profile of geometric noise: outputs from the first at which the log-ratio, which is
    (2 k - shift)/scale between 0 and the shift, exceeds epsilon.
    """
    first = np.floor((epsilon * scale + shift) / 2) + 1

    def beyond(k: FloatArray) -> FloatArray:
        """Pr[noise >= k]."""
        a = np.exp(-1.0 / scale)
        tail = np.exp(-np.abs(k) / scale) / (1 + a)
        return np.asarray(np.where(k > 0, tail, 1.0 - a * tail))

    gained = beyond(first - shift) - np.exp(epsilon) * beyond(first)
    return np.asarray(np.where(first > shift, 0.0, np.maximum(gained, 0.0)))
