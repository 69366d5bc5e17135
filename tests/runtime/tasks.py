"""What workers do in `test_workers.py`, apart from it: they need not import pytest and dprad."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def square(x):
    return x * x


def where(_):
    import tempfile

    return tempfile.gettempdir()


def killed_once(marker, x):
    """The first time it is called with 5, its process is killed."""
    if x == 5 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def always_dies(x):
    os._exit(3)


def complains(x):
    raise KeyError("what was it")


def chatty(x):
    sys.stdout.write("something\n")
    os.write(1, b"else")
    return x


def reads_input(x):
    return len(sys.stdin.buffer.read()) + subprocess.run(["cat"], capture_output=True).returncode


def leaves_a_child(x):
    """A fork that keeps the pipe, and a worker that dies."""
    if os.fork() == 0:
        time.sleep(60)
    os._exit(1)
