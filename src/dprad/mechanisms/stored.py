"""A matrix in a NumPy file, read a few columns at a time.

It is read, and not mapped: a file that somebody shortens meanwhile would end Python.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.runtime.memory import block
from dprad.runtime.progress import tell

# How a NumPy file begins.
MAGIC = b"\x93NUMPY"
# Pieces of the file, and the bytes of each, by which it is known again.
PIECES, PIECE = 64, 4096
# Entries read at once to check them.
LINE_ENTRIES = 2**22


@dataclass(frozen=True, slots=True)
class Stored:
    """A matrix in a file: where it is, and by what it is known again on another machine."""

    path: str
    fingerprint: tuple[int, int]

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stored:
        """The file as it is now, or a `DpradError`."""
        if "\0" in str(path):
            raise DpradError("the path of a channel must not hold a NUL character.")
        full = str(Path(path).expanduser().resolve())
        stored = cls(full, _fingerprint(full))
        stored.matrix  # noqa: B018  whether it can be read
        return stored

    @property
    def matrix(self) -> Any:
        """The whole of it, mapped into memory: nothing is read until it is used. Only for others;
        here its shape and order are looked at, and no number.
        """
        return _mapped(self)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.matrix.shape
        return rows, columns

    def check(self) -> None:
        """Raise a `DpradError` if this is another file by now."""
        if _fingerprint(self.path) != self.fingerprint:
            name = Path(self.path).name
            raise DpradError(f"{name} has changed, or is another file on this machine.")

    def block(self, rows: slice, columns: slice) -> FloatArray:
        """Entries, read once and kept by nobody: mapped pages would count as the memory of a worker
        that is watched.
        """
        self.check()
        return self._block(rows, columns)

    def __getitem__(self, rows: IntArray) -> FloatArray:
        """Whole rows, in any order. Whether it is the same file is not looked at again."""
        return self.take(rows, slice(None))

    def take(self, rows: IntArray, columns: slice) -> FloatArray:
        """Entries of some rows, likewise."""
        matrix, numbers = self.matrix, _places(rows, self.shape[0])
        if matrix.flags.c_contiguous:
            different, back = np.unique(numbers, return_inverse=True)
            return self._lines(matrix, different, columns)[back]
        first, last, _ = columns.indices(self.shape[1])
        found = np.empty((len(numbers), last - first))
        step = max(1, block(LINE_ENTRIES) // self.shape[0])
        for a in range(first, last, step):
            some = self._block(slice(None), slice(a, min(a + step, last)))
            found[:, a - first : a - first + step] = some[numbers]
        return found

    def points(self, rows: Any, columns: Any) -> FloatArray:
        """Single entries, each line of the file that has some of them read once."""
        matrix = self.matrix
        lines, places = np.broadcast_arrays(rows, columns)
        if not matrix.flags.c_contiguous:
            matrix, lines, places = matrix.T, places, lines
        shape, places = lines.shape, np.ravel(places)
        different, back = np.unique(_places(lines, matrix.shape[0]), return_inverse=True)
        order = np.argsort(back, kind="stable")
        found = np.empty(len(order))
        step = max(1, block(LINE_ENTRIES) // matrix.shape[1])
        for a in range(0, len(different), step):
            some = self._lines(matrix, different[a : a + step], slice(None))
            here = order[slice(*np.searchsorted(back[order], [a, a + step]))]
            found[here] = some[back[here] - a, places[here]]
        return found.reshape(shape)

    def parts(self) -> Iterator[tuple[slice, slice, FloatArray]]:
        """All of it, a few lines of the file at a time: which rows and columns, and the entries."""
        matrix = self.matrix
        along = int(not matrix.flags.c_contiguous)
        step = max(1, block(LINE_ENTRIES) // max(matrix.shape[1 - along], 1))
        for a in range(0, matrix.shape[along], step):
            part, end = slice(a, a + step), min(a + step, matrix.shape[along])
            rows, columns = (slice(None), part) if along else (part, slice(None))
            yield rows, columns, self.block(rows, columns)
            tell("columns read" if along else "rows read", end, matrix.shape[along])

    def rows(self) -> tuple[FloatArray, FloatArray]:
        """The sum and the least entry of each row."""
        sums, least = np.zeros(self.shape[0]), np.full(self.shape[0], np.inf)
        for rows, _, some in self.parts():
            sums[rows] += some.sum(axis=1)
            least[rows] = np.minimum(least[rows], some.min(axis=1))
        return sums, least

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The greatest and the least entry of each column."""
        most, least = np.zeros(self.shape[1]), np.full(self.shape[1], np.inf)
        for _, columns, some in self.parts():
            most[columns] = np.maximum(most[columns], some.max(axis=0))
            least[columns] = np.minimum(least[columns], some.min(axis=0))
        return most, least

    def _block(self, rows: slice, columns: slice) -> FloatArray:
        matrix = self.matrix
        if matrix.flags.c_contiguous:
            return self._lines(matrix, np.arange(*rows.indices(matrix.shape[0])), columns)
        return self._lines(matrix.T, np.arange(*columns.indices(matrix.shape[1])), rows).T

    def _lines(self, matrix: Any, lines: IntArray, columns: slice) -> FloatArray:
        """Some rows of a matrix that is stored row by row."""
        a, b, _ = columns.indices(matrix.shape[1])
        found = np.empty((len(lines), b - a))
        # whole rows that follow each other lie together
        whole = found.shape[1] == matrix.shape[1]
        apart = np.flatnonzero(np.diff(lines) != 1) + 1 if whole else np.arange(1, len(lines))
        starts = [0, *apart.tolist()] if found.size else []
        with Path(self.path).open("rb", buffering=0) as file:
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
                file.seek(matrix.offset + 8 * (int(lines[start]) * matrix.shape[1] + a))
                view = memoryview(found[start:end].reshape(-1)).cast("B")  # type: ignore[arg-type]
                while len(view):
                    count = file.readinto(view)
                    if not count:
                        raise DpradError(f"{Path(self.path).name} ends too early.")
                    view = view[count:]
        return found


def _places(numbers: Any, size: int) -> IntArray:
    """As numpy takes them: from the end, if below zero; else an IndexError."""
    found = np.ravel(numbers)
    if np.any((found < -size) | (found >= size)):
        raise IndexError("a number of a row or column is out of bounds.")
    return np.where(found < 0, found + size, found)


def _fingerprint(path: str) -> tuple[int, int]:
    """Size and a checksum of pieces all over the file."""
    check = 0
    try:
        if not Path(path).is_file():  # a pipe would wait for ever
            raise DpradError(f"{Path(path).name} cannot be read here: it is not a file.")
        with Path(path).open("rb", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            for place in np.linspace(0, max(size - PIECE, 0), PIECES).astype(int).tolist():
                file.seek(place)
                check = zlib.crc32(file.read(PIECE), check)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DpradError(f"{Path(path).name} cannot be read here: {reason}.") from None
    return size, check


@lru_cache(maxsize=8)
def _mapped(stored: Stored) -> Any:
    stored.check()
    matrix: Any = None
    with suppress(Exception):  # what numpy raises depends on what a header makes Python's parser do
        with Path(stored.path).open("rb") as file:
            ours = file.read(len(MAGIC)) == MAGIC  # numpy would take others for archives, or code
        if ours:
            matrix = np.load(stored.path, mmap_mode="r", allow_pickle=False)
    if not isinstance(matrix, np.memmap) or matrix.dtype != np.dtype("<f8"):
        name = Path(stored.path).name
        raise DpradError(f"{name} must be a NumPy file (.npy) of 64-bit floats.")
    return matrix
