"""Guarantee: what is promised, and between which neighbours.

Each guarantee has a privacy profile, a trade-off curve and a total variation, composes with
others, and converts from add-remove to replace-one neighbours. RAD compares two records in the
same place, so every bound on it reads the replace-one form. Profiles and curves are symmetric:
they hold in both directions.

To add a guarantee, add one file here and a line in `__init__.py`: a class that defines its pair of
losses (`_loss`) or its profile, and `takes`, its numeric parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number, one_of, whole
from dprad.model.guarantees.doubts import Doubtful
from dprad.model.guarantees.neighbours import (
    ADD_REMOVE,
    EXPLAINED,
    REPLACE_ONE,
    Neighbours,
    explains_neighbours,
)
from dprad.model.parameters import EPSILON, Goal, Parameter
from dprad.model.privacy_loss import MAX_LOSS, PrivacyLoss
from dprad.numerics.arrays import FloatArray, like, real
from dprad.numerics.bisection import first


@dataclass(frozen=True)
class Guarantee(Doubtful):
    """Base class of all guarantees. Use one of its subclasses.

    Parameters
    ----------
    neighbours
        ``"replace-one"`` (one record is exchanged) or ``"add-remove"`` (with and without the
        person).

    Examples
    --------
    >>> from dprad import GaussianDP, Guarantee
    >>> isinstance(GaussianDP(1.0, neighbours="replace-one"), Guarantee)
    True

    """

    neighbours: Neighbours = field(kw_only=True)
    name: ClassVar[str] = "guarantee"
    # its name on the command line, and its numeric parameters
    short: ClassVar[str] = ""
    takes: ClassVar[tuple[Parameter, ...]] = ()

    def __post_init__(self) -> None:
        one_of(self.neighbours, "neighbours", (REPLACE_ONE, ADD_REMOVE), hint=EXPLAINED)

    # -- defined by each kind ------------------------------------------------------------------
    def _loss(self) -> PrivacyLoss:
        raise DpradError("Guarantee is a base class; use PureDP, ApproxDP, GaussianDP or Profile.")

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return self.loss.delta(epsilon)

    def _tradeoff(self, alpha: FloatArray) -> FloatArray:
        return self.loss.tradeoff(alpha)

    def _gap(self, alpha: FloatArray) -> FloatArray:
        return self.loss.gap(alpha)

    # -- common to all -------------------------------------------------------------------------
    @cached_property
    def loss(self) -> PrivacyLoss:
        """A dominating pair on a grid of privacy losses; exact, or rounded to the safe side."""
        return self._loss()

    @property
    def directions(self) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The pairs present against absent, and absent against present; equal if symmetric."""
        return self.loss, self.loss

    @property
    def symmetric(self) -> bool:
        """Whether both directions are the same."""
        return True

    @property
    def point(self) -> tuple[float, float] | None:
        """(epsilon, delta) if this is the whole promise, else None."""
        return None

    def delta(self, epsilon: Any) -> Any:
        """The profile: the least delta such that (epsilon, delta)-DP is promised.

        Parameters
        ----------
        epsilon
            A number or an array. Negative values are allowed: ``delta(-e) = 1 - exp(-e) (1 -
            delta(e))``.

        Returns
        -------
        float or ndarray
            Values between 0 and 1.

        Examples
        --------
        >>> from dprad import PureDP
        >>> promise = PureDP(1.0, neighbours="replace-one")
        >>> promise.delta(1.0)
        0.0

        """
        eps = real(epsilon, "epsilon")
        size = np.abs(eps)
        value = np.clip(self._delta(size), 0.0, 1.0)
        mirrored = -np.expm1(-size) + np.exp(-size) * value  # no difference next to one
        return like(epsilon, np.where(eps >= 0, value, mirrored))

    def tradeoff(self, alpha: Any) -> Any:
        """The trade-off curve f: the least miss rate of a test with false-alarm rate alpha.

        Parameters
        ----------
        alpha
            False-alarm rate, a number or an array.

        Returns
        -------
        float or ndarray
            Values between 0 and 1.

        Examples
        --------
        >>> from dprad import PureDP
        >>> promise = PureDP(1.0, neighbours="replace-one")
        >>> round(promise.tradeoff(0.1), 6)         # 1 - 0.1 e
        0.728172

        """
        a = real(alpha, "alpha")
        if np.any((a < 0) | (a > 1)):
            raise DpradError(f"alpha must be between 0 and 1, but is {alpha!r}.")
        return like(alpha, np.clip(self._tradeoff(a), 0.0, 1.0))

    def gap(self, alpha: float) -> float:
        """``1 - f(alpha) - alpha``: how much a test beats guessing, to all digits or rounded up.

        Parameters
        ----------
        alpha
            False-alarm rate.

        Returns
        -------
        float
            At least 0.

        Examples
        --------
        >>> from dprad import GaussianDP
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
        """The least epsilon such that (epsilon, delta)-DP is promised, rounded up.

        Parameters
        ----------
        delta
            Between 0 and 1.

        Returns
        -------
        float
            May be infinite.

        Examples
        --------
        >>> from dprad import GaussianDP
        >>> round(GaussianDP(1.0, neighbours="replace-one").epsilon_at(1e-5), 3)
        4.377

        """
        goal = number(delta, "delta", low=0, high=1)
        if self.point is not None and goal == self.point[1]:
            return self.point[0]
        if self.delta(MAX_LOSS) > goal:
            return float("inf")
        return first(lambda e: bool(self.delta(e) <= goal), 0.0, MAX_LOSS, relative=1e-12)

    def compose(self, *others: Guarantee) -> Guarantee:
        """The promise for several releases seen together, chosen adaptively.

        Exact for Gaussian DP and for total variation; otherwise numerical and rounded up (by about
        1e-4 of the value; more after very many). To repeat the same (epsilon, delta), use
        `repeated`, which is optimal (Kairouz, Oh and Viswanath). Mixed neighbours are first
        converted to replace-one.

        Parameters
        ----------
        *others
            Guarantees of the other releases.

        Returns
        -------
        Guarantee
            The composed promise.

        Examples
        --------
        >>> from dprad import GaussianDP
        >>> three, four = (GaussianDP(mu, neighbours="replace-one") for mu in (3.0, 4.0))
        >>> three.compose(four).mu
        5.0

        """
        result: Guarantee = self
        for other in others:
            if not isinstance(other, Guarantee):
                raise DpradError(f"compose takes guarantees, but got a {type(other).__name__}.")
            alike = result.neighbours == other.neighbours
            one, two = (result, other) if alike else (result.replace_one(), other.replace_one())
            result = one._with(two).doubted(*result.doubts, *other.doubts)
        return result

    def _with(self, other: Guarantee) -> Guarantee:
        """Composition with another guarantee for the same neighbours."""
        both = zip(self.directions, other.directions, strict=True)
        present, absent = (a.compose(b) for a, b in both)
        alike = self.symmetric and other.symmetric
        return Numeric(present, None if alike else absent, neighbours=self.neighbours)

    @classmethod
    def first_guess(cls, goal: Goal) -> float | None:  # noqa: ARG003
        """Starting value of the first parameter for a calibration.

        Parameters
        ----------
        goal
            What the calibration aims for.

        Returns
        -------
        float or None
            None: start anywhere.

        Examples
        --------
        >>> from dprad.model.parameters import Goal
        >>> goal = Goal(risk=0.1, share=0.2, values=2, fixed={})
        >>> from dprad import GaussianDP
        >>> GaussianDP.first_guess(goal)
        1.0

        """
        return 1.0 if cls.takes and cls.takes[0].high >= EPSILON.high else None

    def repeated(self, times: int) -> Guarantee:
        """The promise for `times` releases with this promise. O(log times) convolutions.

        Parameters
        ----------
        times
            Number of releases.

        Returns
        -------
        Guarantee
            The composed promise.

        Examples
        --------
        >>> from dprad import GaussianDP
        >>> GaussianDP(1.0, neighbours="replace-one").repeated(4).mu
        2.0

        """
        count = whole(times, "times", low=1)
        return self if count == 1 else self._repeated(count).doubted(*self.doubts)

    def _repeated(self, times: int) -> Guarantee:
        return Numeric(self.loss.repeated(times), neighbours=self.neighbours)

    def replace_one(self) -> Guarantee:
        """The same promise for replaced records.

        Returns
        -------
        Guarantee
            Itself, if it is a replace-one promise already.

        Examples
        --------
        >>> from dprad import GaussianDP
        >>> GaussianDP(1.0, neighbours="add-remove").replace_one().mu
        2.0

        """
        same = self.neighbours == REPLACE_ONE
        return self if same else self._replace_one().doubted(*self.doubts)

    def _replace_one(self) -> Guarantee:
        return Numeric(self.loss.chain(), neighbours=REPLACE_ONE)

    def describe(self) -> dict[str, Any]:
        """The guarantee as plain data, for output.

        Returns
        -------
        dict
            Kind, parameters and neighbours; doubts, if there are any.

        Examples
        --------
        >>> from dprad import PureDP
        >>> promise = PureDP(1.0, neighbours="replace-one")
        >>> promise.describe()
        {'kind': 'PureDP', 'epsilon': 1.0, 'neighbours': 'replace-one'}

        """
        doubts = {"doubts": list(self.doubts)} if self.doubts else {}
        return {"kind": self.name, **self._numbers(), "neighbours": self.neighbours} | doubts

    def _numbers(self) -> dict[str, float]:
        return {}


@explains_neighbours
@dataclass(frozen=True, repr=False)
class Numeric(Guarantee):
    """The result of a composition or a conversion: a distribution of privacy losses.

    `reverse` is the pair absent against present, where it differs.
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
        """Whether there is only one pair."""
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
        return Numeric(self.distribution.repeated(times), back, neighbours=self.neighbours)

    def _replace_one(self) -> Guarantee:
        present, absent = self.directions
        return Numeric(present.chain(absent), neighbours=REPLACE_ONE)

    def _numbers(self) -> dict[str, float]:
        return {"tv": self.tv}

    def __repr__(self) -> str:
        at = self.epsilon_at(1e-6)
        return f"<composed promise: epsilon {at:.4g} at delta 1e-06, {self.neighbours}>"


def of_directions(
    present: PrivacyLoss, absent: PrivacyLoss | None, neighbours: Neighbours
) -> Guarantee:
    """A guarantee from its pairs: present against absent, and absent against present."""
    return Numeric(present, absent, neighbours=neighbours)
