"""The recorder on real Opacus trainings: scores by hand, and the truth found."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from dprad import DpradError, attacks
from dprad.data.datasets import digits

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")
nn = torch.nn
KNOWN, CANDIDATES = 60, [100, 110, 120]


def train(
    truth,
    *,
    sigma,
    steps,
    rate=1.0,
    seed=0,
    optimiser=torch.optim.SGD,
    net=None,
    shuffled=False,
    **more,
):
    """Train on 60 known digits and one candidate; returns what the attacker has."""
    x, y = digits()
    torch.manual_seed(seed)
    model = net or nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.Tanh(), nn.Linear(6, 10))
    rows = [*range(KNOWN), CANDIDATES[truth]]
    numbers = torch.arange(KNOWN + 1)
    data = torch.utils.data.TensorDataset(
        torch.as_tensor(x[rows], dtype=torch.float32), torch.as_tensor(y[rows]), numbers
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = opacus.PrivacyEngine()
        loader = torch.utils.data.DataLoader(data, batch_size=round(rate * (KNOWN + 1)))
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=optimiser(model.parameters(), lr=0.5),
            data_loader=loader,
            noise_multiplier=sigma,
            max_grad_norm=more.pop("max_grad_norm", 0.3),
            poisson_sampling=rate < 1 and not shuffled,
            **more,
        )
        drawn, done = [], 0
        with attacks.record(optimizer) as run:
            while done < steps:
                for inputs, labels, who in loader:
                    optimizer.zero_grad()
                    nn.functional.cross_entropy(model(inputs), labels).backward()
                    optimizer.step()
                    drawn.append([int(i) for i in who if i < KNOWN])
                    done += 1
                    if done == steps:
                        break
    known, candidates = (x[:KNOWN], y[:KNOWN]), (x[CANDIDATES], y[CANDIDATES])
    return model, run, known, candidates, drawn, engine


@pytest.mark.parametrize("optimiser", [torch.optim.SGD, torch.optim.Adam])
def test_the_truth_is_found(optimiser):
    """Little noise: the candidate that took part has by far the largest likelihood."""
    for truth in range(3):
        model, run, known, candidates, _, engine = train(
            truth, sigma=0.3, steps=12, seed=truth, optimiser=optimiser
        )
        scores = run.scores(model, known=known, candidates=candidates)
        assert run.steps == 12 and scores.argmax() == truth
        assert scores[truth] - np.delete(scores, truth).max() > 5
        assert len(engine.accountant.history) > 0  # Opacus's own accountant still counts


class Normed(nn.Module):
    """Not a plain perceptron: Opacus's hooks must not get into the way."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(64, 6), nn.LayerNorm(6)
        self.last = nn.Linear(6, 10)

    def forward(self, x):
        return self.last(torch.tanh(self.norm(self.first(x.flatten(1)))))


def test_any_model_and_a_frozen_layer():
    frozen = Normed()
    frozen.first.requires_grad_(False)
    for net in (Normed(), frozen):
        model, run, known, candidates, _, _ = train(1, sigma=0.2, steps=12, net=net)
        assert run.scores(model, known=known, candidates=candidates).argmax() == 1


def test_what_is_not_modelled_is_refused():
    with pytest.raises(DpradError, match="DPPerLayerOptimizer"):
        train(0, sigma=1.0, steps=1, clipping="per_layer", max_grad_norm=[0.3] * 4)
    model, run, known, candidates, drawn, _ = train(0, sigma=1.0, steps=3, rate=0.5, shuffled=True)
    with pytest.raises(DpradError, match="the batches had"):
        run.scores(model, known=known, candidates=candidates)
    with pytest.raises(DpradError, match="sample_rate below 1"):
        run.scores(model, known=known, candidates=candidates, drawn=drawn)


def test_much_noise_tells_little():
    model, run, known, candidates, _, _ = train(1, sigma=300.0, steps=5)
    scores = run.scores(model, known=known, candidates=candidates)
    assert np.ptp(scores) < 0.5


def test_sampled_batches_against_a_plain_loop():
    model, run, known, candidates, drawn, _ = train(2, sigma=0.5, steps=6, rate=0.5, seed=4)
    scores = run.scores(model, known=known, candidates=candidates, sample_rate=0.5, drawn=drawn)
    net = model._module
    scale = run.sigmas[0] * run.clips[0]
    assert set(run.sigmas) == {0.5} and set(run.clips) == {0.3}
    x0, y0 = torch.as_tensor(known[0], dtype=torch.float32), torch.as_tensor(known[1])
    x1, y1 = torch.as_tensor(candidates[0], dtype=torch.float32), torch.as_tensor(candidates[1])

    def clipped(weights, x, y):
        def loss(values):
            held = dict(zip([k for k, _ in net.named_parameters()], values, strict=True))
            output = torch.func.functional_call(net, held, (x[None],))
            return nn.functional.cross_entropy(output, y[None])

        g = torch.func.grad(loss)(weights)
        size = math.sqrt(sum(float((a**2).sum()) for a in g))
        return [a * min(1.0, 0.3 / size) for a in g]

    # the parameters of the wrapped model have hooks of their own: a plain copy will do
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.Tanh(), nn.Linear(6, 10))
    expected = np.zeros(3)
    for t in range(run.steps):
        u = [s.clone() for s in run.sums[t]]
        for i in drawn[t]:
            for a, g in zip(u, clipped(run.weights[t], x0[i], y0[i]), strict=True):
                a -= g
        for j in range(3):
            g = clipped(run.weights[t], x1[j], y1[j])
            there = sum(float(((a - b) ** 2).sum()) for a, b in zip(u, g, strict=True))
            absent = sum(float((a**2).sum()) for a in u)
            ratio = (absent - there) / (2 * scale**2)
            expected[j] += np.logaddexp(math.log(0.5), math.log(0.5) + ratio)
    assert np.allclose(scores, expected, rtol=0, atol=2e-3)
    assert scores.argmax() == 2


def test_bad_input():
    plain = nn.Linear(2, 2)
    with (
        pytest.raises(DpradError, match="optimiser that Opacus returns"),
        attacks.record(torch.optim.SGD(plain.parameters(), lr=0.1)),
    ):
        pass
    model, run, known, candidates, drawn, _ = train(0, sigma=1.0, steps=3, rate=0.5)
    question = {"known": known, "candidates": candidates}
    with pytest.raises(DpradError, match="not the one"):
        run.scores(plain, **question)
    with pytest.raises(DpradError, match="which known records were drawn"):
        run.scores(model, sample_rate=0.5, **question)
    with pytest.raises(DpradError, match="one entry per step"):
        run.scores(model, sample_rate=0.5, drawn=drawn[:1], **question)
    with pytest.raises(DpradError, match="numbers of known records"):
        run.scores(model, sample_rate=0.5, drawn=[[KNOWN]] * 3, **question)
    with pytest.raises(DpradError, match="also known"):
        run.scores(model, known=known, candidates=known)
    run.sums.clear()
    with pytest.raises(DpradError, match="nothing was recorded"):
        run.scores(model, **question)
