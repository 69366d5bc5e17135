"""Unary encodings over time: L-SUE (basic RAPPOR), L-OSUE, L-OUE and L-SOUE.

Two rounds of bit flips, each symmetric (S) or with a fair coin for the true bit (O). The first
round has epsilon_inf; the second is such that one report has epsilon_one, exactly:
``e^epsilon_one = ps (1-qs) / (qs (1-ps))``, ps and qs the chances of a one after both rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dprad.errors import DpradError
from dprad.mechanisms.base import Card
from dprad.mechanisms.over_time.base import BUDGETS, Budgeted
from dprad.mechanisms.over_time.bit_chain import UnaryChain
from dprad.mechanisms.unary import UnaryEncoding


@dataclass(frozen=True, slots=True, kw_only=True)
class _TwoRounds(UnaryChain, Budgeted):
    """Parameters by the two budgets."""

    def __post_init__(self) -> None:
        Budgeted.__post_init__(self)
        if self.epsilon_one >= self._most:
            raise DpradError(
                f"{type(self).__name__} with epsilon_inf = {self.epsilon_inf:g} needs an "
                f"epsilon_one below {self._most:.6g}, but it is {self.epsilon_one:g}."
            )

    @property
    def _most(self) -> float:
        """The epsilon_one that no second round of this kind reaches."""
        return math.inf

    @property
    def alike(self) -> UnaryEncoding | None:
        """One report is a unary encoding."""
        if self.reports > 1:
            return None
        p, q = self.single
        return UnaryEncoding(size=self.size, p=p, q=q)

    @property
    def _symmetric(self) -> tuple[float, float]:
        """p1 and q1 of a symmetric first round."""
        half = math.exp(-self.epsilon_inf / 2)
        return 1.0 / (1.0 + half), half / (1.0 + half)

    @property
    def _optimal(self) -> tuple[float, float]:
        """p1 and q1 of a first round with a fair coin."""
        shrink = math.exp(-self.epsilon_inf)
        return 0.5, shrink / (1.0 + shrink)


def _mirror(first: float, second: float) -> tuple[float, float]:
    """p2 = (A E - 1)/((A - 1)(E + 1)) and q2 = 1 - p2, for A = e^first and E = e^second."""
    top = -math.expm1(-(first + second))
    below = -math.expm1(-first) * (1.0 + math.exp(-second))
    # 1 - p2 = (A - E)/((A - 1)(E + 1))
    rest = math.exp(-second) * -math.expm1(second - first)
    return top / below, rest / below


def _smaller_root(a: float, b: float, c: float) -> float:
    """Of a x^2 + b x + c with b < 0 < a, c: without cancellation."""
    return 2.0 * c / (-b + math.sqrt(max(b * b - 4.0 * a * c, 0.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LSUE(_TwoRounds):
    """Symmetric unary encoding over time, the basic RAPPOR: both rounds flip all bits alike.

    Parameters
    ----------
    size
        Number of possible values; the codes are 0 .. size-1.
    epsilon_inf
        Privacy loss of all reports together.
    epsilon_one
        Privacy loss of one report; default: half of epsilon_inf.
    reports
        Number of reports the attacker sees.
    periods
        Points in time at which the value may differ: that many columns are read.

    Examples
    --------
    Five reports promise almost no more than all of them together:

    >>> made = LSUE(size=5, epsilon_inf=2.0, epsilon_one=1.0, reports=5)
    >>> round(made.epsilon_after(1), 9), round(made.guarantee.epsilon, 3)
    (1.0, 1.987)

    """

    card: ClassVar = Card(
        name="lsue", title="basic RAPPOR, over time", takes=BUDGETS, reads="codes", cost="draws"
    )

    @property
    def rounds(self) -> tuple[float, float, float, float]:
        """p1, q1, p2, q2."""
        return (*self._symmetric, *_mirror(self.epsilon_inf / 2, self.epsilon_one / 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class LOSUE(_TwoRounds):
    """Unary encoding over time: first round with a fair coin for the true bit, second symmetric.

    Parameters
    ----------
    size
        Number of possible values; the codes are 0 .. size-1.
    epsilon_inf
        Privacy loss of all reports together.
    epsilon_one
        Privacy loss of one report; default: half of epsilon_inf.
    reports
        Number of reports the attacker sees.
    periods
        Points in time at which the value may differ: that many columns are read.

    Examples
    --------
    >>> made = LOSUE(size=5, epsilon_inf=2.0, epsilon_one=1.0, reports=5)
    >>> round(made.epsilon_after(1), 9), round(made.guarantee.epsilon, 3)
    (1.0, 1.994)

    """

    card: ClassVar = Card(
        name="losue", title="L-OSUE, over time", takes=BUDGETS, reads="codes", cost="draws"
    )

    @property
    def rounds(self) -> tuple[float, float, float, float]:
        """p1, q1, p2, q2."""
        return (*self._optimal, *_mirror(self.epsilon_inf, self.epsilon_one))


@dataclass(frozen=True, slots=True, kw_only=True)
class LOUE(_TwoRounds):
    """Unary encoding over time, a fair coin for the true bit in both rounds.

    It exists only where ``e^epsilon_one < (2 e^epsilon_inf + 1)/3``.

    Parameters
    ----------
    size
        Number of possible values; the codes are 0 .. size-1.
    epsilon_inf
        Privacy loss of all reports together.
    epsilon_one
        Privacy loss of one report; default: half of epsilon_inf.
    reports
        Number of reports the attacker sees.
    periods
        Points in time at which the value may differ: that many columns are read.

    Examples
    --------
    >>> round(LOUE(size=5, epsilon_inf=2.0, epsilon_one=1.0).guarantee.epsilon, 9)
    1.0

    """

    card: ClassVar = Card(
        name="loue", title="L-OUE, over time", takes=BUDGETS, reads="codes", cost="draws"
    )

    @property
    def _most(self) -> float:
        return math.log((2.0 * math.exp(self.epsilon_inf) + 1.0) / 3.0)

    @property
    def rounds(self) -> tuple[float, float, float, float]:
        """p1, q1, p2, q2."""
        # everything divided by A
        s, e = math.exp(-self.epsilon_inf), math.exp(self.epsilon_one)
        a = 4.0 * math.expm1(self.epsilon_one)
        b = 2.0 * ((1.0 + s) - e * (3.0 - s))
        return (*self._optimal, 0.5, _smaller_root(a, b, 2.0 + s - 3.0 * e * s))


@dataclass(frozen=True, slots=True, kw_only=True)
class LSOUE(_TwoRounds):
    """Unary encoding over time: first round symmetric, second with a fair coin for a one.

    It exists only where ``e^epsilon_one < a (2a + 1)/(a + 2)``, ``a = e^(epsilon_inf/2)``.

    Parameters
    ----------
    size
        Number of possible values; the codes are 0 .. size-1.
    epsilon_inf
        Privacy loss of all reports together.
    epsilon_one
        Privacy loss of one report; default: half of epsilon_inf.
    reports
        Number of reports the attacker sees.
    periods
        Points in time at which the value may differ: that many columns are read.

    Examples
    --------
    >>> round(LSOUE(size=5, epsilon_inf=2.0, epsilon_one=1.0).guarantee.epsilon, 9)
    1.0

    """

    card: ClassVar = Card(
        name="lsoue", title="L-SOUE, over time", takes=BUDGETS, reads="codes", cost="draws"
    )

    @property
    def _most(self) -> float:
        a = math.exp(self.epsilon_inf / 2)
        return math.log(a * (2.0 * a + 1.0) / (a + 2.0))

    @property
    def rounds(self) -> tuple[float, float, float, float]:
        """p1, q1, p2, q2."""
        # everything divided by a^2
        s, e = math.exp(-self.epsilon_inf / 2), math.exp(self.epsilon_one)
        a = 4.0 * s * math.expm1(self.epsilon_one)
        b = 2.0 * (-1.0 + 2.0 * s + s * s - e * (1.0 + 2.0 * s - s * s))
        return (*self._symmetric, 0.5, _smaller_root(a, b, 2.0 + s - e * (s + 2.0 * s * s)))
