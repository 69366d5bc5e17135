"""Any module: gradients of single records through `torch.func`, summed block by block.

O(R n) gradients per step; memory O(R B P) for blocks of B records and P weights.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from dprad.errors import DpradError
from dprad.training.gradients import Tensors

# Gradient entries held in memory at once.
BLOCK_ENTRIES = 2**24


@dataclass(frozen=True, slots=True)
class AnythingStep:
    """See `gradients.Step`."""

    total: Tensors
    squares: torch.Tensor
    clipped: Tensors  # trainings x candidates x shape of the weights

    def products(self, vectors: Tensors) -> torch.Tensor:
        """Sum over all weights."""
        total = torch.zeros_like(self.squares)
        for g, v in zip(self.clipped, vectors, strict=True):
            total += torch.einsum("rmk,rk->rm", g.flatten(2), v.flatten(1))
        return total

    def chosen(self, codes: torch.Tensor) -> Tensors:
        """One row each."""
        rows = torch.arange(len(codes), device=codes.device)
        return [g[rows, codes] for g in self.clipped]


class Anything:
    """See `gradients.Engine`."""

    def __init__(
        self,
        model: nn.Module,
        records: torch.Tensor,
        labels: torch.Tensor,
        known: int,
        loss: Any,
        clip: float,
    ) -> None:
        self.model = copy.deepcopy(model).to(records.device, records.dtype)
        self.names = [k for k, p in self.model.named_parameters() if p.requires_grad]
        self.records, self.labels, self.known = records, labels, known
        self.loss, self.clip = loss, clip
        still = {k: v.detach() for k, v in self.model.named_parameters() if not v.requires_grad}
        self.still = still | {k: v.detach() for k, v in self.model.named_buffers()}

        def one(weights: Tensors, record: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
            held = dict(zip(self.names, weights, strict=True))
            output = functional_call(self.model, (self.still, held), (record[None],))
            if loss is None:
                return nn.functional.cross_entropy(output, label[None])
            return torch.as_tensor(loss(output, label[None]).reshape(()))

        each = vmap(grad(one), in_dims=(None, 0, 0))
        self.gradients = vmap(each, in_dims=(0, None, None))

    def start(self, runs: int, generator: torch.Generator, *, fresh: bool) -> Tensors:
        """Newly drawn: by the modules' own `reset_parameters`, one training at a time."""
        own = dict(self.model.named_parameters())
        if not fresh:
            return [own[k].detach().expand(runs, *own[k].shape).clone() for k in self.names]
        model = copy.deepcopy(self.model).to("cpu")
        makers = [m for m in model.modules() if callable(getattr(m, "reset_parameters", None))]
        made = {id(p) for m in makers for p in m.parameters(recurse=False)}
        for name, p in model.named_parameters():
            if p.requires_grad and id(p) not in made:
                raise DpradError(
                    f"fresh weights cannot be drawn: {name!r} belongs to a module without "
                    "reset_parameters(). Set fresh=False to start every run with the model's own."
                )
        seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
        columns: list[Tensors] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for _ in range(runs):
                for m in makers:
                    m.reset_parameters()  # type: ignore[operator]
                now = dict(model.named_parameters())
                columns.append([now[k].detach().clone() for k in self.names])
        return [torch.stack(column).to(self.records) for column in zip(*columns, strict=True)]

    def step(self, weights: Tensors, drawn: torch.Tensor | None) -> AnythingStep:
        """Blocks of known records, then the candidates."""
        total = [torch.zeros_like(w) for w in weights]
        entries = sum(w.numel() for w in weights)
        block = max(1, BLOCK_ENTRIES // entries)
        for a in range(0, self.known, block):
            some = slice(a, min(a + block, self.known))
            gradients, factor, _ = self._clipped(weights, some)
            if drawn is not None:
                factor = factor * drawn[:, some]
            for t, g in zip(total, gradients, strict=True):
                t += torch.einsum("rn,rn...->r...", factor, g)
        gradients, factor, square = self._clipped(weights, slice(self.known, len(self.records)))
        clipped = [g * factor.reshape(*factor.shape, *[1] * (g.dim() - 2)) for g in gradients]
        return AnythingStep(total, square * factor**2, clipped)

    def _clipped(self, weights: Tensors, some: slice) -> tuple[Tensors, torch.Tensor, torch.Tensor]:
        """Gradients of some records, their factors and squared norms."""
        gradients = self.gradients(weights, self.records[some], self.labels[some])
        square = sum((g**2).flatten(2).sum(dim=2) for g in gradients)
        return list(gradients), torch.clamp(torch.rsqrt(square), max=1.0 / self.clip), square

    def bytes_a_run(self) -> int:
        """A few copies of the weights for every candidate, and for a block of one record."""
        weights = sum(dict(self.model.named_parameters())[k].numel() for k in self.names)
        candidates = len(self.records) - self.known
        return self.records.element_size() * weights * (3 * candidates + 8)
