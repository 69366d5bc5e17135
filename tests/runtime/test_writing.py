"""Files that somebody names are written whole, and not over what is read or must not be there."""

from __future__ import annotations

import os
import stat

import pytest

from dprad import DpradError
from dprad.data import patients
from dprad.runtime.writing import write
from dprad.show.cli import main


def test_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "a"
    write(file, "old")
    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(DpradError, match="No space left"):
        write(file, "new")
    monkeypatch.undo()
    assert file.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["a"]
    file.chmod(0o600)
    (tmp_path / "link").symlink_to(file)
    write(tmp_path / "link", b"new")
    assert file.read_bytes() == b"new" and (tmp_path / "link").is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def full(handle, *_):
    os.close(handle)
    raise OSError(28, "No space left on device")


def test_inputs_under_any_name_are_spared(tmp_path):
    file = tmp_path / "a"
    file.write_text("mine")
    os.link(file, tmp_path / "hard")
    (tmp_path / "soft").symlink_to(file)
    for name in ("a", "hard", "soft", "../" + tmp_path.name + "/a"):
        with pytest.raises(DpradError, match="is an input"):
            write(tmp_path / name, "x", inputs=[tmp_path / "none", file])
    assert file.read_text() == "mine"


def test_what_must_be_new_is_new(tmp_path, capsys):
    file = tmp_path / "a"
    write(file, "one", new=True)
    with pytest.raises(DpradError, match="already exists"):
        write(file, "two", new=True)
    with pytest.raises(DpradError, match="already exists"):
        patients.save(file, people=10, new=True)
    (tmp_path / "s.toml").write_text("mine")
    for command in (["demo", "--save", file], ["init", tmp_path / "s.toml"]):
        with pytest.raises(SystemExit) as ended:
            main(list(map(str, command)))
        assert ended.value.code == 2 and "already exists" in capsys.readouterr().err
    assert file.read_text() == "one" and (tmp_path / "s.toml").read_text() == "mine"
