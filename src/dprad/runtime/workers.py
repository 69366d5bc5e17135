"""Workers: tasks in threads, in processes of their own, or on a Dask cluster.

A task has its own stream of random numbers and results come back in order, so any number of workers
gives the same numbers. A pool lives as long as the call that needs it: nothing is left running. A
process that dies is replaced and its task is run again.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from dprad.errors import DpradError, records_shown, show_records
from dprad.runtime import memory
from dprad.runtime.worker import receive, send

# Tasks submitted per worker ahead of those consumed.
AHEAD = 4
# The least memory of a worker, whatever the limit.
LEAST = 1e6
# Number of processes that may die in a row over one task before the task is blamed.
DEATHS = 3
# Libraries that would each use all processors.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

_crew: ContextVar[int] = ContextVar("crew", default=1)


@contextmanager
def crew(workers: int) -> Iterator[None]:
    """Within, solvers spread very large sums over this many workers."""
    before = _crew.set(workers)
    try:
        yield
    finally:
        _crew.reset(before)


def hands() -> int:
    """The number of workers for what is solved now."""
    return _crew.get()


def stream(
    work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int, *, threads: bool
) -> Generator[Any, None, None]:
    """``work(*task)`` for every task, in order, a few ahead of those consumed.

    Threads suffice for work that spends its time in numpy; anything else gets processes. A backend
    of `joblib.parallel_config`, such as Dask, replaces both. It may be closed early.
    """
    if workers == 1:
        yield from (work(*task) for task in tasks)
        return
    share = memory.given()
    if share is not None or records_shown():
        limit = None if share is None else max(LEAST, share / workers)
        work = partial(_within, limit, records_shown(), work)
    if elsewhere():
        yield from _joblib(work, tasks, workers)
    elif threads:
        with ThreadPoolExecutor(workers) as pool:
            yield from _ordered(lambda task: pool.submit(work, *task), tasks, workers)
    else:
        yield from _processes(work, tasks, workers)


def _ordered(
    submit: Callable[[tuple[Any, ...]], Future[Any]], tasks: Iterable[tuple[Any, ...]], workers: int
) -> Generator[Any, None, None]:
    """Results in order, with a few tasks in progress; tasks not started are dropped on closing."""
    pending: deque[Future[Any]] = deque()
    rest = iter(tasks)
    try:
        while True:
            while len(pending) < AHEAD * workers and (task := next(rest, None)) is not None:
                pending.append(submit(task))
            if not pending:
                return
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


# -- processes -------------------------------------------------------------------------------------
def _processes(
    work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int
) -> Generator[Any, None, None]:
    """Each thread has a process of its own, sends it tasks and waits for the results."""
    body = pickled(work)
    processes = Processes(body, workers)
    try:
        with ThreadPoolExecutor(workers) as pool:
            try:
                yield from _ordered(
                    lambda task: pool.submit(processes.run, pickled(task)), tasks, workers
                )
            finally:
                processes.end()  # so that no thread waits for a result
    finally:
        processes.end()


class Processes:
    """Worker processes, at most one per thread."""

    def __init__(self, body: bytes, count: int) -> None:
        cores = os.cpu_count() or 1
        each = str(max(1, cores // count))
        self.environment = os.environ | {name: each for name in _THREADS if name not in os.environ}
        # files that a killed worker leaves behind lie where this process has its own
        with suppress(OSError):
            self.environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), tempfile.gettempdir())
        # only the path of dprad: the rest follows when Python has started
        home = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        self.environment["PYTHONPATH"] = os.pathsep.join(filter(None, home))
        self.hello = pickle.dumps(([p or str(Path.cwd()) for p in sys.path], body))
        self.mine, self.lock = threading.local(), threading.Lock()
        self.alive: list[subprocess.Popen[bytes]] = []
        self.over = False

    def run(self, task: bytes) -> Any:
        """The result from this thread's process; a process that dies is replaced."""
        for _ in range(DEATHS):
            process = getattr(self.mine, "process", None) or self._start()
            answer = None
            try:
                assert process.stdin is not None and process.stdout is not None
                send(process.stdin, task)  # type: ignore[arg-type]
                answer = _answer(process)
            except (OSError, ValueError):  # dead, or ended and its pipes closed meanwhile
                pass
            if answer is not None:
                fine, result = pickle.loads(answer)
                if fine:
                    return result
                raise result
            self._bury(process)
            if self.over:
                raise DpradError("the work was stopped.")
        raise DpradError(
            f"worker processes died {DEATHS} times over one task: killed, out of memory, or ended "
            "by the code they run. Try workers=1 to see more."
        )

    def _start(self) -> subprocess.Popen[bytes]:
        with self.lock:
            if self.over:
                raise DpradError("the work was stopped.")
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dprad.runtime.worker", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self.environment,
                start_new_session=True,  # Ctrl-C is for the parent
            )
            self.alive.append(process)
        self.mine.process = process
        assert process.stdin is not None
        send(process.stdin, self.hello)  # type: ignore[arg-type]
        return process

    def _bury(self, process: subprocess.Popen[bytes]) -> None:
        self.mine.process = None
        with self.lock:
            if process in self.alive:
                self.alive.remove(process)
        _ended(process)

    def end(self) -> None:
        """End all processes, whatever they are doing."""
        with self.lock:
            self.over, ending = True, self.alive
            self.alive = []
        for process in ending:
            _ended(process)


def _answer(process: subprocess.Popen[bytes]) -> bytes | None:
    """The result from a process; None if it has died, even if one of its children holds the
    pipe.
    """
    assert process.stdout is not None
    if os.name == "posix":
        while not select.select([process.stdout], [], [], 1.0)[0]:
            if process.poll() is not None:
                return None
    return receive(process.stdout)  # type: ignore[arg-type]


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End it with everything it has started: it leads its own session."""
    if os.name == "posix":
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def pickled(thing: Any) -> bytes:
    """As bytes, including functions and closures."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:
        raise DpradError(
            "workers must be 1 here: the function cannot be sent to another process "
            f"({type(error).__name__})."
        ) from None


# -- other backends --------------------------------------------------------------------------------
def elsewhere() -> bool:
    """Whether joblib is configured to run elsewhere than on this machine."""
    if "joblib" not in sys.modules:
        return False  # joblib was never imported, so it was not configured
    from joblib.parallel import get_active_backend

    kind = type(get_active_backend()[0]).__module__
    return not kind.startswith("joblib._parallel_backends")


def _joblib(
    work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int
) -> Generator[Any, None, None]:
    """A few tasks at a time through joblib's backend, all finished before the next few."""
    from itertools import islice

    from joblib import Parallel, delayed

    rest = iter(tasks)
    with Parallel(n_jobs=workers) as several:
        while some := list(islice(rest, AHEAD * workers)):
            yield from several(delayed(work)(*task) for task in some)


def _within(limit: float | None, shown: bool, work: Callable[..., Any], *task: Any) -> Any:
    """A worker's share of the memory, and whether records may be shown."""
    with memory.limit(limit), show_records(shown):
        return work(*task)


@contextmanager
def cluster(address: str) -> Iterator[int]:
    """Within, `stream` runs on the Dask cluster at this address; yields the number of workers."""
    try:
        import distributed
        from joblib import parallel_config
    except ImportError:
        raise DpradError("a cluster needs Dask: pip install 'dprad[cluster]'.") from None
    if not address.startswith(("tcp://", "tls://", "ws://", "wss://")):
        raise DpradError(
            f"--cluster must be an address such as tcp://host:8786, but is {address!r}."
        )
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DpradError(f"no Dask scheduler answers at {address!r} ({error}).") from None
    with client, parallel_config(backend="dask", client=client):
        yield max(2, len(client.scheduler_info(n_workers=-1)["workers"]))
