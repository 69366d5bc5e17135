"""Seeds: the `rng` argument as one whole number, from which all streams are derived."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from dprad.errors import DpradError

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator


def seed(rng: Seed) -> int:
    """A whole number from a seed, a `SeedSequence` or a `Generator` (which advances).

    Examples
    --------
    >>> seed(7)
    7
    >>> seed(np.random.SeedSequence(7)) == seed(np.random.SeedSequence(7))
    True

    """
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, np.random.SeedSequence):
        low, high = rng.generate_state(2, np.uint64).tolist()
        return int(low) + (int(high) << 64)
    whole = isinstance(rng, int | np.integer) and not isinstance(rng, bool)
    if not whole or rng < 0:
        raise DpradError(
            "rng must be a seed (a whole number of at least 0), a SeedSequence or a Generator, but "
            f"is {rng!r}."
        )
    return int(rng)
