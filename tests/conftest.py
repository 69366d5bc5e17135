from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rng(request):
    """A generator seeded by the name of the test."""
    return np.random.default_rng(sum(map(ord, request.node.name)))
