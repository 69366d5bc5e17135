"""Files that somebody names are written whole, and not over what is read or must not be there."""

from __future__ import annotations

import os
import socket
import stat

import pytest

from dprad import DpradError
from dprad.data import patients
from dprad.runtime import journal, writing
from dprad.runtime.journal import Journal, Log
from dprad.runtime.writing import write
from dprad.show.cli import main
from strangers import theirs


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


def test_a_mode_is_that_of_a_file_of_ones_own_or_the_usual_one(tmp_path, monkeypatch):
    umask = os.umask(0o022)
    try:
        for before, mine, wanted in (
            (0o4777, False, 0o644), (0o600, False, 0o600), (0o400, False, 0o600),
            (0o4777, True, 0o666), (0o640, True, 0o640), (0o1000, True, 0),
        ):  # fmt: skip
            file = tmp_path / f"{before}{mine}"
            file.write_text("old")
            with monkeypatch.context() as patch:
                if not mine:
                    theirs(patch, file)
                file.chmod(before)
                write(file, "new")
            assert stat.S_IMODE(file.stat().st_mode) == wanted and file.stat().st_uid == os.getuid()
        write(tmp_path / "new", "new")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o644
    finally:
        os.umask(umask)


def test_what_is_put_into_the_way_meanwhile_is_not_followed(tmp_path, monkeypatch):
    folder, victim = tmp_path / "open", tmp_path / "victim"
    folder.mkdir()
    victim.mkdir()
    (victim / "a").write_text("mine")
    real = writing.landed

    def swapped(swap):
        def landed(path):
            found = real(path)
            swap()
            return found

        return landed

    def file():
        (folder / "a").symlink_to(victim / "a")

    def way():
        folder.rename(tmp_path / "away")
        folder.symlink_to(victim)

    monkeypatch.setattr(writing, "landed", swapped(file))
    write(folder / "a", "new")
    assert not (folder / "a").is_symlink() and (folder / "a").read_text() == "new"
    if hasattr(os, "O_PATH"):
        monkeypatch.setattr(writing, "landed", swapped(way))
        with pytest.raises(DpradError, match="cannot be written"):
            write(folder / "a", "newer")
    assert (victim / "a").read_text() == "mine" and len(list(victim.iterdir())) == 1


def test_only_a_pipe_of_ones_own_is_written_into(tmp_path, monkeypatch):
    file = tmp_path / "pipe"
    os.mkfifo(file)
    reading = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    write(file, "mine")
    assert os.read(reading, 9) == b"mine" and stat.S_ISFIFO(file.stat().st_mode)
    theirs(monkeypatch, file)
    with pytest.raises(DpradError, match="is not a file, and is somebody else's"):
        write(file, "theirs")
    assert os.read(reading, 9) == b""
    os.close(reading)
    with pytest.raises(DpradError, match="somebody else's"):
        write(file, "theirs")  # nor is anybody waited for


@pytest.mark.parametrize("swap", [os.symlink, os.link])
def test_a_pipe_that_became_another_file_is_not_followed(tmp_path, monkeypatch, swap):
    file, victim = tmp_path / "pipe", tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("pipe")
    real = writing._ours

    def ours(kept, seen):
        real(kept, seen)
        file.unlink()
        swap(victim, file)

    monkeypatch.setattr(writing, "_ours", ours)
    with pytest.raises(DpradError):
        write(file, "new")
    assert victim.read_text() == "mine"


def test_a_loop_of_links_is_a_sentence(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(DpradError, match="cannot be written: Too many levels of symbolic links"):
        write(tmp_path / "a", "new")


@pytest.mark.skipif(not os.path.exists("/proc/self/cwd"), reason="no /proc")  # noqa: PTH110
def test_what_must_be_new_is_not_added_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept.csv").write_text("mine")
    with pytest.raises(DpradError, match="already exists"):
        write("/proc/self/cwd/kept.csv", "other", new=True)
    assert (tmp_path / "kept.csv").read_text() == "mine"


def test_no_folder_is_made_through_a_link_of_somebody_else(tmp_path, monkeypatch, capsys):
    from dprad.paper import experiments

    victim, way = tmp_path / "victim", tmp_path / "way"
    victim.mkdir()
    way.symlink_to(victim)
    (tmp_path / "file").write_text("mine")
    asked = ["reproduce", "mechanisms", "--quick", "--out"]
    for name in ("file", "file/new"):
        with pytest.raises(SystemExit):
            main([*asked, str(tmp_path / name)])
        assert "Not a directory" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["reproduce", "mechanism", "--out", str(tmp_path / "none")])
    assert "Did you mean" in capsys.readouterr().err and not (tmp_path / "none").exists()
    made = experiments.run(experiments.Options(name="mechanisms", quick=True))
    with monkeypatch.context() as patch:
        theirs(patch, way)
        with pytest.raises(SystemExit):
            main([*asked, str(way / "new" / "deep")])
        assert "somebody else" in capsys.readouterr().err
        options = experiments.Options(name="mechanisms", out=way / "new")
        for work in (
            lambda: experiments.write(made, way / "new"),
            lambda: experiments.cells(options, [{"a": 1}], lambda cell, _: [cell]),
        ):
            with pytest.raises(DpradError, match="somebody else"):
                work()
        assert list(victim.iterdir()) == []
    way.unlink()
    way.symlink_to(victim)
    assert writing.folder(way / "new" / "deep").is_dir()  # through one's own link
    assert writing.folder(way / "new" / "deep") == way / "new" / "deep"


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="folders are not held")
def test_no_folder_is_made_through_a_link_that_is_put_there_meanwhile(tmp_path, monkeypatch):
    victim, real = tmp_path / "victim", writing.landed
    victim.mkdir()

    def swapped(path):
        found = real(path)
        (tmp_path / "way").symlink_to(victim)
        return found

    monkeypatch.setattr(writing, "landed", swapped)
    with pytest.raises(DpradError, match="cannot be used"):
        writing.folder(tmp_path / "way" / "new")
    assert list(victim.iterdir()) == []


@pytest.mark.parametrize("make", ["ledger", "state", "new file"])
def test_a_link_in_the_place_of_a_new_file_is_not_followed(make, tmp_path, monkeypatch):
    """Else a file of ours would get a second name, where others can read it."""
    private = tmp_path / "private"
    private.write_text("name,diagnosis\nAnna,HIV\n")
    linked = os.link

    def swapped(beside, name, *, dst_dir_fd=None, **more):
        (tmp_path / beside).unlink()
        (tmp_path / beside).symlink_to(private)
        linked(beside, name, dst_dir_fd=dst_dir_fd, **more)

    monkeypatch.setattr(os, "link", swapped)
    monkeypatch.setattr(os, "supports_follow_symlinks", {swapped})
    made = {
        "ledger": lambda path: Log.open(path, {}, "ledger"),
        "state": lambda path: Journal.open(path, {"dprad": "state"}, lambda _: ""),
        "new file": lambda path: write(path, "text", new=True),
    }
    with pytest.raises(DpradError, match="replaced by another file meanwhile"):
        made[make](tmp_path / "made")
    assert private.stat().st_nlink == 1 and private.read_text().endswith("Anna,HIV\n")


def test_a_lock_of_others_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    log = Log.open(tmp_path / "l", {}, "ledger")
    monkeypatch.setattr(journal, "PATIENCE", 0.05)
    with (tmp_path / "l").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(DpradError, match="in use by another process"):
            log.append(lambda: {"a": 1})
    assert log.append(lambda: {"a": 1}) == {"a": 1}
