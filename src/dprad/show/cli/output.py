"""Printing: a closed pipe (head, less) is not an error and does not change the exit code; nor does
standard error that takes nothing.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO


def clean(text: str) -> str:
    """Without terminal control sequences: names may come from anywhere."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)


# What else is on the screen: erased before something is printed, by whoever draws it.
SCREEN = threading.RLock()
erased: list[Callable[[], None]] = []


def show(text: str) -> None:
    """Print text."""
    try:
        with SCREEN:
            for erase in erased:
                erase()
            sys.stdout.write(clean(text) + "\n")
            sys.stdout.flush()
    except AttributeError:  # closed before this began
        return
    except BrokenPipeError:
        _mute(sys.stdout)


def warn(text: str) -> None:
    """Write to standard error, as far as that is possible: nobody can be told otherwise."""
    try:
        sys.stderr.write(clean(text))
        sys.stderr.flush()
    except AttributeError:  # closed before this began
        return
    except OSError:
        _mute(sys.stderr)


def _mute(stream: TextIO) -> None:
    """What is left in the buffer, and all that follows, goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def show_json(plain: Any) -> None:
    """Print plain data as JSON; infinite numbers are null."""
    show(json.dumps(_finite(plain), indent=2, allow_nan=False))


def _finite(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {k: _finite(v) for k, v in plain.items()}
    if isinstance(plain, list | tuple):
        return [_finite(v) for v in plain]
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
