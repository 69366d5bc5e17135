"""Learners: from outputs of two records, the log-odds that a new output is from the second.

A Bayesian mixture of simple models (`mixture.py`); from some hundred outputs on also a *logistic*
regression on what coordinates hold (numbers, bins, words) and boosted *trees* (with scikit-learn).
Then each is scored on outputs it was not trained on, and the scores are combined and calibrated by
a small regression. What they say only affects how fast evidence grows, never its validity.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.coordinates import Rows
from dprad.verbs.audit.mixture import mixture
from dprad.verbs.audit.tables import atoms, differing

Score = Callable[[Rows], FloatArray]
Fit = Callable[[Rows, IntArray, int], Score]

# Coordinates that a regression looks at (those that differ most), values of one that get a column
# each, and bins of the others.
WIDEST, FEW, BINS = 200, 12, 10
# Penalty of the regressions, and the largest log-odds.
RIDGE, FARTHEST = 4.0, 40.0
# Columns up to which Newton's method is used, its most steps, and the largest weight of a learner.
SMALL, STEPS, HEAVIEST = 400, 15, 1.5
# Outputs that the weights of the mixture alone count for.
TRUST = 32.0
# Outputs from which trees are grown, and from which the mixture is not alone; folds in which
# learners are tried (beyond that many, two suffice).
GROWN, ALONE, FOLDS = 400, 800, 4


# -- logistic regression ---------------------------------------------------------------------------
def logistic(rows: Rows, secret: IntArray, seed: int) -> Score:  # noqa: ARG001
    """Ridge regression on numbers, bins and words of the coordinates."""
    features = _Features.of(rows, secret)
    weights = _regress(features(rows), secret, RIDGE)
    return lambda rows: np.clip(features(rows) @ weights, -FARTHEST, FARTHEST)


@dataclass(frozen=True, slots=True, eq=False)
class _Features:
    """Columns of the regression: for each coordinate its values, or its place among bins."""

    columns: tuple[tuple[int, FloatArray, FloatArray], ...]  # place, values, edges

    @classmethod
    def of(cls, rows: Rows, secret: IntArray) -> _Features:
        columns: list[tuple[int, FloatArray, FloatArray]] = []
        for j in differing(rows.numbers, secret, WIDEST):
            x = rows.numbers[:, j]
            known = x[~np.isnan(x)]
            values, times = np.unique(known, return_counts=True)
            if len(values) > FEW:
                common = values[(times >= max(8, len(x) // 50)) | atoms(times)][:FEW]
                inner = np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1])
                columns.append((int(j), common, np.unique(inner)))
            else:
                columns.append((int(j), values, np.zeros(0)))
        return cls(tuple(columns))

    def __call__(self, rows: Rows) -> FloatArray:
        parts = [np.ones((len(rows), 1))]
        missing = np.full(len(rows), np.nan)
        for j, values, edges in self.columns:
            x = rows.numbers[:, j] if j < rows.numbers.shape[1] else missing
            parts.append((x[:, None] == values).astype(float))
            if len(edges):
                parts.append((x[:, None] > edges).astype(float))
                scale = max(float(edges[-1] - edges[0]), 1e-300)
                line = np.clip((x - edges[len(edges) // 2]) / scale, -4.0, 4.0)
                parts.append(np.nan_to_num(line)[:, None])
            parts.append(np.isnan(x)[:, None].astype(float))
        return np.concatenate(parts, axis=1)


def _regress(x: FloatArray, secret: IntArray, ridge: float) -> FloatArray:
    """Logistic regression with a penalty on all weights but the first."""
    penalty = np.full(x.shape[1], ridge)
    penalty[0] = 1e-3
    if x.shape[1] <= SMALL:
        return _newton(x, secret, penalty)
    from scipy.optimize import minimize

    sign = 2.0 * secret - 1.0

    def loss(w: FloatArray) -> tuple[float, FloatArray]:
        margin = sign * (x @ w)
        value = float(np.logaddexp(0.0, -margin).sum() + penalty @ (w * w) / 2)
        pull = -sign / (1.0 + np.exp(np.clip(margin, -500, 500)))
        return value, x.T @ pull + penalty * w

    found = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B",
                     options={"maxiter": 100})  # fmt: skip
    return np.asarray(found.x)


def _newton(
    x: FloatArray, secret: IntArray, penalty: FloatArray, home: FloatArray | float = 0.0
) -> FloatArray:
    """The same by Newton's method, with steps that are halved until they help; weights are drawn
    to `home`.
    """

    def loss(w: FloatArray) -> float:
        margin = np.where(secret == 1, 1.0, -1.0) * (x @ w)
        return float(np.logaddexp(0.0, -margin).sum() + penalty @ (w - home) ** 2 / 2)

    w = np.zeros(x.shape[1]) + home
    now = loss(w)
    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(x @ w, -500, 500)))
        slope = x.T @ (chance - secret) + penalty * (w - home)
        curve = (x * (chance * (1.0 - chance))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        size = 1.0
        while size > 1e-4 and loss(w - size * step) > now:
            size /= 2
        w = w - size * step
        before, now = now, loss(w)
        if before - now <= 1e-6 * max(1.0, now):
            break
    return np.asarray(w)


# -- trees -----------------------------------------------------------------------------------------
def trees(rows: Rows, secret: IntArray, seed: int) -> Score:
    """Boosted trees on the coordinates; nothing without scikit-learn, or for few outputs."""
    if len(rows) < GROWN or len(np.unique(secret)) < 2:
        return _silent
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        return _silent
    width = rows.numbers.shape[1]
    chosen = differing(rows.numbers, secret, WIDEST)
    if not len(chosen):
        return _silent
    model = HistGradientBoostingClassifier(
        max_iter=50, max_leaf_nodes=12, min_samples_leaf=max(15, len(rows) // 100),
        random_state=seed, early_stopping=False,
    )  # fmt: skip

    def table(rows: Rows) -> FloatArray:
        raw = rows.numbers
        if raw.shape[1] < width:
            raw = np.pad(raw, ((0, 0), (0, width - raw.shape[1])), constant_values=np.nan)
        return np.clip(raw[:, chosen], -1e300, 1e300)

    with _one_thread(grown=True):
        model.fit(table(rows), secret)

    def score(rows: Rows) -> FloatArray:
        with _one_thread(grown=True):
            odds = model.decision_function(table(rows))
            return np.asarray(np.clip(odds, -FARTHEST, FARTHEST))

    return score


def _silent(rows: Rows) -> FloatArray:
    return np.zeros(len(rows))


# -- together --------------------------------------------------------------------------------------
LEARNERS: dict[str, Fit] = {"logistic": logistic, "trees": trees}


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """Calibrated log-odds: all learners together. `tried` is what it said about outputs it had
    not been trained on (nothing if they were too few, and nobody asked); `shares` say who carried
    it.
    """

    scores: tuple[Score, ...]
    weights: FloatArray
    tried: FloatArray
    shares: dict[str, float]

    def __call__(self, rows: Rows) -> FloatArray:
        """Log-odds of the second record."""
        if not len(rows):
            return np.zeros(0)
        x = np.stack([np.ones(len(rows)), *(s(rows) for s in self.scores)], axis=1)
        return np.asarray(np.clip(x @ self.weights, -FARTHEST, FARTHEST))


def together(
    rows: Rows,
    secret: IntArray,
    seed: int,
    extra: tuple[Score, ...] = (),
    bound: float = math.inf,
    tried: bool = True,
) -> Predictor:
    """The mixture; from some hundred outputs on, or if it shall be `tried`, with other learners
    beside it, combined by what all say about folds that they did not see. The claim allows log-odds
    up to the `bound`.
    """
    with _one_thread():
        if tried or len(rows) >= ALONE:
            return _together(rows, secret, seed, extra, bound)
    return alone(rows, secret, bound, extra)


def alone(rows: Rows, secret: IntArray, bound: float, extra: tuple[Score, ...] = ()) -> Predictor:
    """The mixture and nothing else."""
    with _one_thread():
        found = mixture(rows, secret, extra, bound)
    return Predictor((found,), np.array([0.0, 1.0]), np.zeros(0), found.shares)


def _one_thread(grown: bool = False) -> Any:
    """For small tables: threads that wait for each other take minutes where others work too."""
    controller = _threads(grown)
    return nullcontext() if controller is None else controller.limit(limits=1)


@functools.cache
def _threads(grown: bool) -> Any:  # noqa: ARG001
    """The libraries that start threads, with those of scikit-learn once trees are `grown`. To find
    them takes tens of milliseconds.
    """
    try:
        from threadpoolctl import ThreadpoolController  # comes with scikit-learn
    except ImportError:
        return None
    return ThreadpoolController()


def _together(
    rows: Rows, secret: IntArray, seed: int, extra: tuple[Score, ...], bound: float
) -> Predictor:
    folds = FOLDS if len(rows) < ALONE else 2
    fold = np.random.default_rng(seed).permutation(len(rows)) % folds

    first = mixture(rows, secret, extra, bound)
    others = [fit(rows, secret, seed) for fit in LEARNERS.values()]
    x = np.ones((len(rows), 2 + len(LEARNERS)))
    for k in range(folds):
        inside = fold != k
        held, some = rows.take(~inside), rows.take(inside)
        scores: list[Score] = [mixture(some, secret[inside], extra, bound, first.awake)]
        scores += [fit(some, secret[inside], seed) for fit in LEARNERS.values()]
        for j, score in enumerate(scores, start=1):
            x[~inside, j] = np.clip(score(held), -FARTHEST, FARTHEST)
    # the calibration, too, must not see what it is judged by
    tried = np.zeros(len(rows))
    for k in range(folds):
        inside = fold != k
        tried[~inside] = x[~inside] @ _stack(x[inside], secret[inside])
    weights = _stack(x, secret)
    carried = np.abs(x * weights)[:, 1:].mean(axis=0)
    total = float(carried.sum()) or 1.0
    shares = {n: s * carried[0] / total for n, s in first.shares.items()}
    shares |= {n: float(c) / total for n, c in zip(LEARNERS, carried[1:], strict=True)}
    return Predictor((first, *others), weights, np.clip(tried, -FARTHEST, FARTHEST), shares)


def _stack(x: FloatArray, secret: IntArray) -> FloatArray:
    """Weights of the learners, drawn to those of the mixture alone: none negative (those are left
    out), none far above one.
    """
    used = np.arange(x.shape[1])
    weights = np.zeros(x.shape[1])
    alone = (used == 1).astype(float)
    while True:
        found = _newton(x[:, used], secret, np.full(len(used), TRUST), alone[used])
        kept = (found > 0) | (used == 0)
        if kept.all():
            break
        used = used[kept]
    weights[used] = np.clip(found, -1.0, HEAVIEST)
    return weights
