"""A learned attack: which two records to compare, and which outputs to bet on.

Some runs on each candidate record show how outputs differ. Half of them train a score (counts for
outputs that repeat, a scikit-learn classifier for numbers and vectors), the other half choose the
pair of records and the threshold above which the attack names the second one; below it, the attack
passes. All of this happens before the first counted run and is fixed from then on, so learning and
the search over pairs cost no validity: they only affect the power of the audit.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, kind
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.verbs.audit.certificates import lower_proportion, upper_proportion

# Most candidate records, and most pairs of them that get a classifier.
RECORDS = 10
PAIRS = 4
# Outputs are counted, not classified, if at most this many are distinct.
REPEATED = 0.2
# Number of thresholds tried.
THRESHOLDS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Compare the records `pair` (places in the prior): name the second if the score is high
    enough.
    """

    pair: tuple[int, int]
    score: Callable[[Any], FloatArray]
    threshold: float
    expected: float

    def __call__(self, outputs: Any, records: IntArray, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        """Code 1 (the second record) or -1 (a pass)."""
        named = self.score(outputs) >= self.threshold
        return np.where(named, 1, -1)


def candidates(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Which records to consider: all if few, else both ends, the likeliest and some others."""
    possible = np.flatnonzero(probabilities > 0)
    if len(possible) <= RECORDS:
        return possible
    likeliest = possible[np.argsort(-probabilities[possible], kind="stable")[:2]]
    fixed = np.unique(np.r_[possible[[0, -1]], likeliest])
    others = np.setdiff1d(possible, fixed)
    drawn = rng.choice(others, size=RECORDS - len(fixed), replace=False)
    return np.sort(np.r_[fixed, drawn])


def learn(
    samples: dict[int, Any], *, trials: int, delta: float, alpha: float, seed: int
) -> Learned:
    """From outputs by record: the most promising pair, score and threshold."""
    if len(samples) < 2:
        raise DpradError("an audit compares records: the prior must have at least two.")
    places = sorted(samples)
    halves = {z: (samples[z][0::2], samples[z][1::2]) for z in places}
    keys = [_key(o) for z in places for o in halves[z][0]]
    counted = len(set(keys)) <= max(2, REPEATED * len(keys))
    features = {z: None if counted else _features(samples[z]) for z in places}
    pairs = list(itertools.combinations(places, 2))
    if not counted and len(pairs) > PAIRS:
        pairs.sort(key=lambda p: -_distance(features[p[0]], features[p[1]]))
        pairs = pairs[:PAIRS]
    best: Learned | None = None
    for a, b in pairs:
        score: Callable[[Any], FloatArray]
        if counted:
            score = _count(halves[a][0], halves[b][0])
        else:
            score = _classify(halves[a][0], halves[b][0], seed)
        values = {z: score(halves[z][1]) for z in (a, b)}
        for first, second, sign in ((a, b, 1.0), (b, a, -1.0)):
            threshold, expected = _threshold(
                sign * values[first], sign * values[second], trials, delta, alpha
            )
            if best is None or expected > best.expected:
                best = Learned((first, second), _signed(score, sign), threshold, expected)
    assert best is not None
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _Signed:
    score: Callable[[Any], FloatArray]
    sign: float

    def __call__(self, outputs: Any) -> FloatArray:
        return self.sign * self.score(outputs)


def _signed(score: Callable[[Any], FloatArray], sign: float) -> Callable[[Any], FloatArray]:
    return _Signed(score, sign)


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """Log-ratio of smoothed counts; 0 for outputs never seen."""

    table: dict[Any, float]

    def __call__(self, outputs: Any) -> FloatArray:
        return np.array([self.table.get(_key(o), 0.0) for o in outputs])


def _count(one: Any, two: Any) -> _Counts:
    first, second = Counter(map(_key, one)), Counter(map(_key, two))
    table = {key: math.log((second[key] + 0.5) / (first[key] + 0.5)) for key in {*first, *second}}
    return _Counts(table)


@dataclass(frozen=True, slots=True, eq=False)
class _Classified:
    model: Any
    width: int

    def __call__(self, outputs: Any) -> FloatArray:
        with _one_thread():
            chance = self.model.predict_proba(_features(outputs, self.width))[:, 1]
        odds = np.log(np.maximum(chance, 1e-12)) - np.log(np.maximum(1.0 - chance, 1e-12))
        return np.asarray(odds)


def _classify(one: Any, two: Any, seed: int) -> _Classified:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise DpradError(
            "outputs that are numbers or vectors need scikit-learn: pip install 'dprad[audit]', or "
            "give an attack of your own."
        ) from None
    width = max(_features(one).shape[1], _features(two).shape[1])
    x = np.concatenate([_features(one, width), _features(two, width)])
    y = np.r_[np.zeros(len(one)), np.ones(len(two))]
    model = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=16, min_samples_leaf=max(20, len(y) // 100), random_state=seed
    )
    with _one_thread():
        return _Classified(model.fit(x, y), width)


def _one_thread() -> Any:
    """For small tables: threads that wait for each other take minutes where others work too."""
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    return threadpool_limits(1)


def _threshold(
    first: FloatArray, second: FloatArray, trials: int, delta: float, alpha: float
) -> tuple[float, float]:
    """The threshold with the largest epsilon that this many counted runs would certify."""
    values = np.unique(np.concatenate([first, second]))
    if len(values) > THRESHOLDS:
        values = np.unique(np.quantile(values, np.linspace(0, 1, THRESHOLDS)))
    best = (float(values[-1]), -1.0)
    for t in values:
        # one more failure than observed: rare events must not look better than they are
        hit = float(np.mean(second >= t))
        miss = (float(np.count_nonzero(first >= t)) + 1.0) / (len(first) + 1.0)
        right, wrong = round(trials / 2 * hit), round(trials / 2 * miss)
        if delta == 0.0:
            low = lower_proportion(right, right + wrong, alpha)
            expected = math.log(low / (1.0 - low)) if 0 < low < 1 else (-1.0 if low <= 0 else 700.0)
        else:
            low = lower_proportion(right, trials, alpha / 2) - delta
            high = upper_proportion(wrong, trials, alpha / 2)
            expected = math.log(low / high) if low > 0 else -1.0
        if expected > best[1]:
            best = (float(t), expected)
    return best


def _key(output: Any) -> Any:
    """An output as something countable."""
    if isinstance(output, np.ndarray):
        return tuple(_key(o) for o in output.tolist())
    if isinstance(output, list | tuple):
        return tuple(_key(o) for o in output)
    if isinstance(output, np.generic):
        return output.item()
    if isinstance(output, bytes):
        return output.hex()
    if isinstance(output, dict | set):
        return str(sorted(map(str, output.items() if isinstance(output, dict) else output)))
    if type(output).__hash__ is None:
        raise DpradError(
            f"run returned a {kind(type(output))}, which cannot be compared. Return numbers, "
            "text, or lists or arrays of these."
        )
    return output


def _features(outputs: Any, width: int | None = None) -> FloatArray:
    """Outputs as rows of `width` numbers (default: the longest); missing entries are NaN."""
    rows = []
    for output in outputs:
        flat: list[float] = []
        _flatten(output, flat)
        rows.append(flat)
    wide = max((len(r) for r in rows), default=0) if width is None else width
    table = np.full((len(rows), max(wide, 1)), np.nan)
    for i, row in enumerate(rows):
        table[i, : min(len(row), wide)] = row[:wide]
    return np.asarray(np.clip(table, -1e300, 1e300))


def _flatten(output: Any, into: list[float]) -> None:
    if isinstance(output, list | tuple | np.ndarray):
        for part in output:
            _flatten(part, into)
        return
    try:
        into.append(float(output))
    except (TypeError, ValueError, OverflowError):
        into.append(float(zlib.crc32(str(output).encode())) if output is not None else np.nan)


def _distance(one: Any, two: Any) -> float:
    """The largest difference of the distribution functions of a coordinate."""
    width = min(one.shape[1], two.shape[1])
    worst = 0.0
    for j in range(width):
        a, b = np.sort(one[:, j]), np.sort(two[:, j])
        grid = np.concatenate([a, b])
        gap = np.searchsorted(a, grid, "right") / len(a) - np.searchsorted(b, grid, "right") / len(
            b
        )
        worst = max(worst, float(np.abs(gap).max()))
    return worst
