"""Sets of codes as packed bits: 64-bit words, code c in bit c % 64 of word c // 64.

A million unary reports over 5,356 values take 672 MB this way. Random bits are exact to the last
digit of q and cost about eight random words for 64 of them, not 64 floats (`bernoulli`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dprad.numerics.arrays import BoolArray, IntArray

Words = npt.NDArray[np.uint64]

WORD = 64
# Rough cost of setting a single bit, in random words; decides how many binary digits of q are used.
DRAW_COST = 8.0
# Words, and bits as bytes, processed at once: they fit into the cache.
BLOCK_WORDS = 2**15
BLOCK_BITS = 2**20
_ONE = np.uint64(1)
_BIT = _ONE << np.arange(WORD, dtype=np.uint64)


def width(size: int) -> int:
    """Words that hold `size` bits."""
    return -(-size // WORD)


def contains(sets: Words, codes: Any) -> BoolArray:
    """Whether sets[i] contains codes[i]; broadcasts over the leading axes."""
    codes = np.asarray(codes)
    if codes.ndim == 1 and sets.ndim > 1 and sets.shape[-2] == 1:  # all codes in each set
        words = sets[..., 0, :][..., codes // WORD]
        return np.asarray(words & _BIT[codes % WORD] != 0)
    shape = np.broadcast_shapes(sets.shape[:-1], codes.shape)
    full = np.broadcast_to(sets, (*shape, sets.shape[-1]))
    where = np.broadcast_to(codes, shape)
    words = np.take_along_axis(full, (where // WORD)[..., None], axis=-1)[..., 0]
    return np.asarray((words >> (where % WORD).astype(np.uint64)) & np.uint64(1), dtype=bool)


def put(sets: Words, codes: IntArray, values: BoolArray) -> None:
    """Set bit codes[i] of sets[i] to values[i], in place."""
    flat = sets.reshape(-1)
    at = np.arange(len(sets)) * sets.shape[1] + (codes >> 6)
    bit = _BIT[codes & 63]
    held = flat[at]
    flat[at] = np.where(values, held | bit, held & ~bit)


def unpack(sets: Words, size: int) -> BoolArray:
    """The sets as rows of booleans, for a few sets."""
    octets = np.ascontiguousarray(sets).view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little", count=size).astype(bool)


def pack(rows: BoolArray) -> Words:
    """Rows of booleans as sets."""
    size = rows.shape[-1]
    wide = np.zeros((*rows.shape[:-1], width(size) * WORD), dtype=bool)
    wide[..., :size] = rows
    return np.packbits(wide, axis=-1, bitorder="little").view(np.uint64)


def count(sets: Words) -> IntArray:
    """Members of each set."""
    return np.asarray(np.bitwise_count(sets).sum(axis=-1), dtype=np.intp)


def pick(sets: Words, rng: np.random.Generator) -> IntArray:
    """A member of each set, all equally likely; -1 if it has none. O(words) per set."""
    members = np.full(len(sets), -1, dtype=np.intp)
    step = max(1, 8 * BLOCK_WORDS // max(sets.shape[1], 8))
    for a in range(0, len(sets), step):
        members[a : a + step] = _pick(sets[a : a + step], rng)
    return members


def _pick(sets: Words, rng: np.random.Generator) -> IntArray:
    rows, wide = sets.shape
    upto = np.cumsum(np.bitwise_count(sets).reshape(-1), dtype=np.int64)  # over all sets at once
    ends = upto[wide - 1 :: wide]
    begin = np.concatenate([[0], ends[:-1]])
    rank = begin + (rng.random(rows) * (ends - begin)).astype(np.int64)
    at = np.minimum(np.searchsorted(upto, rank, side="right"), rows * wide - 1)
    word = sets.reshape(-1)[at]
    skip = rank - upto[at] + np.bitwise_count(word)  # members in the preceding words
    bit = np.zeros(rows, dtype=np.int64)
    for half in (32, 16, 8, 4, 2, 1):
        below = np.bitwise_count(word & np.uint64((1 << half) - 1))
        beyond = skip >= below
        skip -= below * beyond
        bit += half * beyond
        word >>= (half * beyond).astype(np.uint64)
    return np.where(ends > begin, (at % wide) * WORD + bit, -1)


def scatter(sets: Words, draws: IntArray, size: int, rng: np.random.Generator) -> None:
    """Add draws[i] random codes (some of them members already) to sets[i], in place."""
    step = max(1, BLOCK_BITS // (sets.shape[1] * WORD))
    for a in range(0, len(sets), step):
        block = sets[a : a + step]
        bits = np.zeros(block.size * WORD, dtype=np.uint8)
        row = np.repeat(np.arange(len(block)) * (sets.shape[1] * WORD), draws[a : a + step])
        bits[row + rng.integers(0, size, size=len(row))] = 1
        block |= np.packbits(bits, bitorder="little").view(np.uint64).reshape(block.shape)


def bernoulli(q: float, runs: int, size: int, rng: np.random.Generator) -> Words:
    """`runs` sets in which each of `size` codes is a member with probability q, independently.

    With j the first L binary digits of q, a bit is one with probability j / 2^L by L random words
    (from the last digit to the first: OR with a random word for a one, AND for a zero), or else
    with the small probability that is left, drawn sparsely by geometric gaps.
    """
    words = np.zeros((runs, width(size)), dtype=np.uint64)
    digits, j, left = _digits(q)
    flat = words.reshape(-1)
    for a in range(0, len(flat), BLOCK_WORDS):
        # a block that stays in the cache
        block = flat[a : a + BLOCK_WORDS]
        for k in range(digits):
            if j & ((2 << k) - 1) == 0:
                continue  # AND with zero is zero
            noise = rng.integers(0, 2**64, size=len(block), dtype=np.uint64)
            operation = np.bitwise_or if j >> k & 1 else np.bitwise_and
            operation(block, noise, out=block)
    _sprinkle(flat, left, rng)
    trim(words, size)
    return words


def toggle(sets: Words, rows: IntArray, codes: IntArray, need: IntArray) -> BoolArray:
    """Add codes[i] to sets[rows[i]] if need[i] > 0, drop it if need[i] < 0, where possible.

    In place; returns where it was done.
    """
    flat = sets.reshape(-1)
    at, bit = rows * sets.shape[1] + (codes >> 6), _BIT[codes & 63]
    held = flat[at]
    fits = (need != 0) & (((held & bit) != 0) == (need < 0))
    flat[at] = held ^ (bit * fits)
    return np.asarray(fits)


def trim(sets: Words, size: int) -> None:
    """Clear the bits beyond `size`, in place."""
    tail = size % WORD
    if tail:
        sets[..., -1] &= np.uint64((1 << tail) - 1)


def _digits(q: float) -> tuple[int, int, float]:
    """How many binary digits to use, the digits, and the remaining probability."""
    if q >= 1.0:
        return 1, 2, 1.0  # all left to the sparse part, which then sets every bit

    def cost(digits: int) -> float:
        j = int(q * 2**digits)
        used = digits - ((j & -j).bit_length() - 1) if j else 0
        return float(used + DRAW_COST * WORD * (q - j / 2**digits))

    best = min(range(17), key=cost)
    j = int(q * 2**best)
    return best, j, (q - j / 2**best) / (1.0 - j / 2**best)


def _sprinkle(words: Words, probability: float, rng: np.random.Generator) -> None:
    """Set each bit with a small probability, by the gaps between the bits that are set."""
    if probability <= 0.0:
        return
    if probability >= 1.0:
        words[:] = ~np.uint64(0)
        return
    total, rate = len(words) * WORD, -np.log1p(-probability)
    at = 0
    while at < total:
        expected = (total - at) * probability
        draws = min(int(expected + 4 * np.sqrt(expected) + 16), BLOCK_WORDS)
        # the whole part of an exponential waiting time is geometric; a gap beyond the end is as
        # good as infinite, and must not overflow the sum
        gaps = np.minimum(rng.standard_exponential(draws) / rate, total + 1.0).astype(np.int64) + 1
        place = (at - 1) + np.cumsum(gaps)
        at = int(place[-1]) + 1
        place = place[: np.searchsorted(place, total)]
        np.bitwise_or.at(words, place >> 6, _BIT[place & 63])
