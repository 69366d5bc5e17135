"""Trainings a second: many at once against one at a time with a gradient for every record.

Same framework, same processor, same network (784-10-10, 1,000 records). Target: 20 times.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn

from dprad.mechanisms import DPSGD

KNOWN, CANDIDATES, CLIP, SIGMA, RATE = 999, 8, 0.1, 5.0, 9.0


def loop(model, x, y, steps, code):
    """One training; the attacker's scores of all candidates."""
    weights = {k: p.detach().clone() for k, p in model.named_parameters()}

    def loss(w, record, label):
        output = torch.func.functional_call(model, w, (record[None],))
        return nn.functional.cross_entropy(output, label[None])

    gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    scores, scale = torch.zeros(CANDIDATES), SIGMA * CLIP
    for _ in range(steps):
        g = gradients(weights, x, y)
        norms = sum((v.flatten(1) ** 2).sum(dim=1) for v in g.values()).sqrt()
        factor = torch.clamp(CLIP / norms, max=1.0)
        for k, v in g.items():
            clipped = v.flatten(1) * factor[:, None]
            own = clipped[KNOWN:]
            seen = own[code] + scale * torch.randn(own.shape[1])
            scores += (own @ seen - (own**2).sum(dim=1) / 2) / scale**2
            total = clipped[:KNOWN].sum(dim=0) + seen
            weights[k] = weights[k] - RATE / (KNOWN + 1) * total.reshape(v.shape[1:])
    return scores


def main():
    rng = np.random.default_rng(0)
    n = KNOWN + CANDIDATES
    x, y = rng.uniform(-1, 1, size=(n, 28, 28)), rng.integers(10, size=n)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.ReLU(), nn.Linear(10, 10))
    training = DPSGD(
        model=model,
        known=(x[:KNOWN], y[:KNOWN]),
        candidates=(x[KNOWN:], y[KNOWN:]),
        clip=CLIP,
        sigma=SIGMA,
        steps=20,
        learning_rate=RATE,
        device="cpu",
    )
    training.sample(rng.integers(CANDIDATES, size=20), rng)
    begin = time.perf_counter()
    training.sample(rng.integers(CANDIDATES, size=200), rng)
    fast = (time.perf_counter() - begin) / 200
    images, labels = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
    loop(model, images, labels, 2, 0)
    begin = time.perf_counter()
    loop(model, images, labels, 20, 0)
    slow = time.perf_counter() - begin
    rate, ratio = 1 / fast, slow / fast
    print(f"{rate:.0f} trainings a second, {ratio:.0f} times as fast (target 20)")


if __name__ == "__main__":
    main()
