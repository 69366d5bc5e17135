"""Sets of codes as packed bits: a row of 64-bit words a set, code c in bit c % 64 of word c // 64.

A million unary reports over 5,356 values take 672 MB this way. Random bits are exact to the last
digit of q and cost about eight random words for 64 of them, not 64 floats (`bernoulli`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dprad.arrays import BoolArray, IntArray

Words = npt.NDArray[np.uint64]

WORD = 64
# Rough cost of a geometric draw, in random words; decides how many binary digits of q are used.
DRAW_COST = 10.0
# Words that are worked on at once: they fit into the cache.
BLOCK_WORDS = 2**15


def width(size: int) -> int:
    """Words that hold `size` bits."""
    return -(-size // WORD)


def contains(sets: Words, codes: Any) -> BoolArray:
    """Whether sets[i] contains codes[i]; broadcasts over the leading axes."""
    codes = np.asarray(codes)
    shape = np.broadcast_shapes(sets.shape[:-1], codes.shape)
    full = np.broadcast_to(sets, (*shape, sets.shape[-1]))
    where = np.broadcast_to(codes, shape)
    words = np.take_along_axis(full, (where // WORD)[..., None], axis=-1)[..., 0]
    return np.asarray((words >> (where % WORD).astype(np.uint64)) & np.uint64(1), dtype=bool)


def put(sets: Words, codes: IntArray, values: BoolArray) -> None:
    """Set bit codes[i] of sets[i] to values[i], in place."""
    rows = np.arange(len(sets))
    bit = np.uint64(1) << (codes % WORD).astype(np.uint64)
    word = codes // WORD
    sets[rows, word] = np.where(values, sets[rows, word] | bit, sets[rows, word] & ~bit)


def unpack(sets: Words, size: int) -> BoolArray:
    """The sets as rows of booleans, for few of them."""
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
    """A member of each set, all equally likely; -1 if it has none."""
    found = np.empty(len(sets), dtype=np.intp)
    step = max(1, BLOCK_WORDS // max(sets.shape[1], 8))
    for a in range(0, len(sets), step):
        found[a : a + step] = _pick(sets[a : a + step], rng)
    return found


def _pick(sets: Words, rng: np.random.Generator) -> IntArray:
    small: Any = np.uint16 if sets.shape[1] * WORD < 2**16 else np.int64
    upto = np.cumsum(np.bitwise_count(sets), axis=1, dtype=small)
    total = upto[:, -1].astype(np.int64)
    rank = (rng.random(len(sets)) * total).astype(np.int64)  # so many members go before
    word = np.count_nonzero(upto <= rank.astype(small)[:, None], axis=1)
    at = np.minimum(word, sets.shape[1] - 1)
    rows = np.arange(len(sets))
    rank -= np.where(at > 0, upto[rows, at - 1], 0)
    octets = np.ascontiguousarray(sets[rows, at]).view(np.uint8).reshape(-1, 8)
    bits = np.cumsum(np.unpackbits(octets, axis=1, bitorder="little"), axis=1, dtype=np.uint8)
    bit = np.count_nonzero(bits <= rank.astype(np.uint8)[:, None], axis=1)
    return np.where(total > 0, at * WORD + bit, -1)


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


def trim(sets: Words, size: int) -> None:
    """Clear the bits beyond `size`, in place."""
    tail = size % WORD
    if tail:
        sets[..., -1] &= np.uint64((1 << tail) - 1)


def _digits(q: float) -> tuple[int, int, float]:
    """How many binary digits to use, these digits, and the probability that is left."""
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
    total = len(words) * WORD
    at = -1
    while at < total - 1:
        expected = (total - at) * probability
        draws = int(expected + 6 * np.sqrt(expected) + 16)
        gaps = rng.geometric(probability, size=draws)
        # a gap beyond the end is as good as infinite, and must not overflow the sum
        position = at + np.cumsum(np.minimum(gaps, total + 1))
        at = int(position[-1])
        position = position[position < total]
        if not len(position):
            break
        word = position // WORD
        begin = np.flatnonzero(np.r_[True, word[1:] != word[:-1]])
        bits = np.uint64(1) << (position % WORD).astype(np.uint64)
        words[word[begin]] |= np.bitwise_or.reduceat(bits, begin)
