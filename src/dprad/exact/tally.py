"""Tally: how often each value was in the support of a mechanism that was run several times.

For support mechanisms this count is all that matters (the likelihood of value z is proportional to
``ratio^count_z``), so an estimate needs one number per value instead of one output per run. Drawn
directly where memberships are independent (unary encodings; hashing, as an ideal family).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.exact.support import chances
from dprad.mechanisms import bits
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.categorical import categories
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.support import SetMechanism, SupportMechanism
from dprad.numerics.arrays import FloatArray, IntArray

# Most values of a tally: beyond, counts of all of them take more room than the outputs.
MAX_SIZE = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts of `times` runs. Build it with `Tally.of`."""

    mechanism: SupportMechanism
    times: int

    @classmethod
    def of(cls, mechanism: Mechanism, times: int) -> Tally | None:
        """The tally of a support mechanism that is run at least twice; else None."""
        if times < 2 or not isinstance(mechanism, SupportMechanism) or mechanism.size > MAX_SIZE:
            return None
        if not np.isfinite(mechanism.supports.log_ratio):
            return None  # a single run may decide
        drawn = mechanism.independent or isinstance(mechanism, (GRR, SetMechanism))
        return cls(mechanism, times) if drawn else None

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """Counts, records x values. O(n size), times the runs where members are dependent."""
        mechanism, times, size = self.mechanism, self.times, self.mechanism.size
        code = categories(records, size, type(mechanism).__name__)
        every = np.arange(len(code))
        if mechanism.independent:
            inside, other = chances(mechanism)
            counts = rng.binomial(times, other, (len(code), size))
            counts[every, code] = rng.binomial(times, inside, len(code))
            return counts
        if isinstance(mechanism, GRR):
            own = np.asarray(rng.binomial(times, mechanism.truth, len(code)))
            lies = rng.multinomial(times - own, np.full(max(size - 1, 1), 1 / max(size - 1, 1)))
            counts = np.empty((len(code), size), dtype=np.intp)
            # the others in turn, from the next value on
            counts[every[:, None], (code[:, None] + np.arange(1, size)) % size] = lies[
                :, : size - 1
            ]
            counts[every, code] = own
            return counts
        counts = np.zeros((len(code), size), dtype=np.intp)
        for _ in range(times):
            counts += bits.unpack(mechanism.sample(code, rng), size)
        return counts

    def log_likelihood(self, outputs: IntArray, records: Any) -> FloatArray:
        """Up to a term that is the same for all records; broadcasts over the leading axes."""
        where = np.asarray(records)
        shape = np.broadcast_shapes(outputs.shape[:-1], where.shape)
        full = np.broadcast_to(outputs, (*shape, outputs.shape[-1]))
        picked = np.take_along_axis(full, np.broadcast_to(where, shape)[..., None], axis=-1)
        return np.asarray(picked[..., 0] * self.mechanism.supports.log_ratio)
