"""Game: a prior combined with a threat; everything a bound or a solver needs.

Records of probability zero are dropped: they add nothing to any sum, and matter only as guesses.
Records that share their fiber and all their success sets are merged into classes: RAD does not
change, and differential privacy survives averaging, so every bound may be applied to classes.
Getting this wrong understates risk (100 records, a binary target, PureDP(1): 0.017, not 0.231).

In the notation of the theory pages: `unlike` is 1 - kappa, kappa of the classes; `p_plus` is
the best chance of a blind guess, and `p_minus` the least prior mass a best attack can have (0 if
passing can help). `least` and `most` bound the masses strictly between 0 and 1 that the set of
records an attack is right about can have; they may be tighter, since passing does not count there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.game.parts import classes, fibers, least_mass, masses, partitions, reach
from dprad.game.relations import relate
from dprad.game.sets import Sets, Singletons
from dprad.model.listing import Equal
from dprad.model.priors import Prior
from dprad.model.threats import Threat, target_values
from dprad.numerics.arrays import (
    BoolArray,
    Column,
    FloatArray,
    IntArray,
    complements,
    distinct,
)

# Equally likely values are not listed if there are more than this.
LARGE = 100_000
# points at which the window masses of a continuous prior are bracketed
LINE_POINTS = 20_001


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Game:
    """The numbers that a bound needs. Build it with `play`.

    `everything_known` says that each fiber is one class. `membership` says that the attacker knows
    everything they guess, so that the only question is whether the person took part: "in the data"
    may then be wrong, and a tie is a pass. `share` is the probability of the group that is asked
    about: guesses count for its members only, so that risks are to be divided by it.
    """

    unlike: float
    p_plus: float
    p_minus: float
    least: float
    most: float
    nothing_known: bool
    everything_known: bool
    membership: bool
    singletons: bool
    share: float = 1.0

    @property
    def kappa(self) -> float:
        """Probability that two draws are from the same class."""
        return 1.0 - self.unlike

    @property
    def uniform(self) -> bool:
        """Whether all classes are equally likely (up to rounding)."""
        return False

    @property
    def count(self) -> int | None:
        """The number of classes; None if there is no table of records."""
        return None

    def over(self, pi: FloatArray, fiber: IntArray, sets: Sets) -> Classes:
        """The same numbers over given classes, one per record."""
        same = {f.name: getattr(self, f.name) for f in fields(Game)}
        return Classes(
            **same, pi=pi, probabilities=pi, fiber=fiber, sets=sets, class_of=np.arange(len(pi))
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Even(Game):
    """So many equally likely classes, one per value, none of them listed: nothing or everything is
    known, and one value must be named.
    """

    values: int

    @classmethod
    def of(cls, values: int, *, known: bool) -> Even:
        """All numbers follow from how many there are. O(1)."""
        one, others = 1.0 / values, (values - 1) / values
        return cls(
            unlike=others,
            p_plus=1.0 if known else one,
            p_minus=0.0 if known else one,
            least=one,
            most=others if known else one,
            nothing_known=not known,
            everything_known=known,
            membership=known,
            singletons=True,
            values=values,
        )

    @property
    def uniform(self) -> bool:
        """They are."""
        return True

    @property
    def count(self) -> int:
        """The number of classes."""
        return self.values

    @property
    def levels(self) -> tuple[FloatArray, IntArray]:
        """The only probability, and how many classes have it."""
        return np.array([1.0 / self.values]), np.array([self.values])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Classes(Game):
    """The classes of a finite game: all that an exact solver needs.

    For each class its `probabilities` and `fiber`; for each record its probability `pi` and its
    class `class_of` (-1 if the probability is zero). `forced` says in which fibers the attacker
    must name somebody who is possible there; None: nowhere that it matters.
    """

    pi: FloatArray
    probabilities: FloatArray
    fiber: IntArray
    sets: Sets
    class_of: IntArray
    forced: BoolArray | None = None

    @property
    def count(self) -> int:
        """The number of classes."""
        return len(self.probabilities)

    @property
    def levels(self) -> tuple[FloatArray, IntArray]:
        """The different probabilities of classes, ascending, and how many classes have each."""
        levels, count = np.unique(self.probabilities, return_counts=True)
        return levels, count.astype(np.intp, copy=False)

    @property
    def asked(self) -> slice:
        """The classes that are asked about: all, or all but the last."""
        return slice(0, len(self.probabilities) - (self.share < 1.0))

    def must(self, fiber: IntArray) -> BoolArray:
        """Where passing is not possible: a column, one row for each of these fibers."""
        if self.forced is None:
            return np.zeros((1, 1), dtype=bool)
        return np.asarray(self.forced[fiber][:, None])

    @property
    def uniform(self) -> bool:
        """Whether all classes are equally likely (up to rounding)."""
        p = self.probabilities
        return float(p.max() - p.min()) <= 1e-12 * float(p.max())

    @property
    def weighted(self) -> bool:
        """Whether records are weighted by something else than the prior, as they are where another
        part of a composition was seen: then a class does not gain in proportion to its prior.
        """
        kept = self.class_of >= 0
        own = np.bincount(self.class_of[kept], self.pi[kept], len(self.probabilities))
        return not np.allclose(own, self.probabilities, rtol=1e-9, atol=0.0)

    def at_values(self, read: Column, pi: FloatArray) -> tuple[Any, Column]:
        """Probability of each class (rows) at each value that is read, sparse; and these values."""
        from scipy import sparse

        kept = np.flatnonzero(pi > 0)
        points, place = distinct(read[kept])
        shape = (len(self.probabilities), len(points))
        return sparse.csr_array((pi[kept], (self.class_of[kept], place)), shape=shape), points


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Table(Classes):
    """A finite game record by record: what is needed to run an attack.

    `fiber_of` is the fiber of each record (-1 if its probability is zero), `target_of` the code of
    its target value in `guesses`; ``right(targets, guesses)`` says which codes of guesses count,
    and `luck` is the prior mass about which each guess is right. `spare` is a guess for each fiber
    that is right about nobody there, for an attacker who must guess; -1 if there is none.
    """

    fiber_of: IntArray
    target_of: IntArray
    guesses: Column
    right: Callable[[IntArray, IntArray], BoolArray]
    luck: FloatArray
    spare: IntArray | None = None

    def hits(self, records: IntArray, guess: IntArray) -> BoolArray:
        """Which guesses (codes, -1 for a pass) are right about which records."""
        hit = np.zeros(len(records), dtype=bool)
        made = guess >= 0
        hit[made] = self.right(self.target_of[records[made]], guess[made])
        return hit


def play(prior: Prior, threat: Threat) -> Game:
    """Combine prior and threat. O(m log m), plus the size of the success relation."""
    if not isinstance(prior, Prior):
        raise DpradError(
            "prior must be a dprad.Prior, such as dprad.Prior.uniform(10) or dprad.Prior.unknown(),"
            f" but is a {type(prior).__name__}."
        )
    if not isinstance(threat, Threat):
        raise DpradError(f"threat must be a dprad.Threat, but is a {type(threat).__name__}.")
    if callable(threat.knows) or callable(threat.loss) or callable(threat.group):
        return _prepare(prior, threat)  # what a function returns may change between two questions
    return _prepared(prior, threat)


@lru_cache(maxsize=2)  # the same question is asked about many mechanisms, and many times about one
def _prepared(prior: Prior, threat: Threat) -> Game:
    return _prepare(prior, threat)


@lru_cache(maxsize=1)
def listed(prior: Prior, threat: Threat) -> Table:
    """The game of a question with all its classes and sets, for what needs them one by one."""
    return _finite(prior, threat, listed=True)


def _prepare(prior: Prior, threat: Threat) -> Game:
    if isinstance(prior.records, Equal) and prior.records.size > LARGE and _simple(threat):
        threat.target_columns(prior)  # or an error
        return Even.of(prior.records.size, known=threat.knows == "everything")
    if prior.records is not None:
        return _finite(prior, threat)
    if prior.kind == "continuous" and threat.group is None:
        return _continuous(prior, threat)
    if threat.group is not None:
        raise DpradError("a group needs a prior that is a table of records.")
    return Game(
        unlike=1.0,
        p_plus=1.0,
        p_minus=0.0,
        least=0.0,
        most=1.0,
        nothing_known=threat.knows == "nothing",
        everything_known=threat.knows == "everything",
        membership=threat.asks_membership(prior.columns),
        singletons=False,
    )


def _simple(threat: Threat) -> bool:
    """Whether nothing or everything is known, and of whole numbers one must be named."""
    loss = threat.loss if isinstance(threat.loss, str) else ""
    alone = loss == "exact" or (loss == "absolute" and threat.eta < 1.0)
    return alone and threat.knows in ("nothing", "everything") and threat.group is None


# -- finite priors -------------------------------------------------------------------------------
def _finite(prior: Prior, threat: Threat, *, listed: bool = False) -> Table:
    """Equal arrays are shared: a game of m records keeps only a few of that length."""
    pi, members = prior.table, threat.inside(prior)
    every = bool(np.all(pi > 0)) and members is None
    kept = slice(None) if every else np.flatnonzero(pi > 0)
    known = threat.fibers(prior)
    columns = threat.target_columns(prior)
    target_of, values = target_values(prior, columns)
    asked = kept if members is None else np.flatnonzero((pi > 0) & members)
    labels, label = distinct(known[asked])
    relation = relate(
        threat, columns, values, masses(target_of[kept], pi[kept], len(values)),
        listed=listed or threat.must_guess or len(labels) not in (1, len(label)),
    )  # fmt: skip
    parts = classes(relation, label, len(labels), target_of[asked], pi[asked])
    fiber, signature, mass, class_of_asked = parts
    alone = len(labels) == len(mass)
    class_of = class_of_asked
    if not every:
        class_of = np.full(len(pi), -1, dtype=np.intp)
        class_of[asked] = class_of_asked
    if members is not None and np.any((pi > 0) & ~members):
        # whom nobody asks about: one class that no guess is right about
        others = np.flatnonzero((pi > 0) & ~members)
        class_of[others] = len(mass)
        mass = np.r_[mass, min(1.0, float(pi[others].sum()))]
        fiber = np.r_[fiber, 0 if len(labels) == 1 else len(labels)]
        signature = np.r_[signature, len(relation.guess)]

    guessable = np.flatnonzero(np.r_[relation.guessable, False][signature])
    if alone or relation.sets is None:
        sets: Sets = Singletons.of(guessable, fiber, mass, np.r_[relation.guess, -1][signature])
    else:
        sets = relation.sets(fiber, signature, mass)
    nothing_known = len(labels) == 1
    p_plus, most = reach(sets, fiber)
    splits = nothing_known and partitions(sets, len(mass))
    spare = relation.spare(fiber, signature) if threat.must_guess else None
    forced = None if spare is None or splits or np.all(spare >= 0) else spare < 0
    asked_mass = parts[2]
    return Table(
        unlike=min(1.0, float(asked_mass @ complements(mass)[: len(asked_mass)])),
        p_plus=p_plus,
        p_minus=least_mass(sets, forced, p_plus, splits),
        least=float(sets.mass.min(initial=1.0)),
        most=most,
        nothing_known=nothing_known,
        everything_known=alone,
        membership=threat.asks_membership(prior.columns),
        singletons=isinstance(sets, Singletons),
        share=1.0 if len(mass) == len(asked_mass) else float(pi[asked].sum()),
        pi=pi,
        probabilities=mass,
        fiber=fiber,
        sets=sets,
        class_of=class_of,
        forced=forced,
        spare=spare,
        fiber_of=label if every else fibers(known, labels),
        target_of=target_of,
        guesses=values,
        right=relation.right,
        luck=relation.luck,
    )


# -- continuous priors ---------------------------------------------------------------------------
def _continuous(prior: Prior, threat: Threat) -> Game:
    """Only the summary: kappa = 0 and the range of a window's mass, bracketed from outside.

    On an interval, windows of half-width eta can always be laid side by side (the two at the ends
    can have any width from eta to 2 eta), so passing never helps.
    """
    assert prior.continuous_on is not None
    low, high = prior.continuous_on[1:]
    if threat.knows == "everything":
        if threat.must_guess and 2 * threat.eta >= high - low:
            raise DpradError(
                "must_guess with a continuous prior and knows='everything' needs an eta below half "
                "of the range, so that every record has a wrong guess."
            )
        return Game(
            unlike=1.0,
            p_plus=1.0,
            p_minus=0.0,
            least=0.0,
            most=1.0,
            nothing_known=False,
            everything_known=True,
            membership=True,
            singletons=False,
        )
    simple = isinstance(threat.loss, str) and threat.loss in ("exact", "absolute")
    if threat.knows != "nothing" or not simple:
        raise DpradError(
            "a continuous prior takes knows='nothing' or 'everything' and loss='exact' or "
            "'absolute'. For more, give a finite prior: Prior.from_counts or Prior.from_data."
        )
    eta = threat.eta
    edge = np.linspace(low, high, LINE_POINTS)
    # any centre in [edge[i], edge[i+1]] has a window between these two
    ends = np.concatenate([edge - eta, edge + eta])
    order = np.argsort(ends, kind="stable")
    upto = np.empty(len(ends))
    upto[order] = np.r_[0.0, np.cumsum(prior.cells(ends[order]))]
    below, above = upto[:LINE_POINTS], upto[LINE_POINTS:]
    outer, inner = above[1:] - below[:-1], above[:-1] - below[1:]
    p_plus = min(1.0, float(outer.max())) if eta > 0 else 0.0
    p_minus = max(0.0, float(inner.min())) if eta > 0 else 0.0
    return Game(
        unlike=1.0,
        p_plus=p_plus,
        p_minus=p_minus,
        least=p_minus,
        most=p_plus,
        nothing_known=True,
        everything_known=False,
        membership=False,
        singletons=False,
    )
