"""A worker process: runs tasks from a pipe, and ends when the pipe closes.

Started as ``python -m dprad.runtime.worker`` by `workers.py`, never by hand. Output that a task
prints goes to standard error; results use the original standard output. A thread reads the pipe, so
the process ends at once when its parent does, killed or not, whatever the task is doing.
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import sys
import threading
from typing import Any, BinaryIO


def send(pipe: BinaryIO, message: bytes) -> None:
    """A message: its length, then itself."""
    pipe.write(struct.pack("<Q", len(message)) + message)
    pipe.flush()


def receive(pipe: BinaryIO) -> bytes | None:
    """The next message; None at the end."""
    head = pipe.read(8)
    if len(head) < 8:
        return None
    (length,) = struct.unpack("<Q", head)
    body = pipe.read(length)
    return body if len(body) == length else None


def main() -> None:
    """Run tasks until the pipe closes."""
    _die_with(int(sys.argv[1]))
    answers, requests = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # output printed by a task must not mix with the results
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nor may a task read our input
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        while (message := receive(requests)) is not None:
            tasks.put(message)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    path, body = pickle.loads(tasks.get())
    sys.path[:] = path
    work: Any = None
    while True:
        try:
            if work is None:
                work = pickle.loads(body)
            answer = (True, work(*pickle.loads(tasks.get())))
        except BaseException as error:
            answer = (False, error)
        send(answers, _dumped(answer))


def _die_with(parent: int) -> None:
    """On Linux the kernel ensures it, even if a task never lets another thread run."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(0)


def _dumped(answer: tuple[bool, Any]) -> bytes:
    """The result as bytes, or the error that prevented it."""
    import cloudpickle

    try:
        raw: bytes = cloudpickle.dumps(answer)
        pickle.loads(raw)
        return raw
    except Exception as error:
        from dprad.errors import kind as name_of

        kind, text = name_of(type(answer[1])), name_of(type(error))
        return pickle.dumps((False, TypeError(f"a {kind} cannot be pickled ({text})")))


if __name__ == "__main__":
    main()
