"""Guarantee: what is promised, and between which neighbours.

Each guarantee knows its privacy profile, trade-off curve and total variation, composes with
others, and converts from add-remove to replace-one neighbours. RAD compares two records in the
same place, so every bound on it reads the replace-one form. Profiles and curves are symmetric:
they hold in both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number, one_of, whole
from dprad.model.privacy_loss import MAX_LOSS, PrivacyLoss
from dprad.numerics.arrays import FloatArray

# A difference of floats may leave [0, 1] by this.
ROUNDING = 1e-12
# Normal distributions whose means differ by less are compared by quadrature, on so many nodes.
CLOSE, NODES = 1.0, 20
REPLACE_ONE, ADD_REMOVE = "replace-one", "add-remove"
_NEIGHBOURS = (
    "Say neighbours='replace-one' if the promise compares data sets in which one person's record "
    "is exchanged, or 'add-remove' if it compares data sets with and without the person (the "
    "default of Opacus and dp-accounting). It matters: an add-remove epsilon is worth up to twice "
    "as much when a record is replaced."
)
# A profile below this is as good as zero when its range is looked for.
NEGLIGIBLE = 1e-18


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What all guarantees share. Use a class below."""

    neighbours: str = field(default="", kw_only=True)
    name: ClassVar[str] = "guarantee"

    def __post_init__(self) -> None:
        if not self.neighbours:
            raise DpradError(f"neighbours is missing. {_NEIGHBOURS}")
        one_of(self.neighbours, "neighbours", (REPLACE_ONE, ADD_REMOVE), hint=_NEIGHBOURS)

    # -- what each kind defines ----------------------------------------------------------------
    def _loss(self) -> PrivacyLoss:
        raise DpradError("Guarantee is a base class; use PureDP, ApproxDP, GaussianDP or Profile.")

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return self.loss.delta(epsilon)

    def _tradeoff(self, alpha: FloatArray) -> FloatArray:
        return self.loss.tradeoff(alpha)

    def _gap(self, alpha: FloatArray) -> FloatArray:
        return self.loss.gap(alpha)

    # -- what all offer ------------------------------------------------------------------------
    @cached_property
    def loss(self) -> PrivacyLoss:
        """A dominating pair on a grid of privacy losses; exact, or rounded to the safe side."""
        return self._loss()

    @property
    def directions(self) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The pairs present against absent, and absent against present; one, if symmetric."""
        return self.loss, self.loss

    @property
    def symmetric(self) -> bool:
        """Whether both directions are the same."""
        return True

    @property
    def point(self) -> tuple[float, float] | None:
        """(epsilon, delta) if that is the whole promise, else None."""
        return None

    def delta(self, epsilon: Any) -> Any:
        """The profile: the least delta such that (epsilon, delta)-DP is promised.

        Negative epsilon too: ``delta(-e) = 1 - exp(-e) (1 - delta(e))``.
        """
        eps = _real(epsilon, "epsilon")
        size = np.abs(eps)
        value = np.clip(self._delta(size), 0.0, 1.0)
        mirrored = -np.expm1(-size) + np.exp(-size) * value  # no difference next to one
        return _like(epsilon, np.where(eps >= 0, value, mirrored))

    def tradeoff(self, alpha: Any) -> Any:
        """The trade-off curve f: the least miss rate of a test with false-alarm rate alpha."""
        a = _real(alpha, "alpha")
        if np.any((a < 0) | (a > 1)):
            raise DpradError(f"alpha must be between 0 and 1, but is {alpha!r}.")
        return _like(alpha, np.clip(self._tradeoff(a), 0.0, 1.0))

    def gap(self, alpha: float) -> float:
        """``1 - f(alpha) - alpha``: by how much a test beats guessing, to all digits or rounded up.

        Examples
        --------
        >>> tiny = GaussianDP(1e-20, neighbours="replace-one")
        >>> f"{tiny.gap(0.5):.6e}"     # 1e-20/sqrt(2 pi)
        '3.989423e-21'

        """
        a = number(alpha, "alpha", low=0, high=1)
        return float(np.clip(self._gap(np.asarray(a)), 0.0, 1.0 - a))

    @property
    def tv(self) -> float:
        """Total variation between neighbours, ``delta(0)``."""
        return float(self.delta(0.0))

    def epsilon_at(self, delta: float) -> float:
        """The least epsilon such that (epsilon, delta)-DP is promised, rounded up; may be infinite.

        Examples
        --------
        >>> round(GaussianDP(1.0, neighbours="replace-one").epsilon_at(1e-5), 3)
        4.377

        """
        goal = number(delta, "delta", low=0, high=1)
        if self.point is not None and goal == self.point[1]:
            return self.point[0]
        low, high = 0.0, MAX_LOSS
        if self.delta(low) <= goal:
            return 0.0
        if self.delta(high) > goal:
            return float("inf")
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= goal else (middle, high)
        return high

    def compose(self, *others: Guarantee) -> Guarantee:
        """Everything promised for releases that are seen together, chosen adaptively.

        Exact for Gaussian DP and for total variation; numerical and rounded up otherwise (by 1e-4
        of the value or so; more after very many). For the same (epsilon, delta) again and again
        use `repeated`, which is optimal (Kairouz, Oh and Viswanath). Mixed neighbours are
        first converted to replace-one.
        """
        result: Guarantee = self
        for other in others:
            result = _pair(result, other)
        return result

    def repeated(self, times: int) -> Guarantee:
        """The same promise for `times` releases. O(log times) convolutions."""
        count = whole(times, "times", low=1)
        return self if count == 1 else self._repeated(count)

    def _repeated(self, times: int) -> Guarantee:
        return _Numeric(self.loss.repeated(times), neighbours=self.neighbours)

    def replace_one(self) -> Guarantee:
        """The same promise for replaced records."""
        return self if self.neighbours == REPLACE_ONE else self._replace_one()

    def _replace_one(self) -> Guarantee:
        return _Numeric(self.loss.chain(), neighbours=REPLACE_ONE)

    def describe(self) -> dict[str, Any]:
        """Plain words and numbers, for output."""
        return {"kind": self.name, **self._numbers(), "neighbours": self.neighbours}

    def _numbers(self) -> dict[str, float]:
        return {}


@dataclass(frozen=True, eq=False, init=False)
class ApproxDP(Guarantee):
    """(epsilon, delta)-differential privacy.

    Its delta is kept as `failure`, since `delta(epsilon)` is the profile.

    Examples
    --------
    >>> ApproxDP(1.0, 1e-6, neighbours="replace-one").delta(1.0)
    1e-06

    """

    epsilon: float
    failure: float
    name: ClassVar[str] = "ApproxDP"

    def __init__(self, epsilon: float, delta: float, *, neighbours: str = "") -> None:
        object.__setattr__(self, "epsilon", number(epsilon, "epsilon", low=0))
        object.__setattr__(self, "failure", number(delta, "delta", low=0, high=1))
        object.__setattr__(self, "neighbours", neighbours)
        self.__post_init__()

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

    def _repeated(self, times: int) -> Guarantee:
        loss = PrivacyLoss.of_points(self.epsilon, self.failure, times)
        return _Numeric(loss, neighbours=self.neighbours)

    def _numbers(self) -> dict[str, float]:
        return {"epsilon": self.epsilon, "delta": self.failure}

    def __repr__(self) -> str:
        return f"ApproxDP({self.epsilon!r}, {self.failure!r}, neighbours={self.neighbours!r})"


class PureDP(ApproxDP):
    """epsilon-differential privacy.

    Examples
    --------
    >>> promise = PureDP(1.0, neighbours="replace-one")
    >>> round(promise.tv, 6)            # tanh(1/2)
    0.462117

    """

    name: ClassVar[str] = "PureDP"

    def __init__(self, epsilon: float, *, neighbours: str = "") -> None:
        super().__init__(epsilon, 0.0, neighbours=neighbours)

    def _numbers(self) -> dict[str, float]:
        return {"epsilon": self.epsilon}

    def __repr__(self) -> str:
        return f"PureDP({self.epsilon!r}, neighbours={self.neighbours!r})"


class TotalVariation(ApproxDP):
    """Total variation at most `tv`, which is the same as (0, tv)-DP.

    Examples
    --------
    >>> TotalVariation(0.1, neighbours="replace-one").repeated(2).tv     # 1 - 0.9^2
    0.19

    """

    name: ClassVar[str] = "TotalVariation"

    def __init__(self, tv: float, *, neighbours: str = "") -> None:
        super().__init__(0.0, number(tv, "tv", low=0, high=1), neighbours=neighbours)

    def _repeated(self, times: int) -> Guarantee:
        return TotalVariation(
            float(-np.expm1(times * np.log1p(-self.failure))) if self.failure < 1 else 1.0,
            neighbours=self.neighbours,
        )

    def _replace_one(self) -> Guarantee:
        return TotalVariation(min(1.0, 2.0 * self.failure), neighbours=REPLACE_ONE)

    def _numbers(self) -> dict[str, float]:
        return {"tv": self.failure}

    def __repr__(self) -> str:
        return f"TotalVariation({self.failure!r}, neighbours={self.neighbours!r})"


@dataclass(frozen=True, eq=False)
class GaussianDP(Guarantee):
    """mu-Gaussian differential privacy: as hard to tell as N(0, 1) from N(mu, 1).

    `static` may be set where the release is one draw of Gaussian noise on a vector of norm at most
    mu (in units of the noise), or several with vectors fixed in advance; it permits a slightly
    tighter bound. Leave it out for adaptive training.

    Examples
    --------
    >>> GaussianDP(1.0, neighbours="add-remove").replace_one().mu
    2.0

    """

    mu: float
    static: bool = field(default=False, kw_only=True)
    name: ClassVar[str] = "GaussianDP"

    def __post_init__(self) -> None:
        Guarantee.__post_init__(self)
        object.__setattr__(self, "mu", number(self.mu, "mu", low=0))

    def _loss(self) -> PrivacyLoss:
        if self.mu * self.mu <= 1e-300:
            return PrivacyLoss.of_point(0.0, self.tv)
        if self.mu * self.mu / 2 - 9 * self.mu > MAX_LOSS:
            return PrivacyLoss.of_point(0.0, 1.0)
        return PrivacyLoss.of_gaussian(self.mu)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        from scipy.special import erf, log_ndtr, ndtr

        if self.mu == 0:
            return np.zeros_like(epsilon)
        with np.errstate(over="ignore"):
            # in units of mu, no further than any density reaches
            far = np.minimum(epsilon / self.mu, 1e9)
        a, b = self.mu / 2 - far, -self.mu / 2 - far
        rounding = np.finfo(float).eps
        if self.mu <= CLOSE:
            # Phi(a) - Phi(b) - (e^eps - 1) Phi(b)
            rise = _normal_between(b, self.mu)
            value = rise - np.expm1(np.minimum(epsilon, 700.0)) * ndtr(b)
            value += rounding * (16.0 + 2.0 * b * b) * rise
        else:
            value = ndtr(a) - np.exp(np.minimum(epsilon + log_ndtr(b), 0.0))
            # what the difference may have lost to rounding
            value += rounding * (4.0 + 2.0 * np.abs(log_ndtr(b))) * ndtr(a)
        # at zero the difference has a form without cancellation
        at_zero = erf(self.mu / np.sqrt(8.0)) * (1.0 + 4.0 * rounding)
        return np.asarray(np.maximum(np.where(epsilon == 0, at_zero, value), 0.0))

    def _tradeoff(self, alpha: FloatArray) -> FloatArray:
        from scipy.special import ndtr, ndtri

        return np.asarray(ndtr(-ndtri(alpha) - self.mu))

    def _gap(self, alpha: FloatArray) -> FloatArray:
        from scipy.special import ndtri

        x = ndtri(alpha)
        finite = np.isfinite(x)
        return np.where(finite, _normal_between(np.where(finite, x, 0.0), self.mu), 0.0)

    def _repeated(self, times: int) -> Guarantee:
        return GaussianDP(self.mu * float(np.sqrt(times)), neighbours=self.neighbours)

    def _replace_one(self) -> Guarantee:
        return GaussianDP(2 * self.mu, neighbours=REPLACE_ONE)

    def _numbers(self) -> dict[str, float]:
        return {"mu": self.mu}

    def __repr__(self) -> str:
        extra = ", static=True" if self.static else ""
        return f"GaussianDP({self.mu!r}, neighbours={self.neighbours!r}{extra})"


@dataclass(frozen=True, eq=False)
class Profile(Guarantee):
    """Any privacy profile: a function epsilon -> delta, for epsilon >= 0, or an upper bound on one.

    A true profile is convex in e^epsilon and obeys ``delta(-e) = 1 - exp(-e) (1 - delta(e))``.
    Where the function does not, the smaller value that this implies is used. It is read some
    8,000 times, once.

    Examples
    --------
    >>> import math
    >>> promise = Profile(lambda eps: math.exp(-eps) / 4, neighbours="replace-one")
    >>> round(promise.tv, 9)
    0.25

    """

    function: Callable[[Any], Any]
    name: ClassVar[str] = "Profile"

    def __post_init__(self) -> None:
        Guarantee.__post_init__(self)
        if not callable(self.function):
            raise DpradError(
                "function must be a callable epsilon -> delta, but is a "
                f"{type(self.function).__name__}."
            )
        self._read(np.linspace(0.0, 10.0, 11))

    def _read(self, epsilon: FloatArray) -> FloatArray:
        flat = np.ravel(epsilon)
        try:
            value = np.array([float(self.function(float(e))) for e in flat])
        except (TypeError, ValueError, ArithmeticError) as error:
            raise DpradError(f"function must return a number, but: {error}.") from None
        value = value.reshape(epsilon.shape)
        bad = ~((value >= -ROUNDING) & (value <= 1 + ROUNDING))
        if np.any(bad):
            where = float(np.ravel(epsilon)[np.ravel(bad)][0])
            raise DpradError(
                f"function must return a delta between 0 and 1, but returned "
                f"{float(np.ravel(value)[np.ravel(bad)][0])!r} at epsilon = {where:g}."
            )
        return np.asarray(np.clip(value, 0.0, 1.0))

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return np.asarray(np.minimum(self._read(epsilon), self.loss.delta(epsilon)))

    def _loss(self) -> PrivacyLoss:
        top = 1.0
        ends = self._read(np.array([MAX_LOSS]))[0]
        # no need to look beyond where the profile has reached its limit
        while top < MAX_LOSS and self._read(np.array([top]))[0] > max(NEGLIGIBLE, ends):
            top *= 1.25
        return PrivacyLoss.of_profile(self._read, min(top, MAX_LOSS))

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"Profile({name}, neighbours={self.neighbours!r})"


@dataclass(frozen=True, eq=False)
class _Numeric(Guarantee):
    """The result of a composition or a conversion: a distribution of privacy losses.

    Where the pair absent against present has another one, that is `reverse`.
    """

    distribution: PrivacyLoss
    reverse: PrivacyLoss | None = None
    name: ClassVar[str] = "privacy-loss distribution"

    @property
    def directions(self) -> tuple[PrivacyLoss, PrivacyLoss]:
        """Both pairs."""
        return self.distribution, self.reverse or self.distribution

    @property
    def symmetric(self) -> bool:
        """Whether there is one pair only."""
        return self.reverse is None

    def _loss(self) -> PrivacyLoss:
        if self.reverse is None:
            return self.distribution
        top = max(float(d.losses[-1]) for d in self.directions)
        return PrivacyLoss.of_profile(self._delta, max(top, 1e-12))

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(*(d.delta(epsilon) for d in self.directions)))

    def _tradeoff(self, alpha: FloatArray) -> FloatArray:
        return np.asarray(np.minimum(*(d.tradeoff(alpha) for d in self.directions)))

    def _gap(self, alpha: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(*(d.gap(alpha) for d in self.directions)))

    def _repeated(self, times: int) -> Guarantee:
        back = None if self.reverse is None else self.reverse.repeated(times)
        return _Numeric(self.distribution.repeated(times), back, neighbours=self.neighbours)

    def _replace_one(self) -> Guarantee:
        present, absent = self.directions
        return _Numeric(present.chain(absent), neighbours=REPLACE_ONE)

    def _numbers(self) -> dict[str, float]:
        return {"tv": self.tv}

    def __repr__(self) -> str:
        at = self.epsilon_at(1e-6)
        return f"<composed promise: epsilon {at:.4g} at delta 1e-06, {self.neighbours}>"


def _pair(one: Guarantee, two: Guarantee) -> Guarantee:
    if not isinstance(two, Guarantee):
        raise DpradError(f"compose takes guarantees, but got a {type(two).__name__}.")
    if one.neighbours != two.neighbours:
        one, two = one.replace_one(), two.replace_one()
    where = one.neighbours
    if isinstance(one, GaussianDP) and isinstance(two, GaussianDP):
        return GaussianDP(float(np.hypot(one.mu, two.mu)), neighbours=where)
    if isinstance(one, TotalVariation) and isinstance(two, TotalVariation):
        a, b = one.failure, two.failure
        return TotalVariation(a + b - a * b, neighbours=where)
    both = zip(one.directions, two.directions, strict=True)
    present, absent = (a.compose(b) for a, b in both)
    alike = one.symmetric and two.symmetric
    return _Numeric(present, None if alike else absent, neighbours=where)


def of_directions(present: PrivacyLoss, absent: PrivacyLoss | None, neighbours: str) -> Guarantee:
    """A guarantee from its pairs: present against absent, and absent against present."""
    return _Numeric(present, absent, neighbours=neighbours)


def _normal_between(x: FloatArray, width: float) -> FloatArray:
    """``Phi(x + width) - Phi(x)``: by quadrature if the width is small, where nothing cancels."""
    from scipy.special import ndtr

    if width <= CLOSE:
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        t = np.asarray(x)[..., None] + width / 2 * (nodes + 1.0)
        return np.asarray(np.exp(-t * t / 2) @ weights * (width / 2 / np.sqrt(2.0 * np.pi)))
    end = x + width
    return np.asarray(np.where(x > 0, ndtr(-x) - ndtr(-end), ndtr(end) - ndtr(x)))


def _real(value: Any, name: str) -> FloatArray:
    try:
        result = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise DpradError(
            f"{name} must be a number or an array of numbers, but is {value!r}."
        ) from None
    if np.any(np.isnan(result)):
        raise DpradError(f"{name} must be a number, but is NaN.")
    return result


def _like(given: Any, result: FloatArray) -> Any:
    """A float for a number, an array for an array."""
    return float(result) if np.ndim(given) == 0 else result
