"""What is before and around every command: standard streams that are closed or full, Ctrl-C."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dprad.runtime.interrupts import interrupted
from dprad.runtime.writing import write
from dprad.show.cli import main
from dprad.show.scenario import EXAMPLE

PRINTS = """
import os
def run(record, rng):
    os.write(1, b"printed by C")
    return record if rng.random() < 0.7 else 1 - record
"""


def shell(line, folder):
    """A command in a shell, with "dprad" in it: its exit code."""
    script = line.replace("dprad", f"{sys.executable} -P -m dprad")
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120
    )
    return done.returncode


def test_no_file_becomes_standard_output(tmp_path):
    (tmp_path / "prints.py").write_text(PRINTS)
    line = "dprad audit prints:run --claim 1 --neighbours replace-one --records 0,1 --trials 200"
    assert shell(f"{line} --state s.jsonl <&- >&- 2>&-", tmp_path) in (0, 3)
    lines = (tmp_path / "s.jsonl").read_bytes().splitlines()
    assert len(lines) > 1 and all(json.loads(line) for line in lines)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is none")
@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_a_complaint_that_cannot_be_written_keeps_the_exit_code(tmp_path, where):
    assert shell(f"dprad bogus {where}", tmp_path) == 2


def test_nothing_fails_without_standard_error(tmp_path):
    line = "dprad assess --epsilon 1 --neighbours replace-one --uniform 4 2>&-"
    assert shell(line, tmp_path) == 0


PRESSED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Press:
    def find_spec(self, name, *_):
        if name == "cyclopts":
            {body}
sys.meta_path.insert(0, Press())
from dprad.__main__ import main
sys.argv = ["dprad", "--version"]
main()
"""
KILL = "os.kill(os.getpid(), signal.SIGINT)"
BODIES = (
    KILL,
    f"try: {KILL}\n            except KeyboardInterrupt: raise ImportError('broken')",
    f"try: {KILL}\n            except KeyboardInterrupt: pass",
)


@pytest.mark.parametrize("body", BODIES)
def test_ctrl_c_while_imports_run_is_quiet(body):
    script = PRESSED.format(body=body)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_an_import_that_ctrl_c_broke_is_an_interrupt(monkeypatch, capsys):
    def broken(_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError("numpy is broken") from None

    monkeypatch.setattr("dprad.show.scenario.load", broken)
    with pytest.raises(SystemExit) as stop:
        main(["assess", "scenario.toml"])
    assert stop.value.code == 130 and not capsys.readouterr().err


def test_errors_in_a_circle_are_looked_through_once():
    one, other = ValueError(), ValueError()
    one.__context__, other.__context__ = other, one
    assert not interrupted(one)


@pytest.mark.parametrize(
    "line",
    [
        "assess --epsilon 1 --neighbours replace-one --data x\udcff.csv",
        "assess x\udcff.toml --format sarif",
        "report -o x\udcff.html",
        "report x\udcff.toml --evidence pack",
        "ledger status releases.jsonl -o x\udcff.html",
    ],
)
def test_a_name_that_is_not_text_is_a_sentence(capsys, line):
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2 and r"x\xff." in said and "is not text in UTF-8" in said


def test_a_folder_whose_name_is_not_text(tmp_path):
    write(tmp_path / "page.html", "registry files of h\udcff")
    assert (tmp_path / "page.html").read_text() == "registry files of h?"


@pytest.mark.parametrize(
    "line",
    [
        *("report -o a", "report -o a/b", "report --evidence a", "init a", "demo --save a"),
        *("assess a", "ledger init a/b --scenario s.toml", "ledger init c --scenario a"),
    ],
)
def test_a_loop_of_links_is_a_sentence(tmp_path, monkeypatch, capsys, line):
    monkeypatch.chdir(tmp_path)
    Path("a").symlink_to("a")
    Path("s.toml").write_text(EXAMPLE)
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "dprad: a" in said and "internal" not in said
