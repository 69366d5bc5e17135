"""Opacus loops, with Poisson batches and without, against the guarantee of Poisson batches."""

import warnings

import numpy as np
import pytest

from dprad import accounting, audit_outputs
from effort import some

opacus, torch = pytest.importorskip("opacus"), pytest.importorskip("torch")
RECORDS, BATCH, EPOCHS = 100, 10, 3


def training(present: bool, poisson: bool):
    """Noisy sums of the gradients, epochs x steps: 99 people pull one way, the canary the other."""
    pulls = torch.full((RECORDS - 1 + present, 1), -1.0)
    if present:
        pulls[0] = 1.0
    data = torch.utils.data.TensorDataset(pulls)
    model = torch.nn.Linear(1, 1, bias=False)
    weight = model.weight
    model, step, loader = opacus.PrivacyEngine(accountant="rdp").make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True),
        noise_multiplier=1.0, max_grad_norm=1.0, poisson_sampling=poisson, loss_reduction="sum",
    )  # fmt: skip
    moves = []
    for _ in range(EPOCHS):
        for (x,) in loader:
            before = float(weight)
            step.zero_grad()
            (-5 * model(x)).sum().backward()
            step.step()
            moves.append(float(weight) - before)
    return np.array(moves).reshape(EPOCHS, BATCH)


def score(moves):
    """Log-odds of the canary if batches are shuffled: then a batch lies two higher; without it the
    last one is short, and lies one higher.
    """
    x = moves + BATCH
    return float((np.logaddexp.reduce(2 * x - 2, axis=1) - x[:, -1]).sum())


def scores(poisson: bool, runs: int):
    """The same number of trainings with the canary and without."""
    torch.manual_seed(0)
    words = ["in", "out"] * (runs // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus warns of its hooks and its randomness
        return [(w, score(training(w == "in", poisson))) for w in words]


def test_shuffled_batches_are_not_poisson():
    """Three epochs of ten steps, sigma 1: the last batch of an epoch tells whether somebody is
    missing.
    """
    claim = accounting.dpsgd(noise_multiplier=1.0, sample_rate=1 / BATCH, steps=EPOCHS * BATCH)
    runs = some(1000, 128)
    shuffled, sampled = (audit_outputs(scores(p, runs), claim=claim) for p in (False, True))
    assert (shuffled.verdict, sampled.verdict) == ("violated", "consistent")
