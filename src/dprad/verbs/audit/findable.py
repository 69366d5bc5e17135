"""What an audit can find: the smallest violation that these calls would have found, and whether
they can find any.

A violation is a mechanism that shows it in every call: randomised response between the two data
sets (over the records, if bets are on sets of them), or Gaussian noise, if the claim is a curve. It
is found if the wealth of bets that know it, less what it costs to learn them, refutes the claim in
19 of 20 audits. The cost was measured on sessions of bets (`tests/verbs/audit/test_findable.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from dprad.model.guarantees import REPLACE_ONE, GaussianDP, Guarantee, PureDP
from dprad.numerics.arrays import FloatArray
from dprad.numerics.bisection import last
from dprad.verbs.audit.allowed import cell_bets
from dprad.verbs.audit.books import ASIDE, SHARES
from dprad.verbs.audit.portfolio import portfolio
from dprad.verbs.audit.session import CELLS

if TYPE_CHECKING:
    from dprad.verbs.audit.session import Session

# A violation counts as found if luck spares it in 19 of 20 audits: so many standard deviations. The
# largest violation that is asked about (an epsilon, or a distance in standard deviations).
SURE, LARGEST = 1.645, 30.0
# Calls before the first bet, and what else it costs to learn, as a log of wealth.
LESSON, PRICE = 32, 2.0
# Outputs of each cell that a learner of laws has not seen yet, but does not exclude.
UNSEEN = 8.0
# Most calls that are considered.
FEASIBLE = 10**12

# Chances of what may come of a bet, and the logs of its pay, for a violation of this size.
Pays = Callable[[float], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True)
class Tested:
    """The claim as it is tested, an (epsilon, delta) of it, and the chance of a false alarm."""

    tested: Guarantee
    point: tuple[float, float]
    alpha: float

    @property
    def gaussian(self) -> bool:
        """Whether violations are Gaussian noise: the claim is a curve."""
        return self.point[1] > 0 and self.tested.point is None and math.isfinite(self.point[0])


def least_learned(case: Tested, bets: int, calls: int) -> float | None:
    """The least epsilon whose violation so many bets would have found that were learned on the way,
    of so many calls; None if there is none. What is learned is how often the outputs tell, which
    costs the logarithm of how many times more calls there were in the end.
    """
    if bets <= 0:
        return None
    price = PRICE + math.log(calls / max(calls - bets, 1)) - math.log(float(SHARES[0]))
    if not case.gaussian:
        return least_found(case, bets, price=price - math.log1p(-ASIDE))
    size = _least(lambda mu: _gaussian(case.tested, mu, calls), 0.0, bets, price, case.alpha)
    if size is None:
        return None
    return float(GaussianDP(size, neighbours=REPLACE_ONE).epsilon_at(case.point[1]))


def of_session(case: Tested, session: Session) -> float | None:
    """The same for a session."""
    return least_learned(case, session.guesses, session.calls + session.studied)


def least_found(case: Tested, bets: int, chance: float = 0.5, price: float = 0.0) -> float | None:
    """The same for bets on sets of this chance, which cost this logarithm of wealth."""
    low = case.point[0] if isinstance(case.tested, PureDP) else 0.0
    return _least(lambda e: _response(case, chance, e), low, bets, price, case.alpha)


def fewest(found: Callable[[int], bool], runs: int) -> float:
    """The fewest calls, beyond these, with which some violation is found."""
    high = max(2 * runs, 16)
    while not found(high):
        high *= 2
        if high > FEASIBLE:
            return math.inf
    low = runs
    while high - low > max(1, low // 100):  # it is said in round numbers
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def _least(pays: Pays, low: float, bets: int, price: float, alpha: float) -> float | None:
    needed = price - math.log(alpha)

    def found(size: float) -> bool:
        chances, logs = pays(size)
        mean = float(chances @ logs)
        spread = math.sqrt(bets * max(float(chances @ logs**2) - mean**2, 0.0))
        return bets * mean - SURE * spread >= needed

    if bets <= 0 or not math.isfinite(low) or low >= LARGEST or not found(LARGEST):
        return None
    return LARGEST - last(lambda x: found(LARGEST - x), 0.0, LARGEST - low, width=1e-4)


def _response(case: Tested, chance: float, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Of a bet that knows it, if randomised response with this epsilon is run."""
    odds = math.log(chance) - math.log1p(-chance)
    right, allowed = ([-np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)]
                      for x in (odds + epsilon, odds + case.point[0]))  # fmt: skip
    if isinstance(case.tested, PureDP):
        return np.exp(right), np.array(right) - allowed
    p, q = np.exp(right)
    pay = cell_bets(np.array([q]), np.array([p]), case.tested)
    return np.array([p, q, q, p]) / 2, np.log(pay[0].ravel())


def _gaussian(tested: Guarantee, distance: float, calls: int) -> tuple[FloatArray, FloatArray]:
    """Of bets on cells whose law was learned, if the means of outputs lie this far apart."""
    x = np.linspace(-7.0, distance + 7.0, 4001)
    even = (ndtr(x) + ndtr(x - distance)) / 2
    ends = np.r_[-np.inf, np.interp(np.arange(1, CELLS) / CELLS, even, x), np.inf]
    law = np.stack([np.diff(ndtr(ends - at)) for at in (0.0, distance)])
    blur = min(1.0, UNSEEN / calls)
    seen = (1.0 - blur) * law + blur * law.mean(axis=0)
    return (law / 2).ravel(), np.log(portfolio(seen[None], tested)[0].ravel())
