"""Journals and logs: what is read takes little memory, and is the very file that was made."""

from __future__ import annotations

import os
import tracemalloc

import pytest

from dprad import DpradError, memory
from dprad.runtime import journal
from dprad.runtime.journal import LARGEST, LINE, Journal, Log
from strangers import theirs

ABOUT = {"dprad": "audit", "a": 1}


def kept(path):
    return Journal.open(path, ABOUT, lambda first: "" if first["a"] == 1 else "it is another")


def log(path):
    return Log.open(path, {"version": 1}, "ledger")


def rows(opened):
    return [row for row in opened.rows if "dprad" not in row]


def written(opened, row):
    opened.append(row if isinstance(opened, Journal) else lambda: row)


# -- sizes -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("begin", [kept, log])
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("tail", [b"", b'{"b": "'])
def test_a_tail_of_zeros_takes_no_memory(tmp_path, begin, tail, ends):
    path = tmp_path / "j"
    written(begin(path), {"b": "x" * 1000})
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(tail)
        file.truncate(2**25)  # a hole, as a crash may leave
        file.write(b"\n" * ends)
    tracemalloc.start()
    if ends:
        with pytest.raises(DpradError, match="line 3 is not what was written"):
            begin(path)
    else:
        assert rows(begin(path)) == [{"b": "x" * 1000}]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 6 * 2**20
    if not ends:
        written(begin(path), {"b": 2})
        assert path.read_bytes().startswith(whole) and path.stat().st_size < len(whole) + 999
        assert {"b": 2} in rows(begin(path))


def test_a_state_that_would_not_fit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "j"
    kept(path)
    os.truncate(path, 2**28)
    monkeypatch.setattr(journal, "_Lines", lambda *_: pytest.fail("too late"))
    with memory.limit("100 MB"), pytest.raises(DpradError, match=r"would take .* may be used"):
        kept(path)


def test_a_log_has_a_largest_size_and_a_longest_line(tmp_path):
    path = tmp_path / "l"
    opened = log(path)
    with pytest.raises(DpradError, match="cannot hold this"):
        written(opened, {"b": "x" * LINE})
    written(opened, {"b": "x" * (LINE - 200)})
    whole = path.read_bytes()
    assert rows(log(path)) == [{"b": "x" * (LINE - 200)}]
    for more in (b"{" + b"x" * LINE, b"{" + b"x" * 2**21 + b"\n", b"{" + b"\0x" * 2**20 + b"\n"):
        path.write_bytes(whole + more)
        with pytest.raises(DpradError, match="line 3 is not what was written"):
            log(path)
    os.truncate(path, LARGEST + 1)
    with pytest.raises(DpradError, match="more than 67 MB"):
        log(path)


@pytest.mark.parametrize("left", [b'{"b": "' + b"\xff" * (LINE - 7), b'"' * LINE, b"\n"[:0]])
def test_what_is_left_of_a_line_is_kept_however_it_is_written(tmp_path, left):
    path = tmp_path / "l"
    log(path)
    with path.open("ab") as file:
        file.write(left)
    written(log(path), {"b": 1})
    assert rows(log(path)) == [
        *([{"torn": left.decode(errors="replace")}] if left else []),
        {"b": 1},
    ]


def test_long_lines_are_read_whole(tmp_path):
    path = tmp_path / "j"
    opened = kept(path)
    for size in (2**20 - 9, 2**20, 2**21 + 3):
        opened.append({"b": "x" * size})
    opened = None
    assert [len(row["b"]) for row in kept(path).rows] == [2**20 - 9, 2**20, 2**21 + 3]


# -- which file ------------------------------------------------------------------------------------
@pytest.mark.parametrize("begin", [kept, log])
def test_what_takes_the_place_of_a_new_file_is_not_used(tmp_path, monkeypatch, begin):
    """Somebody puts a file of theirs there, right after it was made: with the same first line."""
    path, other = tmp_path / "j", tmp_path / "other"
    begin(other)
    other.chmod(0o666)
    before, real = other.read_bytes(), journal.begun

    def swapped(*asked):
        made = real(*asked)
        other.rename(path)
        return made

    monkeypatch.setattr(journal, "begun", swapped)
    with pytest.raises(DpradError, match="replaced by another file"):
        begin(path)
    assert path.read_bytes() == before


def test_a_new_file_that_went_on_already_is_not_begun_again(tmp_path, monkeypatch):
    path, real = tmp_path / "j", journal.begun

    def faster(*asked):
        made = real(*asked)
        monkeypatch.undo()
        kept(path).append({"b": 1})
        return made

    monkeypatch.setattr(journal, "begun", faster)
    with pytest.raises(DpradError, match="just created by another process"):
        kept(path)
    assert kept(path).rows == [{"b": 1}]


def test_a_state_of_somebody_else_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "j"
    kept(path)
    path.chmod(0o666)
    theirs(monkeypatch, path)
    with pytest.raises(DpradError, match="somebody else's"):
        kept(path)
