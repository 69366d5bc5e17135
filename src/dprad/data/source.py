"""The file that data was read from: its hash is that of what was read, or there is none."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from dprad.errors import DpradError


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was: its size and time of change when it was about to be read."""

    path: Path
    stamp: tuple[int, int] | None
    known: str | None = None

    @classmethod
    def of(cls, path: str | Path) -> Source:
        """To be made before the file is read."""
        file = Path(path)
        return cls(file, _stamp(file))

    def kept(self) -> Source:
        """With its hash, for a file that will go away. Reads the file."""
        return Source(self.path, self.stamp, self.sha256())

    def sha256(self) -> str:
        """The hash of the file, if it is still the same. Reads the file."""
        if self.known is not None:
            return self.known
        try:
            with self.path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DpradError(f"{self.path.name} cannot be read: {error.strerror}.") from None
        if self.stamp is None or _stamp(self.path) != self.stamp:
            raise DpradError(f"{self.path.name} was changed since it was read; try again.")
        return found


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
