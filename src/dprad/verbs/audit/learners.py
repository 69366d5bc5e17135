"""Learners: from outputs of two records, the log-odds that a new output is from the second.

*Counts* of whole outputs; a *line* through the coordinates; a *logistic* regression on what they
hold (numbers, bins, words); boosted *trees* (with scikit-learn). Each is scored on outputs it was
not trained on, and the scores are combined and calibrated by a small regression. What they say only
affects how fast evidence grows, never its validity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.coordinates import Rows

Score = Callable[[Rows], FloatArray]
Fit = Callable[[Rows, IntArray, int], Score]

# Coordinates that a regression looks at (those that differ most), values of one that get a column
# each, and bins of the others.
WIDEST, FEW, BINS = 200, 12, 10
# Coordinates that a line looks at.
FEWEST = 50
# Penalty of the regressions, and the largest log-odds.
RIDGE, FARTHEST = 4.0, 40.0
# Columns up to which Newton's method is used, its most steps, and the largest weight of a learner.
SMALL, STEPS, HEAVIEST = 400, 15, 1.5
# Outputs from which trees are grown, and folds in which learners are tried.
GROWN, FOLDS = 400, 4
# Outputs from which two folds suffice.
MANY = 2000


# -- counts ----------------------------------------------------------------------------------------
def counts(rows: Rows, secret: IntArray, seed: int) -> Score:  # noqa: ARG001
    """Smoothed counts of whole outputs; 0 for outputs never seen."""
    seen = [Counter(k for k, z in zip(rows.keys, secret, strict=True) if z == s) for s in (0, 1)]
    table = {
        key: math.log((seen[1][key] + 0.5) / (seen[0][key] + 0.5))
        for key in seen[0].keys() | seen[1].keys()
        if seen[0][key] + seen[1][key] > 1
    }
    return lambda rows: np.array([table.get(key, 0.0) for key in rows.keys])


# -- one line --------------------------------------------------------------------------------------
def linear(rows: Rows, secret: IntArray, seed: int) -> Score:  # noqa: ARG001
    """Ridge regression on the coordinates as they are: few calls suffice where a shift is all."""
    x = rows.numbers
    chosen = _different(x, secret, FEWEST)
    chosen = chosen[np.isfinite(x[:, chosen]).any(axis=0)]
    if not len(chosen):
        return _silent
    finite = np.where(np.isfinite(x[:, chosen]), x[:, chosen], np.nan)
    middle = np.nanmedian(finite, axis=0)
    spread = np.nanquantile(finite, 0.84, axis=0) - middle
    spread = np.where(spread > 0, spread, 1.0)

    def table(rows: Rows) -> FloatArray:
        raw = rows.numbers
        wide = int(chosen[-1]) + 1
        if raw.shape[1] < wide:
            raw = np.pad(raw, ((0, 0), (0, wide - raw.shape[1])), constant_values=np.nan)
        near = np.nan_to_num(np.clip((raw[:, chosen] - middle) / spread, -5.0, 5.0))
        return np.concatenate([np.ones((len(raw), 1)), near], axis=1)

    weights = _regress(table(rows), secret, RIDGE)
    return lambda rows: np.clip(table(rows) @ weights, -FARTHEST, FARTHEST)


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
        for j in _different(rows.numbers, secret, WIDEST):
            x = rows.numbers[:, j]
            known = x[~np.isnan(x)]
            values, times = np.unique(known, return_counts=True)
            if len(values) > FEW:
                common = values[times >= max(8, len(x) // 50)][:FEW]
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


def _different(raw: FloatArray, secret: IntArray, most: int) -> IntArray:
    """The coordinates whose distributions differ most between the two secrets."""
    varies = np.array([len(np.unique(x[~np.isnan(x)])) > 1 or np.isnan(x).any() for x in raw.T])
    places = np.flatnonzero(varies)
    if len(places) <= most:
        return places
    filled = np.nan_to_num(raw[:, places], nan=-1e9)
    order = np.argsort(filled, axis=0).argsort(axis=0) / len(raw)
    gap = np.abs(order[secret == 1].mean(axis=0) - order[secret == 0].mean(axis=0))
    return np.asarray(np.sort(places[np.argsort(-gap)[:most]]))


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


def _newton(x: FloatArray, secret: IntArray, penalty: FloatArray) -> FloatArray:
    """The same by Newton's method, with steps that are halved until they help."""

    def loss(w: FloatArray) -> float:
        margin = np.where(secret == 1, 1.0, -1.0) * (x @ w)
        return float(np.logaddexp(0.0, -margin).sum() + penalty @ (w * w) / 2)

    w = np.zeros(x.shape[1])
    now = loss(w)
    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(x @ w, -500, 500)))
        slope = x.T @ (chance - secret) + penalty * w
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
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits
    except ImportError:
        return _silent
    if len(rows) < GROWN or len(np.unique(secret)) < 2:
        return _silent
    width = rows.numbers.shape[1]
    chosen = _different(rows.numbers, secret, WIDEST)
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

    with threadpool_limits(1):  # threads that wait for each other take minutes on a busy machine
        model.fit(table(rows), secret)

    def score(rows: Rows) -> FloatArray:
        with threadpool_limits(1):
            odds = model.decision_function(table(rows))
            return np.asarray(np.clip(odds, -FARTHEST, FARTHEST))

    return score


def _silent(rows: Rows) -> FloatArray:
    return np.zeros(len(rows))


LEARNERS: dict[str, Fit] = {
    "counts": counts, "line": linear, "logistic": logistic, "trees": trees,
}  # fmt: skip


# -- together --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """Calibrated log-odds: all learners together. `tried` is what it said about outputs it had
    not been trained on, and `secret` theirs; `names` and `shares` say who carried it.
    """

    scores: tuple[Score, ...]
    weights: FloatArray
    tried: FloatArray
    secret: IntArray
    shares: dict[str, float]

    def __call__(self, rows: Rows) -> FloatArray:
        """Log-odds of the second record."""
        if not len(rows):
            return np.zeros(0)
        x = np.stack([np.ones(len(rows)), *(s(rows) for s in self.scores)], axis=1)
        return np.asarray(np.clip(x @ self.weights, -FARTHEST, FARTHEST))


def together(rows: Rows, secret: IntArray, seed: int, extra: tuple[Score, ...] = ()) -> Predictor:
    """Train all learners; combine them by what each says about folds it did not see."""
    with _one_thread():
        return _together(rows, secret, seed, extra)


def _one_thread() -> Any:
    """For small tables: threads that wait for each other take minutes where others work too."""
    try:
        from threadpoolctl import threadpool_limits  # comes with scikit-learn
    except ImportError:
        return nullcontext()
    return threadpool_limits(1)


def _together(rows: Rows, secret: IntArray, seed: int, extra: tuple[Score, ...]) -> Predictor:
    folds = FOLDS if len(rows) < MANY else 2
    fold = np.random.default_rng(seed).permutation(len(rows)) % folds
    apart = np.zeros((len(rows), len(LEARNERS) + len(extra)))
    for k in range(folds):
        inside = fold != k
        part, held = rows.take(inside), rows.take(~inside)
        for j, fit in enumerate(LEARNERS.values()):
            apart[~inside, j] = fit(part, secret[inside], seed)(held)
        for j, score in enumerate(extra, start=len(LEARNERS)):
            apart[~inside, j] = score(held)
    x = np.concatenate([np.ones((len(rows), 1)), apart], axis=1)
    # the calibration, too, must not see what it is judged by
    tried = np.zeros(len(rows))
    for k in range(folds):
        inside = fold != k
        tried[~inside] = x[~inside] @ _stack(x[inside], secret[inside])
    weights = _stack(x, secret)
    scores = (*(fit(rows, secret, seed) for fit in LEARNERS.values()), *extra)
    names = (*LEARNERS, *("given" for _ in extra))
    carried = np.abs(apart * weights[1:]).mean(axis=0)
    total = float(carried.sum()) or 1.0
    shares = {n: float(c) / total for n, c in zip(names, carried, strict=True)}
    return Predictor(scores, weights, np.clip(tried, -FARTHEST, FARTHEST), secret, shares)


def _stack(x: FloatArray, secret: IntArray) -> FloatArray:
    """Weights of the learners: none negative (those are left out), none far above one."""
    used = np.arange(x.shape[1])
    weights = np.zeros(x.shape[1])
    while True:
        found = _newton(x[:, used], secret, np.ones(len(used)))
        kept = (found > 0) | (used == 0)
        if kept.all():
            break
        used = used[kept]
    weights[used] = np.clip(found, -1.0, HEAVIEST)
    return weights
