"""DP-SGD: two engines against each other and against a plain loop; likelihoods by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

import dprad
from dprad import DpradError, Threat, assess
from dprad.errors import show_records
from dprad.mechanisms import DPSGD

torch = pytest.importorskip("torch")
nn = torch.nn


class Wrapped(nn.Module):
    """The same model, no longer recognised as a perceptron."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 2, 3)
        self.norm = nn.GroupNorm(1, 2)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x[:, None]))).flatten(1))


def data(rng, known=7, candidates=3, shape=(2, 3), classes=3):
    n = known + candidates
    x, y = rng.normal(size=(n, *shape)), rng.integers(classes, size=n)
    return (x[:known], y[:known]), (x[known:], y[known:])


def mechanism(rng, model, **changes):
    known, candidates = changes.pop("data", None) or data(rng)
    given = {"clip": 0.7, "sigma": 1.3, "steps": 3, "learning_rate": 0.5, "fresh": False}
    return DPSGD(model=model, known=known, candidates=candidates, **given | changes)


def three_layers():
    first, second = nn.Linear(6, 5, bias=False), nn.Linear(5, 4)
    last = nn.Linear(4, 3, bias=False)
    return nn.Sequential(nn.Flatten(), first, nn.Tanh(), second, nn.GELU(), last)


MODELS = [
    lambda: nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3)),
    three_layers,
    lambda: nn.Sequential(nn.Flatten(), nn.Linear(6, 3)),
]


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("rate", [1.0, 0.4])
@pytest.mark.parametrize("double", [True, False])
def test_both_engines_make_the_same_trajectories(make, rate, double, rng):
    torch.manual_seed(1)
    model = make().double() if double else make()
    given = {"data": data(rng), "steps": 12, "sample_rate": rate, "chunk": 5}
    fast, slow = mechanism(rng, model, **given), mechanism(rng, Wrapped(model), **given)
    assert type(fast.engine).__name__ == "Layers" and type(slow.engine).__name__ == "Anything"
    codes = rng.integers(3, size=11)
    one = fast.sample(codes, np.random.default_rng(4))
    two = slow.sample(codes, np.random.default_rng(4))
    assert np.allclose(one, two, rtol=0, atol=1e-9 if double else 1e-4)
    # the weights themselves, after one step from the same ones
    generator = torch.Generator().manual_seed(0)
    weights = fast.engine.start(4, generator, fresh=True)
    drawn = None if rate == 1 else (torch.rand(4, 7) < rate).to(weights[0])
    a, b = (e.engine.step([w.clone() for w in weights], drawn) for e in (fast, slow))
    for s, t in zip(a.total, b.total, strict=True):
        assert torch.allclose(s, t, rtol=0, atol=1e-6)
    picks = torch.tensor([0, 2, 1, 2])
    for s, t in zip(a.chosen(picks), b.chosen(picks), strict=True):
        assert torch.allclose(s, t, rtol=0, atol=1e-6)
    assert torch.allclose(a.squares, b.squares, atol=1e-6)


def clipped(model, x, y, clip):
    """The gradient of one record, clipped: the plain way."""
    model.zero_grad()
    nn.functional.cross_entropy(model(x[None]), y[None]).backward()
    g = [p.grad.clone() for p in model.parameters()]
    size = math.sqrt(sum(float((a**2).sum()) for a in g))
    return [a * min(1.0, clip / size) for a in g]


@pytest.mark.parametrize("rate", [1.0, 0.35])
@pytest.mark.parametrize("make", [*MODELS[:2], Conv])
def test_likelihoods_against_a_plain_loop(make, rate, rng):
    """Three steps; with sampling the patterns of the unknown record are enumerated."""
    torch.manual_seed(2)
    model = make().double()
    known, candidates = data(rng, shape=(4, 4) if make is Conv else (2, 3))
    given = {"data": (known, candidates), "sample_rate": rate}
    found = mechanism(rng, model, **given).sample(np.array([1]), np.random.default_rng(9))[0]

    # the same random numbers, one training, one record at a time
    generator = torch.Generator().manual_seed(int(np.random.default_rng(9).integers(2**63)))
    clip, sigma, steps, lr = 0.7, 1.3, 3, 0.5
    x0, x1 = (torch.as_tensor(part[0]) for part in (known, candidates))
    y0, y1 = (torch.as_tensor(part[1]) for part in (known, candidates))
    options = {"generator": generator, "dtype": torch.float64}
    seen, gradients, product = [], [], np.zeros(3)
    for _ in range(steps):
        drawn, present = [True] * 7, True
        if rate < 1:
            drawn = (torch.rand(1, 7, **options) < rate)[0].tolist()
            present = bool(torch.rand(1, **options)[0] < rate)
        total = [torch.zeros_like(p) for p in model.parameters()]
        for i in np.flatnonzero(drawn):
            for t, g in zip(total, clipped(model, x0[i], y0[i], clip), strict=True):
                t += g
        each = [clipped(model, x1[j], y1[j], clip) for j in range(3)]
        u = [g * present for g in each[1]]
        u = [a + clip * sigma * torch.randn((1, *a.shape), **options)[0] for a in u]
        seen.append(u)
        gradients.append(each)
        for j in range(3):
            product[j] += sum(float((a * g).sum()) for a, g in zip(u, each[j], strict=True))
        with torch.no_grad():
            for p, t, a in zip(model.parameters(), total, u, strict=True):
                p -= lr / (rate * 8) * (t + a)

    def log_density(t, g):
        """Of what was seen in step t, the mean being g."""
        square = sum(float(((a - b) ** 2).sum()) for a, b in zip(seen[t], g, strict=True))
        return -square / (2 * (clip * sigma) ** 2)

    nothing = [[torch.zeros_like(g) for g in gradients[t][0]] for t in range(steps)]
    expected = []
    for j in range(3):
        chances = []
        for pattern in itertools.product([0, 1], repeat=steps):
            weight = math.prod(rate if b else 1 - rate for b in pattern)
            log = sum(
                log_density(t, gradients[t][j] if b else nothing[t]) for t, b in enumerate(pattern)
            )
            chances.append(weight * math.exp(log))
        expected.append(math.log(sum(chances)))
    shared = sum(log_density(t, nothing[t]) for t in range(steps))
    assert np.allclose(found[0], np.array(expected) - shared, rtol=0, atol=1e-9)
    assert np.allclose(found[1], product, rtol=0, atol=1e-9)


@pytest.mark.parametrize("wrap", [lambda m: m, Wrapped])
def test_opposite_gradients_beat_the_papers_curve(wrap):
    """A replaced gradient moves by twice the clipping norm: RAD is 0.5 (2 Phi(sqrt(T)/s) - 1)."""
    steps, sigma = 16, 6.0
    training = DPSGD(
        model=wrap(nn.Sequential(nn.Linear(1, 1, bias=False))),
        known=([[0.3], [2.0]], [0, 0]),
        candidates=([[1.0], [-1.0]], [0, 0]),
        clip=0.1,
        sigma=sigma,
        steps=steps,
        learning_rate=1.0,
        loss=lambda outputs, labels: outputs[:, 0],
    )
    exact = 0.5 * (2 * norm.cdf(math.sqrt(steps) / sigma) - 1)
    everything = Threat(knows="everything")
    for threat in (Threat(), everything):
        risks = dprad.training_risks(
            training, trials=4000, threats=[threat], confidence=0.9999, query="candidate"
        )[0]
        assert risks.interval[0] <= exact <= risks.interval[1]
        assert risks.counted_interval[0] <= exact <= risks.counted_interval[1]
        assert risks.paper_bound < risks.interval[0] and exact <= risks.bound
        assert risks.error < risks.counted_error
    risk = assess(training, prior=training.prior(), threat=everything, trials=2000)
    assert risk.kind == "estimate" and risk.interval[0] <= exact <= risk.interval[1]
    assert any("initial weights" in a for a in risk.assumptions)


def test_the_promise():
    training = mechanism(np.random.default_rng(0), MODELS[2](), steps=4, sigma=2.0)
    assert training.guarantee.neighbours == "add-remove" and training.guarantee.mu == 1.0
    assert training.guarantee.replace_one().mu == 2.0  # what the paper takes for half of it
    assert training.paper_guarantee.mu == 1.0
    assert training.paper_guarantee.neighbours == "replace-one"
    sampled = mechanism(np.random.default_rng(0), MODELS[2](), sample_rate=0.5)
    assert sampled.guarantee.tv < training.guarantee.tv
    with pytest.raises(DpradError, match="full batches"):
        _ = sampled.paper_guarantee
    assert "which of those were drawn" in sampled.assumes and sampled.size == 3


def test_fresh_weights(rng):
    """Both engines draw them as the layers themselves do; seeds repeat, runs differ."""
    model = MODELS[0]()
    for wrap in (lambda m: m, Wrapped):
        training = mechanism(rng, wrap(model), fresh=True)
        generator = torch.Generator().manual_seed(3)
        weights = training.engine.start(2000, generator, fresh=True)
        for w, fan in zip(weights, (6, 6, 4, 4), strict=True):
            reach = 1 / math.sqrt(fan)
            assert float(w.abs().max()) <= reach
            assert abs(float(w.std()) - reach / math.sqrt(3)) < 0.02
            assert abs(float((w[0] - w[1]).abs().max())) > 0
        one, two = (training.sample([0, 1], np.random.default_rng(1)) for _ in range(2))
        assert np.array_equal(one, two)

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(6, 3))

        def forward(self, x):
            return x.flatten(1) @ self.w

    with pytest.raises(DpradError, match="'w' belongs to a module without"):
        mechanism(rng, Own(), fresh=True).sample([0], rng)
    assert mechanism(rng, Own()).sample([0, 2], rng).shape == (2, 2, 3)


def test_chunks_do_not_change_the_law(rng):
    """Small chunks and one large one: same mean scores, within six standard errors."""
    model, given = MODELS[0](), {"data": data(rng), "sigma": 3.0}
    codes = np.zeros(3000, dtype=int)
    means = []
    for chunk in (100, 3000):
        scores = mechanism(rng, model, chunk=chunk, **given).sample(codes, rng)[:, 0]
        means.append((scores.mean(axis=0), scores.std(axis=0) / math.sqrt(3000)))
    assert np.all(np.abs(means[0][0] - means[1][0]) < 6 * np.hypot(means[0][1], means[1][1]))


def shared():
    layer = nn.Linear(6, 6)
    return nn.Sequential(nn.Flatten(), layer, nn.Tanh(), layer, nn.Linear(6, 3))


def hooked():
    model = MODELS[0]()
    model[1].register_forward_hook(lambda module, inputs, output: 2 * output)
    return model


@pytest.mark.parametrize("make", [shared, hooked])
def test_what_only_looks_like_a_perceptron(make, rng):
    """Layers that occur twice, or that something listens to, go the general way."""
    model = make().double()
    given = {"data": data(rng), "sigma": 0.5}
    one, two = mechanism(rng, model, **given), mechanism(rng, Wrapped(model), **given)
    assert type(one.engine).__name__ == "Anything"
    same = [m.sample([0, 1, 2], np.random.default_rng(2)) for m in (one, two)]
    assert np.array_equal(*same)


def test_in_place_activations_and_other_labels(rng):
    known, candidates = data(rng)
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.ReLU(inplace=True), nn.Linear(4, 3))
    plain = nn.Sequential(model[0], model[1], nn.ReLU(), model[3])
    found = []
    for net, kind in [
        (model, np.int64),
        (plain, np.int32),
        (plain, np.uint8),
        (Wrapped(plain), "u1"),
    ]:
        given = [(x, y.astype(kind)) for x, y in (known, candidates)]
        found.append(mechanism(rng, net, data=given).sample([0, 2], np.random.default_rng(1)))
    for other in found[1:]:
        assert np.allclose(found[0], other, atol=1e-4)


@pytest.mark.parametrize("clip", [1e-30, 1e-4, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_small_norms_and_half_precision(clip, dtype, rng):
    """Scores depend on gradients over the clipping norm; half precision is not computed in."""
    known, candidates = data(rng)
    scores = []
    for kind in (torch.float64, dtype):
        model = MODELS[2]()
        torch.manual_seed(0)
        model[1].reset_parameters()
        small = mechanism(rng, model.to(kind), data=(known, candidates), clip=clip, sigma=1.0)
        assert small.engine.flat.dtype in (torch.float32, torch.float64)
        scores.append(small.sample(np.repeat([0, 1, 2], 400), rng)[:, 0])
    spread = scores[0].std() / 20 + 0.02
    assert abs(scores[0].mean() - scores[1].mean()) < 6 * spread
    if clip < 1:
        assert scores[1].std() > 0.1  # not squashed to nothing


def test_a_rate_of_zero_tells_nothing(rng):
    outputs = mechanism(rng, MODELS[0](), sample_rate=0.0).sample([0, 1, 2], rng)
    assert np.all(outputs[:, 0] == 0.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sigma": 1e-4}, "sigma must be between"),
        ({"candidates": (np.ones((1, 6)), ["a"])}, "pair"),
        ({"candidates": (np.ones((1, 6)), [float("nan")])}, "finite"),
        ({"sigma": 0}, "sigma must be positive"),
        ({"clip": 0}, "clip must be positive"),
        ({"steps": 0}, "steps"),
        ({"sample_rate": 1.5}, "sample_rate"),
        ({"chunk": 0}, "chunk"),
        ({"model": 3}, "torch.nn.Module"),
        ({"model": nn.ReLU()}, "no weights"),
        ({"known": ([[1.0, 2.0]], [0, 1])}, "one label per record"),
        ({"known": 7}, "pair"),
        ({"known": ([[float("nan")] * 6], [0])}, "finite"),
        ({"known": (np.zeros((2, 5)), [0, 1])}, "records of one shape"),
        ({"candidates": (np.ones((2, 6)), [0, 1]), "known": (np.ones((1, 6)), [1])}, "also known"),
        ({"candidates": (np.ones((2, 6)), [1, 1])}, "same as candidate 0"),
        ({"candidates": (np.ones((1, 6)), [3])}, "candidate 0 has a label that the model"),
        ({"candidates": (np.ones((1, 6)), [0.5])}, "labels must be whole"),
        ({"model": nn.Linear(5, 3)}, "does not take these records"),
        ({"model": nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))}, "batch normalisation"),
        ({"model": nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.1))}, "dropout"),
        ({"loss": lambda o, y: o.sum()}, "one number per record"),
        ({"loss": lambda o, y: (o - o.mean(0)).sum(1)}, "depends on other records"),
        ({"loss": lambda o, y: o[:, 7]}, "loss does not take"),
        ({"model": nn.Sequential(nn.Linear(6, 3), nn.Unflatten(1, (3, 1)))}, "row of class scores"),
    ],
)
def test_bad_input(changes, words, rng):
    known, candidates = data(rng, shape=(6,))
    given = {
        "model": nn.Linear(6, 3),
        "known": known,
        "candidates": candidates,
        "clip": 1.0,
        "sigma": 1.0,
        "steps": 2,
        "learning_rate": 0.1,
    }
    with pytest.raises(DpradError, match=words):
        DPSGD(**given | changes)


def test_errors_show_no_record():
    class Picky(nn.Linear):
        def forward(self, x):
            raise ValueError(f"bad record {x.tolist()}")

    def picky(output, y):
        raise ValueError(f"bad label {y.tolist()}")

    known, candidates = (np.ones((1, 6)), [0]), (np.full((1, 6), 777123.0), [54321])
    rest = {"clip": 1.0, "sigma": 1.0, "steps": 2, "learning_rate": 0.1}
    for model, loss, value in (
        (Picky(6, 3), None, "777123"),
        (nn.Linear(6, 3), picky, "54321"),
        (nn.Linear(6, 3), None, "54321"),
    ):
        given = rest | {"model": model, "loss": loss, "known": known, "candidates": candidates}
        with pytest.raises(DpradError) as hidden:
            DPSGD(**given)
        assert value not in str(hidden.value)
        with show_records(), pytest.raises(DpradError, match=value):
            DPSGD(**given)


def test_a_training_that_diverges_is_said(rng):
    with pytest.raises(DpradError, match="diverged"):
        mechanism(rng, MODELS[0](), learning_rate=1e38, steps=8).sample([0], rng)
