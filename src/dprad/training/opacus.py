"""What a white-box attacker sees of a real Opacus training, and what it reveals about a record.

`record` stores, before every step, the weights and the noisy gradient that the optimiser is about
to use. Scoring treats all steps as separate trainings (`dprad.training.gradients`) and adds up the
exact log-likelihoods of the candidates.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprad.errors import DpradError, number
from dprad.numerics.arrays import FloatArray
from dprad.training.gradients import engine
from dprad.training.records import checked

# Optimisers whose clipping and noise match the score.
KINDS = ("DPOptimizer", "DPOptimizerFastGradientClipping")


@dataclass(slots=True, eq=False, repr=False)
class Recording:
    """Weights and noisy sums of gradients, step by step; made by `record`.

    Memory: steps times twice the weights.

    Parameters
    ----------
    parameters
        The trained parameters.
    clips
        Clipping norm of each step; schedulers may change it.
    sigmas
        Noise multiplier of each step; schedulers may change it.
    batches
        Expected batch size of each step.
    weights
        Weights before each step.
    sums
        Noisy sum of gradients of each step.

    Examples
    --------
    >>> Recording([])
    Recording(0 steps, 0 weights)

    """

    parameters: list[Any]
    clips: list[float] = field(default_factory=list)
    sigmas: list[float] = field(default_factory=list)
    batches: list[float | None] = field(default_factory=list)
    weights: list[list[Any]] = field(default_factory=list)
    sums: list[list[Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        weights = sum(p.numel() for p in self.parameters)
        return f"Recording({len(self.sums)} steps, {weights:,} weights)"

    @property
    def steps(self) -> int:
        """Number of recorded steps."""
        return len(self.sums)

    def scores(
        self,
        model: Any,
        *,
        known: tuple[Any, Any],
        candidates: tuple[Any, Any],
        loss: Any = None,
        sample_rate: float = 1.0,
        drawn: Sequence[Any] | None = None,
    ) -> FloatArray:
        """Log-likelihood of each candidate, up to a common constant.

        Parameters
        ----------
        model
            The trained model, wrapped by Opacus or not.
        known
            Pair (records, labels): the rest of the data.
        candidates
            Pair (records, labels): who the last record may be.
        loss
            ``loss(outputs, labels)``, one number per record; default: cross-entropy.
        sample_rate
            1 for full batches, else the probability that a record is drawn for a step.
        drawn
            With sampling: for every step, the numbers of the *known* records that were drawn. The
            attacker sees those, but not whether the candidate was drawn. Shuffled batches are
            scored as if drawn.

        Returns
        -------
        ndarray
            One number per candidate.

        Examples
        --------
        ::

            scores = run.scores(model, known=(x, y), candidates=(others, labels))

        """
        import torch

        if not self.steps:
            raise DpradError("nothing was recorded: train inside the `with` block.")
        rate = number(sample_rate, "sample_rate", low=0, high=1)
        inner = getattr(model, "_module", model)
        place = {id(p): i for i, p in enumerate(self.parameters)}
        own = [p for p in inner.parameters() if p.requires_grad]
        if {id(p) for p in own} != set(place):
            raise DpradError("model is not the one whose optimiser was recorded.")
        order = [place[id(p)] for p in own]
        device = own[0].device
        bare = _unhooked(inner)
        records, labels, count = checked(bare, known, candidates, loss, device, own[0].dtype)
        mask = _mask(drawn, self.steps, count, rate)
        if mask is None:
            self._whole(count + 1)
        total = torch.zeros(len(records) - count, dtype=torch.float64, device=device)
        for t in range(self.steps):
            # a step is a training of its own
            made = engine(bare, records, labels, count, loss, self.clips[t])
            weights = [self.weights[t][i][None].to(records) for i in order]
            sums = [self.sums[t][i][None].to(records) / self.clips[t] for i in order]
            part = None if mask is None else torch.as_tensor(mask[t][None]).to(weights[0])
            with torch.no_grad():
                step = made.step(weights, part)
                seen = [s - k for s, k in zip(sums, step.total, strict=True)]
                product = step.products(seen).double()
            score = (product - step.squares.double() / 2)[0] / self.sigmas[t] ** 2
            if rate < 1:
                absent = torch.full_like(score, math.log1p(-rate))
                score = torch.logaddexp(absent, score + math.log(max(rate, 1e-300)))
            total += score
        return np.asarray(total.cpu().numpy())

    def _whole(self, people: int) -> None:
        """Without `drawn`, every step must have used the whole data."""
        for size in self.batches:
            if size is not None and abs(size - people) > 0.5:
                raise DpradError(
                    f"the batches had {size:g} records, but there are {people} with the candidate. "
                    "Give sample_rate, and the known records that were drawn in each step."
                )


def _unhooked(model: Any) -> Any:
    """A copy of the model without Opacus's own hooks, which do not support functional calls."""
    model = copy.deepcopy(model)
    for module in model.modules():
        for hooks in (
            module._forward_hooks,
            module._forward_pre_hooks,
            module._backward_hooks,
            module._backward_pre_hooks,
        ):
            for key in [k for k, hook in hooks.items() if _of_opacus(hook)]:
                del hooks[key]
    return model


def _of_opacus(hook: Any) -> bool:
    inner = getattr(hook, "func", hook)
    home = getattr(inner, "__module__", "") or ""
    return str(home).startswith("opacus")


@contextmanager
def record(optimizer: Any) -> Iterator[Recording]:
    """Record a training with Opacus, to score candidates against it.

    Use ``with record(optimizer) as run: ...`` around the training, then ``run.scores(...)``.

    Parameters
    ----------
    optimizer
        The `DPOptimizer` that Opacus made.

    Yields
    ------
    Recording
        It fills up during the training.

    Examples
    --------
    ::

        with dprad.attacks.record(optimizer) as run:
            train(model, optimizer)
        scores = run.scores(model, known=(x, y), candidates=(others, labels))

    """
    if type(optimizer).__name__ not in KINDS or not hasattr(optimizer, "attach_step_hook"):
        raise DpradError(
            "record takes the optimiser that Opacus returns from make_private (one clipping norm "
            f"for all weights: {' or '.join(KINDS)}), but got a {type(optimizer).__name__}."
        )
    if float(optimizer.noise_multiplier) == 0:
        raise DpradError(
            "the optimiser adds no noise, so the record is revealed: nothing to score."
        )
    run = Recording(list(optimizer.params))
    before = optimizer.step_hook

    def note(_: Any) -> None:
        if before is not None:
            before(optimizer)
        size = optimizer.expected_batch_size
        share = None if size is None else float(size * optimizer.accumulated_iterations)
        factor = share if optimizer.loss_reduction == "mean" and share is not None else 1.0
        run.clips.append(float(optimizer.max_grad_norm))
        run.sigmas.append(float(optimizer.noise_multiplier))
        run.batches.append(share)
        run.weights.append([p.detach().clone().cpu() for p in run.parameters])
        run.sums.append([(p.grad.detach() * factor).cpu() for p in run.parameters])

    optimizer.attach_step_hook(note)
    try:
        yield run
    finally:
        optimizer.attach_step_hook(before)


def _mask(drawn: Any, steps: int, count: int, rate: float) -> Any:
    """Which known records take part in which step; None: all of them in every step."""
    if drawn is not None and rate == 1:
        raise DpradError("drawn needs sample_rate below 1, the probability of being drawn.")
    if drawn is None:
        if rate < 1:
            raise DpradError(
                "with sampling, say which known records were drawn: drawn=[numbers of step 1, ...]."
            )
        return None
    if len(drawn) != steps:
        raise DpradError(f"drawn must have one entry per step ({steps}), but has {len(drawn)}.")
    mask = np.zeros((steps, count))
    for t, numbers in enumerate(drawn):
        at = np.asarray(numbers, dtype=int).reshape(-1)
        if at.size and not 0 <= at.min() <= at.max() < count:
            raise DpradError(
                f"drawn must hold numbers of known records, 0 .. {count - 1}, but step {t} has "
                f"{at.min()} .. {at.max()}."
            )
        mask[t, at] = 1.0
    return mask
