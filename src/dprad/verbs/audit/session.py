"""A session of bets on two records: learn from all calls so far, bet on the next ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.model.guarantees import Guarantee, PureDP
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.allowed import cell_bets, growth
from dprad.verbs.audit.books import Cells, Odds
from dprad.verbs.audit.coordinates import Reader, Rows
from dprad.verbs.audit.learners import Predictor, together

# Learners are trained anew when there are this many times as many calls, and most calls they see.
MORE, MOST = 1.5, 20_000
# Thresholds that are tried.
THRESHOLDS = 100


@dataclass(slots=True)
class Session:
    """What was learned and booked so far."""

    claim: Guarantee
    seed: int
    reader: Reader
    rows: list[Rows]
    secrets: list[IntArray]
    book: Odds | Cells
    predictor: Predictor | None = None
    threshold: float = np.inf
    trained: int = 0

    @classmethod
    def of(cls, claim: Guarantee, seed: int) -> Session:
        pure = isinstance(claim, PureDP)
        return cls(claim, seed, Reader(), [], [], Odds() if pure else Cells())

    @property
    def calls(self) -> int:
        return sum(map(len, self.secrets))

    def take(self, outputs: Any, secret: IntArray) -> None:
        """Bet on some calls, then learn from them."""
        rows = self.reader.rows(outputs)
        if self.predictor is not None:
            self._bet(self.predictor(rows), secret)
        if self.trained < MOST:
            self.rows.append(rows)
            self.secrets.append(secret)
            if self.calls >= max(64, MORE * self.trained):
                self._train()

    def _bet(self, odds: FloatArray, secret: IntArray) -> None:
        if isinstance(self.book, Odds):
            self.book.add(odds, secret)
        elif np.isfinite(self.threshold):
            self.book.add(odds >= self.threshold, secret)

    def _train(self) -> None:
        rows, secret = _joined(self.rows), np.concatenate(self.secrets)
        self.trained = len(secret)
        if len(np.unique(secret)) < 2:
            return
        self.predictor = together(rows, secret, self.seed)
        if isinstance(self.book, Cells):
            self.threshold, a, b = best_cell(self.predictor.tried, secret, self.claim)
            if np.isfinite(self.threshold):
                self.book.begin(a, b)

    def log_wealth(self) -> float:
        """Against the claim."""
        if isinstance(self.book, Odds):
            assert isinstance(self.claim, PureDP)
            return float(self.book.log_wealth(self.claim.epsilon)[0])
        return float(self.book.log_wealth([self.claim])[0])


def _joined(parts: list[Rows]) -> Rows:
    wide = max(p.numbers.shape[1] for p in parts)
    padded = [
        np.pad(p.numbers, ((0, 0), (0, wide - p.numbers.shape[1])), constant_values=np.nan)
        for p in parts
    ]
    return Rows([k for p in parts for k in p.keys], parts[-1].names, np.concatenate(padded))


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
    # half a deviation less clear than it looks
    up = np.minimum(a + 0.5 * np.sqrt(a * (1 - a) / size[0]), 1.0)
    down = np.maximum(b - 0.5 * np.sqrt(b * (1 - b) / size[1]), 0.0)
    pay = cell_bets(a, b, claim)
    gain = np.where(down > up, growth(up, down, pay), -np.inf)
    best = int(np.argmax(gain))
    if gain[best] <= 0.0:
        return np.inf, 0.5, 0.5
    return float(values[best]), float(a[best]), float(b[best])
