"""Many hands: tasks through joblib, on this machine or on a Dask cluster.

A task brings its own stream of random numbers and results come back in order, so any number of
workers gives the same numbers. A lost worker costs the tasks it had: Dask runs them again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pickle import PicklingError
from typing import Any

from dprad import memory
from dprad.errors import DpradError

# Tasks that are handed to every worker ahead of what has been taken.
AHEAD = 4
# The least memory that a worker is given, whatever the limit.
LEAST = 1e6


def stream(
    work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], workers: int, *, threads: bool
) -> Generator[Any, None, None]:
    """``work(*task)`` for every task, in order, a few ahead of what was taken.

    Threads do for what spends its time in numpy; anything else gets processes, spawned. A backend
    of `joblib.parallel_config`, such as Dask, takes the place of both. It may be closed early.
    """
    if workers == 1:
        yield from (work(*task) for task in tasks)
        return
    from joblib import Parallel, delayed

    share = memory.given()
    if share is not None:
        work = partial(_within, max(LEAST, share / workers), work)
    ahead = AHEAD * workers  # so that little is left running when it is closed
    about: dict[str, Any] = {"n_jobs": workers, "prefer": "threads" if threads else None}
    try:
        pool = Parallel(**about, return_as="generator", pre_dispatch=ahead)
    except ValueError:
        # this backend cannot hand over results one by one
        with Parallel(**about) as several:
            for a in range(0, len(tasks), ahead):
                yield from several(delayed(work)(*task) for task in tasks[a : a + ahead])
        return
    found = pool(delayed(work)(*task) for task in tasks)
    try:
        # not `yield from`, which would close it before we can
        for result in found:  # noqa: UP028
            yield result
    except (PicklingError, AttributeError, TypeError) as error:
        if "pickle" not in str(error).lower():
            raise
        raise DpradError(
            f"workers must be 1 here: what is run cannot be sent to another process ({error})."
        ) from None
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that tasks are dropped: someone had enough
            found.close()


def _within(limit: float, work: Callable[..., Any], *task: Any) -> Any:
    """A worker's share of the memory."""
    with memory.limit(limit):
        return work(*task)


@contextmanager
def cluster(address: str) -> Iterator[int]:
    """Within, `stream` runs on the Dask cluster at this address; gives how many at once."""
    try:
        import distributed
        from joblib import parallel_config
    except ImportError:
        raise DpradError("a cluster needs Dask: pip install 'dprad[cluster]'.") from None
    if not address.startswith(("tcp://", "tls://", "ws://", "wss://")):
        raise DpradError(f"--cluster must be an address as tcp://host:8786, but is {address!r}.")
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DpradError(f"no Dask scheduler answers at {address!r} ({error}).") from None
    with client, parallel_config(backend="dask", client=client):
        yield max(2, len(client.scheduler_info(n_workers=-1)["workers"]))
