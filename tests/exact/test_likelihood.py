"""A likelihood that is not the sampler's is refused; a right one is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dprad import DpradError, Prior, assess, by_group
from dprad.exact import likelihood, posterior
from dprad.mechanisms import GRR, Composed, Mechanism
from effort import some


class Told:
    """Gives the record away, and says something else."""

    size = 3

    def __init__(self, log):
        self.log = log

    def sample(self, records, rng):
        return np.asarray(records)

    def log_likelihood(self, outputs, records):
        same = np.asarray(outputs) == np.asarray(records)
        return np.where(same, *self.log)


@pytest.mark.parametrize("log", [(-20.0, -20.0), (-math.log(3), -math.log(3)), (-0.1, -2.0)])
def test_a_flat_likelihood_is_not_believed(log):
    for subject in (Told(log), Composed([Told(log), Told(log)])):
        for _ in range(2):
            with pytest.raises(DpradError, match="does not belong to sample"):
                assess(subject, prior=Prior.uniform(3))
    with pytest.raises(DpradError, match="does not belong to sample"):
        by_group(Told(log), prior=Prior.uniform(3), by="record")


@pytest.mark.parametrize("log", [(np.nan, -5.0), (np.inf, 0.0), (-np.inf, -np.inf), ("a", "b")])
def test_what_is_no_likelihood_is_one_sentence(log):
    with pytest.raises(DpradError, match="must give numbers"):
        assess(Told(log), prior=Prior.uniform(3))


class Noise(Mechanism):
    """Laplace noise of one scale, and the likelihood of another."""

    guarantee = None

    def __init__(self, scale, said, tilt=0.0):
        self.scale, self.said, self.tilt = scale, said, tilt

    def describe(self):
        return {"kind": "Noise"}

    def sample(self, records, rng):
        return records + rng.laplace(scale=self.scale, size=len(records))

    def log_likelihood(self, outputs, records):
        return -np.abs(outputs - records) / self.said + self.tilt * records


def test_noise_of_another_scale():
    prior = Prior.uniform(8)
    for scale, said, tilt in ((1.0, 2.0, 0.0), (0.1, 10.0, 0.0), (1.0, 1.0, 0.5)):
        with pytest.raises(DpradError, match="does not belong to sample"):
            assess(Noise(scale, said, tilt), prior=prior, trials=100)
    for scale in (1e-9, 0.3, 1.0, 30.0):
        assert assess(Noise(scale, scale), prior=prior, trials=100).kind == "estimate"


def test_right_likelihoods_are_not_refused(monkeypatch):
    """The margins hold: with a chance of 5% for each set, hardly one is crossed."""
    monkeypatch.setattr(likelihood, "RARE", 0.05)
    monkeypatch.setattr(likelihood, "_calibrated", lambda *_: None)
    refused = 0
    for seed in range(some(300, 8)):
        try:
            assess(Noise(1.0, 1.0), prior=Prior.uniform(3), trials=10, rng=seed)
        except DpradError:
            refused += 1
    assert refused <= some(30, 1)


class Spoilt(Mechanism):
    """Noise that is as said for small values only."""

    guarantee = None

    def __init__(self, less=0.05, of=4.0):
        self.less, self.of = less, of

    def describe(self):
        return {"kind": "Spoilt"}

    def sample(self, records, rng):
        scale = np.where(np.asarray(records) > self.of, self.less, 3.0)
        return records + scale * rng.laplace(size=len(records))

    def log_likelihood(self, outputs, records):
        return -np.abs(outputs - records) / 3.0

    def __eq__(self, other):
        return isinstance(other, Spoilt)

    def __hash__(self):
        return 1


def test_belief_is_in_what_was_checked_and_nothing_else():
    """Other values, an equal object, one that has changed: each is checked again."""
    narrow, wide = Prior.uniform(3), Prior.uniform(9)
    wrong = Spoilt()
    assert assess(wrong, prior=narrow, trials=100).kind == "estimate"
    with pytest.raises(DpradError, match="does not belong to sample"):
        assess(wrong, prior=wide, trials=100)
    kept = Spoilt(less=3.0)
    assert assess(kept, prior=wide, trials=100).kind == "estimate"
    with pytest.raises(DpradError, match="does not belong to sample"):
        assess(Spoilt(), prior=wide, trials=100)
    kept.less = 0.05
    with pytest.raises(DpradError, match="does not belong to sample"):
        assess(kept, prior=wide, trials=100)


def test_a_call_checks_once(monkeypatch):
    """However many questions it asks; the next call checks again."""
    checked = []
    monkeypatch.setattr(posterior, "check", lambda drawn: checked.append(1))
    right, prior = Noise(1.0, 1.0), Prior.uniform(5)
    for times in (1, 2, 3):
        assess(right, prior=prior, trials=10)
        assert len(checked) == times
    by_group(right, prior=prior, by="record", trials=10)
    assert len(checked) == 4


class Hides(Mechanism):
    """Some values, or some coordinates, give the record away; the likelihood does not say so."""

    guarantee = None

    def __init__(self, spoilt, wide=0):
        self.spoilt, self.wide = spoilt, wide

    def describe(self):
        return {"kind": "Hides"}

    def sample(self, records, rng):
        plain = rng.normal(size=len(records))
        own = np.asarray(records, dtype=float)
        if not self.wide:
            return np.where(np.isin(own, self.spoilt), own, plain)
        more = rng.normal(size=(len(records), self.wide))
        more[:, -1] = own
        return np.concatenate([plain[:, None], more], axis=1)

    def log_likelihood(self, outputs, records):
        first = outputs[..., 0] if self.wide else outputs
        return -(np.asarray(first) ** 2) / 2 + 0.0 * np.asarray(records)


@pytest.mark.parametrize(
    "subject", [Hides(range(2, 14)), Hides([9.0]), Hides([], 6), Hides([], 40)]
)
def test_all_values_and_coordinates_are_looked_at_where_they_are_few(subject):
    with pytest.raises(DpradError, match="does not belong to sample"):
        assess(subject, prior=Prior.uniform(14), trials=100)


def test_of_many_values_some_are_looked_at():
    """The likeliest, the ends, and some at random."""
    counts = dict.fromkeys(range(400), 1.0) | {77: 50.0}
    for spoilt in ([0.0], [399.0], [77.0], range(100, 300)):
        with pytest.raises(DpradError, match="does not belong to sample"):
            assess(Hides(spoilt), prior=Prior.from_counts(counts), trials=100)


class Shaped(Mechanism):
    """Gives the record away in outputs of some form."""

    guarantee = None

    def __init__(self, form):
        self.form = form

    def describe(self):
        return {"kind": "Shaped"}

    def sample(self, records, rng):
        return self.form(np.asarray(records, dtype=int))

    def log_likelihood(self, outputs, records):
        return np.zeros(np.broadcast_shapes(np.shape(outputs), np.shape(records)))


def _structured(records):
    found = np.zeros(len(records), dtype=[("a", "f8"), ("b", "S4")])
    found["b"] = records
    return found


def _objects(records):
    found = np.empty(len(records), dtype=object)
    found[:] = [("x", int(r)) for r in records]
    return found


@pytest.mark.parametrize(
    "form",
    [lambda r: r * 1j, lambda r: r.astype("S4"), lambda r: r.astype("M8[D]"), _structured, _objects,
     lambda r: r.astype(str), lambda r: r.astype(np.longdouble)],
)  # fmt: skip
def test_outputs_of_any_form_are_looked_at(form):
    with pytest.raises(DpradError, match="does not belong to sample"):
        assess(Shaped(form), prior=Prior.uniform(5), trials=50)


def test_every_part_of_a_composition_is_looked_at():
    parts = [GRR(epsilon=0.001 * k, size=3) for k in range(1, 17)]
    with pytest.raises(DpradError, match="does not belong to sample"):
        assess(Composed([*parts, Told((-1.0, -1.0))]), prior=Prior.uniform(3), trials=100)


class Joint(Mechanism):
    """Several numbers, right one by one: one noise for all, said to be independent, or not."""

    guarantee = None

    def __init__(self, turns, noise, said, scale=20.0, parts=False):
        self.turns, self.noise, self.said = np.array(turns), noise, said
        self.scale, self.parts = scale, parts

    def describe(self):
        return {"kind": "Joint"}

    def sample(self, records, rng):
        made = self.noise(rng, len(records)) * self.scale
        found = np.asarray(records)[:, None] + self.turns * made
        return tuple(found.T) if self.parts else found

    def log_likelihood(self, outputs, records):
        if self.parts:
            outputs = np.stack(outputs, axis=-1)
        gaps = (outputs - np.asarray(records)[..., None]) / (self.turns * self.scale)
        return self.said(gaps)


def _one(rng, size):
    return rng.laplace(size=(size, 1))


def _each(width):
    return lambda rng, size: rng.laplace(size=(size, width))


def _apart(gaps):
    return -np.abs(gaps).sum(axis=-1)


COVARIANCE = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.3], [0.0, 0.3, 1.0]])


def _normal(rng, size):
    return rng.multivariate_normal(np.zeros(3), COVARIANCE, size=size)


def _bell(gaps):
    return -0.5 * np.einsum("...i,ij,...j->...", gaps, np.linalg.inv(COVARIANCE), gaps)


@pytest.mark.parametrize("turns", [(1, -1), (1, -2.5), (1, 0.3, -7), [1, -1] * 8])
@pytest.mark.parametrize("parts", [False, True])
def test_a_wrong_joint_law_is_refused(turns, parts):
    """Every coordinate alone is as said; all of them give the record away."""
    wrong = Joint(turns, _one, _apart, parts=parts)
    with pytest.raises(DpradError, match="does not belong to sample"):
        assess(wrong, prior=Prior.uniform(2), trials=100)


def test_a_wrong_sign_of_a_correlation_is_refused():
    """The means do not tell it, a sum does."""

    class Turned(Joint):
        def sample(self, records, rng):
            noise = rng.laplace(size=(len(records), 1))
            sign = np.where(np.asarray(records) > 0, 1.0, -1.0)[:, None]
            return np.concatenate([noise, sign * noise], axis=1)

        def log_likelihood(self, outputs, records):
            return _apart(outputs) + 0.0 * np.asarray(records)

    with pytest.raises(DpradError, match="does not belong to sample"):
        assess(Turned([1, 1], _one, _apart), prior=Prior.uniform(2), trials=100)


def test_right_joint_laws_are_not_refused(monkeypatch):
    """As above: with a chance of 5% for each set, hardly one is crossed."""
    right = [
        Joint([1, -1], _each(2), _apart, 1.0),
        Joint([1, 2, -3], _normal, _bell, 1.0),
        Joint([1] * 6, _each(6), _apart, 0.5, parts=True),
    ]
    for one in right:
        assert assess(one, prior=Prior.uniform(14), trials=10).kind == "estimate"
    monkeypatch.setattr(likelihood, "RARE", 0.05)
    monkeypatch.setattr(likelihood, "_calibrated", lambda *_: None)
    refused = 0
    for seed in range(some(100, 4)):
        for one in right:
            try:
                assess(one, prior=Prior.uniform(3), trials=10, rng=seed)
            except DpradError:
                refused += 1
    assert refused <= some(30, 2)


class Clipped(Noise):
    """Normal noise; what is negative becomes 0, so that a third of the outputs are equal."""

    def sample(self, records, rng):
        return np.maximum(records + self.scale * rng.normal(size=len(records)), 0.0)

    def log_likelihood(self, outputs, records):
        gap = (np.asarray(outputs) - records) / self.scale
        below = np.array([0.5 * math.erfc(r / self.said / math.sqrt(2)) for r in records])
        bell = np.exp(-(gap**2) / 2) / math.sqrt(2 * math.pi) / self.said
        return np.log(np.where(np.asarray(outputs) > 0, bell, below))


def test_outputs_of_which_some_are_equal():
    """Equal outputs are in one set, whichever record they are of."""
    for seed in range(3):
        found = assess(Clipped(3.0, 3.0), prior=Prior.uniform(3), trials=100, rng=seed)
        assert found.kind == "estimate"
    with pytest.raises(DpradError, match="does not belong to sample"):
        assess(Clipped(3.0, 1.0), prior=Prior.uniform(3), trials=100)


def test_large_outputs_are_drawn_less_often():
    """Of 5,000 numbers each, by three values at a time, and fewer of them."""
    import tracemalloc

    class Wide(Hides):
        def sample(self, records, rng):
            return rng.normal(size=(len(records), 5000)).astype(np.float32)

        def log_likelihood(self, outputs, records):
            return np.zeros(np.broadcast_shapes(np.shape(outputs)[:-1], np.shape(records)))

    tracemalloc.start()
    drawn = posterior._drawn(Wide([]), np.arange(20.0), np.full(20, 0.05), 0)
    sizes = [len(outputs) for outputs, _ in drawn]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(sizes) <= 14 and set(sizes) == {1000} and most < 2.5e8


class Bell(Noise):
    """The same with normal noise."""

    def sample(self, records, rng):
        return records + self.scale * rng.normal(size=len(records))

    def log_likelihood(self, outputs, records):
        return -(((outputs - records) / self.said) ** 2) / 2


@pytest.mark.parametrize("kind", [Noise, Bell])
@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_noise_of_nearly_the_right_scale(kind, factor):
    """A quarter more or less, where there is a risk to speak of."""
    for scale, values in ((1.0, 2), (3.0, 3), (3.0, 14), (10.0, 100)):
        for seed in range(some(5, 1)):
            with pytest.raises(DpradError, match="does not belong to sample"):
                assess(kind(scale, factor * scale), prior=Prior.uniform(values), rng=seed)


def test_shares_of_right_likelihoods_are_as_said(monkeypatch):
    """How rare a sum is called is no rarer than it is: 1% of the looks for each side, at most."""
    found = []
    exponent = likelihood._exponent

    def seen(*given):
        found.append(exponent(*given))
        return 0.0

    monkeypatch.setattr(likelihood, "RARE", 0.01)
    monkeypatch.setattr(likelihood, "_exponent", seen)
    monkeypatch.setattr(likelihood, "_partitions", lambda *_: [])
    right = [
        Noise(1.0, 1.0),
        Noise(30.0, 30.0),
        Bell(0.4, 0.4),
        Bell(3.0, 3.0),
        Clipped(3.0, 3.0),
        Joint([1, 2, -3], _normal, _bell, 1.0),
    ]
    for seed in range(some(40, 4)):
        for one in right:
            assess(one, prior=Prior.uniform(3), trials=10, rng=seed)
    assert len(found) > 100
    assert np.mean(np.array(found) > -math.log(0.01)) <= 0.02


def test_what_is_called_rare_against_the_binomial_law():
    """Chernoff's bound is above the tail, by no more than a factor of the size of its root."""
    from scipy.stats import binom

    for many, share, seen in ((1000, 0.5, 620), (1000, 0.01, 45), (1000, 0.9, 780), (50, 0.001, 9)):
        left = np.r_[np.full(seen, 1 - share), np.full(many - seen, -share)]
        for weight in (1.0, -2.5):
            bound = math.exp(
                -likelihood._exponent(left, np.full(many, share), np.full(many, weight))
            )
            above = seen > many * share
            tail = binom.sf(seen - 1, many, share) if above else binom.cdf(seen, many, share)
            assert tail <= bound <= 4 * math.sqrt(many) * tail


def test_certain_outputs():
    """What one record alone can give is told apart without doubt, and rightly so."""

    class Sure(Told):
        def sample(self, records, rng):
            return np.where(rng.random(len(records)) < 0.3, np.asarray(records), 3)

        def log_likelihood(self, outputs, records):
            own = np.log(np.where(np.asarray(outputs) == np.asarray(records), 0.3, 1e-300))
            own = np.where(own < -600, -np.inf, own)
            return np.where(np.asarray(outputs) == 3, math.log(0.7), own)

    assert assess(Sure(None), prior=Prior.uniform(3), trials=100).kind == "estimate"
