"""The one way to write a file that somebody names: whole or not at all, and not over what is read.

The text is written beside the file and renamed, so nobody sees half of it, and a crash leaves what
was there. A link of one's own stays a link; one that somebody else put where others may write is
refused. A pipe or a device is written into.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dprad.errors import DpradError


def write(
    path: Any, content: str | bytes, *, inputs: Iterable[Any] = (), new: bool = False
) -> Path:
    """Write a file; refused if it is one of `inputs`, or if it must be `new` and is there."""
    file = Path(path)
    spared(file, inputs)
    data = content.encode() if isinstance(content, str) else content
    try:
        if planted(file):
            raise DpradError(
                f"{file} leads through a link that somebody else put into a folder that others may "
                "write. Name the file itself, or another one."
            )
        if not replaceable(file):
            with file.open("ab") as out:
                out.write(data)
            return file
        _replace(file.resolve(), data, new)  # a link stays a link
    except FileExistsError:
        raise DpradError(f"{file} already exists; choose another name.") from None
    except OSError as error:
        raise DpradError(f"{file} cannot be written: {error.strerror}.") from None
    return file


def _replace(kept: Path, data: bytes, new: bool) -> None:
    """Write beside, then rename."""
    beside = kept.with_name(f".dprad-{secrets.token_hex(8)}")
    try:
        mode = stat.S_IMODE(kept.stat().st_mode) if kept.exists() else None
        # as private as what it replaces, from the first byte
        first = 0o666 if mode is None else 0o600
        opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, first)
        with os.fdopen(opened, "wb") as out:
            out.write(data)
        if mode is not None:
            beside.chmod(mode)
        if new:
            os.link(beside, kept)  # fails if there is a file by now
        else:
            beside.replace(kept)
    finally:
        beside.unlink(missing_ok=True)


def spared(path: Any, inputs: Iterable[Any]) -> None:
    """Refuse to write over a file that is read, under whatever name."""
    for read in map(Path, inputs):
        try:
            same = read.samefile(path)
        except OSError:  # one of them does not exist
            continue
        if same:
            raise DpradError(f"{path} is an input ({read.name}); write to another file.")


def planted(file: Path) -> bool:
    """Whether a link on the way is neither ours nor the folder's owner's, where others may write.

    Linux refuses most of these itself, unless told not to.
    """
    todo, at = list(reversed(file.absolute().parts)), Path(file.absolute().anchor)
    for _ in range(1000):
        if not todo:
            break
        step = at / todo.pop()
        if not step.is_symlink():
            at = step
            continue
        folder = at.stat()
        trusted = (os.getuid(), folder.st_uid) if hasattr(os, "getuid") else (_owner(step),)
        if folder.st_mode & 0o022 and _owner(step) not in trusted:
            return True
        todo += reversed(Path(os.readlink(step)).parts)  # noqa: PTH115
    return False


def _owner(link: Path) -> int:
    return link.lstat().st_uid


def replaceable(file: Path) -> bool:
    """Whether this is a regular file, or nothing yet: a pipe or a terminal is written into."""
    step = file.absolute()
    for _ in range(40):  # links, one by one: those of open files lead through /proc
        if str(step).startswith(("/dev/fd", "/dev/std", "/proc/")):
            return False
        if not step.is_symlink():
            break
        step = step.parent / os.readlink(step)  # noqa: PTH115
    return file.is_file() or not file.exists()
