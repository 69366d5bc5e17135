"""Pools: nothing is left behind, early or not; a worker that dies is replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dprad import DpradError, Prior, PureDP, audit
from dprad.runtime.workers import DEATHS, Processes, pickled, stream
from effort import some
from runtime.tasks import (
    always_dies,
    chatty,
    complains,
    killed_once,
    leaves_a_child,
    reads_input,
    square,
    where,
)

ONE = PureDP(1.0, neighbours="replace-one")


def children():
    """Processes whose parent we are."""
    own, found = os.getpid(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == own:
                found.append(int(entry.name))
    return found


@pytest.fixture
def nobody_stays():
    """At the end there are no more children than before (other tests may have left some)."""
    before = set(children())
    yield
    deadline = time.monotonic() + 20
    while set(children()) - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set(children()) <= before


def test_workers_keep_their_files_where_the_parent_does(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert list(stream(where, [(1,), (2,)], 2, threads=False)) == [str(tmp_path)] * 2


def test_a_pipe_that_is_closed_while_it_is_read_is_no_error_of_ours(monkeypatch):
    processes = Processes(pickled(square), 1)

    def closed(_):
        processes.end()
        raise ValueError("read of closed file")

    monkeypatch.setattr("dprad.runtime.workers._answer", closed)
    with pytest.raises(DpradError, match="the work was stopped"):
        processes.run(pickled((3,)))
    assert not processes.alive


linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")


@pytest.mark.parametrize("threads", [False, True])
def test_results_come_in_order(threads):
    tasks = [(k,) for k in range(40)]
    assert list(stream(square, tasks, 3, threads=threads)) == [k * k for k in range(40)]


@linux
def test_early_stops_leave_nothing(monkeypatch, nobody_stays):
    complaints = []
    monkeypatch.setattr(threading, "excepthook", complaints.append)
    before = None
    for k in range(some(50, 11)):
        results = stream(square, ((i,) for i in range(10**9)), 2, threads=k % 5 > 0)
        assert next(results) == 0
        results.close()
        now = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
        before = before or now
        assert now <= before
    assert not complaints


@linux
def test_early_audits_leave_nothing(nobody_stays):
    def open_book(record, rng):
        return record

    for _ in range(3):
        found = audit(
            open_book, claim=ONE, prior=Prior.uniform(2), trials=10**5, sequential=True, workers=2
        )
        assert found.verdict == "violated"


@linux
def test_a_killed_worker_is_replaced(tmp_path):
    marker = tmp_path / "killed"
    tasks = [(str(marker), x) for x in range(20)]
    assert list(stream(killed_once, tasks, 2, threads=False)) == list(range(20))
    assert marker.exists()


@linux
def test_a_task_that_always_dies_is_a_sentence(nobody_stays):
    with pytest.raises(DpradError, match=f"died {DEATHS} times"):
        list(stream(always_dies, [(1,), (2,)], 2, threads=False))


def test_errors_come_back():
    for threads in (False, True):
        with pytest.raises(KeyError, match="what was it"):
            list(stream(complains, [(1,)] * 3, 2, threads=threads))


def test_what_a_task_prints_does_not_mix_with_the_answers():
    assert list(stream(chatty, [(k,) for k in range(6)], 2, threads=False)) == list(range(6))


def test_what_cannot_be_sent_is_a_sentence():
    lock = threading.Lock()
    with pytest.raises(DpradError, match="workers must be 1"):
        list(stream(lambda x: lock and x, [(1,), (2,)], 2, threads=False))
    with pytest.raises(TypeError, match="cannot be pickled"):
        list(stream(lambda x: threading.Lock(), [(1,), (2,)], 2, threads=False))


PARENT = """
import sys, time
from dprad.runtime.workers import stream
def slow(path, k):
    import os, time
    open(path + str(k), "w").write(str(os.getpid()))
    time.sleep(600)
list(stream(slow, [(sys.argv[1], k) for k in range(2)], 2, threads=False))
"""


@linux
def test_workers_end_with_their_parent(tmp_path):
    """Though it is killed, and they are in the middle of a task; no guard in the script either."""
    ends_with_parent(PARENT, tmp_path)


def ends_with_parent(text, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(text)
    parent = subprocess.Popen([sys.executable, str(script), str(tmp_path / "pid")])
    files = [tmp_path / f"pid{k}" for k in range(2)]
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not all(f.exists() and f.read_text() for f in files):
        time.sleep(0.05)
    workers = [int(f.read_text()) for f in files]
    parent.kill()
    parent.wait()
    while time.monotonic() < deadline and any(map(running, workers)):
        time.sleep(0.05)
    assert not any(map(running, workers))


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_is_meant_for_a_worker_is_not_read_by_a_task():
    assert list(stream(reads_input, [(k,) for k in range(6)], 2, threads=False)) == [0] * 6


@linux
def test_a_child_that_holds_the_pipe_is_not_waited_for(nobody_stays):
    with pytest.raises(DpradError, match="died"):
        list(stream(leaves_a_child, [(1,)], 2, threads=False))


STUBBORN = """
import re, sys
from dprad.runtime.workers import stream
def stuck(path, k):
    import os
    open(path + str(k), "w").write(str(os.getpid()))
    re.match(r"(a+)+b", "a" * 60)
list(stream(stuck, [(sys.argv[1], k) for k in range(2)], 2, threads=False))
"""


@linux
def test_workers_that_hold_the_interpreter_end_with_their_parent(tmp_path):
    ends_with_parent(STUBBORN, tmp_path)


@linux
def test_nothing_in_the_current_folder_is_run_by_a_worker(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('hijacked')\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from dprad.show.cli import main; main()", "audit",
         "dprad.examples:coin", "--claim", "1", "--neighbours", "replace-one", "--records", "0,1",
         "--trials", "400", "--workers", "2"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode in (0, 1) and "hijacked" not in done.stderr + done.stdout
