"""Clipped gradients of many trainings at once, as an attacker on DP-SGD needs them.

R trainings with weights of their own share n records: the first are known, the others are
candidates for the unknown one. An `Engine` gives, for the weights of one step, the sum of
the known records' clipped gradients and what is needed of the candidates' (a `Step`): products with
a vector, norms, and one candidate's gradient for each training. `layers` is for multilayer
perceptrons and never forms a gradient of a single record; `anything` takes every module through
`torch.func`. Both are exact and agree to rounding. Clipped gradients are in units of the clipping
norm, which avoids underflow and overflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    Tensors = list[torch.Tensor]
else:
    Tensors = list

__all__ = ["Engine", "Step", "engine"]


class Step(Protocol):
    """Clipped gradients at the weights of one step; the first axis of tensors is the training."""

    @property
    def total(self) -> Tensors:
        """Sum over the known records that were drawn, shaped like the weights."""

    @property
    def squares(self) -> torch.Tensor:
        """Squared norms of the candidates' gradients: trainings x candidates."""

    def products(self, vectors: Tensors) -> torch.Tensor:
        """Inner products of each training's vector with its candidates' gradients."""

    def chosen(self, codes: torch.Tensor) -> Tensors:
        """The gradient of candidate codes[r] in training r, shaped like the weights."""


class Engine(Protocol):
    """Weights and gradients of a model, for many trainings at once."""

    def start(self, runs: int, generator: torch.Generator, *, fresh: bool) -> Tensors:
        """Initial weights: newly drawn, or those of the model."""

    def step(self, weights: Tensors, drawn: torch.Tensor | None) -> Step:
        """Gradients at these weights; `drawn` says which known records take part, None: all."""

    def bytes_a_run(self) -> int:
        """Approximate memory of one training."""


def engine(
    model: Any, records: torch.Tensor, labels: torch.Tensor, known: int, loss: Any, clip: float
) -> Engine:
    """The fastest engine that fits the model; the first `known` records are the known ones."""
    from dprad.training.gradients.anything import Anything
    from dprad.training.gradients.layers import Layers, perceptron

    parts = perceptron(model, records)
    if parts is not None:
        return Layers(parts, records, labels, known, loss, clip)
    return Anything(model, records, labels, known, loss, clip)
