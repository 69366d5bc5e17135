from __future__ import annotations

import os
import sys

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # tests run side by side; threads would only wait

# Where bytecode is not kept, each of the many processes that tests start compiles the tool anew,
# and each run rewrites the assertions of every file.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import gc

import numpy as np
import pytest


def pytest_collection_finish():
    """What the collection made stays to the end: the collector of garbage need not look at it."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    """Else libraries say at the end that something of theirs was never freed."""
    gc.unfreeze()


@pytest.fixture
def rng(request):
    """A generator seeded by the name of the test."""
    return np.random.default_rng(sum(map(ord, request.node.name)))
