"""Subset selection: report a random set of w values, more often one that contains the truth.

The size w is ``max(1, floor(m/(e^epsilon + 1)))``, as in the paper, the nearest whole number to
that, or given. Smaller sets tell more about who is in them, so the default is also the safe side
for somebody who does not know which rule a vendor uses. Because w is a whole number, the risk can
fall where epsilon grows past a step. Outputs are packed bits (`bits.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dprad.errors import DpradError, one_of, whole
from dprad.mechanisms import bits as packed
from dprad.mechanisms.base import Card, quotient
from dprad.mechanisms.bits import Words
from dprad.mechanisms.categorical import MOST_EDGES, categories, check_parameters
from dprad.mechanisms.support import SetMechanism, Supports
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON
from dprad.numerics.arrays import FloatArray

# Sets up to this size start empty; larger ones start this many deviations too small.
SMALL, BELOW = 100, 2.0
# Missing members are added at once if there are more than this on average; the rest one by one, in
# this many tries in a row.
MANY, TRIES = 8, 4
# What is added before the size is cut to a whole number; for "floor", what rounding may have taken.
_ADDED = {"floor": 1e-9, "round": 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(SetMechanism):
    """A random set of w values that contains the truth with probability p.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    size
        Number of possible values; the codes are 0 .. size-1.
    subset
        How large the sets are: ``"floor"`` (the paper's rule, and the larger risk where the two
        differ), ``"round"`` (nearer to the size with the least error of estimated frequencies), or
        a number.

    Examples
    --------
    >>> SubsetSelection(epsilon=1.0, size=10).members
    2
    >>> SubsetSelection(epsilon=1.0, size=10, subset="round").members
    3

    """

    epsilon: float
    size: int
    subset: int | Literal["floor", "round"] = "floor"

    card: ClassVar = Card(
        name="subset",
        title="subset selection",
        takes=(EPSILON,),
        reads="codes",
        cost="quick",
    )
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        check_parameters(self)
        if isinstance(self.subset, str):
            one_of(self.subset, "subset", _ADDED)
        elif isinstance(self.subset, bool):
            raise DpradError(
                f"subset must be 'floor', 'round' or a whole number, but is {self.subset!r}."
            )
        elif whole(self.subset, "subset", low=1) > self.size:
            raise DpradError(f"subset must be at most size, {self.size}, but is {self.subset!r}.")

    @property
    def members(self) -> int:
        """The number of values reported, w."""
        if not isinstance(self.subset, str):
            return int(self.subset)
        shrink = float(np.exp(-self.epsilon))
        return max(1, int(self.size * shrink / (1.0 + shrink) + _ADDED[self.subset]))

    @property
    def p(self) -> float:
        """Chance that the truth is among them."""
        w, m = self.members, self.size
        return w / (w + (m - w) * float(np.exp(-self.epsilon)))

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for replaced records."""
        trivial = self.members == self.size
        return PureDP(0.0 if trivial else self.epsilon, neighbours=REPLACE_ONE)

    @property
    def supports(self) -> Supports:
        """Drawing without replacement; ratios one by one, which keeps all digits."""
        w, m, p = self.members, self.size, self.p

        def without(n: int, inside: int) -> FloatArray:
            """Chance that k given values miss `inside` draws from m - 1, for k = 0 .. n."""
            k = np.arange(n, dtype=float)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.maximum(m - 1 - inside - k, 0.0) / np.maximum(m - 1 - k, 1.0)
            return np.asarray(np.r_[1.0, np.cumprod(ratios)])

        def full(k: int) -> float:
            j = np.arange(k, dtype=float)
            return p * float(np.prod(np.maximum(w - 1 - j, 0.0) / np.maximum(m - 1 - j, 1.0)))

        return Supports(
            log_ratio=self.epsilon,
            hit=lambda n: p * without(n, w - 1),
            miss=lambda n: (1.0 - p) * without(n, w),
            full=full,
        )

    def sample(self, records: Any, rng: np.random.Generator) -> Words:
        """One packed set per record. O(n (m/64 + sqrt(w))) after O(1) random words per word.

        Independent bits make all sets of the same size equally likely; so does adding random
        values, or dropping random members, until the size is right. Sets start a little too small,
        or empty. The truth is put in or left out at the end.
        """
        codes = categories(records, self.size, "SubsetSelection").reshape(-1)
        m, w, none = self.size, self.members, np.zeros(len(codes), dtype=bool)
        truth = rng.random(len(codes)) < self.p
        wanted = w - truth.astype(np.intp)  # among the m - 1 others
        share = (w - BELOW * np.sqrt(w)) / m if w > SMALL else 0.0
        sets = packed.bernoulli(share, len(codes), m, rng)
        packed.put(sets, codes, none)
        lack = wanted - packed.count(sets)
        if lack.sum() > MANY * len(codes):
            # few enough draws that most sets still lack some members: some draws are members
            # already
            aim = np.maximum(lack - np.sqrt(np.maximum(lack, 0) * (w / m)), 0.0)
            draws = np.log1p(-aim / (m - wanted + lack)) / np.log1p(-1.0 / m)
            packed.scatter(sets, np.maximum(draws.astype(np.intp), lack), m, rng)
            packed.put(sets, codes, none)
            lack = wanted - packed.count(sets)
        self._mend(sets, codes, lack, rng)
        packed.put(sets, codes, truth)
        return sets

    def _mend(self, sets: Words, codes: Any, lack: Any, rng: np.random.Generator) -> None:
        """Add (drop) random others, one at a time, until every set has the right size."""
        todo = np.flatnonzero(lack)
        while len(todo):
            need, own = lack[todo], codes[todo]
            for _ in range(TRIES):
                chosen = rng.integers(0, self.size, size=len(todo))
                need -= np.sign(need) * packed.toggle(sets, todo, chosen, need * (chosen != own))
            lack[todo] = need
            todo = todo[need != 0]

    def log_likelihood(self, outputs: Words, records: Any) -> FloatArray:
        """Log-probability of outputs given records; broadcasts over the leading axes."""
        from scipy.special import gammaln

        w, m = self.members, self.size

        def log_choose(n: int, k: int) -> float:
            return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) if n >= k else 0.0

        own = packed.contains(outputs, records)
        inside = np.log(self.p) - log_choose(m - 1, w - 1)
        with np.errstate(divide="ignore"):
            outside = np.log1p(-self.p) - log_choose(m - 1, w)
        proper = packed.count(outputs) == w
        return np.where(proper, np.where(own, inside, outside), -np.inf)

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value from `people` reports."""
        w, m, p = self.members, self.size, self.p
        if m == w:
            return float("inf")
        q = (w - p) / (m - 1)  # chance that another value is reported
        return quotient(q * (1.0 - q), people * (p - q) ** 2)

    def edges(self) -> list[float]:
        """Where w steps down; beyond some w by so little that no search needs it."""
        if not isinstance(self.subset, str):
            return []
        steps = np.arange(2, min(self.size // 2 + 3, MOST_EDGES)) - _ADDED[self.subset]
        odds = self.size / steps - 1.0
        return [float(e) for e in np.log(odds[odds > 1.0 + 1e-8])]

    def describe(self) -> dict[str, Any]:
        """The arguments, and w."""
        return {**super(SubsetSelection, self).describe(), "members": self.members}
