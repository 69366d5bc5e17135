"""What is drawn of equal Laplace releases says what their outputs say."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import Prior, Threat
from dprad.exact import Sampling
from dprad.exact.products import drawn, factors, runs
from dprad.exact.tails import Tails
from dprad.game.question import Posed, Question
from dprad.mechanisms import Geometric, Laplace, Repeated

VALUES = np.array([0.0, 1.0, 4.0])


def posed(mechanism, prior, threat=None):
    question = Question.of(prior, threat)
    return Posed(question.game, mechanism.read(question))


def summed_up(tails, outputs):
    """Outputs as `sample` would give them."""
    under, over = (outputs < tails.low).sum(axis=1), (outputs > tails.high).sum(axis=1)
    inside = (outputs >= tails.low) & (outputs <= tails.high)
    return np.column_stack(
        [under - (outputs.shape[1] - inside.sum(axis=1)), over, np.where(inside, outputs, 0.0)]
    )


@pytest.mark.parametrize("clamp", [None, (0.0, 4.0), (-1.0, 9.0)])
def test_the_likelihood_is_that_of_all_outputs(rng, clamp):
    noise = Laplace(epsilon=2.0, sensitivity=4.0, clamp=clamp)
    tails = Tails.of(noise, 6, VALUES)
    outputs = noise.sample(np.ones((500, 6)), rng)
    if clamp == (0.0, 4.0):  # an atom is beyond
        atoms = np.where(outputs == 0.0, -1.0, np.where(outputs == 4.0, 5.0, outputs))
    else:
        atoms = outputs
    mine = tails.log_likelihood(summed_up(tails, atoms)[:, None], VALUES)
    plain = noise.log_likelihood(outputs[..., None], VALUES).sum(axis=1)
    np.testing.assert_allclose(mine - mine[:, :1], plain - plain[:, :1], atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 2.0, 20.0])
@pytest.mark.parametrize("value", VALUES)
def test_the_draws_have_the_law_of_outputs(rng, epsilon, value):
    """Means of 10 numbers of 40,000 draws, within 6 standard errors: an alarm in 1e7."""
    noise, n, times = Laplace(epsilon=epsilon, sensitivity=4.0), 40_000, 5
    tails = Tails.of(noise, times, VALUES)
    found = tails.sample(np.full(n, value), rng)
    plain = summed_up(tails, noise.sample(np.full((n, times), value), rng))
    for rows in (lambda t: t[:, 1], lambda t: t[:, 2:].sum(axis=1), lambda t: t[:, 2:].max(axis=1),
                 lambda t: np.square(t[:, 2:]).sum(axis=1),
                 lambda t: t[:, 0] - (times - t.shape[1])):  # fmt: skip
        one, other = rows(found), rows(plain)
        error = np.sqrt((one.var() + other.var()) / n)
        assert abs(one.mean() - other.mean()) <= 6 * error + 1e-12


def test_two_values_and_two_releases_by_quadrature():
    """The extra risk is half the total variation of the pair of outputs."""
    noise = Laplace(epsilon=1.5)
    middle = (np.arange(1500) + 0.5) / 1500
    weight = 1.5 * np.exp(-1.5 * np.abs(middle - np.array([[0.0], [1.0]]))) / 2 / 1500
    tail = 0.5 * np.exp(np.array([[0.0, -1.5], [-1.5, 0.0]]))  # below and above, for both values
    law = np.concatenate([weight, tail], axis=1)
    both = law[:, :, None] * law[:, None, :]
    exact = np.abs(both[0] - both[1]).sum() / 4
    chain, prior = Repeated(noise, 2), Prior.uniform(2)
    asked = posed(chain, prior)
    parts = factors(chain, asked.read)
    found = drawn(parts, asked, Sampling(trials=100_000, confidence=1 - 1e-7))
    assert found.interval[0] - 1e-4 <= exact <= found.interval[1] + 1e-4
    assert found.interval[1] - found.interval[0] < 0.02


@pytest.mark.parametrize("threat", [Threat(), Threat(knows="everything")])
def test_with_and_without_them(monkeypatch, threat):
    prior = Prior.from_counts({0: 5, 1: 3, 4: 2}, columns=["value"])
    chain = Repeated(Laplace(epsilon=1.0, sensitivity=4.0), 7)
    asked = posed(chain, prior, threat)
    parts, sampling = factors(chain, asked.read), Sampling(trials=50_000, confidence=1 - 1e-7)
    found = drawn(parts, asked, sampling)
    monkeypatch.setattr(Tails, "of", lambda *_: None)
    plain = drawn(parts, asked, sampling)
    assert found.interval[0] <= plain.interval[1] and plain.interval[0] <= found.interval[1]
    assert found.rad == pytest.approx(plain.rad, abs=0.01)


def test_many_releases_with_much_noise_are_few_likelihoods():
    prior, question = Prior.uniform(10), Question.of(Prior.uniform(10))
    many = Repeated(Laplace(epsilon=0.01, sensitivity=9.0), 400)
    assert runs(many, many.read(question)) < 10
    strong = Repeated(Laplace(epsilon=50.0, sensitivity=9.0), 400)
    assert runs(strong, strong.read(question)) == 401
    asked = posed(many, prior)
    (part,) = factors(many, asked.read)
    tails = Tails.of(part.mechanism, part.times, part.read)
    drawn_ = tails.sample(np.arange(10.0).repeat(100), np.random.default_rng(0))
    assert drawn_.shape[1] < 40


def test_who_has_none():
    assert Tails.of(Laplace(epsilon=1.0), 1, VALUES) is None
    assert Tails.of(Laplace(epsilon=0.0), 5, VALUES) is None
    assert Tails.of(Geometric(epsilon=1.0), 5, VALUES) is None
    assert Tails.of(Laplace(epsilon=1.0, clamp=(1.0, 4.0)), 5, VALUES) is None  # 0 looks like 1


def test_the_extremes():
    rng = np.random.default_rng(0)
    for epsilon in (1e-300, 1e-12, 700.0):
        noise = Laplace(epsilon=epsilon, sensitivity=4.0)
        for values in (VALUES, VALUES[:1]):
            tails = Tails.of(noise, 5, values)
            found = tails.sample(values, rng)
            assert np.isfinite(found).all()
            assert np.isfinite(tails.log_likelihood(found[:, None], values)).all()
