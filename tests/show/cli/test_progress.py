"""Progress on standard error: for people, in a log, and when work is interrupted."""

from __future__ import annotations

import io
import itertools
import os
import re
import signal
import sys
import time

import pytest

from dprad.runtime.progress import Clock, known, part, steps, tell
from dprad.show.cli import main, progress
from dprad.show.cli.output import show


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "EVERY", 0.01)


def until(said, err):
    """Work until this is on standard error; on a busy machine that takes a while."""
    end = time.monotonic() + 60.0
    while said not in err.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    assert said in err.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_bar_for_people_and_lines_for_a_log(monkeypatch, impatient, terminal):
    err = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with progress.shown(False):
        tell("runs", 3, 10)
        until("runs: 3 of 10", err)
        tell("runs", 10, 10)
        until("all 10 done, finishing", err)
    assert "dprad: runs: 3 of 10; " in err.getvalue() or terminal
    seen = len(err.getvalue())
    time.sleep(0.05)
    assert len(err.getvalue()) == seen  # it is over


@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_when_quiet(monkeypatch, impatient, terminal):
    err = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with progress.shown(True):
        tell("runs", 3, 10)
        time.sleep(0.1)
    assert not err.getvalue()


def test_results_go_to_standard_output_while_a_bar_is_shown(monkeypatch, impatient, capsys):
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    with progress.shown(False):
        tell("runs", 3, 10)
        until("runs: 3 of 10", err)
        show("the answer")
    assert capsys.readouterr().out == "the answer\n" and "the answer" not in err.getvalue()


@pytest.fixture
def now(monkeypatch):
    """A clock that only we move: now[0]."""
    time_ = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: time_[0])
    return time_


def test_time_that_is_left(now):
    clock = Clock()
    clock.told("runs", 0, 10)
    assert clock.left is None  # nothing is done yet
    for k in range(1, 5):
        now[0] = 2.0 * k
        assert clock.left is None or k > 2  # two steps of one pace are the first to tell
        clock.told("runs", k, 10)
    assert clock.left == pytest.approx(12.0) and clock.rest == "about 12 s more for this"
    now[0] = 9.0
    assert clock.left == pytest.approx(11.0)  # time goes by though nothing is told
    now[0] = 12.0
    assert clock.left == pytest.approx(10.0)  # but five more steps have not even begun
    now[0] = 15.0
    assert clock.left is None and clock.rest == ""  # much longer than expected: not told, never 0
    clock.told("runs", 10, 10)
    assert clock.left is None and "finishing" in str(clock)
    clock.told("runs", 2, 10)  # anew: what is known about the pace is gone
    assert clock.left is None and clock.seconds == 15.0
    clock.told("values tried", 0, 0)
    assert clock.left is None and str(clock) == "values tried"


@pytest.mark.parametrize("fixed", [0.0, 0.5, 5.0])
def test_time_that_is_left_where_chunks_double_and_each_costs_something(now, fixed):
    """As in an audit: a mean pace since the start would be wrong by factors of hundreds."""
    sizes = [min(64 * 2**k, 16_384) for k in range(30)]
    clock, done, told = Clock(), 0, []
    clock.told("runs", 0, sum(sizes))
    for size in sizes:
        now[0], done = now[0] + fixed + 1e-3 * size, done + size
        clock.told("runs", done, sum(sizes))
        told.append((now[0], clock.left))
    wrong = [left / (now[0] - at) for at, left in told if left is not None]
    assert len(wrong) > 10 and all(0.5 < ratio < 2.0 for ratio in wrong)


def test_the_running_step_does_not_make_the_rest_longer(now):
    clock, said = Clock(), []
    for k in range(6):
        for _ in range(50):  # parts of the step tell of it, whatever they have done
            clock.told("cells", k, 20)
            said.append(clock.left)
            now[0] += 1.0
    known_ = [left for left in said if left is not None]
    assert len(known_) > 100
    assert all(later <= sooner + 1e-9 for sooner, later in itertools.pairwise(known_))


def test_many_points_are_thinned(now):
    clock = Clock()
    for k in range(100_000):
        now[0] += 0.01
        clock.told("values", k, 200_000)
    assert len(clock.seen[0]) < 2000 and clock.left == pytest.approx(1000.0, rel=0.01)


def test_only_the_outermost_work_is_told(monkeypatch):
    clock, said = Clock(), []
    monkeypatch.setattr("dprad.runtime.progress._listeners", [clock.told])
    for item in steps("attackers", "ab"):
        for _ in steps("points", range(5)):
            tell("draws", 7, 7)
            said.append(str(clock))
        if item == "b":
            break
    assert said == ["attackers: 0 of 2"] * 5 + ["attackers: 1 of 2"] * 5
    with part("calibrating, 3 values tried"):
        tell("draws", 1, 7)
        assert str(clock) == "calibrating, 3 values tried"
    for _ in steps("attackers", ["the only one"]):
        tell("draws", 5, 7)
    assert str(clock) == "draws: 5 of 7"


@pytest.fixture
def handled():
    """Python's handler: what runs in the background may ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


SCENARIO = """
title = "Two"
[population]
uniform = 2
[[threats]]
name = "a stranger"
knows = "nothing"
[[releases]]
name = "The first"
mechanism = "grr"
epsilon = 1.0
[audit]
function = "stopped_in_a_report:run"
claim = 1.0
trials = 4000
"""
STOPPED = """
import os, signal
calls = []
def run(record, rng):
    calls.append(record)
    if len(calls) == 2000:
        os.kill(os.getpid(), signal.SIGINT)
    return record if rng.random() < 0.7 else 1 - record
"""


def test_an_interrupted_report_is_not_written(tmp_path, monkeypatch, capsys, handled):
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "stopped_in_a_report.py").write_text(STOPPED)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["report", "scenario.toml", "--allow-code", "--quiet"])
    told = capsys.readouterr()
    assert stop.value.code == 130 and not told.out and not (tmp_path / "report.html").exists()
    assert "The first, a stranger: extra risk 0.231" in told.err
    assert "an interrupted audit: C" in told.err  # consistent, or cannot be told


def test_an_interrupted_command_says_what_it_knows(monkeypatch, capsys, handled):
    def work(*_, **__):
        tell("attackers", 1, 3)
        known("a stranger: extra risk 0.1")
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    monkeypatch.setattr("dprad.show.scenario.answer", work)
    monkeypatch.setattr("dprad.show.scenario.load", lambda _: None)
    with pytest.raises(SystemExit) as stop:
        main(["assess", "scenario.toml", "--quiet"])
    err = capsys.readouterr().err
    assert stop.value.code == 130
    assert re.fullmatch(
        r"dprad: interrupted after \d+ s \(attackers: 1 of 3\)\. Known by then:\n"
        r"  a stranger: extra risk 0\.1\n",
        err,
    )
