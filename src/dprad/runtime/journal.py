"""A journal: an append-only file of JSON lines that may be truncated but not edited unnoticed.

The first line says what the file is about. Each line has a checksum over itself and the previous
line, and must be what was written, byte for byte: a line that was damaged, edited, removed or moved
is refused. Anyone who computes the checksums can forge a journal, so it is private to its owner.
Only an incomplete last line, which a kill leaves behind, is dropped. Nothing in it is executed, and
no other file is overwritten. What would not fit into memory is refused before it is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from dprad.errors import DpradError
from dprad.runtime.memory import need
from dprad.runtime.writing import begun, known, landed, opened

# Bytes of the longest line that is written into a log, and is read (what is left of an incomplete
# one is kept in a line that may be six times as long); and of a log: 100,000 releases of a ledger.
LINE, LONGEST, LARGEST = 2**17, 2**20, 2**26
# A journal holds outputs, and may be as large as memory allows: each byte of it takes so many.
TIMES = 25
# Seconds that the lock of another process is waited for, and between two looks.
PATIENCE, PAUSE = 30.0, 0.02
# Bytes that are read at once.
_BLOCK = 2**20


@dataclass(slots=True, weakref_slot=True)
class Journal:
    """An open journal; `rows` is what was in it, without the first line."""

    path: Path
    rows: list[dict[str, Any]]
    check: str
    handle: int  # open, and locked, as long as this is

    def __post_init__(self) -> None:
        weakref.finalize(self, os.close, self.handle)

    @classmethod
    def open(
        cls, path: Any, about: dict[str, Any], refuse: Callable[[dict[str, Any]], str]
    ) -> Journal:
        """Start a journal about this, or continue one.

        ``refuse(first)`` says why a journal with this first line is a different one, or nothing.
        """
        file = Path(path)
        try:
            kept = landed(file)
            if not kept.exists() or (kept.is_file() and kept.stat().st_size == 0):
                text, check = _line(about, "")
                return cls(file, [], check, _fresh(begun(kept, text), kept, file, len(text)))
            return cls._read(file, kept, refuse)
        except FileExistsError:
            raise DpradError(f"{file} was just created by another process.") from None
        except OSError as error:
            raise DpradError(f"{file} cannot be used: {error.strerror or error}.") from None

    @classmethod
    def _read(cls, file: Path, kept: Path, refuse: Callable[[dict[str, Any]], str]) -> Journal:
        if not kept.is_file():
            raise DpradError(f"{file} is not a file.")
        if first_line(kept) is None:  # not ours: not even to be locked
            raise DpradError(f"{file} cannot be used: it is not a dprad file. Choose another file.")
        handle = _locked(kept, file)
        try:
            return cls._continued(file, handle, refuse)
        except BaseException:
            os.close(handle)
            raise

    @classmethod
    def _continued(
        cls, file: Path, handle: int, refuse: Callable[[dict[str, Any]], str]
    ) -> Journal:
        """Read a file that nobody else can write to."""
        seen = os.fstat(handle)
        if not known(seen):
            raise DpradError(f"{file} is somebody else's. Choose another file.")
        need(TIMES * seen.st_size, f"{file}: what it holds", "Choose another file.")
        lines = _Lines(handle, 0)
        first = next(lines, b"")
        header = _parsed(first)
        why = "it is not a dprad file" if header is None else refuse(header)
        if header is None or why:
            raise DpradError(f"{file} cannot be used: {why}. Choose another file.")
        rows, checks = _checked(file, chain([first], lines), "", 1)
        check = checks[-1]
        if hasattr(os, "fchmod"):
            os.fchmod(handle, 0o600)
        if lines.torn:
            os.ftruncate(handle, lines.read)
        return cls(file, rows[1:], check, handle)

    def append(self, row: dict[str, Any]) -> None:
        """Append a line; it is on disk when this returns."""
        text, self.check = _line(row, self.check)
        while text:
            text = text[os.write(self.handle, text) :]
        os.fsync(self.handle)


@dataclass(slots=True)
class Log:
    """A journal that several processes append to, one line at a time.

    `rows` is what has been read of it, `checks` the checksum of each line. A line is written under
    a lock, after what others wrote; it is on disk when `append` returns. `torn` is an incomplete
    last line, left over from a writer that was killed, or cut: the next writer ends it if only the
    end of the line is missing, and else puts a line {"torn": what was left of it} in its place.
    O(new lines) per call.
    """

    path: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    read: int = 0  # bytes
    torn: bytes = b""
    kept: Path = Path()  # where the path leads
    file: tuple[int, int] | None = None  # which file that is

    @classmethod
    def open(cls, path: Any, about: dict[str, Any] | None, kind: str) -> Log:
        """A journal whose first line has this "dprad" kind; started with `about` if there is none.

        Two processes may start it at the same time: one of them does.
        """
        log = cls(Path(path))
        try:
            log.kept = kept = landed(log.path)
            fresh = not kept.exists() or (kept.is_file() and not kept.stat().st_size)
            if fresh and about is None:
                raise DpradError(f"{log.path} does not exist.")
            if fresh:
                with contextlib.suppress(FileExistsError):  # another process was faster
                    log.file = begun(kept, _line({"dprad": kind, **(about or {})}, "")[0])
            if not kept.is_file():
                raise DpradError(f"{log.path} is not a file.")
            if (first_line(kept) or {}).get("dprad") != kind:
                raise DpradError(f"{log.path} is not a dprad {kind}. Choose another file.")
            log.refresh()
        except OSError as error:
            raise DpradError(f"{log.path} cannot be used: {error.strerror or error}.") from None
        return log

    def refresh(self) -> None:
        """Read the complete lines that were added; what follows them is `torn`."""
        handle = opened(self.kept, os.O_RDONLY)
        try:
            self._refresh(handle)
        finally:
            os.close(handle)

    def _refresh(self, handle: int) -> None:
        """Read from an open file; it must be the one that was read before."""
        now = os.fstat(handle)
        self.file = self.file or (now.st_dev, now.st_ino)
        self._refused(now)
        if now.st_size < self.read:
            raise DpradError(f"{self.path} is damaged: it became shorter.")
        if now.st_size > LARGEST:
            raise DpradError(
                f"{self.path} cannot be used: it has more than {LARGEST / 1e6:.0f} MB. Choose "
                "another file."
            )
        lines = _Lines(handle, self.read, LONGEST)
        before = self.checks[-1] if self.checks else ""
        rows, checks = _checked(self.path, lines, before, len(self.rows) + 1)
        self.rows += rows
        self.checks += checks
        self.read, self.torn = lines.read, lines.torn
        if len(self.torn) > LINE:
            raise _unlike(self.path, len(self.rows) + 1)

    def _refused(self, now: os.stat_result) -> None:
        if self.file != (now.st_dev, now.st_ino):
            raise DpradError(f"{self.path} was replaced by another file meanwhile. Try again.")

    def append(self, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Append what `make` returns when nobody else can write; it may refuse with an error."""
        try:
            handle = _locked(self.kept, self.path, wait=True)
        except OSError as error:
            raise DpradError(f"{self.path} cannot be written: {error.strerror}.") from None
        try:
            self._refresh(handle)
            self._refused(self.kept.lstat())  # what others find there now
            self._mend(handle)
            row = make()
            size = len(_line(row, self.checks[-1])[0])
            if size > LINE or self.read + size > LARGEST:
                raise DpradError(
                    f"{self.path} cannot hold this: one entry may have {LINE / 1e3:.0f} kB, and "
                    f"all together {LARGEST / 1e6:.0f} MB."
                )
            self._write(handle, row)
        finally:
            os.close(handle)
        return row

    def _write(self, handle: int, row: dict[str, Any]) -> None:
        text, check = _line(row, self.checks[-1])
        left = text
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
        self.rows.append(row)
        self.checks.append(check)
        self.read += len(text)

    def _mend(self, handle: int) -> None:
        """End a last line that lacks only its end; keep what is left of one that lacks more."""
        if not self.torn:
            return
        try:
            _checked(self.path, [self.torn], self.checks[-1], len(self.rows) + 1)
        except DpradError:
            left, self.torn = self.torn, b""
            os.ftruncate(handle, self.read)
            self._write(handle, {"torn": left.decode(errors="replace")})
        else:
            os.write(handle, b"\n")
            self._refresh(handle)


def _checked(
    path: Path, lines: Iterable[bytes], check: str, number: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows and their checksums; refused if a line is not what was written after `check`."""
    rows, checks = [], []
    for at, line in enumerate(lines, start=number):
        row = _parsed(line)
        bare = {} if row is None else {k: v for k, v in row.items() if k != "check"}
        text, check = _line(bare, check)
        if row is None or text != line + b"\n":
            raise _unlike(path, at)
        rows.append(bare)
        checks.append(check)
    return rows, checks


def _unlike(path: Path, line: int) -> DpradError:
    return DpradError(
        f"{path} is damaged: line {line} is not what was written. Choose another file."
    )


def first_line(path: Any) -> dict[str, Any] | None:
    """The first line of a journal; None if it does not exist or is unreadable."""
    try:
        with os.fdopen(opened(landed(Path(path)), os.O_RDONLY), "rb") as file:
            return _parsed(file.readline(2**20))
    except (OSError, DpradError):
        return None


class _Lines:
    """The complete lines of an open file from here, without their ends. `read`: where they end;
    `torn`: what follows them. Of a line that is too long, or holds a NUL, which none does that was
    written (but many may follow a crash), only the beginning is kept: it is not what was written.
    """

    def __init__(self, handle: int, start: int, longest: int | None = None) -> None:
        self.read, self.torn, self._longest = start, b"", longest
        self._file = open(handle, "rb", buffering=_BLOCK, closefd=False)  # noqa: SIM115
        self._file.seek(start)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        parts: list[bytes] = []
        kept, size, whole = 0, 0, True
        while part := self._file.readline(_BLOCK):
            size += len(part)
            if whole:
                cut = part.find(b"\0") + 1
                parts.append(part[:cut] if cut else part)
                kept += len(parts[-1])
                whole = not cut and (self._longest is None or kept <= self._longest)
            if part.endswith(b"\n"):
                self.read += size
                line = b"".join(parts)
                return line.removesuffix(b"\n") if whole else line + b"\0"
        self.torn = b"".join(parts)
        raise StopIteration


def _locked(kept: Path, path: Path, *, wait: bool = False) -> int:
    """The file, open for appending and locked; a lock of others is waited for a while, or not."""
    handle = opened(kept, os.O_RDWR | os.O_APPEND)
    try:
        import fcntl
    except ImportError:  # not on Windows
        pass
    else:
        try:
            until = time.monotonic() + (PATIENCE if wait else 0.0)
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() > until:  # who may read the file can hold it for ever
                    raise OSError
                time.sleep(PAUSE)
        except OSError:
            os.close(handle)
            raise DpradError(f"{path} is in use by another process.") from None
        except BaseException:
            os.close(handle)
            raise
    return handle


def _fresh(made: tuple[int, int], kept: Path, path: Path, size: int) -> int:
    """A file that was just made, locked; refused if it is another by now, or went on already."""
    handle = _locked(kept, path)
    seen = os.fstat(handle)
    same = (seen.st_dev, seen.st_ino) == made and known(seen)
    if same and seen.st_size == size:
        return handle
    os.close(handle)
    if same:
        raise FileExistsError
    raise DpradError(f"{path} was replaced by another file meanwhile. Try again.")


def _line(plain: dict[str, Any], before: str) -> tuple[bytes, str]:
    """A line with its checksum, which continues that of the previous line."""
    body = json.dumps(plain, sort_keys=True)
    check = hashlib.sha256((before + body).encode()).hexdigest()
    return json.dumps({**plain, "check": check}).encode() + b"\n", check


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
