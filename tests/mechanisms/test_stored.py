"""Channels in files: the same numbers as in memory, whoever sums; a file is known again."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest

from dprad import DpradError, Prior, Threat, assess, memory
from dprad.exact import channel as solver
from dprad.mechanisms import GRR, Channel, Geometric, stored
from oracles import random_channel

EXPERTS = (Threat(), Threat(knows="everything"), Threat(loss="absolute", eta=3))


def saved(matrix, path):
    np.save(path, matrix)
    return path


def numbers(subject, threat, prior, workers=1):
    risk = assess(subject, prior=prior, threat=threat, workers=workers)
    return risk.rad, risk.success_in, risk.success_out, risk.worst, *risk.interval


@pytest.mark.parametrize("threat", EXPERTS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_is_as_good_as_a_matrix(threat, order, tmp_path, rng, monkeypatch):
    monkeypatch.setattr(solver, "PART_ENTRIES", 100)
    matrix = random_channel(rng, 12, 50)
    prior = Prior.from_probabilities(rng.dirichlet(np.ones(12)))
    path = saved(np.asarray(matrix, order=order), tmp_path / "channel.npy")
    alone = numbers(Channel(path), threat, prior)
    assert numbers(Channel(path), threat, prior, workers=3) == alone
    monkeypatch.undo()
    assert numbers(Channel(matrix), threat, prior) == pytest.approx(alone, abs=1e-14)


@pytest.mark.parametrize(
    "mechanism",
    [GRR(epsilon=1.0, size=300), Geometric(epsilon=1.0, sensitivity=299.0, clamp=(0, 299))],
)
def test_workers_share_what_is_computed(mechanism, rng, monkeypatch):
    monkeypatch.setattr(solver, "PART_ENTRIES", 5000)
    prior = Prior.from_probabilities(rng.dirichlet(np.ones(300)))
    labels = rng.integers(0, 5, 300).tolist()
    threat = Threat(knows=lambda _s: labels, loss="absolute", eta=3)
    alone = numbers(mechanism, threat, prior)
    assert numbers(mechanism, threat, prior, workers=3) == alone
    monkeypatch.undo()
    assert numbers(mechanism, threat, prior) == pytest.approx(alone, abs=1e-13)


def test_a_file_travels_as_its_path(tmp_path, rng):
    matrix = random_channel(rng, 40, 4000)
    there = Channel(saved(matrix, tmp_path / "channel.npy"))
    sent = pickle.dumps(there)
    assert len(sent) < 1000
    again = pickle.loads(sent)
    assert again == there == Channel(matrix) and again.light and not Channel(matrix).light
    here = pickle.loads(pickle.dumps(Channel(matrix)))
    assert here == Channel(matrix) and "channel.npy" not in repr(there)


def test_memory_is_that_of_a_part(tmp_path, rng):
    """The rest of the file is not held: 40 MB within 8 MB."""
    import tracemalloc

    path = saved(random_channel(rng, 100, 50_000), tmp_path / "channel.npy")
    prior = Prior.uniform(100)
    tracemalloc.start()
    try:
        with memory.limit("16 MB"):
            assess(Channel(path), prior=prior)
        assert tracemalloc.get_traced_memory()[1] < 8e6
    finally:
        tracemalloc.stop()


def test_a_limit_that_workers_share_changes_no_digit(rng):
    channel, prior = Channel(random_channel(rng, 200, 3000)), Prior.uniform(200)
    threat = Threat(loss="absolute", eta=3)
    with memory.limit("16 MB"):
        assert numbers(channel, threat, prior, workers=3) == numbers(channel, threat, prior)


def test_a_changed_file_is_refused(tmp_path, rng):
    path = saved(random_channel(rng, 5, 900), tmp_path / "channel.npy")
    channel = Channel(path)
    sent = pickle.dumps(channel)
    saved(random_channel(rng, 5, 900), path)
    for use in (lambda: pickle.loads(sent), lambda: assess(channel, prior=Prior.uniform(5))):
        with pytest.raises(DpradError, match=r"channel\.npy has changed, or is another file"):
            use()
    path.unlink()
    with pytest.raises(DpradError, match=r"channel\.npy cannot be read here"):
        pickle.loads(sent)


HEADERS = {
    "token.npy": "{'descr': (",
    "deep.npy": "{'descr': " + "-" * 9000 + "1}",
    "index.npy": "{'descr': (), 'fortran_order': False, 'shape': (2, 2), }\n",
}


def bad(tmp_path, name):
    path = tmp_path / name
    if name == "objects.npy":
        np.save(path, np.array([[{}, {}]]), allow_pickle=True)
    elif name == "whole.npy":
        np.save(path, np.eye(2, dtype=int))
    elif name == "many.npz":
        np.savez(path, np.eye(2))
    elif name == "text.npy":
        path.write_text("probabilities")
    elif name == "short.npy":
        np.save(path, np.eye(50))
        path.write_bytes(path.read_bytes()[:-100])
    elif name == "parts.npz":
        path.write_bytes(b"PK\x03\x04" + b"\0" * 100)
    elif name in HEADERS:
        header = HEADERS[name].encode()
        path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + b"\0" * 64)
    elif name == "pipe.npy":
        os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("objects.npy", "must be a NumPy file"), ("whole.npy", "must be a NumPy file"),
        ("many.npz", "must be a NumPy file"), ("text.npy", "must be a NumPy file"),
        ("short.npy", "must be a NumPy file"), ("none.npy", "cannot be read here"),
        ("pipe.npy", "cannot be read here"), ("parts.npz", "must be a NumPy file"),
        *((name, "must be a NumPy file") for name in HEADERS),
    ],
)  # fmt: skip
def test_other_files_are_refused(name, message, tmp_path):
    with pytest.raises(DpradError, match=f"{name} {message}"):
        Channel(bad(tmp_path, name))


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_checked(order, tmp_path):
    matrix = np.full((3, 4), 0.25)
    matrix[1] = [0.5, 0.75, -0.25, 0.0]
    path = saved(np.asarray(matrix, order=order), tmp_path / "bad.npy")
    with pytest.raises(DpradError, match=r"row 1 contains -0\.25"):
        Channel(path)
    matrix[1] = [0.5, 0.75, 0.25, 0.0]
    with pytest.raises(DpradError, match=r"row 1 sums to 1\.5"):
        Channel(saved(np.asarray(matrix, order=order), path))
    with pytest.raises(DpradError, match="one row per record and one column per output"):
        Channel(saved(np.ones(3), tmp_path / "line.npy"))


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_all_that_a_channel_does_is_read_from_the_file(order, pure, tmp_path, rng, monkeypatch):
    monkeypatch.setattr(stored, "LINE_ENTRIES", 100)
    monkeypatch.setattr(memory, "SMALLEST", 1)
    matrix = random_channel(rng, 7, 50)
    if not pure:
        matrix[2] = np.eye(50)[3]
    there = Channel(saved(np.asarray(matrix, order=order), tmp_path / "channel.npy"))
    mapped = stored._mapped(there._file)
    monkeypatch.setattr(type(mapped), "__getitem__", lambda *_: pytest.fail("the map was read"))
    here, epsilon = Channel(matrix), np.array([0.0, 0.5, 2.0])
    assert there == here == there and hash(there) == hash(here)
    assert there != Channel(matrix[::-1]) and there != Channel(matrix[:4])
    for rows in (slice(2, 5), slice(None), np.array([6, 1, 1, -2]), np.array([], dtype=int)):
        for columns in (slice(0, 50), slice(3, 9), slice(4, 4)):
            assert np.array_equal(there.entries(rows, columns), matrix[rows, columns])
    assert there.guarantee.describe() == here.guarantee.describe()
    assert np.array_equal(there.guarantee.delta(1.0), here.guarantee.delta(1.0))
    assert np.array_equal(there.guarantee.delta(epsilon[1]), here.guarantee.delta(epsilon[1]))
    records = rng.integers(0, 7, 300)
    draws = [one.sample(records, np.random.default_rng(1)) for one in (there, here)]
    assert np.array_equal(*draws)
    for who in (records, np.arange(7)[:, None], 3, records - 7):
        found, wanted = (one.log_likelihood(draws[0], who) for one in (there, here))
        assert np.array_equal(found, wanted)
    with pytest.raises(IndexError):
        there.log_likelihood([50], [0])


SHORTENED = """
import os, sys
import numpy as np
from dprad.errors import DpradError
from dprad.mechanisms import Channel
np.save(sys.argv[1], np.full((200, 500), 1 / 500.0))
channel = Channel(sys.argv[1])
os.truncate(sys.argv[1], 4096)
for use in (lambda: channel.guarantee, lambda: channel.sample([199], np.random.default_rng(1)),
            lambda: channel.log_likelihood([7], [199]), lambda: hash(channel),
            lambda: channel == Channel(np.full((200, 500), 1 / 500.0)),
            lambda: channel.entries(slice(0, 200), slice(0, 3))):
    try:
        use()
    except DpradError as error:
        print(error)
"""


def test_a_file_that_is_shortened_does_not_end_python(tmp_path):
    command = [sys.executable, "-c", SHORTENED, str(tmp_path / "channel.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("has changed, or is another file") == 6


def test_a_file_that_is_shortened_while_it_is_read_is_a_sentence(tmp_path, monkeypatch):
    path = saved(np.full((200, 500), 1 / 500), tmp_path / "channel.npy")
    channel = Channel(path)
    os.truncate(path, 4096)
    monkeypatch.setattr(stored.Stored, "check", lambda _: None)
    for use in (lambda: channel.guarantee, lambda: channel.log_likelihood([7], [199])):
        with pytest.raises(DpradError, match="ends too early"):
            use()
