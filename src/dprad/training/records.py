"""Validation of a training: known records, candidates, and a model that treats them separately."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from dprad.errors import DpradError, records_shown, told
from dprad.numerics.arrays import FloatArray

if TYPE_CHECKING:
    import torch


def checked(
    model: Any, known: Any, candidates: Any, loss: Any, device: Any, dtype: Any
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """All records, known ones first, their labels, and the number of known ones."""
    import torch

    if not isinstance(model, torch.nn.Module):
        raise DpradError(f"model must be a torch.nn.Module, but is a {type(model).__name__}.")
    weights = next((p for p in model.parameters() if p.requires_grad), None)
    if weights is None:
        raise DpradError("model has no weights to train.")
    x0, y0 = _pair(known, "known")
    x1, y1 = _pair(candidates, "candidates")
    if x0.shape[1:] != x1.shape[1:]:
        raise DpradError(
            f"known and candidates must have records of one shape, but have "
            f"{x0.shape[1:]} and {x1.shape[1:]}."
        )
    _apart(x0, y0, x1, y1)
    # never in half precision: a rate or a norm would be off by a percent
    fine = torch.promote_types(dtype or weights.dtype, torch.float32)
    records = torch.as_tensor(np.concatenate([x0, x1])).to(device, fine)
    labels = torch.as_tensor(np.concatenate([y0, y1])).to(device)
    _per_record(model, records, labels, loss, len(x0))
    return records, labels, len(x0)


def _pair(pair: Any, name: str) -> tuple[FloatArray, Any]:
    """Records and labels as arrays."""
    try:
        records, labels = pair
        x = np.asarray(records, dtype=float)
        y = np.asarray(labels)
        y = y.astype(np.int64) if y.dtype.kind in "iub" else y.astype(float)
    except (TypeError, ValueError, RuntimeError):
        raise DpradError(f"{name} must be a pair (records, labels) of arrays of numbers.") from None
    if x.ndim < 2 or len(x) != len(y) or y.ndim != 1 or not len(x):
        raise DpradError(
            f"{name} must be a pair (records, labels) with one label per record, but their shapes "
            f"are {x.shape} and {y.shape}."
        )
    for values in (x, y):
        if not np.all(np.isfinite(values)):
            raise DpradError(f"{name} must hold finite numbers; record {_first(values)} does not.")
    return x, y


def _first(x: FloatArray) -> int:
    """The first record that is not finite."""
    return int(np.argmin(np.isfinite(x.reshape(len(x), -1)).all(axis=1)))


def _apart(x0: FloatArray, y0: Any, x1: FloatArray, y1: Any) -> None:
    """No candidate may be among the known records, or occur twice."""
    seen = {(a.tobytes(), b): "also known" for a, b in zip(x0, y0.tolist(), strict=True)}
    for i, (a, b) in enumerate(zip(x1, y1.tolist(), strict=True)):
        key = (a.tobytes(), b)
        if key in seen:
            raise DpradError(
                f"candidate {i} is {seen[key]}. The attacker knows the known records and looks "
                "for a different one: leave it out."
            )
        seen[key] = f"the same as candidate {i}"


def _per_record(model: Any, records: Any, labels: Any, loss: Any, known: int) -> None:
    """The loss of a record must not depend on other records, nor on chance."""
    import torch
    from torch import nn

    mixing = nn.modules.batchnorm._BatchNorm
    for name, module in model.named_modules():
        if isinstance(module, mixing) and module.training:
            raise DpradError(
                f"model has batch normalisation ({name}), which mixes records: gradients of single "
                "records cannot be clipped. Use GroupNorm or LayerNorm."
            )
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.training and module.p > 0:
            raise DpradError(
                f"model has dropout ({name}), whose random numbers the attacker would need. "
                "Call model.eval(), or remove it."
            )
    model = copy.deepcopy(model).to(records.device, records.dtype)
    with torch.no_grad():
        try:
            output = model(records[known:])
        except (RuntimeError, ValueError, TypeError) as error:
            raise DpradError(f"model does not take these records: {told(error)}.") from None
        if loss is None:
            _known_labels(labels, output, known)
            return
        try:
            each = torch.as_tensor(loss(output, labels[known:]))
            alone = torch.as_tensor(loss(model(records[known : known + 1]), labels[known:][:1]))
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise DpradError(f"loss does not take the model's outputs: {told(error)}.") from None
    if each.shape != (len(output),):
        raise DpradError(
            f"loss must return one number per record, but returned shape {tuple(each.shape)} for "
            f"{len(output)} records. Use reduction='none'."
        )
    if not torch.allclose(each[:1], alone.reshape(1), rtol=1e-3, atol=1e-5):
        raise DpradError(
            "the loss of a record depends on other records, so gradients of single records cannot "
            "be clipped. Batch normalisation does that; use GroupNorm or LayerNorm."
        )


def _known_labels(labels: Any, output: Any, known: int) -> None:
    """Whole numbers below the number of outputs."""
    if output.dim() != 2:
        raise DpradError(
            f"model must return one row of class scores per record, but returned shape "
            f"{tuple(output.shape)}. Give a loss of your own for other models."
        )
    if labels.is_floating_point():
        raise DpradError("labels must be whole numbers 0, 1, ...; give a loss for other labels.")
    wrong = ((labels < 0) | (labels >= output.shape[1])).nonzero()
    if len(wrong):
        i = int(wrong[0])
        who = f"known record {i}" if i < known else f"candidate {i - known}"
        label = f"the label {int(labels[i])}" if records_shown() else "a label"
        raise DpradError(
            f"{who} has {label} that the model does not know: it has "
            f"{output.shape[1]} classes, 0 .. {output.shape[1] - 1}."
        )
