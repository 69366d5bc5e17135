"""What a function returns, in the form of the mechanism it is supposed to be."""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.errors import DpradError, told
from dprad.mechanisms import bits as packed
from dprad.mechanisms.channel import Channel
from dprad.mechanisms.exponential import Exponential
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.mechanisms.subset import SubsetSelection
from dprad.mechanisms.unary import Bits
from dprad.model.priors import Prior


def translated(play_on: Any, mechanism: Any, prior: Prior) -> Any:
    """The attack of a model reads what the model returns: codes, or packed bits."""

    def played(outputs: Any, records: Any, rng: np.random.Generator) -> Any:
        known = as_model(outputs, mechanism, prior)
        try:
            return play_on(known, records, rng)
        except (IndexError, TypeError, ValueError) as error:
            raise DpradError(
                f"run does not return what a {type(mechanism).__name__} does ({told(error)}). Give "
                "the model that it is supposed to be, or none."
            ) from None

    return played


def as_model(outputs: Any, mechanism: Any, prior: Prior) -> Any:
    """Natural outputs in the form of the model's own: values to codes, bits or members to sets."""
    name = type(mechanism).__name__
    given = outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)
    if isinstance(mechanism, GRR):
        assert prior.support is not None
        number = {v: i for i, v in enumerate(prior.support.tolist())}
        try:
            return np.array([number[v] for v in given], dtype=np.intp)
        except (KeyError, TypeError):
            raise DpradError(f"{name} returns values of the prior, but run did not.") from None
    if isinstance(mechanism, Channel):
        return _numbered(outputs, int(mechanism.matrix.shape[1]), name)
    if isinstance(mechanism, Exponential):
        return _numbered(outputs, int(mechanism.channel.matrix.shape[1]), name)
    if isinstance(mechanism, HadamardResponse):
        return _numbered(outputs, mechanism.outputs, name)
    if not isinstance(mechanism, Bits | SubsetSelection):
        return outputs
    if isinstance(outputs, np.ndarray) and outputs.dtype == np.uint64:
        return outputs
    m = mechanism.size
    rows = np.zeros((len(given), m), dtype=bool)
    try:
        for i, row in enumerate(given):
            whole_row = len(row) == m and set(row) <= {0, 1}
            rows[i] = row if whole_row else False
            if not whole_row:
                rows[i, [int(v) for v in row]] = True
    except (TypeError, ValueError, IndexError):
        raise DpradError(
            f"{name} returns {m} bits, or a list of codes 0 .. {m - 1}, but run did not."
        ) from None
    return packed.pack(rows)


def _numbered(outputs: Any, count: int, name: str) -> Any:
    """Outputs 0 .. count-1."""
    codes = np.asarray(outputs)
    if codes.dtype.kind not in "iub" or codes.min() < 0 or codes.max() >= count:
        raise DpradError(f"{name} returns a number from 0 to {count - 1}, but run did not.")
    return codes.astype(np.intp)
