"""Rényi DP and zero-concentrated DP: limits on the moments of the likelihood ratio.

Both directions are limited. Divergences of releases add up; for k records that change one after the
other they grow by the triangle inequality of Rényi divergences. The profile is the largest that the
limits allow (`dprad.model.moments`); bounds straight from the moments are in `bounds/renyi.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number
from dprad.model.guarantees.base import Guarantee
from dprad.model.guarantees.gaussian import GaussianDP
from dprad.model.guarantees.neighbours import REPLACE_ONE, Neighbours, explains_neighbours
from dprad.model.moments import log_tail, tangents
from dprad.model.parameters import RHO
from dprad.model.privacy_loss import MAX_LOSS, PrivacyLoss, lower_hull
from dprad.numerics.arrays import FloatArray
from dprad.numerics.bisection import first

# Orders at which zero-concentrated DP is read, in units of 1/sqrt(rho), above one.
SCALED = np.geomspace(0.02, 12.0, 80)
# Where a profile ends.
NEGLIGIBLE = 1e-18
# A smaller rho is known by its total variation alone.
TINY = 1e-10
# Ways to split an order in the triangle inequality.
SPLITS = np.geomspace(1e-2, 1e2, 161)


class Moments(Guarantee, ABC):
    """Common to both: what follows from divergences at some orders."""

    moments: ClassVar[bool] = True

    @property
    @abstractmethod
    def read_at(self) -> FloatArray:
        """Orders above one at which the divergences are read."""

    @abstractmethod
    def _renyi(self, orders: FloatArray) -> FloatArray:
        """The largest divergences at these orders."""

    @property
    @abstractmethod
    def kl(self) -> float:
        """The Kullback-Leibler divergence: that of order one."""

    def _log_tail(self, epsilon: FloatArray) -> FloatArray:
        """The logarithm of a profile that is good in the tails; a vector in, a vector out."""
        orders = self.read_at
        return np.asarray(log_tail(epsilon[:, None], orders, self._renyi(orders)).min(axis=1))

    @cached_property
    def _least_tv(self) -> float:
        """From the Kullback-Leibler divergence in both directions: t log((1+t)/(1-t)) = KL.

        Telling only which of two neighbours is likelier, two symmetric outputs have the least sum
        of both directions. Below Pinsker's sqrt(KL/2).
        """
        spent, pinsker = self.kl * (1.0 + 1e-12), min(1.0, float(np.sqrt(self.kl / 2)))
        return first(lambda t: t >= pinsker or bool(2 * t * np.arctanh(t) >= spent), 0.0, pinsker)

    @cached_property
    def _corners(self) -> tuple[FloatArray, FloatArray]:
        """The lower hull of the values known, over E."""
        orders = np.r_[1.0, self.read_at]
        at, known = tangents(orders, np.r_[self.kl, self._renyi(self.read_at)])
        kept = at <= MAX_LOSS
        e, value = np.r_[1.0, np.exp(at[kept])], np.r_[self._least_tv, known[kept]]
        value = np.minimum.accumulate(value)  # a profile falls
        corners = lower_hull(e, value)
        return e[corners], value[corners]

    def _read(self, epsilon: FloatArray) -> FloatArray:
        """The least of the values known: the tail, and chords between the corners."""
        flat = np.ravel(epsilon)
        chords = np.interp(np.exp(np.minimum(flat, MAX_LOSS)), *self._corners)
        tail = np.exp(np.minimum(self._log_tail(flat), 0.0))
        return np.asarray(np.minimum(chords, tail).reshape(epsilon.shape))

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return np.asarray(np.minimum(self._read(epsilon), self.loss.delta(epsilon)))

    def _loss(self) -> PrivacyLoss:
        if self.kl <= TINY:
            return PrivacyLoss.of_point(0.0, self._least_tv)
        top = 1e-6
        while top < MAX_LOSS and self._read(np.array([top]))[0] > NEGLIGIBLE:
            top *= 1.25
        return PrivacyLoss.of_profile(self._read, min(top, MAX_LOSS))

    def _with(self, other: Guarantee) -> Guarantee:
        orders = (
            self.read_at if isinstance(self, RenyiDP) else getattr(other, "read_at", self.read_at)
        )
        added = other._renyi(orders)
        if added is None:
            return super()._with(other)
        return RenyiDP(orders, self._renyi(orders) + added, neighbours=self.neighbours)


@explains_neighbours
@dataclass(frozen=True, repr=False)
class ZCDP(Moments):
    """rho-zero-concentrated DP: the Rényi divergence of every order k is at most rho k.

    If the noise is Gaussian, `GaussianDP` with mu = sqrt(2 rho) says more, and its risk is smaller.

    Parameters
    ----------
    rho
        At least 0.
    neighbours
        ``"replace-one"`` (one record is exchanged), ``"add-remove"`` (with and without the
        person), or ``"unknown"``.

    Examples
    --------
    >>> promise = ZCDP(0.5, neighbours="replace-one")
    >>> round(promise.tv, 3)                # Pinsker: sqrt(rho/2) = 0.5
    0.479
    >>> promise.repeated(4).rho, promise.group(4).rho
    (2.0, 8.0)

    """

    rho: float
    name: ClassVar[str] = "ZCDP"
    short: ClassVar[str] = "zcdp"
    takes: ClassVar = (RHO,)

    def __post_init__(self) -> None:
        Guarantee.__post_init__(self)
        object.__setattr__(self, "rho", number(self.rho, "rho", low=0))

    @property
    def read_at(self) -> FloatArray:
        """Orders above one at which the divergences are read."""
        return np.asarray(1.0 + SCALED / np.sqrt(max(self.rho, TINY)))

    def _renyi(self, orders: FloatArray) -> FloatArray:
        return np.asarray(self.rho * orders)

    @property
    def kl(self) -> float:
        """The Kullback-Leibler divergence."""
        return self.rho

    @property
    def gaussian(self) -> GaussianDP:
        """What is promised if the noise is Gaussian."""
        return GaussianDP(float(np.sqrt(2 * self.rho)), neighbours=self.neighbours)

    def _log_tail(self, epsilon: FloatArray) -> FloatArray:
        # the best order is near (epsilon + rho)/(2 rho); any is valid
        rho = max(self.rho, TINY)
        near = 1.0 + np.maximum((epsilon - rho) / (2 * rho), 1e-3)
        orders = 1.0 + (near[:, None] - 1.0) * np.geomspace(0.5, 2.0, 33)
        return np.asarray(log_tail(epsilon[:, None], orders, rho * orders).min(axis=1))

    def _repeated(self, times: int) -> Guarantee:
        return ZCDP(self.rho * times, neighbours=self.neighbours)

    def _with(self, other: Guarantee) -> Guarantee:
        if isinstance(other, GaussianDP):
            other = ZCDP(other.mu * other.mu / 2, neighbours=other.neighbours)
        if isinstance(other, ZCDP):
            return ZCDP(self.rho + other.rho, neighbours=self.neighbours)
        return super()._with(other)

    def _group(self, size: int) -> Guarantee:
        return ZCDP(size * size * self.rho, neighbours=self.neighbours)

    def _replace_one(self) -> Guarantee:
        return ZCDP(4 * self.rho, neighbours=REPLACE_ONE)

    def _numbers(self) -> dict[str, float]:
        return {"rho": self.rho}

    def __repr__(self) -> str:
        return f"ZCDP({self.rho!r}, neighbours={self.neighbours!r})"


@explains_neighbours
@dataclass(frozen=True, init=False, repr=False)
class RenyiDP(Moments):
    """Rényi DP: the divergence of each of these orders is at most its epsilon.

    Parameters
    ----------
    orders
        Numbers above 1.
    epsilons
        A limit for each order, at least 0; an infinite one says nothing.
    neighbours
        ``"replace-one"`` (one record is exchanged), ``"add-remove"`` (with and without the
        person), or ``"unknown"``.

    Examples
    --------
    >>> promise = RenyiDP([2, 4, 8], [0.2, 0.4, 0.8], neighbours="replace-one")
    >>> promise.repeated(2).epsilons
    (0.4, 0.8, 1.6)
    >>> round(promise.epsilon_at(1e-5), 2)
    2.01

    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]
    name: ClassVar[str] = "RenyiDP"

    def __init__(
        self,
        orders: Sequence[float] | FloatArray,
        epsilons: Sequence[float] | FloatArray,
        *,
        neighbours: Neighbours,
    ) -> None:
        one, two = _numbers(orders, "orders"), _numbers(epsilons, "epsilons")
        if len(one) != len(two):
            raise DpradError(
                f"orders and epsilons must be equally many, but are {len(one)} and {len(two)}."
            )
        if np.any(one <= 1) or not np.all(np.isfinite(one)):
            raise DpradError("orders must be finite numbers above 1.")
        if np.any(two < 0):
            raise DpradError("epsilons must be at least 0.")
        kept = np.flatnonzero(np.isfinite(two))
        if not len(kept):
            raise DpradError("epsilons must have at least one finite value.")
        kept = kept[np.argsort(one[kept], kind="stable")]
        # divergences grow with the order
        least = np.minimum.accumulate(two[kept][::-1])[::-1]
        object.__setattr__(self, "orders", tuple(one[kept].tolist()))
        object.__setattr__(self, "epsilons", tuple(least.tolist()))
        object.__setattr__(self, "neighbours", neighbours)
        self.__post_init__()

    @property
    def read_at(self) -> FloatArray:
        """Orders above one at which the divergences are read."""
        return np.asarray(self.orders)

    @property
    def kl(self) -> float:
        """The Kullback-Leibler divergence."""
        return self.epsilons[0]

    def _renyi(self, orders: FloatArray) -> FloatArray:
        # (k-1) R(k) is convex and 0 at one: chords are above it
        own, limit = np.asarray(self.orders), np.asarray(self.epsilons)
        moment = np.interp(orders, np.r_[1.0, own], np.r_[0.0, (own - 1) * limit], right=np.inf)
        at = np.minimum(np.searchsorted(own, orders), len(own) - 1)
        exact = np.where(own[at] == orders, limit[at], np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = np.where(orders > 1, moment / (orders - 1), limit[0])
        return np.asarray(np.minimum(exact, np.maximum(chord, limit[0])))

    def _repeated(self, times: int) -> Guarantee:
        added = [times * e for e in self.epsilons]
        return RenyiDP(self.orders, added, neighbours=self.neighbours)

    def _group(self, size: int) -> Guarantee:
        result: RenyiDP | None = None
        power, left = self, size
        while left:
            if left & 1:
                result = power if result is None else result._followed(power)
            left >>= 1
            if left:
                power = power._followed(power)
        assert result is not None
        return result

    def _followed(self, other: RenyiDP) -> RenyiDP:
        """The divergence from the first to the last of three laws, from both steps.

        ``R(k) <= (k - 1/p)/(k - 1) R1(p k) + R2((p k - 1)/(p - 1))`` for every p > 1.
        """
        top = min(self.orders[-1], other.orders[-1])
        half = (top + 1) / 2  # p k and (p k - 1)/(p - 1) are both at most `top` up to here
        steps = np.r_[self.orders, other.orders]
        orders = np.unique(np.r_[(steps + 1) / 2, steps, half])
        k = orders[orders <= half][:, None]
        p = 1.0 + SPLITS
        one, two = self._renyi(p * k), other._renyi((p * k - 1) / (p - 1))
        found = ((k - 1 / p) / (k - 1) * one + two).min(axis=1)
        return RenyiDP(k[:, 0], found, neighbours=self.neighbours)

    def _replace_one(self) -> Guarantee:
        return self._followed(self).reading(REPLACE_ONE)

    def describe(self) -> dict[str, Any]:
        """The guarantee as plain data, for output."""
        curve = {"orders": list(self.orders), "epsilons": list(self.epsilons)}
        return super().describe() | curve

    def __repr__(self) -> str:
        few = len(self.orders) <= 8
        orders = list(self.orders) if few else f"<{len(self.orders)} orders>"
        epsilons = list(self.epsilons) if few else "..."
        return f"RenyiDP({orders}, {epsilons}, neighbours={self.neighbours!r})"


def _numbers(values: Any, name: str) -> FloatArray:
    try:
        result = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise DpradError(f"{name} must be a list of numbers, but is {values!r}.") from None
    if result.ndim != 1 or not len(result) or np.any(np.isnan(result)):
        raise DpradError(f"{name} must be a list of numbers, but is {values!r}.")
    return result
