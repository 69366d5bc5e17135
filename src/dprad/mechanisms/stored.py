"""A matrix in a NumPy file, read a few columns at a time."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.numerics.arrays import FloatArray
from dprad.runtime.memory import block
from dprad.runtime.progress import tell

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
        """The whole of it, mapped into memory: nothing is read until it is used."""
        return _mapped(self)

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
        matrix = self.matrix
        if matrix.flags.c_contiguous:
            return self._lines(matrix, rows, columns)
        return self._lines(matrix.T, columns, rows).T

    def rows(self) -> tuple[FloatArray, FloatArray]:
        """The sum and the least entry of each row; a few lines of the file at a time."""
        matrix = self.matrix
        sums, least = np.zeros(len(matrix)), np.full(len(matrix), np.inf)
        along = int(not matrix.flags.c_contiguous)
        step = max(1, block(LINE_ENTRIES) // max(matrix.shape[1 - along], 1))
        for a in range(0, matrix.shape[along], step):
            part, end = slice(a, a + step), min(a + step, matrix.shape[along])
            rows, columns = (slice(None), part) if along else (part, slice(None))
            some = self.block(rows, columns)
            sums[rows] += some.sum(axis=1)
            least[rows] = np.minimum(least[rows], some.min(axis=1))
            tell("columns read" if along else "rows read", end, matrix.shape[along])
        return sums, least

    def _lines(self, matrix: Any, rows: slice, columns: slice) -> FloatArray:
        """A block of a matrix that is stored row by row."""
        first, last, _ = rows.indices(matrix.shape[0])
        a, b, _ = columns.indices(matrix.shape[1])
        found = np.empty((last - first, b - a))
        # whole rows lie together
        runs = [found.reshape(-1)] if found.shape[1] == matrix.shape[1] else list(found)
        with Path(self.path).open("rb", buffering=0) as file:
            for k, run in enumerate(runs):
                file.seek(matrix.offset + 8 * ((first + k) * matrix.shape[1] + a))
                view = memoryview(run).cast("B")  # type: ignore[arg-type]
                while len(view):
                    count = file.readinto(view)
                    if not count:
                        raise DpradError(f"{Path(self.path).name} ends too early.")
                    view = view[count:]
        return found


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
    try:
        matrix: Any = np.load(stored.path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, TypeError, MemoryError, OverflowError):
        matrix = None
    if not isinstance(matrix, np.memmap) or matrix.dtype != np.dtype("<f8"):
        name = Path(stored.path).name
        raise DpradError(f"{name} must be a NumPy file (.npy) of 64-bit floats.")
    return matrix
