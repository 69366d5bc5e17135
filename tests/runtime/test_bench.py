"""Questions in processes that can be killed."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from dprad import DpradError
from dprad.runtime.bench import Bench


def slow(seconds):
    time.sleep(seconds)
    return os.getpid()


def refused():
    raise DpradError("no.")


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_answers_errors_and_the_next_question():
    async def main():
        bench = Bench(1)
        try:
            one = await bench.run(slow, 0, seconds=60)
            with pytest.raises(DpradError, match=r"^too late\.$"):
                await bench.run(slow, 600, seconds=0.5, late="too late.", long=True)
            one = await bench.run(slow, 0, seconds=60)
            with pytest.raises(DpradError, match=r"^no\.$"):
                await bench.run(refused, seconds=60)
            assert await bench.run(slow, 0, seconds=60) == one != os.getpid()  # the same process
        finally:
            bench.end()
        return one

    assert not alive(asyncio.run(main()))


def test_what_takes_too_long_is_killed_and_others_are_answered():
    async def main():
        bench = Bench(2)
        try:
            first = await asyncio.gather(*[bench.run(slow, 0.1, seconds=60) for _ in range(2)])
            begin = time.monotonic()
            hanging = asyncio.ensure_future(bench.run(slow, 600, seconds=2))
            assert await bench.run(slow, 0, seconds=60) in first
            with pytest.raises(DpradError, match="more than 2 seconds"):
                await hanging
            assert time.monotonic() - begin < 60
            after = [await bench.run(slow, 0, seconds=60) for _ in range(2)]
            return set(first) - set(after)
        finally:
            bench.end()

    assert all(not alive(pid) for pid in asyncio.run(main()))


def test_what_nobody_waits_for_ends():
    async def main():
        bench = Bench(1)
        try:
            await bench.run(slow, 0, seconds=60)
            for _ in range(3):  # as a slider that is moved
                task = asyncio.ensure_future(bench.run(slow, 600, seconds=600))
                await asyncio.sleep(0.05)
                task.cancel()
            begin = time.monotonic()
            await bench.run(slow, 0, seconds=60)
            return time.monotonic() - begin
        finally:
            bench.end()

    assert asyncio.run(main()) < 60


def test_a_process_that_was_started_ahead_gets_the_first_question():
    async def main():
        bench = Bench(1)
        try:
            bench.warm(os.getpid)
            (seat,) = bench.idle
            ahead = await asyncio.wrap_future(seat.submit(os.getpid))
            assert await bench.run(os.getpid, seconds=60) == ahead != os.getpid()
        finally:
            bench.end()

    asyncio.run(main())
