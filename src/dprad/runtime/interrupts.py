"""Ctrl-C that is not lost: some libraries swallow the KeyboardInterrupt that it raises in them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """What to call now and then: it raises KeyboardInterrupt if Ctrl-C was pressed within. So does
    the end, if what was interrupted made an error of its own of it.

    Only where Python's own handler is in force; elsewhere the interrupt is somebody else's.
    """
    pressed = threading.Event()

    def press(*_: Any) -> None:
        pressed.set()
        raise KeyboardInterrupt

    def look() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield look
        return
    signal.signal(signal.SIGINT, press)
    try:
        yield look
    except Exception:
        look()
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(error: BaseException) -> bool:
    """Whether an error is what something else, such as an import, made of Ctrl-C."""
    todo: list[BaseException | None] = [error]
    for at in todo:
        if isinstance(at, KeyboardInterrupt):
            return True
        todo += [] if at is None else [e for e in (at.__cause__, at.__context__) if e not in todo]
    return False
