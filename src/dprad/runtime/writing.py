"""The one way to write a file that somebody names: whole or not at all, and not over what is read.

The text is written beside the file and renamed, so nobody sees half of it, and a crash leaves what
was there. A link of one's own stays a link; a link or a pipe of somebody else's is refused. A pipe
or a device is written into.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from dprad.errors import DpradError

# Open files: written into, and not followed.
_OPEN = ("/dev/fd", "/dev/std", "/proc/")
# Most steps on the way to a file.
_STEPS = 1000


def write(
    path: Any, content: str | bytes, *, inputs: Iterable[Any] = (), new: bool = False
) -> Path:
    """Write a file; refused if it is one of `inputs`, or if it must be `new` and is there."""
    file = Path(path)
    spared(file, inputs)
    data = content.encode(errors="replace") if isinstance(content, str) else content
    try:
        kept = landed(file)  # a link stays a link
        if _plain(kept):
            _replace(kept, data, new)
        else:
            if new and kept.is_file() and kept.stat().st_size:
                raise FileExistsError
            _into(kept, data)
    except FileExistsError:
        raise DpradError(f"{file} already exists; choose another name.") from None
    except OSError as error:
        raise DpradError(f"{file} cannot be written: {error.strerror}.") from None
    return file


def may_lead(path: Any) -> None:
    """Refuse before any work a path that `write` would refuse for a link on its way."""
    with suppress(OSError):  # of which `write` says what it is
        landed(Path(path))


def _replace(kept: Path, data: bytes, new: bool) -> None:
    """Write beside, then rename."""
    with inside(kept) as (name, folder):
        beside = str(Path(name).with_name(f".dprad-{secrets.token_hex(8)}"))
        first, mode = _modes(name, folder)
        try:
            made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, first, dir_fd=folder)
            with os.fdopen(made, "wb") as out:
                if mode is not None:
                    os.fchmod(made, mode)
                out.write(data)
                out.flush()
                if new:
                    _linked(beside, name, folder, os.fstat(made))
            if not new:
                os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)


def _modes(name: str, folder: int | None) -> tuple[int, int | None]:
    """The mode that a file is made with (less the umask), and the one that it then gets: that of a
    file of one's own that it replaces. Never more than to read and to write.
    """
    try:
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0o666, None
    mode = seen.st_mode & 0o666
    mine = hasattr(os, "geteuid") and seen.st_uid == os.geteuid() and stat.S_ISREG(seen.st_mode)
    return mode | 0o600, mode if mine else None


def _into(kept: Path, data: bytes) -> None:
    """Write into a pipe, a device or an open file; one of somebody else's is refused, unless it is
    open already.
    """
    how = os.O_WRONLY | os.O_APPEND
    if str(kept).startswith(_OPEN):
        made = os.open(kept, how)
    else:
        _ours(kept, kept.lstat())
        with inside(kept) as (name, folder):
            made = os.open(name, how | getattr(os, "O_NOFOLLOW", 0), dir_fd=folder)
    with os.fdopen(made, "ab") as out:
        if not str(kept).startswith(_OPEN):
            _ours(kept, os.fstat(made))  # what was opened in the end
        out.write(data)


def _ours(kept: Path, seen: os.stat_result) -> None:
    if stat.S_ISREG(seen.st_mode) or not known(seen):
        raise DpradError(f"{kept} is not a file, and is somebody else's. Name another one.")


def spared(path: Any, inputs: Iterable[Any]) -> None:
    """Refuse to write over a file that is read, under whatever name."""
    for read in map(Path, inputs):
        try:
            same = read.samefile(path)
        except OSError:  # one of them does not exist
            continue
        if same:
            raise DpradError(f"{path} is an input ({read.name}); write to another file.")


def landed(path: Path) -> Path:
    """Where a path leads. A link on the way that is neither ours nor root's is refused.

    Linux refuses some of these itself, unless told not to.
    """
    file = path.absolute()
    todo, at = list(reversed(file.parts)), Path(file.anchor)
    for _ in range(_STEPS):
        if not todo:
            return at
        name = todo.pop()
        step = at.parent if name == ".." else at / name
        if str(step).startswith(_OPEN):
            return step.joinpath(*reversed(todo))
        if not step.is_symlink():
            at = step
            continue
        before = step.lstat()
        target = os.readlink(step)  # noqa: PTH115
        if not known(before) or _moved(before, step.lstat()):
            raise DpradError(
                f"{path} leads through a link of somebody else's. Name where it leads, or another "
                "place."
            )
        todo += reversed(Path(target).parts)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def folder(path: Any) -> Path:
    """A folder, made with those above it if it is not there; as little as a file through a link of
    somebody else's.
    """
    given = Path(path)
    try:
        kept = landed(given)
        for each in (*reversed(kept.parents), kept):
            if not each.is_dir():
                with inside(each) as (name, place), suppress(FileExistsError):
                    os.mkdir(name, dir_fd=place)
        if not kept.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise DpradError(f"{given} cannot be used: {error.strerror}.") from None
    return given


def known(seen: os.stat_result) -> bool:
    """Whether something is ours, or root's."""
    return not hasattr(os, "geteuid") or seen.st_uid in (0, os.geteuid())


def _moved(before: os.stat_result, after: os.stat_result) -> bool:
    """Whether something else was there meanwhile."""
    return (before.st_ino, before.st_ctime_ns) != (after.st_ino, after.st_ctime_ns)


@contextmanager
def inside(kept: Path) -> Iterator[tuple[str, int | None]]:
    """A name, and the folder that it is in: on Linux held open, and reached without any link, so
    that none is followed that was put there since.
    """
    if not hasattr(os, "O_PATH"):
        yield str(kept), None
        return
    how = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
    with ExitStack() as held:
        at = None
        for name in kept.parent.parts:
            at = os.open(name, how, dir_fd=at)
            held.callback(os.close, at)
        yield kept.name or ".", at


def opened(kept: Path, how: int) -> int:
    """A descriptor of the regular file that a path leads to: past no link that was put there since,
    and not waiting for a pipe.
    """
    how |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with inside(kept) as (name, folder):
        made = os.open(name, how, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(made).st_mode):
        os.close(made)
        raise DpradError(f"{kept} is not a file.")
    return made


def begun(kept: Path, data: bytes) -> tuple[int, int]:
    """Write a new private file, whole or not at all; one that is there and not empty stays. Which
    file it is.
    """
    with inside(kept) as (name, folder):
        beside = str(Path(name).with_name(f".dprad-{secrets.token_hex(8)}"))
        made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
        try:
            with os.fdopen(made, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(made)
                seen = os.fstat(made)
                with suppress(FileNotFoundError):
                    there = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISREG(there.st_mode) and not there.st_size:
                        os.unlink(name, dir_fd=folder)
                _linked(beside, name, folder, seen)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)
    return seen.st_dev, seen.st_ino


def _linked(beside: str, name: str, folder: int | None, made: os.stat_result) -> None:
    """Give a new file, still open, its name; fails if that is taken. What somebody puts in its
    place meanwhile, such as a link to a file of ours, is not followed, and refused.
    """
    follows = {"follow_symlinks": False} if os.link in os.supports_follow_symlinks else {}
    os.link(beside, name, src_dir_fd=folder, dst_dir_fd=folder, **follows)
    seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if (seen.st_dev, seen.st_ino) != (made.st_dev, made.st_ino):
        raise DpradError(f"{Path(name).name} was replaced by another file meanwhile.")


def replaceable(path: Path) -> bool:
    """Whether this is a regular file, or nothing yet: a pipe or a terminal is written into."""
    return _plain(landed(path))


def _plain(kept: Path) -> bool:
    return not str(kept).startswith(_OPEN) and (kept.is_file() or not kept.exists())
