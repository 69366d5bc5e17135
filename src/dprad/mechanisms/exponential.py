"""The exponential mechanism: on a finite set with any utility, and on an interval.

`Exponential` picks an output o for record z with probability proportional to
``exp(epsilon u(z, o)/(2 Delta))``, where Delta is the sensitivity of the utility.
`ExponentialInterval` is the paper's example: outputs in an interval, utility ``-|z - o|``, so
density proportional to ``exp(-|z - o|/scale)``. The paper's text has scale 2 Delta/epsilon, its
code Delta/epsilon; `factor` chooses. The stated promise is exact: on an interval, factor 1
gives epsilon-DP and factor 2 gives epsilon/2-DP; the normaliser costs nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, interval, number
from dprad.mechanisms.additive import Ranged
from dprad.mechanisms.base import Card
from dprad.mechanisms.categorical import Finite
from dprad.mechanisms.channel import Channel
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON
from dprad.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exponential(Finite):
    """Exponential mechanism on a finite set: outputs are picked by utility.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    utility
        Matrix with one row per record and one column per output.
    sensitivity
        Largest change of the utility of an output between records; default: computed from
        `utility`.

    Examples
    --------
    >>> import math
    >>> pick = Exponential(epsilon=2 * math.log(3), utility=[[1, 0], [0, 1]])
    >>> round(float(pick.channel.matrix[0, 0]), 12)         # 3/(3 + 1)
    0.75

    """

    epsilon: float
    utility: Any = field(repr=False)
    sensitivity: float | None = None

    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon", low=0))
        try:
            utility = np.array(self.utility, dtype=float)
        except (TypeError, ValueError):
            raise DpradError("utility must be a matrix of numbers.") from None
        if utility.ndim != 2 or 0 in utility.shape or not np.all(np.isfinite(utility)):
            raise DpradError(
                "utility must be a matrix of finite numbers, one row per record and one column "
                f"per output, but has shape {utility.shape} or contains infinity."
            )
        utility.setflags(write=False)
        object.__setattr__(self, "utility", utility)
        spread = float(np.ptp(utility, axis=0).max())
        given = spread if self.sensitivity is None else self.sensitivity
        given = number(given, "sensitivity", low=0)
        if given < spread * (1 - 1e-12):
            raise DpradError(
                "sensitivity must cover the utilities, which differ by more between records, but "
                f"is {given:g}."
            )
        object.__setattr__(self, "sensitivity", given)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Exponential):
            return NotImplemented
        mine, theirs = ((m.epsilon, m.sensitivity) for m in (self, other))
        return mine == theirs and np.array_equal(self.utility, other.utility)

    def __hash__(self) -> int:
        return hash((self.epsilon, self.sensitivity, self.utility.shape))

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of records."""
        return int(self.utility.shape[0])

    @property
    def count(self) -> int:
        """Number of outputs."""
        return int(self.utility.shape[1])

    @property
    def channel(self) -> Channel:
        """Probabilities of the outputs, records x outputs."""
        p = np.exp(self._log_probabilities())
        return Channel(p / p.sum(axis=1, keepdims=True))

    def _log_probabilities(self) -> FloatArray:
        if self.sensitivity == 0:
            score = np.zeros_like(self.utility)
        else:
            score = self.utility * (self.epsilon / (2 * self.sensitivity))  # type: ignore[operator]
        score = score - score.max(axis=1, keepdims=True)
        return np.asarray(score - np.log(np.exp(score).sum(axis=1, keepdims=True)))

    @property
    def guarantee(self) -> PureDP:
        """The largest log-ratio that occurs; at most epsilon. O(m K)."""
        log = self._log_probabilities()
        return PureDP(float(np.ptp(log, axis=0).max()), neighbours=REPLACE_ONE)

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """One output per record."""
        return self.channel.sample(records, rng)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records."""
        return np.asarray(self._log_probabilities()[np.asarray(records), np.asarray(outputs)])

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {
            "kind": "Exponential",
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "records": self.size,
            "outputs": int(self.utility.shape[1]),
        }


class CutLaplace(Ranged):
    """Density proportional to ``exp(-rate |z - o|)`` within `bounds`; subclasses define the
    rate.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def rate(self) -> float:
        """1/scale."""

    def total(self, values: Any) -> FloatArray:
        """The integral of ``exp(-rate |z - o|)`` over the interval, in units of 1/rate."""
        z, (low, high) = np.asarray(values, dtype=float), self.bounds
        return np.asarray(-np.expm1(-self.rate * (z - low)) - np.expm1(-self.rate * (high - z)))

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """One output per record: a side, then a truncated exponential. O(n)."""
        z, (low, high) = np.asarray(records, dtype=float), self.bounds
        if z.size and not (z.min() >= low and z.max() <= high):
            raise DpradError(
                f"{type(self).__name__} reads numbers in [{low:g}, {high:g}], but got others. Set "
                "bounds=(low, high)."
            )
        if self.rate == 0:
            return rng.uniform(low, high, z.shape)
        below = -np.expm1(-self.rate * (z - low))
        above = -np.expm1(-self.rate * (high - z))
        left = rng.random(z.shape) * (below + above) < below
        mass = np.where(left, below, above)
        away = -np.log1p(-rng.random(z.shape) * mass) / self.rate
        return np.clip(np.where(left, z - away, z + away), low, high)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-density."""
        t, z = np.broadcast_arrays(np.asarray(outputs, float), np.asarray(records, float))
        low, high = self.bounds
        if self.rate == 0:
            inside = np.full(t.shape, -np.log(high - low))
        else:
            inside = np.log(self.rate) - np.log(self.total(z)) - self.rate * np.abs(t - z)
        return np.where((t < low) | (t > high), -np.inf, inside)

    def error(self, confidence: float = 0.95) -> float:
        """The output is this close to every record with at least the given probability."""
        level = number(confidence, "confidence", low=0, high=1)
        low, high = self.bounds
        if self.rate == 0:
            return (high - low) * level
        # the worst record is at an end, where all the noise goes one way
        with np.errstate(divide="ignore"):
            reach = -np.log1p(level * np.expm1(-self.rate * (high - low))) / self.rate
        return float(min(reach, high - low))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialInterval(CutLaplace):
    """Exponential mechanism on an interval, with utility minus the distance to the record.

    Parameters
    ----------
    epsilon
        Privacy loss of the textbook formula. The promise is epsilon/`factor`.
    bounds
        Interval (low, high) that contains all records and all outputs.
    factor
        The density is proportional to ``exp(-epsilon |z - o|/(factor (high - low)))``. With the
        default 2, the general formula of the exponential mechanism, the promise is epsilon/2; with
        1, the paper's code, it is epsilon.

    Examples
    --------
    >>> mechanism = ExponentialInterval(epsilon=1.0, bounds=(0, 10))
    >>> mechanism.rate, mechanism.guarantee.epsilon
    (0.05, 0.5)

    """

    epsilon: float
    bounds: tuple[float, float] = (0.0, 1.0)
    factor: float = 2.0

    card: ClassVar = Card(
        name="exponential",
        title="exponential mechanism",
        takes=(EPSILON,),
        reads="range",
    )
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon", low=0))
        object.__setattr__(self, "factor", number(self.factor, "factor", low=1))
        object.__setattr__(self, "bounds", interval(self.bounds, "bounds"))

    @property
    def rate(self) -> float:
        """1/scale: epsilon/(factor (high - low))."""
        return self.epsilon / (self.factor * (self.bounds[1] - self.bounds[0]))

    @property
    def guarantee(self) -> PureDP:
        """epsilon/factor: attained by records at both ends and an output at one of them."""
        return PureDP(self.epsilon / self.factor, neighbours=REPLACE_ONE)
