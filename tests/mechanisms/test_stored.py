"""Channels in files: the same numbers as in memory, whoever sums; a file is known again."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

from dprad import DpradError, Prior, Threat, assess, memory
from dprad.exact import channel as solver
from dprad.mechanisms import GRR, Channel, Geometric
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
    elif name == "pipe.npy":
        os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("objects.npy", "must be a NumPy file"), ("whole.npy", "must be a NumPy file"),
        ("many.npz", "must be a NumPy file"), ("text.npy", "must be a NumPy file"),
        ("short.npy", "must be a NumPy file"), ("none.npy", "cannot be read here"),
        ("pipe.npy", "cannot be read here"),
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
