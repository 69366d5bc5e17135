from __future__ import annotations

import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # tests run side by side; threads would only wait

import numpy as np
import pytest


@pytest.fixture
def rng(request):
    """A generator seeded by the name of the test."""
    return np.random.default_rng(sum(map(ord, request.node.name)))
