"""A worker process: runs tasks that come through a pipe, and ends when the pipe does.

Started as ``python -m dprad.runtime.worker`` by `workers.py`, never by hand. What a task prints
goes to standard error; the answers go where standard output was. The pipe is read by a thread, so
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
    """Work until the end."""
    _die_with(int(sys.argv[1]))
    answers, requests = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # whatever a task prints must not mix with the answers
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nor may it read what is meant for us
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
    """On Linux the kernel sees to it, even if a task never lets another thread run."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(0)


def _dumped(answer: tuple[bool, Any]) -> bytes:
    """The answer as bytes, or what kept it from being so."""
    import cloudpickle

    try:
        raw: bytes = cloudpickle.dumps(answer)
        pickle.loads(raw)
        return raw
    except Exception as error:
        kind, text = type(answer[1]).__name__, type(error).__name__
        return pickle.dumps((False, TypeError(f"a {kind} cannot be pickled ({text})")))


if __name__ == "__main__":
    main()
