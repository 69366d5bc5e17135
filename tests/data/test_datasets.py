"""Data from directories; nothing is fetched here."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from dprad import DpradError, Prior, datasets


def write(path, array):
    raw = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    raw += struct.pack(f">{array.ndim}i", *array.shape) + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def test_digits():
    x, y = datasets.digits()
    assert (
        x.shape == (1797, 8, 8) and (x.min(), x.max()) == (-1.0, 1.0) and set(y) == set(range(10))
    )


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_images_from_a_directory(tmp_path, monkeypatch, rng, nested, ending):
    folder = tmp_path / "mnist" if nested else tmp_path
    folder.mkdir(exist_ok=True)
    pixels = rng.integers(256, size=(5, 28, 28))
    write(folder / f"train-images-idx3-ubyte{ending}", pixels)
    write(folder / f"train-labels-idx1-ubyte{ending}", np.arange(5))
    monkeypatch.setenv("DPRAD_DATA", str(tmp_path))
    for directory in (None, tmp_path):
        x, y = datasets.images("mnist", directory)
        assert np.allclose(x, pixels / 127.5 - 1) and y.tolist() == [0, 1, 2, 3, 4]


def test_adult_from_a_directory(tmp_path):
    row = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
    rows = [row + f"{sex}, 2174, 0, 40, United-States, <=50K\n" for sex in ("Male", "Female")]
    (tmp_path / "adult.data").write_text("".join(rows) + "\n")
    prior = Prior.from_data(datasets.adult(tmp_path), columns=["sex"])
    assert prior.support.tolist() == ["Female", "Male"]
    assert Prior.from_data(datasets.adult(tmp_path), columns=["age"]).support.tolist() == [39]


def test_bad_input(tmp_path):
    with pytest.raises(DpradError, match="one of 'mnist'"):
        datasets.images("minst", tmp_path)
    with pytest.raises(DpradError, match="does not exist"):
        datasets.images("mnist", tmp_path / "none")
    with pytest.raises(DpradError, match=r"train-images-idx3-ubyte \(or"):
        datasets.images("mnist", tmp_path)
    for content in (
        b"",
        b"hello",
        b"\0\0\x08\x02\0\0\0\x09\0\0\0\x09short",
        gzip.compress(b"x")[:9],
    ):
        (tmp_path / "broken").write_bytes(content)
        with pytest.raises(DpradError, match=r"not an IDX file|cannot be read"):
            datasets.idx(tmp_path / "broken")
