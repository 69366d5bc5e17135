"""A private folder, written beside and renamed; never over what is not an evidence pack.

An earlier pack is renamed first: a process that is killed then leaves both beside the place, whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dprad.errors import DpradError
from dprad.runtime.writing import landed
from dprad.show.report.evidence.facts import FORMAT

RESULTS, HASHES = "results.json", "SHA256SUMS"
NAMES = {"report.html", "scenario.toml", "evidence.md", RESULTS, HASHES}


def usable(folder: Any, inputs: Iterable[Path] = ()) -> Path:
    """Where the pack goes: nothing yet, an empty folder, or an earlier pack; else an error. Nor a
    folder that holds one of `inputs`: it would be gone.
    """
    given = Path(folder)
    try:
        target = landed(given)
        for read in inputs:
            if read.exists() and target in read.resolve().parents:
                raise DpradError(f"{given} holds an input ({read.name}); name another folder.")
        if not target.parent.is_dir():
            raise DpradError(f"{target.parent} is not a folder; make it first.")
        if not target.exists():
            return target
        if not target.is_dir() or not (_empty(target) or _ours(target)):
            raise DpradError(f"{given} is not empty and not an evidence pack; name another folder.")
    except OSError as error:
        raise DpradError(f"{given} cannot be used: {error.strerror}.") from None
    return target


def seal(target: Path, files: dict[str, bytes]) -> Path:
    """Write the files and the list of their hashes, all or nothing."""
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    try:
        beside = Path(tempfile.mkdtemp(prefix=".dprad-", dir=target.parent))  # mode 0700
        try:
            made = _filled(beside, {**files, HASHES: "".join(lines).encode()})
            _replace(beside, usable(target))
            if made != _which(target.lstat()):
                raise DpradError(f"{target} was replaced meanwhile; name another folder.")
        finally:
            if not beside.is_symlink():
                shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise DpradError(f"{target} cannot be written: {error.strerror}.") from None
    return target


def _filled(folder: Path, files: dict[str, bytes]) -> tuple[int, int]:
    """Write into a folder that was just made, past no link put there since. Which folder it is."""
    held = hasattr(os, "O_DIRECTORY")
    how = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW if held else 0
    place = os.open(folder, how) if held else None
    try:
        seen = folder.lstat() if place is None else os.fstat(place)
        if held and seen.st_uid != os.geteuid():
            raise DpradError(f"{folder} is somebody else's; name another folder.")
        for name, content in files.items():
            path = name if held else str(folder / name)
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=place)
            with os.fdopen(made, "wb") as out:
                out.write(content)
    finally:
        if place is not None:
            os.close(place)
    return _which(seen)


def _which(seen: os.stat_result) -> tuple[int, int]:
    return seen.st_dev, seen.st_ino


def _replace(new: Path, target: Path) -> None:
    """Put a folder in the place of nothing, an empty one, or an earlier pack."""
    if not target.exists() or _empty(target):
        new.replace(target)
        return
    old = Path(tempfile.mkdtemp(prefix=".dprad-", dir=target.parent))
    try:
        target.replace(old)
        new.replace(target)
    finally:
        if not target.exists():
            old.replace(target)
        shutil.rmtree(old, ignore_errors=True)


def _empty(folder: Path) -> bool:
    return not any(folder.iterdir())


def _ours(folder: Path) -> bool:
    """Whether nothing but a pack is in it."""
    inside = list(folder.iterdir())
    names = {path.name for path in inside}
    plain_files = all(path.is_file() and not path.is_symlink() for path in inside)
    if not {RESULTS, HASHES} <= names <= NAMES or not plain_files:
        return False
    try:
        plain = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(plain, dict) and plain.get("format") == FORMAT
