"""A session of bets on two records: bet on the next calls, then learn from them.

Every bet is fixed by earlier calls, so learning wastes no call and costs no validity. Under a pure
claim the predicted posterior of each output is bet on (`allowed.py`); under any other cells of the
predicted odds (`portfolio.py`), once some threshold seems to speak against the claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from dprad.model.guarantees import REPLACE_ONE, ApproxDP, Guarantee, PureDP
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.numerics.bisection import last
from dprad.verbs.audit.allowed import cell_bets, growth
from dprad.verbs.audit.books import Cells, Odds
from dprad.verbs.audit.coordinates import Reader, Rows, joined
from dprad.verbs.audit.learners import Predictor, Score, together
from dprad.verbs.audit.tables import telling

# Learners are trained first after this many calls, anew when there are that many times as many (up
# to a thousand calls, and beyond), and see at most MOST.
FIRST, OFTEN, RARELY, MOST = 16, 1.25, 1.3, 20_000
# Thresholds that are tried, and by how many deviations they must look clear.
THRESHOLDS, CAUTION = 100, 0.5
# Cells of equal size, and the weight of an output that was not seen.
CELLS, UNSEEN = 12, 0.5
# Coordinates that are named.
NAMED = 3
# Epsilons at which wealth is read first.
GRID = np.r_[0.0, np.geomspace(0.01, 40.0, 160)]
# The same for bets on cells, whose weights must be found for each, and how closely.
COARSE = GRID[::4], 1e-4


@dataclass(frozen=True, slots=True)
class Booked:
    """What one chunk added: calls, guesses, right ones, and the bets."""

    calls: int
    guesses: int
    hits: int
    added: list[list[int]]


@dataclass(slots=True)
class Session:
    """What was learned and booked so far. `extra` scores are known beforehand: those of a model, or
    of an attack.
    """

    claim: Guarantee
    seed: int
    extra: tuple[Score, ...] = ()
    bits: bool = False
    reader: Reader = field(init=False)
    rows: list[Rows] = field(default_factory=list)
    secrets: list[IntArray] = field(default_factory=list)
    odds: Odds | None = None
    cells: Cells | None = None
    predictor: Predictor | None = None
    cuts: FloatArray = field(default_factory=lambda: np.zeros(0))
    differ: tuple[str, ...] = ()
    trained: int = 0
    studied: int = 0
    calls: int = 0
    guesses: int = 0
    hits: int = 0
    best: float = 0.0  # the largest log of the wealth against the claim, ever, and the book then
    peak: Odds | Cells | None = None

    def __post_init__(self) -> None:
        self.reader = Reader(self.bits)
        if isinstance(self.claim, PureDP):
            self.odds = Odds()
        else:
            self.cells = Cells(self.claim)

    @property
    def learning(self) -> bool:
        """Whether later bets will depend on calls still to come."""
        return self.trained < MOST

    def study(self, outputs: Any, secret: IntArray) -> None:
        """Learn from calls without betting on them."""
        self.studied += len(secret)
        self._keep(self.reader.rows(outputs), secret)

    def take(self, outputs: Any, secret: IntArray) -> Booked:
        """Bet on some calls, then learn from them."""
        rows = self.reader.rows(outputs)
        booked = Booked(len(secret), 0, 0, [])
        if self.predictor is not None:
            odds = self.predictor(rows)
            added: list[list[int]] = []
            if self.odds is not None:
                assert isinstance(self.claim, PureDP)
                path = self.odds.path(odds, secret, self.claim.epsilon)
                added = self._book(self.odds, path, odds, secret)
            elif self.cells is not None and len(self.cuts):
                cell = np.searchsorted(self.cuts, odds, "right")
                added = self._book(self.cells, self.cells.path(cell, secret), cell, secret)
            right = int(np.count_nonzero((odds > 0) == (secret == 1)))
            booked = Booked(len(secret), len(secret), right, added)
        self._count(booked)
        if self.learning:
            self._keep(rows, secret)
        return booked

    def put(self, booked: Booked) -> None:
        """Bets of an earlier session, after all was learned."""
        self._count(booked)
        if booked.added:
            book = self.odds if self.odds is not None else self.cells
            assert book is not None
            book.put(booked.added)
            if (now := self.log_wealth()) > self.best:
                self.best, self.peak = now, book.copy()

    def _book(
        self, book: Any, path: FloatArray, predicted: Any, secret: IntArray
    ) -> list[list[int]]:
        """Book all calls. Their bets were fixed before, so wealth counts after each of them, and
        where it is highest ever the book is kept. Once nothing is learned, chunks are stored as
        counts, and wealth counts at their ends only.
        """
        highest = len(path) - 1
        if self.learning and len(path):
            highest = int(np.argmax(path))
        if len(path) and path[highest] > self.best:
            self.best, self.peak = float(path[highest]), book.copy()
            self.peak.add(predicted[: highest + 1], secret[: highest + 1])
        added: list[list[int]] = book.add(predicted, secret)
        return added

    def _count(self, booked: Booked) -> None:
        self.calls += booked.calls
        self.guesses += booked.guesses
        self.hits += booked.hits

    def _keep(self, rows: Rows, secret: IntArray) -> None:
        self.rows.append(rows)
        self.secrets.append(secret)
        self.rows = self.reader.settle(self.rows, self.secrets)
        seen = sum(map(len, self.secrets))
        more = OFTEN if self.trained < 1000 else RARELY
        if seen >= max(FIRST, more * self.trained):
            self._train(seen)

    def _train(self, seen: int) -> None:
        rows, secret = joined(self.rows), np.concatenate(self.secrets)
        self.trained = seen
        if self.reader.width > 1:
            self.differ = tuple(map(self.reader.called, telling(rows.numbers, secret, NAMED)))
        if min(np.count_nonzero(secret == z) for z in (0, 1)) < 8:
            return
        bound = self.claim.epsilon if isinstance(self.claim, PureDP) else math.inf
        tried = self.cells is not None
        self.predictor = together(rows, secret, self.seed, self.extra, bound, tried)
        if self.cells is not None:
            self.cuts = cuts(self.predictor.tried, secret, self.claim)
            if len(self.cuts):
                self.cells.begin(law(self.predictor.tried, secret, self.cuts))
        if not self.learning:
            self.rows, self.secrets = [], []

    # -- what it says ------------------------------------------------------------------------------
    def log_wealth(self) -> float:
        """Against the claim."""
        return self.against(self.claim)

    def against(self, claim: Guarantee) -> float:
        """Log of the wealth against a claim."""
        book = self.odds if self.odds is not None else self.cells
        assert book is not None
        return _against(book, claim)

    def refuted(self, delta: float, alpha: float) -> float:
        """The largest epsilon such that it and all smaller ones (with this delta) are refuted, now
        or where wealth was highest.
        """
        needed, books = -math.log(alpha), [self.odds if self.odds is not None else self.cells]
        if self.peak is not None and self.best > self.log_wealth():
            books.append(self.peak)
        return max(_refuted(book, delta, needed) for book in books if book is not None)


def _against(book: Odds | Cells, claim: Guarantee) -> float:
    if isinstance(book, Cells):
        return book.log_wealth(claim)
    assert isinstance(claim, PureDP)
    return float(book.log_wealth(claim.epsilon)[0])


def _refuted(book: Odds | Cells, delta: float, needed: float) -> float:
    if isinstance(book, Odds):
        return first_crossing(lambda e: float(book.log_wealth(e)[0]), needed)

    def wealth(epsilon: float) -> float:
        return book.log_wealth(ApproxDP(epsilon, delta, neighbours=REPLACE_ONE))

    return first_crossing(wealth, needed, *COARSE)


def first_crossing(
    wealth: Callable[[float], float],
    needed: float,
    grid: FloatArray = GRID,
    width: float = 1e-6,
) -> float:
    """Where wealth falls below what is needed for the first time; 0 if at once."""
    before = 0.0
    if wealth(0.0) < needed:
        return 0.0
    for epsilon in grid[1:].tolist():
        if wealth(epsilon) < needed:
            return last(lambda e: wealth(e) >= needed, before, epsilon, width=width)
        before = epsilon
    return 700.0


def best_cell(odds: FloatArray, secret: IntArray, claim: Guarantee) -> tuple[float, float, float]:
    """The threshold whose outputs speak most against the claim, cautiously; and the chances of
    outputs beyond it. Infinity if none does.
    """
    values = np.unique(odds)
    if len(values) > THRESHOLDS:
        values = np.unique(np.quantile(odds, np.linspace(0, 1, THRESHOLDS + 1)))
    values = values[1:]
    if not len(values):
        return np.inf, 0.5, 0.5
    tails = [np.sort(odds[secret == z]) for z in (0, 1)]
    size = [len(t) for t in tails]
    hits = [len(t) - np.searchsorted(t, values, "left") for t in tails]
    a, b = ((h + 0.5) / (n + 1.0) for h, n in zip(hits, size, strict=True))
    up = np.minimum(a + CAUTION * np.sqrt(a * (1 - a) / size[0]), 1.0)
    down = np.maximum(b - CAUTION * np.sqrt(b * (1 - b) / size[1]), 0.0)
    gain = np.where(down > up, growth(up, down, cell_bets(a, b, claim)), -np.inf)
    best = int(np.argmax(gain))
    if gain[best] <= 0.0:
        return np.inf, 0.5, 0.5
    return float(values[best]), float(a[best]), float(b[best])


def cuts(odds: FloatArray, secret: IntArray, claim: Guarantee) -> FloatArray:
    """Thresholds between cells: quantiles, and the one that speaks most against the claim. None if
    none does.
    """
    best = best_cell(odds, secret, claim)[0]
    if not np.isfinite(best):
        return np.zeros(0)
    inner = np.quantile(odds, np.linspace(0, 1, CELLS + 1)[1:-1], method="higher")
    found = np.unique(np.r_[inner, best])
    return np.asarray(found[found > odds.min()])


def law(odds: FloatArray, secret: IntArray, between: FloatArray) -> FloatArray:
    """How likely each cell is under the two records (secret x cell): the mean of what was seen and
    what the odds say.
    """
    cell, chance = np.searchsorted(between, odds, "right"), (expit(odds) + (secret == 1)) / 2
    size = len(between) + 1
    seen = np.stack([np.bincount(cell, c, size) for c in (1.0 - chance, chance)])
    both = seen.sum(axis=0) / len(odds)
    return np.asarray((seen + UNSEEN * both) / (seen.sum(axis=1, keepdims=True) + UNSEEN))
