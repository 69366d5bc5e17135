"""How much may be held at once: blocks that fit a limit, and a sentence where nothing does.

Every solver takes its question in blocks, so that beside what the question itself takes (a few
numbers per value, the success relation, a channel that was given as a matrix) it holds some twenty
blocks. The limit is what the machine has, or less: ``assess(..., memory="500 MB")``, or for
anything else ``with dprad.memory.limit("500 MB"): ...``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from dprad.errors import DpradError

UNITS = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "b": 1.0}
# Blocks that a solver holds at once, and the share of the limit they may take together.
BLOCKS, SHARE = 24, 0.5
# No block has fewer numbers: a limit below would only be slow.
SMALLEST = 2**12

_limit: ContextVar[float | None] = ContextVar("limit", default=None)


@contextmanager
def limit(memory: float | str | None) -> Iterator[None]:
    """Within, at most so many bytes (a number, or as in "500 MB") are asked for."""
    if memory is None:
        yield
        return
    before = _limit.set(_bytes(memory))
    try:
        yield
    finally:
        _limit.reset(before)


def given() -> float | None:
    """The limit that was set, if any."""
    return _limit.get()


def allowed() -> float:
    """The limit in bytes: the one set, or what the machine (or its container) has."""
    found = given()
    return _machine() if found is None else found


@cache
def _machine() -> float:
    sizes = [8e9]
    with suppress(AttributeError, OSError, ValueError):
        sizes = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max" is no limit
            sizes.append(float(Path(file).read_text(encoding="utf-8")))
    return min(sizes)


def block(entries: int) -> int:
    """Numbers that a block may have: so many, or fewer where the limit asks for it."""
    return max(SMALLEST, min(entries, int(SHARE * allowed() / (8 * BLOCKS))))


def need(size: float, what: str, instead: str) -> None:
    """Refuse what takes more bytes than are allowed, and say what could be asked instead."""
    if size > allowed():
        raise DpradError(
            f"{what} would take {_told(size)}, but {_told(allowed())} may be used. {instead}"
        )


def _bytes(memory: float | str) -> float:
    text = str(memory).strip().lower()
    unit = next((u for u in UNITS if text.endswith(u)), "")
    try:
        found = float(text.removesuffix(unit)) * UNITS.get(unit, 1.0)
    except ValueError:
        found = 0.0
    if isinstance(memory, bool) or not 1e6 <= found < float("inf"):
        raise DpradError(
            'memory must be a number of bytes, as 500_000_000 or "500 MB", at least 1 MB, but is '
            f"{memory!r}."
        )
    return found


def _told(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"
