"""A private folder, written beside and renamed; never over what is not an evidence pack.

An earlier pack is renamed first: a process that is killed then leaves both beside the place, whole.
Folders are held open, so that one that somebody puts in the place of another stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dprad.errors import DpradError
from dprad.runtime.folders import Held, free
from dprad.runtime.writing import inside, landed
from dprad.show.report.evidence.facts import FORMAT

RESULTS, HASHES = "results.json", "SHA256SUMS"
NAMES = {"report.html", "scenario.toml", "evidence.md", RESULTS, HASHES}
# Bytes of the results of a pack; a real one has some thousands.
LARGEST = 2**26


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
        with inside(target) as (name, place):
            there = _earlier(given, name, place)
            if there is not None:
                there.close()
    except OSError as error:
        raise DpradError(f"{given} cannot be used: {error.strerror}.") from None
    return target


def seal(target: Path, files: dict[str, bytes]) -> Path:
    """Write the files and the list of their hashes, all or nothing."""
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    try:
        with ExitStack() as stack:
            name, place = stack.enter_context(inside(target))
            new = Held.beside(name, place)
            stack.callback(new.close)
            beside = new.name
            try:
                for each, content in {**files, HASHES: "".join(lines).encode()}.items():
                    new.write(each, content)
                _replace(new, target, name)
            finally:
                if new.name == beside and not new.at(name):
                    new.remove(beside, new.made)
    except OSError as error:
        raise DpradError(f"{target} cannot be written: {error.strerror}.") from None
    return target


def _replace(new: Held, target: Path, name: str) -> None:
    """Put a folder in the place of nothing, an empty one, or an earlier pack."""
    old = _earlier(target, name, new.place)
    try:
        files = set() if old is None else old.names()
        if old is None or not files:  # refused by the system if it is not empty by now
            new.move(name)
        else:
            _exchange(new, old, name, files)
    finally:
        if old is not None:
            old.close()
    if not new.at(name):
        raise DpradError(f"{target} was replaced meanwhile; name another folder.")


def _exchange(new: Held, old: Held, name: str, files: set[str]) -> None:
    """Put a new pack in the place of an old one; if that fails, the old one is put back."""
    aside = free(name)
    try:
        if old.move(aside):
            new.move(name)
    finally:
        if new.at(name):
            old.remove(aside, files)
        elif old.at(aside):
            try:
                old.move(name)
            except OSError:  # something else is there by now
                raise DpradError(
                    f"{name} was replaced meanwhile; the earlier pack is now called "
                    f"{Path(aside).name}."
                ) from None


def _earlier(given: Path, name: str, place: int | None) -> Held | None:
    """What is there, held open: nothing, an empty folder, or an earlier pack; else an error."""
    refused = DpradError(f"{given} is not empty and not an evidence pack; name another folder.")
    try:
        there = Held.open(name, place)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise refused from None
    try:
        found = there.names()
        if found and not _ours(there, found):
            raise refused
        if found and not there.mine():
            raise DpradError(
                f"{given} is a pack of somebody else's, or others may write in it; name another "
                "folder."
            )
    except BaseException:
        there.close()
        raise
    return there


def _ours(folder: Held, found: set[str]) -> bool:
    """Whether nothing but a pack is in it."""
    if not {RESULTS, HASHES} <= found <= NAMES or not folder.regular(found):
        return False
    try:
        plain = json.loads(folder.read(RESULTS, LARGEST))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(plain, dict) and plain.get("format") == FORMAT
