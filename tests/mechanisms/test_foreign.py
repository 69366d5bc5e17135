"""Objects of other makers."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import DpradError, Prior, assess


class Reader:
    """Reads a record as an array of some shape."""

    def __init__(self, shape):
        self.shape = shape

    def reads(self, values):
        return np.zeros(self.shape)

    def sample(self, records, rng):
        return rng.normal(size=len(records))

    def log_likelihood(self, outputs, records):
        return np.zeros(np.broadcast_shapes(np.shape(outputs), np.shape(records)))


@pytest.mark.parametrize("shape", [(3, 2), (2,), ()])
def test_one_value_is_read_from_each_record(shape):
    assert assess(Reader((3,)), prior=Prior.uniform(3), trials=50).rad < 0.01
    with pytest.raises(DpradError, match="one value per record"):
        assess(Reader(shape), prior=Prior.uniform(3), trials=50)
