"""Hadamard response (Acharya, Sun and Zhang 2019): supports are half-blocks of codewords.

K outputs stand in B blocks of b = K/B. A value belongs to a block and to a row r >= 1 of the b x b
Hadamard matrix; its support is the b/2 outputs of its block at which row r is +1. Outputs of the
support are e^epsilon times as likely as all others. B is a power of two near e^epsilon/2 (one block
for epsilon up to ln 2). Supports of two values of a block overlap in b/4 outputs: they are
dependent, so the exact risk comes from a fast transform or the channel, not from the closed form
for supports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.mechanisms.base import Card, quotient
from dprad.mechanisms.categorical import Finite, categories, check_parameters
from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.parameters import EPSILON
from dprad.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(Finite):
    """Hadamard response: one of `outputs` codewords.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    size
        Number of possible values; the codes are 0 .. size-1.

    Examples
    --------
    >>> HadamardResponse(epsilon=0.5, size=5).outputs
    8

    """

    epsilon: float
    size: int

    card: ClassVar = Card(
        name="hadamard",
        title="Hadamard response",
        takes=(EPSILON,),
        reads="codes",
        cost="line",
    )
    noise: ClassVar = EPSILON
    method: ClassVar = "sum over the codewords"

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def blocks(self) -> int:
        """B: the power of two that is at least min(e^epsilon, 2 size)/2, and at least 1."""
        top = min(float(np.exp(min(self.epsilon, 700.0))), 2.0 * self.size)
        return 1 << max(0, int(np.ceil(np.log2(top) - 1e-12)) - 1)

    @property
    def block(self) -> int:
        """b: the power of two with room for the values of a block, without one row; at least 2."""
        return 1 << int(-(-self.size // self.blocks)).bit_length()

    @property
    def outputs(self) -> int:
        """K, the number of codewords."""
        return self.blocks * self.block

    @property
    def count(self) -> int:
        """K, the number of codewords."""
        return self.outputs

    def edges(self) -> list[float]:
        """Where the number of blocks doubles."""
        return [k * float(np.log(2.0)) for k in range(1, int(np.log2(2 * self.size)) + 1)]

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for replaced records."""
        return PureDP(self.epsilon if self.size > 1 else 0.0, neighbours=REPLACE_ONE)

    @property
    def _weight(self) -> float:
        """Sum of the weights of all outputs, where those of the support have weight 1."""
        support = self.block // 2
        return support + (self.outputs - support) * float(np.exp(-self.epsilon))

    @property
    def log_levels(self) -> tuple[float, float]:
        """Log-probability of an output of the support, and of any other."""
        total = float(np.log(self._weight))
        return -total, -self.epsilon - total

    def place(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Block and row of each value."""
        return codes % self.blocks, codes // self.blocks + 1

    def inside(self, outputs: Any, codes: Any) -> BoolArray:
        """Whether outputs lie in the support of the values; broadcasts.

        Parameters
        ----------
        outputs
            Numbers of codewords.
        codes
            Codes of values.

        Returns
        -------
        ndarray of bool
            Whether each output is in the support.

        Examples
        --------
        >>> import numpy as np
        >>> int(HadamardResponse(epsilon=0.5, size=5).inside(np.arange(8), np.array(0)).sum())
        4

        """
        block, row = self.place(np.asarray(codes))
        where, column = np.divmod(np.asarray(outputs), self.block)
        even = np.bitwise_count(column & row) % 2 == 0
        return np.asarray((where == block) & even)

    def sample(self, records: Any, rng: np.random.Generator) -> IntArray:
        """One output per record. O(n) expected: random outputs of the block until in or out."""
        codes = categories(records, self.size, "HadamardResponse")
        block, row = self.place(codes)
        truth = rng.random(codes.shape) < self.block // 2 / self._weight
        # a random column; the highest bit of the row is set to fix the parity
        column = rng.integers(0, self.block, codes.shape)
        odd = np.bitwise_count(column & row) % 2 == 1
        top = np.left_shift(1, np.floor(np.log2(row)).astype(np.intp))
        other = rng.integers(0, self.outputs - self.block // 2, codes.shape)
        # others: the outputs of other blocks, then the odd columns of this one
        elsewhere = other < self.outputs - self.block
        away = other + np.where(other >= block * self.block, self.block, 0)
        fixed_in = block * self.block + np.where(odd, column ^ top, column)
        fixed_out = block * self.block + np.where(odd, column, column ^ top)
        return np.asarray(np.where(truth, fixed_in, np.where(elsewhere, away, fixed_out)))

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Log-probability of outputs given records."""
        return np.asarray(np.where(self.inside(outputs, records), *self.log_levels))

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value, others spread over the blocks.

        The estimate counts the support less half of its block, which others do not move.
        """
        gain = self.block / 4 * float(-np.expm1(-self.epsilon)) / self._weight
        return quotient(0.25 / self.blocks, people * gain**2)

    def describe(self) -> dict[str, Any]:
        """The arguments, and the size of the matrices."""
        own = super(HadamardResponse, self).describe()
        return {**own, "outputs": self.outputs, "blocks": self.blocks}
