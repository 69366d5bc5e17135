"""L-GRR: randomised response over time.

The published second round gives less than epsilon_one (``b = (AE - 1)/(A - E)`` leaves out
``(k-2) q1 q2``): safe, but with more noise than asked for. The default is the second round with
which one report has exactly epsilon_one, ``b = (E (A+k-2) - (k-1))/(A - E)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dprad.mechanisms.base import Card
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.over_time.base import BUDGETS
from dprad.mechanisms.over_time.symbol_chain import DirectChain


@dataclass(frozen=True, slots=True, kw_only=True)
class LGRR(DirectChain):
    """Randomised response over time.

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
    published
        Whether to use the published second round, which gives less than epsilon_one.

    Examples
    --------
    >>> asked = {"size": 100, "epsilon_inf": 1.0, "epsilon_one": 0.5}
    >>> round(LGRR(**asked).guarantee.epsilon, 9)
    0.5
    >>> round(LGRR(**asked, published=True).guarantee.epsilon, 3)
    0.037

    """

    card: ClassVar = Card(
        name="lgrr",
        title="randomised response over time",
        takes=BUDGETS,
        reads="codes",
        cost="draws",
    )

    @property
    def alike(self) -> GRR | None:
        """One report is randomised response."""
        if self.reports > 1:
            return None
        return GRR(epsilon=max(self.epsilon_after(1), 0.0), size=self.size)
