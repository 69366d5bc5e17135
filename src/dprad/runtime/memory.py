"""Memory limits: blocks that fit a limit, and an error if nothing does.

Every solver works in blocks. Besides the question itself (a few numbers per value, the success
relation, a channel given as a matrix) it holds about twenty blocks. The limit is what the machine
has, or less: ``assess(..., memory="500 MB")``, or for anything else
``with dprad.memory.limit("500 MB"): ...``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from dprad.errors import DpradError

UNITS = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "b": 1.0}
# Blocks that a solver holds at once, and their share of the limit.
BLOCKS, SHARE = 24, 0.5
# Fewest numbers in a block: smaller ones would only be slow.
SMALLEST = 2**12

_limit: ContextVar[float | None] = ContextVar("limit", default=None)
_bounding = threading.Lock()


@contextmanager
def limit(memory: float | str | None) -> Iterator[None]:
    """Limit the memory that solvers use within a ``with`` block.

    Parameters
    ----------
    memory
        Bytes, as a number or as in "500 MB"; None: no change.

    Yields
    ------
    None
        Use it as ``with limit("500 MB"): ...``.

    Examples
    --------
    >>> with limit("500 MB"):
    ...     allowed()
    500000000.0

    """
    if memory is None:
        yield
        return
    before = _limit.set(_bytes(memory))
    try:
        yield
    finally:
        _limit.reset(before)


@contextmanager
def bounded(more: float) -> Iterator[None]:
    """Let this process grow by so many bytes of addresses at most, within a ``with`` block, on
    Linux: what a library asks for beyond is refused to it. One thread at a time.

    Parameters
    ----------
    more
        Bytes; for every processor, 100 MB are added for its threads.

    Yields
    ------
    None
        Nothing is bounded where the system cannot do it.

    """
    with _bounding:  # else a thread would keep the bound that another one has set
        before = _bound_to(more)
        try:
            yield
        finally:
            if before:
                import resource

                resource.setrlimit(resource.RLIMIT_AS, before)


def _bound_to(more: float) -> tuple[int, int] | None:
    """Set the bound; what it was before, where the system has one."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
        most = int(pages * os.sysconf("SC_PAGE_SIZE") + more + 1e8 * (os.cpu_count() or 1))
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        least = most if soft == resource.RLIM_INFINITY else min(most, soft)
        resource.setrlimit(resource.RLIMIT_AS, (least, hard))
    except (ImportError, AttributeError, OSError, ValueError):
        return None
    return soft, hard


def given() -> float | None:
    """The limit that was set, if any.

    Returns
    -------
    float or None
        Bytes.

    Examples
    --------
    >>> given() is None
    True

    """
    return _limit.get()


def allowed() -> float:
    """The limit in bytes: the one set, or what the machine (or its container) has.

    Returns
    -------
    float
        Bytes.

    Examples
    --------
    >>> allowed() > 0
    True

    """
    size = given()
    return _machine() if size is None else size


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
    """The size of a block under the current limit.

    Parameters
    ----------
    entries
        The preferred size, in numbers.

    Returns
    -------
    int
        At most `entries`, unless that is very small.

    Examples
    --------
    >>> with limit("1 MB"):
    ...     block(2**20)
    4096

    """
    return max(SMALLEST, min(entries, int(SHARE * allowed() / (8 * BLOCKS))))


def need(size: float, what: str, instead: str) -> None:
    """Raise a `DpradError` if this much memory is not allowed.

    Parameters
    ----------
    size
        Bytes needed.
    what
        What needs them, to begin the message.
    instead
        What to do instead, to end the message.

    Examples
    --------
    >>> need(1000, "A small table", "Choose fewer values.")

    """
    if size > allowed():
        raise DpradError(
            f"{what} would take {_shown(size)}, but only {_shown(allowed())} may be used. {instead}"
        )


def _bytes(memory: float | str) -> float:
    text = str(memory).strip().lower()
    unit = next((u for u in UNITS if text.endswith(u)), "")
    try:
        size = float(text.removesuffix(unit)) * UNITS.get(unit, 1.0)
    except ValueError:
        size = 0.0
    if isinstance(memory, bool) or not 1e6 <= size < float("inf"):
        raise DpradError(
            'memory must be at least 1 MB, in bytes or as a string such as "500 MB", but is '
            f"{memory!r}."
        )
    return size


def _shown(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"
