"""Printing: a reader that has seen enough (head, less) is no error and changes no exit code."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def show(text: str) -> None:
    """Print text."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # what is still buffered has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_json(plain: Any) -> None:
    """Print plain data as JSON."""
    show(json.dumps(plain, indent=2))
