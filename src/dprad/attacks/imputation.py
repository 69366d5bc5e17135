"""Imputation: guess a secret from what is known of a person, without looking at any release.

A classifier trained on public records predicts the secret. It may be right often (ReRo is high),
and that is no harm done by taking part: the guess does not depend on the release, so it is right
equally often whether the person is in the data or not, and RAD is 0. That is measured too, as the
definition says, and comes out as 0 up to sampling error. The attack that *does* use a release,
beside it, multiplies the classifier's odds with the likelihood of the output and names the
value that gained most; its RAD is what taking part costs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.data.tables import codes, read_rows
from dprad.errors import DpradError, column, number, told, whole
from dprad.exact.posterior import expanded
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.foreign import as_mechanism
from dprad.numerics.arrays import BoolArray, Column, FloatArray, IntArray
from dprad.numerics.intervals import betting, clopper_pearson

Pair = tuple[float, float]
# Outputs of the release that are drawn for every person; values of a column that are told apart.
OUTPUTS, COMMON = 16, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Imputation:
    """Success of guessing a secret, with and without a release.

    Attributes
    ----------
    secret, known, classifier
        What was guessed, from what, how.
    baseline
        Share of the commonest value: the best guess without knowing anything.
    rero, rero_interval
        How often the classifier alone is right.
    rad
        Its extra risk: exactly 0, since it ignores the release (Definition 1).
    measured_rad, measured_interval
        The same from runs: success on people who took part, minus success on others drawn in their
        place.
    release
        The mechanism of the other attack, as plain data; None if there was none.
    success_in, success_out
        How often the attack that uses the release is right about people in the data, and others.
    release_rad, release_interval
        The difference: its extra risk.
    people, public, repeats
        People guessed, and records that the classifier learned from, in each repetition.

    """

    secret: str
    known: tuple[str, ...]
    classifier: str
    baseline: float
    rero: float
    rero_interval: Pair
    rad: float
    measured_rad: float
    measured_interval: Pair
    release: dict[str, Any] | None
    success_in: float | None
    success_out: float | None
    release_rad: float | None
    release_interval: Pair | None
    people: int
    public: int
    repeats: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {f: getattr(self, f) for f in self.__slots__}

    def __str__(self) -> str:
        low, high = self.rero_interval
        text = (
            f"{self.secret}, guessed from {len(self.known)} other columns alone: right for "
            f"{100 * self.rero:.0f} of 100 people ({100 * low:.0f} to {100 * high:.0f}), whether "
            "they are in the data or not. Extra risk of taking part: 0."
        )
        if self.release_interval is None:
            return text
        assert self.success_in is not None and self.success_out is not None
        assert self.release is not None and self.release_rad is not None
        below, above = self.release_interval
        return (
            f"{text}\nWith the release ({self.release['kind']}): right for "
            f"{100 * self.success_in:.0f} of 100 in the data, {100 * self.success_out:.0f} of 100 "
            f"others. Extra risk {self.release_rad:.3f} ({below:.3f} to {above:.3f})."
        )


def impute(
    table: Any,
    *,
    secret: str,
    known: list[str] | str | None = None,
    classifier: Any = None,
    release: Any = None,
    people: int = 1000,
    public: int | None = None,
    repeats: int = 5,
    confidence: float = 0.95,
    rng: int = 0,
) -> Imputation:
    """Guess `secret` for people whom the classifier has not seen.

    Parameters
    ----------
    table
        A data frame, or the path of a CSV or Parquet file.
    secret, known
        The column to guess, and those that the attacker knows; default: all others.
    classifier
        Anything with `fit` and `predict_proba`, from scikit-learn; default: the paper's perceptron
        (256, 256), 10 epochs.
    release
        A mechanism that reads the secret of the person (such as ``GRR(epsilon=1, size=5)``); its
        codes are the values in sorted order.
    people, repeats
        People to guess in each repetition.
    public
        Records that the classifier learns from, drawn anew in each repetition; default: all others.
    confidence, rng
        Of the intervals (of the mean over the repetitions); seed.

    """
    try:
        from sklearn.base import clone
    except ImportError:
        raise DpradError("impute needs scikit-learn: pip install 'dprad[audit]'.") from None
    names, columns = read_rows(table)
    column(secret, names, name="secret")
    using = _known(names, secret, known)
    if classifier is not None and not (
        hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")
    ):
        raise DpradError(
            "classifier must have fit and predict_proba, as scikit-learn's do, but is a "
            f"{type(classifier).__name__}."
        )
    count, times = whole(people, "people", low=2), whole(repeats, "repeats", low=1)
    level = number(confidence, "confidence", low=0, high=1)
    truth, values = codes(columns[names.index(secret)])
    _guessable(secret, len(values), len(truth), count)
    mechanism = _reads(release, secret, len(values))
    most = len(truth) - count
    learned = most if public is None else min(whole(public, "public", low=1), most)
    used = _used(len(truth), times * (count + learned), whole(rng, "rng", low=0))
    task = _Task(
        x=_features([columns[names.index(n)][used] for n in using]),
        truth=truth[used],
        size=len(values),
        people=count,
        public=learned,
        model=_default if classifier is None else lambda _: clone(classifier),
        release=mechanism,
        confidence=1.0 - (1.0 - level) / times,  # every repetition's share of alpha
    )
    seeds = np.random.SeedSequence(rng).spawn(times)
    return Imputation(
        secret=secret,
        known=tuple(using),
        classifier="MLPClassifier" if classifier is None else type(classifier).__name__,
        baseline=float(np.bincount(truth).max() / len(truth)),
        rad=0.0,
        release=None if mechanism is None else mechanism.describe(),
        people=count,
        public=learned,
        repeats=times,
        **_means([_round(task, np.random.default_rng(seed)) for seed in seeds]),
    )


def _used(rows: int, needed: int, rng: int) -> Any:
    """The rows that are looked at: all, or as many as all repetitions need."""
    if needed >= rows:
        return slice(None)
    return np.random.default_rng([rng, rows]).permutation(rows)[:needed]


def _known(names: list[str], secret: str, known: list[str] | str | None) -> list[str]:
    """The columns that the attacker knows."""
    known = [known] if isinstance(known, str) else known
    using = [n for n in names if n != secret] if known is None else list(known)
    for name in using:
        column(name, names, name="known")
    if secret in using or not using:
        raise DpradError(f"known must name columns other than {secret!r}, but is {known!r}.")
    return using


def _guessable(secret: str, size: int, rows: int, people: int) -> None:
    """Refuse a secret with nothing to guess, and a table with nobody to learn from."""
    if size < 2:
        raise DpradError(f"secret must have at least two values, but {secret!r} has one.")
    if people >= rows:
        raise DpradError(
            f"people must be fewer than the {rows:,} rows, but is {people:,}: the classifier "
            "learns from the others."
        )


def _reads(release: Any, secret: str, size: int) -> Mechanism | None:
    """The release, if it is a mechanism on the values of the secret."""
    if release is None:
        return None
    wanted = f"release must be a mechanism of size {size} that reads {secret!r}"
    try:
        mechanism = as_mechanism(release, "impute")
    except DpradError:
        raise DpradError(f"{wanted}, but is {release!r}.") from None
    if not mechanism.likelihood or mechanism.reads_codes != size:
        raise DpradError(f"{wanted}, but is {release!r}.")
    return mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """One row of features and one code of the secret per person; who guesses, and how."""

    x: FloatArray
    truth: IntArray
    size: int
    people: int
    public: int
    model: Callable[[np.random.Generator], Any]
    release: Mechanism | None
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One repetition: success of the classifier alone, and of the attack that uses the release."""

    rero: float
    rero_interval: Pair
    measured: float
    measured_interval: Pair
    success: Pair | None = None
    release_interval: Pair | None = None


def _round(task: _Task, random: np.random.Generator) -> _Round:
    """Guess the secret of some people with a classifier that learned from all others."""
    order = random.permutation(len(task.truth))
    target, public = order[: task.people], order[task.people : task.people + task.public]
    truth = task.truth[target]
    chance = _chances(lambda: task.model(random), task.x, task.truth, public, target, task.size)
    right = chance.argmax(axis=1) == truth
    measured, ends = _measured(right, task.confidence, random)
    alone: dict[str, Any] = {
        "rero": float(right.mean()),
        "rero_interval": clopper_pearson(int(right.sum()), task.people, task.confidence),
        "measured": measured,
        "measured_interval": ends,
    }
    if task.release is None:
        return _Round(**alone)
    inside, outside = _released(task.release, chance, truth, random)
    low, high = betting((1.0 + inside - outside) / 2, task.confidence)
    return _Round(
        **alone,
        success=(float(inside.mean()), float(outside.mean())),
        release_interval=(2 * low - 1, 2 * high - 1),
    )


def _measured(
    right: BoolArray, confidence: float, random: np.random.Generator
) -> tuple[float, Pair]:
    """RAD of the classifier from runs: one run (J = 1) for each draw of people.

    A person z takes part and is guessed; z0 takes part and z1, drawn like them, is guessed. Neither
    guess reads the release, so only the draws differ.
    """
    takes_part, other = random.integers(len(right), size=(2, len(right)))
    success, luck = right[takes_part].astype(float), right[other].astype(float)
    low, high = betting((1.0 + success - luck) / 2, confidence)
    return float(success.mean() - luck.mean()), (2 * low - 1, 2 * high - 1)


def _means(rounds: list[_Round]) -> dict[str, Any]:
    """Success in all repetitions, as fields of `Imputation`."""
    success = [r.success for r in rounds if r.success is not None]
    ends = [r.release_interval for r in rounds if r.release_interval is not None]
    inside, outside = _mean(success) if success else (None, None)
    return {
        "rero": float(np.mean([r.rero for r in rounds])),
        "rero_interval": _mean([r.rero_interval for r in rounds]),
        "measured_rad": float(np.mean([r.measured for r in rounds])),
        "measured_interval": _mean([r.measured_interval for r in rounds]),
        "success_in": inside,
        "success_out": outside,
        "release_rad": None if inside is None or outside is None else inside - outside,
        "release_interval": _mean(ends) if ends else None,
    }


def _mean(pairs: list[Pair]) -> Pair:
    first, second = np.mean(pairs, axis=0)
    return float(first), float(second)


def _released(
    release: Mechanism, chance: FloatArray, truth: IntArray, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """How often the attack is right about each person if in the data, and if not.

    The output that a person did not take part in is that of another one, drawn at random. Several
    outputs per person, since they cost little.
    """

    def right(of: IntArray) -> BoolArray:
        outputs = release.sample(of, random)
        log = release.log_likelihood(expanded(outputs), np.arange(chance.shape[1])[None, :])
        posterior = chance * np.exp(log - log.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        # ties to the likeliest
        gain = posterior - chance + 1e-12 * chance
        return np.asarray(gain.argmax(axis=1) == truth)

    inside, outside = np.zeros(len(truth)), np.zeros(len(truth))
    for _ in range(OUTPUTS):
        inside += right(truth) / OUTPUTS
        outside += right(truth[random.integers(len(truth), size=len(truth))]) / OUTPUTS
    return inside, outside


def _chances(
    made: Callable[[], Any], x: Any, truth: IntArray, public: IntArray, target: IntArray, size: int
) -> FloatArray:
    """The classifier's probability of each value for each person; a floor keeps all possible."""
    chances = np.zeros((len(target), size))
    if len(np.unique(truth[public])) == 1:
        chances[:, truth[public][0]] = 1.0  # nothing to learn
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that few epochs do not converge is as intended
            try:
                model = made()
                model.fit(x[public], truth[public])
                chances[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(x[target])
            except Exception as error:  # its text may quote a record
                raise DpradError(f"classifier failed: {told(error)}.") from None
    chances = np.maximum(chances, 1e-9)
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _default(random: np.random.Generator) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        hidden_layer_sizes=(256, 256),
        batch_size=500,
        max_iter=10,
        random_state=int(random.integers(2**31)),
    )


def _features(columns: list[Column]) -> FloatArray:
    """Numbers scaled to mean 0 and deviation 1; of all else a column for each common value."""
    features = []
    for values in columns:
        numbers = _numbers(values)
        if numbers is None:
            code, distinct = codes(values)
            common = np.argsort(-np.bincount(code, minlength=len(distinct)), kind="stable")[:COMMON]
            features.append((code[:, None] == common).astype(np.float32))
            continue
        lost = ~np.isfinite(numbers)
        x = np.where(lost, 0.0 if lost.all() else numbers[~lost].mean(), numbers)
        spread = x.std()
        features.append(((x - x.mean()) / (spread if spread > 0 else 1.0))[:, None])
        if lost.any():
            features.append(lost[:, None].astype(float))
    return np.concatenate(features, axis=1).astype(np.float32)


def _numbers(values: Column) -> FloatArray | None:
    """A column of numbers, missing ones as NaN; None if it holds anything else."""
    if values.dtype.kind in "iuf":
        return values.astype(float)
    kinds = {type(v) for v in values if v is not None}
    if not kinds or not kinds <= {int, float}:
        return None
    try:
        return np.array([np.nan if v is None else v for v in values], dtype=float)
    except OverflowError:
        raise DpradError("data holds numbers too large for the classifier; scale them.") from None
