"""Multilayer perceptrons: clipping without a gradient of any single record.

The gradient of a record at layer l is ``delta_l a_{l-1}^T`` (and delta_l for the bias), so its
squared norm is ``sum_l |delta_l|^2 (|a_{l-1}|^2 + 1)``: activations and deltas are enough. The
first layers of all trainings make one large matrix product, since they read the same records.

O(R n sum_l h_l h_{l-1}) per step, as for training without clipping; memory O(R n sum_l h_l).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dprad.training.gradients import Tensors

# Elementwise functions that may stand between layers.
ELEMENTWISE = (
    nn.ReLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.GELU,
    nn.ELU,
    nn.SELU,
    nn.SiLU,
    nn.LeakyReLU,
    nn.Softplus,
    nn.Identity,
)
# Copies of the activations that a step holds at its peak.
COPIES = 8


@dataclass(frozen=True, slots=True)
class Layer:
    """A linear layer and what follows it."""

    linear: nn.Linear
    after: tuple[nn.Module, ...]


def perceptron(model: nn.Module, records: torch.Tensor) -> tuple[Layer, ...] | None:
    """The layers of a plain `nn.Sequential`, or None for any other model.

    Other models: layers that occur twice or share weights, weights computed from others (pruning,
    weight norm), hooks.
    """
    if type(model) is not nn.Sequential or any(_hooked(m) for m in model.modules()):
        return None
    parts = _parts(model, flat=records.dim() == 2)
    weights = [p for linear, _ in parts or () for p in linear.parameters()]
    once = len({id(p) for p in weights}) == len(weights)
    if not parts or not once or not all(p.requires_grad for p in weights):
        return None
    return tuple(Layer(linear, tuple(after)) for linear, after in parts)


def _parts(model: nn.Sequential, *, flat: bool) -> list[tuple[nn.Linear, list[nn.Module]]] | None:
    """Each linear layer with what follows it, or None if there is anything else."""
    parts: list[tuple[nn.Linear, list[nn.Module]]] = []
    for module in model:
        if type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1):
            flat = True
            if parts:
                return None
        elif type(module) is nn.Linear and flat:
            if not {n for n, _ in module.named_parameters()} <= {"weight", "bias"}:
                return None
            parts.append((module, []))
        elif type(module) in ELEMENTWISE and parts:
            after: Any = copy.deepcopy(module)
            if "inplace" in vars(after):
                after.inplace = False
            parts[-1][1].append(after)
        else:
            return None
    return parts


def _hooked(module: nn.Module) -> bool:
    """Whether a hook might change what the module does."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Of one layer, the candidates' deltas (clipped) and the activations before it."""

    delta: torch.Tensor  # trainings x outputs x candidates
    before: torch.Tensor  # trainings x inputs x candidates, or inputs x candidates if shared
    bias: bool


@dataclass(frozen=True, slots=True)
class LayersStep:
    """See `gradients.Step`."""

    total: Tensors
    squares: torch.Tensor
    parts: tuple[_Part, ...]

    def products(self, vectors: Tensors) -> torch.Tensor:
        """Each layer: delta^T V a, and the bias."""
        total = torch.zeros_like(self.squares)
        at = 0
        for part in self.parts:
            through = vectors[at] @ part.before
            if part.bias:
                through = through + vectors[at + 1][:, :, None]
            total += (part.delta * through).sum(dim=1)
            at += 1 + part.bias
        return total

    def chosen(self, codes: torch.Tensor) -> Tensors:
        """Outer products."""
        gradients: Tensors = []
        for part in self.parts:
            delta = _pick(part.delta, codes)
            before = part.before.T[codes] if part.before.dim() == 2 else _pick(part.before, codes)
            gradients.append(delta[:, :, None] * before[:, None, :])
            if part.bias:
                gradients.append(delta)
        return gradients


class Layers:
    """See `gradients.Engine`."""

    def __init__(
        self,
        layers: tuple[Layer, ...],
        records: torch.Tensor,
        labels: torch.Tensor,
        known: int,
        loss: Any,
        clip: float,
    ) -> None:
        self.layers, self.labels, self.known = layers, labels, known
        self.loss, self.clip = loss, clip
        self.flat = records.reshape(len(records), -1)
        self.columns = self.flat.T.contiguous()
        self.ones = (self.flat**2).sum(dim=1) + 1.0
        self.bare = (self.flat**2).sum(dim=1)
        self.candidates = self.columns[:, known:].contiguous()

    def start(self, runs: int, generator: torch.Generator, *, fresh: bool) -> Tensors:
        """Newly drawn as in `nn.Linear`: uniform within 1/sqrt(inputs), for all trainings at
        once.
        """
        weights: Tensors = []
        for layer in self.layers:
            for p in layer.linear.parameters():
                own = p.detach().to(self.flat)
                w = own.expand(runs, *own.shape).clone()
                if fresh:
                    reach = layer.linear.in_features**-0.5
                    w.uniform_(-reach, reach, generator=generator)
                weights.append(w)
        return weights

    def step(self, weights: Tensors, drawn: torch.Tensor | None) -> LayersStep:
        """Forwards with the weights held fixed, backwards to the linear outputs."""
        runs, n = len(weights[0]), len(self.flat)
        inputs: Tensors = []  # what each layer reads
        outputs: Tensors = []
        at, before = 0, self.columns
        with torch.enable_grad():
            for k, layer in enumerate(self.layers):
                w, bias = weights[at], layer.linear.bias is not None
                if k == 0:
                    z = (w.reshape(-1, w.shape[2]) @ before).reshape(runs, -1, n)
                    if bias:
                        z += weights[at + 1][:, :, None]
                    z.requires_grad_()
                elif bias:
                    z = torch.baddbmm(weights[at + 1][:, :, None], w, before)
                else:
                    z = torch.bmm(w, before)
                inputs.append(before.detach())
                outputs.append(z)
                before = z
                for module in layer.after:
                    before = module(before)
                at += 1 + bias
            deltas = torch.autograd.grad(self._loss(before), outputs)
        square = torch.zeros(runs, n, dtype=self.flat.dtype, device=self.flat.device)
        for k, (layer, delta) in enumerate(zip(self.layers, deltas, strict=True)):
            bias = layer.linear.bias is not None
            if k == 0:
                length = self.ones if bias else self.bare
            else:
                length = (inputs[k] ** 2).sum(dim=1) + float(bias)
            square += (delta**2).sum(dim=1) * length
        factor = torch.clamp(torch.rsqrt(square), max=1.0 / self.clip)
        part = factor.clone()
        part[:, self.known :] = 0.0
        if drawn is not None:
            part[:, : self.known] *= drawn
        total: Tensors = []
        parts: list[_Part] = []
        for k, (layer, delta) in enumerate(zip(self.layers, deltas, strict=True)):
            bias = layer.linear.bias is not None
            scaled = delta * part[:, None, :]
            if k == 0:
                total.append(
                    (scaled.reshape(-1, n) @ self.flat).reshape(runs, -1, self.flat.shape[1])
                )
            else:
                total.append(torch.bmm(scaled, inputs[k].transpose(1, 2)))
            if bias:
                total.append(scaled.sum(dim=2))
            tail = delta[:, :, self.known :] * factor[:, None, self.known :]
            head = self.candidates if k == 0 else inputs[k][:, :, self.known :]
            parts.append(_Part(tail, head, bias))
        squares = square[:, self.known :] * factor[:, self.known :] ** 2
        return LayersStep(total, squares, tuple(parts))

    def _loss(self, outputs: torch.Tensor) -> torch.Tensor:
        """Sum over trainings and records; `outputs` is trainings x values x records."""
        runs, values, n = outputs.shape
        if self.loss is None:
            labels = self.labels.expand(runs, n)
            return nn.functional.cross_entropy(outputs, labels, reduction="sum")
        rows = outputs.transpose(1, 2).reshape(runs * n, values)
        return torch.as_tensor(self.loss(rows, self.labels.repeat(runs)).sum())

    def bytes_a_run(self) -> int:
        """Activations and deltas of all records, and a few copies of the weights."""
        wide = sum(layer.linear.out_features for layer in self.layers)
        weights = sum(p.numel() for layer in self.layers for p in layer.linear.parameters())
        return self.flat.element_size() * (COPIES * wide * len(self.flat) + 6 * weights)


def _pick(values: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """values[r, :, codes[r]]."""
    return values[torch.arange(len(codes), device=codes.device), :, codes]
