"""Numbers in an interval, reported without bias: Duchi et al., piecewise, and their hybrid.

All are written for [-1, 1] and read `bounds` shifted and scaled to it; outputs are in the units of
the records. Duchi: one of two values +-C, C = (e^eps + 1)/(e^eps - 1), the upper one more often for
larger records. Piecewise (Wang et al. 2019): uniform on a window around the record with high
probability, else uniform on the rest of [-C, C], C = (e^{eps/2} + 1)/(e^{eps/2} - 1). Hybrid: a
coin between both, with the weight ``1 - e^{-eps/2}`` on the second if epsilon exceeds 0.61.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, interval, number
from dprad.mechanisms.additive import Ranged
from dprad.mechanisms.base import Card, quotient
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON
from dprad.numerics.arrays import BoolArray, FloatArray

# Beyond this epsilon powers leave floating point; long before, nothing is hidden.
LARGEST = 1400.0
# Up to this epsilon the hybrid is Duchi's mechanism: ln of the root of its variance equation.
HYBRID_FROM = float(
    np.log(
        (-5 + 2 * (6353 - 405 * 241**0.5) ** (1 / 3) + 2 * (6353 + 405 * 241**0.5) ** (1 / 3)) / 27
    )
)


class _Bounded(Ranged):
    """Common to all three: the promise, the interval, and the scale to [-1, 1]."""

    __slots__ = ()
    epsilon: float
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon", low=0, high=LARGEST))
        object.__setattr__(self, "bounds", interval(self.bounds, "bounds"))

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for any two numbers within the bounds."""
        return PureDP(self.epsilon, neighbours=REPLACE_ONE)

    @property
    def half(self) -> float:
        """Half the length of the interval."""
        return (self.bounds[1] - self.bounds[0]) / 2

    def scaled(self, values: Any) -> FloatArray:
        """Values in the units of the records, scaled to [-1, 1]."""
        low = self.bounds[0]
        return np.asarray((np.asarray(values, dtype=float) - low) / self.half - 1.0)

    def _inside(self, records: Any) -> FloatArray:
        """Records scaled to [-1, 1]; values outside the bounds are refused."""
        x = self.scaled(records)
        if x.size and not np.all(np.abs(x) <= 1 + 1e-9):
            raise DpradError(
                f"{type(self).__name__} reads numbers in [{self.bounds[0]:g}, {self.bounds[1]:g}], "
                "but got others. Set bounds=(low, high)."
            )
        return x

    @property
    def _blur(self) -> float:
        """How far an output may move on the scale of [-1, 1] when rounded to a float."""
        largest = max(map(abs, self.bounds)) / self.half + 2.0
        return 4.0 * float(np.finfo(float).eps) * largest

    def _unscaled(self, outputs: Any) -> FloatArray:
        return np.asarray(self.bounds[0] + (np.asarray(outputs) + 1.0) * self.half)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duchi(_Bounded):
    """Duchi et al.: one of two values, whose mean is the record.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    bounds
        Interval (low, high) that contains all records.

    Examples
    --------
    >>> import math
    >>> Duchi(epsilon=math.log(3)).reach      # (3 + 1)/(3 - 1)
    2.0

    """

    epsilon: float
    bounds: tuple[float, float] = (-1.0, 1.0)

    card: ClassVar = Card(name="duchi", title="Duchi's report", takes=(EPSILON,), reads="range")

    @property
    def reach(self) -> float:
        """C, the size of the output on the scale of [-1, 1]; infinite at epsilon 0."""
        half = float(np.tanh(self.epsilon / 2))
        return 1.0 / half if half > 0 else float("inf")

    def up(self, scaled: FloatArray) -> FloatArray:
        """Probability of the upper value.

        Parameters
        ----------
        scaled
            Records on the scale of [-1, 1].

        Returns
        -------
        ndarray
            Probabilities.

        Examples
        --------
        >>> import math
        >>> float(Duchi(epsilon=math.log(3)).up(1.0))         # 3/(3 + 1)
        0.75

        """
        return np.asarray((1.0 + scaled * np.tanh(self.epsilon / 2)) / 2)

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record. O(n)."""
        x = self._inside(records)
        sign = np.where(rng.random(x.shape) < self.up(x), 1.0, -1.0)
        return self._unscaled(sign * self.reach)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of the upper or the lower value."""
        upper = np.asarray(outputs, dtype=float) > sum(self.bounds) / 2
        x = self.scaled(records)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(upper, self.up(x), self.up(-x))))

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated mean of `people` reports, at the worst record."""
        size = self.half * self.reach
        return quotient(size, people / size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(_Bounded):
    """Piecewise mechanism: uniform on a window around the record, or on the rest.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    bounds
        Interval (low, high) that contains all records.

    Examples
    --------
    >>> import math
    >>> Piecewise(epsilon=2 * math.log(3)).reach      # (3 + 1)/(3 - 1)
    2.0

    """

    epsilon: float
    bounds: tuple[float, float] = (-1.0, 1.0)

    card: ClassVar = Card(
        name="piecewise", title="piecewise report", takes=(EPSILON,), reads="range"
    )

    @property
    def reach(self) -> float:
        """C, the largest output on the scale of [-1, 1]; infinite at epsilon 0."""
        half = float(np.tanh(self.epsilon / 4))
        return 1.0 / half if half > 0 else float("inf")

    @property
    def near(self) -> float:
        """Probability of the window, ``e^{eps/2}/(e^{eps/2} + 1)``."""
        return 1.0 / (1.0 + float(np.exp(-self.epsilon / 2)))

    @property
    def length(self) -> float:
        """C - 1, the length of the window, to all digits."""
        shrink = float(np.exp(-self.epsilon / 2))
        return 2.0 * shrink / float(-np.expm1(-self.epsilon / 2))

    def window(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Start and end of the window of a record, on the scale of [-1, 1].

        Parameters
        ----------
        scaled
            Records on the scale of [-1, 1].

        Returns
        -------
        tuple of ndarray
            Starts and ends.

        Examples
        --------
        >>> import math
        >>> [round(float(end), 12) for end in Piecewise(epsilon=2 * math.log(3)).window(0.0)]
        [-0.5, 0.5]

        """
        low = (self.reach + 1.0) / 2 * scaled - self.length / 2
        return low, low + self.length

    @property
    def log_densities(self) -> tuple[float, float]:
        """Log-density inside and outside the window, on the scale of [-1, 1]."""
        # near / (C - 1), and e^-eps times it
        inside = np.log(self.near) - np.log(self.length)
        return float(inside), float(inside - self.epsilon)

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record. O(n)."""
        x = self._inside(records)
        if not np.isfinite(self.reach):
            return np.where(rng.random(x.shape) < 0.5, -np.inf, np.inf)
        low, high = self.window(x)
        c, u = self.reach, rng.random(x.shape)
        # the rest is two pieces, C + 1 long together
        rest = -c + u * (c + 1.0)
        rest = np.where(rest < low, rest, rest + self.length)
        inside = rng.random(x.shape) < self.near
        return self._unscaled(np.where(inside, low + u * (high - low), rest))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-density."""
        t, x = np.broadcast_arrays(self.scaled(outputs), self.scaled(records))
        if not np.isfinite(self.reach):
            return np.full(t.shape, -np.log(2.0))
        low, high = self.window(x)
        inside, outside = self.log_densities
        # an output is rounded, and a window may be narrower than the rounding
        blur = self._blur
        value = np.where((t >= low - blur) & (t <= high + blur), inside, outside)
        value = np.where(np.abs(t) > self.reach * (1 + 1e-12) + blur, -np.inf, value)
        return np.asarray(value - np.log(self.half))

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated mean of `people` reports, at the worst record (an end)."""
        # x^2/(h - 1) + (h + 3)/(3 (h - 1)^2) with h = e^{eps/2} and x = 1
        shrink = float(np.exp(-self.epsilon / 2))
        rise = float(-np.expm1(-self.epsilon / 2))  # (h - 1)/h
        worst = quotient(shrink, rise) + quotient(shrink + 3.0 * shrink**2, 3.0 * rise**2)
        return quotient(self.half * self.half * worst, people)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid(_Bounded):
    """Hybrid mechanism: piecewise with probability `share`, else Duchi.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    bounds
        Interval (low, high) that contains all records.

    Examples
    --------
    >>> Hybrid(epsilon=0.5).share, round(Hybrid(epsilon=2.0).share, 6)     # 1 - 1/e
    (0.0, 0.632121)

    """

    epsilon: float
    bounds: tuple[float, float] = (-1.0, 1.0)

    card: ClassVar = Card(name="hybrid", title="hybrid report", takes=(EPSILON,), reads="range")

    @property
    def share(self) -> float:
        """How often the piecewise mechanism is run."""
        return float(-np.expm1(-self.epsilon / 2)) if self.epsilon > HYBRID_FROM else 0.0

    def edges(self) -> list[float]:
        """Where the piecewise mechanism comes in."""
        return [HYBRID_FROM]

    @property
    def parts(self) -> tuple[Piecewise, Duchi]:
        """The two mechanisms."""
        kind = {"epsilon": self.epsilon, "bounds": self.bounds}
        return Piecewise(**kind), Duchi(**kind)  # type: ignore[arg-type]

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record. O(n)."""
        x = np.asarray(records, dtype=float)
        piecewise, duchi = self.parts
        smooth = rng.random(x.shape) < self.share
        plain = piecewise.sample(x, rng)
        # with hardly any noise, a rounded output may equal one of Duchi's two values
        plain = np.where(self._atom(plain), np.nextafter(plain, sum(self.bounds) / 2), plain)
        return np.where(smooth, plain, duchi.sample(x, rng))

    def _atom(self, outputs: FloatArray) -> BoolArray:
        """Which outputs are one of Duchi's two values."""
        duchi = self.parts[1]
        ends = duchi._unscaled(np.array([-duchi.reach, duchi.reach]))
        return np.asarray((outputs == ends[0]) | (outputs == ends[1]))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of Duchi's two values, log-density of all others."""
        piecewise, duchi = self.parts
        t = np.asarray(outputs, dtype=float)
        with np.errstate(divide="ignore"):
            smooth = np.log(self.share) + piecewise.log_likelihood(t, records)
            other = -self.epsilon / 2 if self.share > 0 else 0.0  # log of 1 - share
            steps = other + duchi.log_likelihood(t, records)
        return np.asarray(np.where(self._atom(t), steps, smooth))

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated mean of `people` reports, at the worst record."""
        if self.share == 0.0:
            return self.parts[1].variance(people)
        # both variances are linear in x^2: an end or the middle is worst
        c = self.parts[1].reach
        shrink = float(np.exp(-self.epsilon / 2))
        rise = float(-np.expm1(-self.epsilon / 2))
        middle = quotient(shrink + 3.0 * shrink**2, 3.0 * rise**2)
        ends = middle + quotient(shrink, rise)
        worst = max(
            self.share * middle + (1.0 - self.share) * c * c,
            self.share * ends + (1.0 - self.share) * (c * c - 1.0),
        )
        return quotient(self.half * self.half * worst, people)
