"""(epsilon, delta)-DP and its special cases: pure DP (delta = 0), total variation (epsilon = 0)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dprad.errors import number
from dprad.model.guarantees.base import Guarantee, Numeric
from dprad.model.guarantees.neighbours import REPLACE_ONE, Neighbours, explains_neighbours
from dprad.model.parameters import DELTA, EPSILON, TV, Goal, Parameter
from dprad.model.privacy_loss import PrivacyLoss
from dprad.numerics.arrays import FloatArray


@explains_neighbours
@dataclass(frozen=True, init=False, repr=False)
class ApproxDP(Guarantee):
    """(epsilon, delta)-differential privacy.

    The value of delta is stored as `failure`, since `delta(epsilon)` is the profile.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0.
    delta
        Probability of failure, between 0 and 1.
    neighbours
        ``"replace-one"`` (one record is exchanged) or ``"add-remove"`` (with and without the
        person).

    Examples
    --------
    >>> ApproxDP(1.0, 1e-6, neighbours="replace-one").delta(1.0)
    1e-06

    """

    epsilon: float
    failure: float
    name: ClassVar[str] = "ApproxDP"
    short: ClassVar[str] = "approx"
    takes: ClassVar[tuple[Parameter, ...]] = (EPSILON, DELTA)

    def __init__(self, epsilon: float, delta: float, *, neighbours: Neighbours) -> None:
        object.__setattr__(self, "epsilon", number(epsilon, "epsilon", low=0))
        object.__setattr__(self, "failure", number(delta, "delta", low=0, high=1))
        object.__setattr__(self, "neighbours", neighbours)
        self.__post_init__()

    @classmethod
    def first_guess(cls, goal: Goal) -> float | None:
        """Starting value for a calibration: that of randomised response with two equal values.

        Parameters
        ----------
        goal
            What the calibration aims for.

        Returns
        -------
        float or None
            None if there is no epsilon to guess.

        Examples
        --------
        >>> from dprad.model.parameters import Goal
        >>> goal = Goal(risk=0.1, share=0.2, values=2, fixed={})
        >>> round(PureDP.first_guess(goal), 6)
        0.405465

        """
        if EPSILON not in cls.takes:
            return None
        return float(np.log1p(2 * goal.share / (1.0 - goal.share)))

    @property
    def point(self) -> tuple[float, float]:
        """(epsilon, delta)."""
        return self.epsilon, self.failure

    def _loss(self) -> PrivacyLoss:
        return PrivacyLoss.of_point(self.epsilon, self.failure)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        # delta + (1 - delta) (e^E - e^eps)_+ / (1 + e^E), scaled by e^-E against overflow
        gap = np.maximum(-np.expm1(np.minimum(epsilon - self.epsilon, 0.0)), 0.0)
        value = self.failure + (1.0 - self.failure) * gap / (1.0 + np.exp(-self.epsilon))
        return np.asarray(value)

    def _tradeoff(self, alpha: FloatArray) -> FloatArray:
        rest = 1.0 - self.failure
        steep = rest - np.exp(min(self.epsilon, 700.0)) * alpha
        flat = (rest - alpha) * np.exp(-self.epsilon)
        return np.asarray(np.maximum(np.maximum(steep, flat), 0.0))

    def _gap(self, alpha: FloatArray) -> FloatArray:
        grow = np.expm1(min(self.epsilon, 700.0))
        steep = self.failure + grow * alpha
        flat = -np.expm1(-self.epsilon) * (1.0 - alpha) + self.failure * np.exp(-self.epsilon)
        return np.asarray(np.minimum(steep, flat))

    def _renyi(self, orders: FloatArray) -> FloatArray | None:
        if self.failure > 0:
            return None
        # of randomised response: p^a (1-p)^(1-a) + (1-p)^a p^(1-a), with p/(1-p) = e^epsilon
        up, down = -np.logaddexp(0.0, -self.epsilon), -np.logaddexp(0.0, self.epsilon)
        moment = np.logaddexp(orders * up + (1 - orders) * down, orders * down + (1 - orders) * up)
        return np.asarray(np.minimum(moment / (orders - 1), self.epsilon))

    def _repeated(self, times: int) -> Guarantee:
        loss = PrivacyLoss.of_points(self.epsilon, self.failure, times)
        return Numeric(loss, neighbours=self.neighbours)

    def _numbers(self) -> dict[str, float]:
        return {"epsilon": self.epsilon, "delta": self.failure}

    def __repr__(self) -> str:
        return f"ApproxDP({self.epsilon!r}, {self.failure!r}, neighbours={self.neighbours!r})"


@explains_neighbours
class PureDP(ApproxDP):
    """epsilon-differential privacy.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0.
    neighbours
        ``"replace-one"`` (one record is exchanged) or ``"add-remove"`` (with and without the
        person).

    Examples
    --------
    >>> promise = PureDP(1.0, neighbours="replace-one")
    >>> round(promise.tv, 6)            # tanh(1/2)
    0.462117

    """

    name: ClassVar[str] = "PureDP"
    short: ClassVar[str] = "pure"
    takes: ClassVar[tuple[Parameter, ...]] = (EPSILON,)

    def __init__(self, epsilon: float, *, neighbours: Neighbours) -> None:
        super().__init__(epsilon, 0.0, neighbours=neighbours)

    def _numbers(self) -> dict[str, float]:
        return {"epsilon": self.epsilon}

    def __repr__(self) -> str:
        return f"PureDP({self.epsilon!r}, neighbours={self.neighbours!r})"


@explains_neighbours
class TotalVariation(ApproxDP):
    """Total variation of at most `tv`, which is the same as (0, tv)-DP.

    Parameters
    ----------
    tv
        Total variation between neighbours, between 0 and 1.
    neighbours
        ``"replace-one"`` (one record is exchanged) or ``"add-remove"`` (with and without the
        person).

    Examples
    --------
    >>> TotalVariation(0.1, neighbours="replace-one").repeated(2).tv     # 1 - 0.9^2
    0.19

    """

    name: ClassVar[str] = "TotalVariation"
    short: ClassVar[str] = "tv"
    takes: ClassVar[tuple[Parameter, ...]] = (TV,)

    def __init__(self, tv: float, *, neighbours: Neighbours) -> None:
        super().__init__(0.0, number(tv, "tv", low=0, high=1), neighbours=neighbours)

    def _repeated(self, times: int) -> Guarantee:
        return TotalVariation(
            float(-np.expm1(times * np.log1p(-self.failure))) if self.failure < 1 else 1.0,
            neighbours=self.neighbours,
        )

    def _with(self, other: Guarantee) -> Guarantee:
        if not isinstance(other, TotalVariation):
            return super()._with(other)
        a, b = self.failure, other.failure
        return TotalVariation(a + b - a * b, neighbours=self.neighbours)

    def _group(self, size: int) -> Guarantee:
        return TotalVariation(min(1.0, size * self.failure), neighbours=self.neighbours)

    def _replace_one(self) -> Guarantee:
        return TotalVariation(min(1.0, 2.0 * self.failure), neighbours=REPLACE_ONE)

    def _numbers(self) -> dict[str, float]:
        return {"tv": self.failure}

    def __repr__(self) -> str:
        return f"TotalVariation({self.failure!r}, neighbours={self.neighbours!r})"
