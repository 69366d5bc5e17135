"""Bench: the questions of the web page, each answered in a process that can be killed.

A question that takes too long, or that nobody waits for any more, ends with its process; others
continue meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from dprad.errors import DpradError
from dprad.runtime.workers import Processes, pickled

# Seconds for abandoned work to end by itself.
GRACE = 1.0


class Bench:
    """A number of processes, started when needed and kept for the next question."""

    def __init__(self, seats: int | None = None) -> None:
        self.seats = seats or max(2, os.cpu_count() or 1)
        self.turn: asyncio.Semaphore | None = None
        self.long: asyncio.Semaphore | None = None
        self.idle: list[_Seat] = []
        self.busy: set[_Seat] = set()
        self.leaving: set[asyncio.Task[None]] = set()

    def warm(self, work: Callable[[], Any]) -> None:
        """Start a process ahead of the first question, and let it do this, for its imports."""
        seat = _Seat()
        seat.submit(work)
        self.idle.append(seat)

    async def run(
        self,
        work: Callable[..., Any],
        *task: Any,
        seconds: float,
        long: bool = False,
        late: str = "",
    ) -> Any:
        """``work(*task)`` in another process, or a `DpradError` after this many seconds, which may
        say something else (`late`). Those that it waits for a free process do not count.

        Work that may take `long` never occupies all processes.
        """
        if self.turn is None or self.long is None:
            self.turn = asyncio.Semaphore(self.seats)
            self.long = asyncio.Semaphore(max(1, self.seats - 1))
        if long:
            async with self.long:
                return await self.run(work, *task, seconds=seconds, late=late)
        await self.turn.acquire()
        seat = self.idle.pop() if self.idle else _Seat()
        self.busy.add(seat)
        try:
            answer = asyncio.wrap_future(seat.submit(work, *task))  # pickled in its thread
        except BaseException:
            self._free(seat)
            raise
        try:
            result = await asyncio.wait_for(asyncio.shield(answer), seconds)
        except TimeoutError:
            self._leave(seat, answer, 0.0)
            raise DpradError(
                late
                or f"this takes more than {seconds:g} seconds, too long for the page. Choose fewer "
                "values or a smaller tolerance, or use Python."
            ) from None
        except asyncio.CancelledError:
            self._leave(seat, answer, GRACE)
            raise
        except BaseException:
            self._free(seat)
            raise
        self._free(seat)
        return result

    def _free(self, seat: _Seat) -> None:
        self.busy.discard(seat)
        self.idle.append(seat)
        assert self.turn is not None  # it was taken
        self.turn.release()

    def _leave(self, seat: _Seat, answer: asyncio.Future[Any], patience: float) -> None:
        """Give the work a moment to end, then end its process."""

        async def wait() -> None:
            done, _ = await asyncio.wait([answer], timeout=patience)
            if not done:
                seat.end()
            with suppress(Exception):
                await answer
            if done:
                self._free(seat)
            else:
                self.busy.discard(seat)
                assert self.turn is not None
                self.turn.release()

        task = asyncio.get_running_loop().create_task(wait())
        self.leaving.add(task)
        task.add_done_callback(self.leaving.discard)

    def end(self) -> None:
        """End all processes, whatever they are doing."""
        for task in self.leaving:
            with suppress(RuntimeError):  # the loop is closed
                task.cancel()
        for seat in (*self.idle, *self.busy):
            seat.end()


class _Seat:
    """One process, and the thread that waits for it."""

    def __init__(self) -> None:
        self.processes = Processes(pickled(_call), 1)
        self.thread = ThreadPoolExecutor(1)

    def submit(self, work: Callable[..., Any], *task: Any) -> Any:
        return self.thread.submit(lambda: self.processes.run(pickled((work, *task))))

    def end(self) -> None:
        self.processes.end()
        self.thread.shutdown(wait=False)


def _call(work: Callable[..., Any], *task: Any) -> Any:
    return work(*task)
