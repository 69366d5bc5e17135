"""Guarantee: what is promised, and between which neighbours.

Each guarantee has a privacy profile, a trade-off curve and a total variation, composes with
others, and converts from add-remove to replace-one neighbours. RAD compares two records in the
same place, so every bound on it reads the replace-one form. Profiles and curves are symmetric:
they hold in both directions.

To add a guarantee, add one file here and a line in `__init__.py`: a class that defines its pair of
losses (`_loss`) or its profile, and `takes`, its numeric parameters.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, one_of, whole
from dprad.model.guarantees.doubts import Doubtful
from dprad.model.guarantees.neighbours import (
    ADD_REMOVE,
    EXPLAINED,
    REPLACE_ONE,
    UNKNOWN,
    Neighbours,
    explains_neighbours,
)
from dprad.model.guarantees.summaries import Summaries
from dprad.model.parameters import EPSILON, Goal, Parameter
from dprad.model.privacy_loss import PrivacyLoss
from dprad.numerics.arrays import FloatArray


@dataclass(frozen=True)
class Guarantee(Doubtful, Summaries):
    """Base class of all guarantees. Use one of its subclasses.

    Parameters
    ----------
    neighbours
        ``"replace-one"`` (one record is exchanged), ``"add-remove"`` (with and without the
        person), or ``"unknown"``: risks are then those of the worse reading.

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
    # whether it is stated by Rényi divergences, which add up
    moments: ClassVar[bool] = False

    def __post_init__(self) -> None:
        one_of(self.neighbours, "neighbours", (REPLACE_ONE, ADD_REMOVE, UNKNOWN), hint=EXPLAINED)

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
            made = two._with(one) if two.moments else one._with(two)
            result = made.doubted(*result.doubts, *other.doubts)
        return result

    def _renyi(self, orders: FloatArray) -> FloatArray | None:  # noqa: ARG002
        """The Rényi divergence between neighbours at these orders; None if it has no limit."""
        return None

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

    def group(self, size: int) -> Guarantee:
        """The promise when `size` records change together: a household, or all of one person.

        Tight for Gaussian DP and total variation; other curves are chained, O(log size) times, and
        rounded up; rho grows with the square of the size (Bun and Steinke).

        Parameters
        ----------
        size
            How many records.

        Returns
        -------
        Guarantee
            For the same kind of neighbours, `size` records at a time.

        Examples
        --------
        >>> from dprad import GaussianDP
        >>> GaussianDP(1.0, neighbours="replace-one").group(4).mu
        4.0

        """
        count = whole(size, "size", low=1)
        return self if count == 1 else self._group(count).doubted(*self.doubts)

    def _group(self, size: int) -> Guarantee:
        if self.symmetric or self.neighbours != ADD_REMOVE:
            return Numeric(self.loss.chained(size), neighbours=self.neighbours)
        present, absent = (direction.chained(size) for direction in self.directions)
        return Numeric(present, absent, neighbours=self.neighbours)

    def reading(self, neighbours: Neighbours) -> Guarantee:
        """The same numbers, read as a promise about other neighbours. Nothing is converted.

        Parameters
        ----------
        neighbours
            As for a new guarantee.

        Returns
        -------
        Guarantee
            What the promise says if this is what it compares.

        Examples
        --------
        >>> from dprad import PureDP
        >>> PureDP(1.0, neighbours="unknown").reading("add-remove")
        PureDP(1.0, neighbours='add-remove')

        """
        read = copy.copy(self)
        object.__setattr__(read, "neighbours", neighbours)
        Guarantee.__post_init__(read)
        return read

    def replace_one(self) -> Guarantee:
        """The same promise for replaced records.

        An add-remove promise is chained: one record is removed, another added. So is one whose
        neighbours are unknown, as that is the worse reading.

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
    made = Numeric(present, absent, neighbours=neighbours)
    # read either way, the larger of both directions is promised
    return Numeric(made.loss, neighbours=UNKNOWN) if neighbours == UNKNOWN else made
