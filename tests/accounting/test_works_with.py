"""docs/works-with.md: what it says was tried with Opacus is tried here."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import pytest
import torch
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from torch import nn

from dprad.accounting import dpsgd, from_event, from_opacus


class LoRA(nn.Module):
    """A frozen layer with two small trained ones beside it."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 2).requires_grad_(False)
        self.down, self.up = nn.Linear(6, 1, bias=False), nn.Linear(1, 2, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def trained(*, model=None, optimizer=torch.optim.SGD, split=False, accountant="prv", **options):
    """Two epochs with Opacus: the engine and its loader."""
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,)))
    model = nn.Linear(6, 2) if model is None else model
    steps = optimizer([p for p in model.parameters() if p.requires_grad], lr=0.1)
    criterion = nn.CrossEntropyLoss()
    ghost = options.get("grad_sample_mode") == "ghost"
    engine = PrivacyEngine(accountant=accountant)
    made = engine.make_private(
        module=model,
        optimizer=steps,
        data_loader=torch.utils.data.DataLoader(data, batch_size=8),
        noise_multiplier=1.1,
        **({"criterion": criterion} if ghost else {}),
        **({"max_grad_norm": 1.0} | options),
    )
    model, steps, loader = made[0], made[1], made[-1]
    criterion = made[2] if ghost else criterion
    for _ in range(2):
        parts = BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=steps)
        with parts if split else nullcontext(loader) as batches:
            for x, y in batches:
                steps.zero_grad()
                criterion(model(x), y).backward()
                steps.step()
    return engine, loader


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": torch.optim.Adam},
        {"optimizer": torch.optim.AdamW, "model": LoRA()},
        {"grad_sample_mode": "ghost"},
        {"grad_sample_mode": "functorch"},
        {"clipping": "per_layer", "max_grad_norm": [1.0, 1.0]},
        {
            "clipping": "adaptive",
            "target_unclipped_quantile": 0.5,
            "clipbound_learning_rate": 0.1,
            "max_clipbound": 10.0,
            "min_clipbound": 0.1,
            "unclipped_num_std": 5.0,
        },
        {"split": True},
        {"accountant": "rdp"},
        {"accountant": "gdp"},
    ],
    ids=lambda o: "-".join(map(str, o)),
)
def test_the_promise_of_a_training_does_not_depend_on_how_gradients_are_used(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine, loader = trained(**options)
    promise = from_opacus(engine, loader=loader)
    assert promise.doubts == ()
    assert promise.tv == dpsgd(noise_multiplier=1.1, sample_rate=1 / 8, steps=16).tv


def test_amplified_bandmf_is_a_shorter_training():
    """Four bands, 16 steps: each group is drawn from in four rounds."""
    step = dp_event.PoissonSampledDpEvent(1 / 8, dp_event.GaussianDpEvent(1.1))
    promise = from_event(dp_event.SelfComposedDpEvent(step, 4))
    ours = dpsgd(noise_multiplier=1.1, sample_rate=1 / 8, steps=4)
    assert promise.tv == pytest.approx(ours.tv, abs=1e-4)


def test_truncated_batches():
    event = dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 12, 2.0)
    promise = from_event(dp_event.SelfComposedDpEvent(event, 3))
    accountant = PLDAccountant().compose(event, 3)
    for epsilon in (0.0, 0.5):
        assert promise.delta(epsilon) == pytest.approx(accountant.get_delta(epsilon), abs=1e-9)
