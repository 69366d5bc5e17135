"""A folder that is held open: whatever its name leads to by now, only this one is touched.

Who may write where the folder lies can put another one in its place at any moment. So files are
written and removed by their names within the folder that is held, never by a path, and nothing is
removed with all that is in it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dprad.errors import DpradError

# Where a folder cannot be held open (Windows), paths are used.
_HOLDS = hasattr(os, "O_DIRECTORY")


@dataclass(slots=True)
class Held:
    """A folder: its name within `place` (a descriptor; None: a path), and which one it is."""

    name: str
    place: int | None
    handle: int | None
    which: tuple[int, int]
    made: list[str] = field(default_factory=list)  # files that were written here

    @classmethod
    def open(cls, name: str, place: int | None) -> Held:
        """A folder that is there; a link is none."""
        if not _HOLDS:
            if not Path(name).is_dir():
                raise NotADirectoryError(20, os.strerror(20))
            return cls(name, None, None, _which(Path(name).lstat()))
        how = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        handle = os.open(name, how, dir_fd=place)
        return cls(name, place, handle, _which(os.fstat(handle)))

    @classmethod
    def beside(cls, name: str, place: int | None) -> Held:
        """A new private folder."""
        made = free(name)
        os.mkdir(made, 0o700, dir_fd=place)
        held = cls.open(made, place)
        if not held.mine() or held.names():
            held.close()
            raise DpradError(f"{made} was replaced meanwhile; name another folder.")
        return held

    def close(self) -> None:
        """Let go of it."""
        if self.handle is not None:
            os.close(self.handle)

    def mine(self) -> bool:
        """Whether nobody else owns it, or may write in it."""
        if self.handle is None:
            return True
        seen = os.fstat(self.handle)
        return seen.st_uid == os.geteuid() and not seen.st_mode & 0o022

    def at(self, name: str) -> bool:
        """Whether this name leads here."""
        try:
            seen = os.stat(name, dir_fd=self.place, follow_symlinks=False)
        except OSError:
            return False
        return _which(seen) == self.which

    def names(self) -> set[str]:
        """What is in it."""
        return set(os.listdir(self.name if self.handle is None else self.handle))  # noqa: PTH208

    def regular(self, names: Iterable[str]) -> bool:
        """Whether these are files."""
        found = (os.stat(self._path(n), dir_fd=self.handle, follow_symlinks=False) for n in names)
        return all(stat.S_ISREG(one.st_mode) for one in found)

    def read(self, name: str, most: int) -> bytes:
        """The first bytes of a file."""
        how = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(self._path(name), how, dir_fd=self.handle), "rb") as file:
            return file.read(most)

    def write(self, name: str, content: bytes) -> None:
        """A new private file."""
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        made = os.open(self._path(name), how, 0o600, dir_fd=self.handle)
        self.made.append(name)
        with os.fdopen(made, "wb") as out:
            out.write(content)

    def move(self, name: str) -> bool:
        """Give it another name. False, with all where it was, if another had its name by then."""
        before = self.name
        os.rename(before, name, src_dir_fd=self.place, dst_dir_fd=self.place)
        if self.at(name):
            self.name = name
            return True
        try:
            os.rename(name, before, src_dir_fd=self.place, dst_dir_fd=self.place)
        except OSError:
            raise DpradError(
                f"{Path(before).name} was replaced meanwhile; what took its place is now called "
                f"{Path(name).name}."
            ) from None
        return False

    def remove(self, name: str, files: Iterable[str]) -> None:
        """Remove these files, and the folder if this is its name and nothing else is in it; what
        cannot be removed stays.
        """
        with suppress(OSError):
            if self.handle is not None:
                os.fchmod(self.handle, 0o700)
        for file in files:
            with suppress(OSError):
                os.unlink(self._path(file), dir_fd=self.handle)
        with suppress(OSError):
            if self.at(name):
                os.rmdir(name, dir_fd=self.place)

    def _path(self, name: str) -> str:
        return name if self.handle is not None else str(Path(self.name) / name)


def free(name: str) -> str:
    """A name beside this one that nobody can know before."""
    return str(Path(name).with_name(f".dprad-{secrets.token_hex(8)}"))


def _which(seen: os.stat_result) -> tuple[int, int]:
    return seen.st_dev, seen.st_ino
