"""Data for experiments: digits come with scikit-learn, others from a directory or from OpenML.

Nothing is downloaded unless no directory is given. Images are scaled to [-1, 1].
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from dprad.data.microdata import CENSUS_KNOWN, TEXAS_KNOWN, census19, find, materialised, texas100x
from dprad.data.places import geolife_points, porto_points, visits
from dprad.errors import DpradError, one_of, told
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.runtime.memory import need

__all__ = [
    "ADULT_COLUMNS",
    "CENSUS_KNOWN",
    "TEXAS_KNOWN",
    "adult",
    "census19",
    "digits",
    "find",
    "geolife_points",
    "given",
    "idx",
    "images",
    "porto_points",
    "texas100x",
    "visits",
]

# Bytes that are unpacked at once, and most that an image file may say it holds: MNIST has 47 MB.
_BLOCK, LARGEST = 2**20, 10**9
# Names on OpenML; the keys are the directories searched for the original files.
IMAGES = {"mnist": "mnist_784", "fashion-mnist": "Fashion-MNIST"}
ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]


def digits() -> tuple[FloatArray, IntArray]:
    """1,797 images of 8 x 8 pixels, bundled with scikit-learn.

    Returns
    -------
    tuple of ndarray
        Images and labels.

    Examples
    --------
    >>> x, y = digits()
    >>> x.shape, y.shape
    ((1797, 8, 8), (1797,))

    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DpradError("digits needs scikit-learn: pip install 'dprad[audit]'.") from None
    data = load_digits()
    return np.asarray(data.images) / 8.0 - 1.0, np.asarray(data.target)


def images(name: str, directory: Any = None) -> tuple[FloatArray, IntArray]:
    """Training images of MNIST or Fashion-MNIST: 60,000 of 28 x 28 pixels.

    Parameters
    ----------
    name
        ``"mnist"`` or ``"fashion-mnist"``.
    directory
        Directory with the IDX files, gzipped or not, itself or in a folder of that name; default:
        the environment variable DPRAD_DATA. Without one, scikit-learn fetches the copy on OpenML.

    Returns
    -------
    tuple of ndarray
        Images and labels.

    Examples
    --------
    ::

        x, y = dprad.datasets.images("mnist", "data")

    """
    one_of(name, "name", IMAGES)
    place = _place(name, directory)
    if place is None:
        data = _fetch(IMAGES[name])
        x = np.asarray(data.data)[:60_000].reshape(-1, 28, 28)
        return x / 127.5 - 1.0, np.asarray(data.target)[:60_000].astype(int)
    x = idx(_file(place, "train-images-idx3-ubyte"))
    y = idx(_file(place, "train-labels-idx1-ubyte"))
    need(17 * x.size, f"{name}: {x.size:,} numbers", "Use a smaller copy.")
    return x / 127.5 - 1.0, y.astype(int)


def adult(directory: Any = None, *, test: bool = False) -> Any:
    """The 32,561 training rows of Adult, as a table for `Prior.from_data` and `impute`.

    The copy on OpenML always contains the test rows too (48,842 in all).

    Parameters
    ----------
    directory
        Directory with the original files; default: the environment variable DPRAD_DATA. Without
        one, scikit-learn fetches the copy on OpenML.
    test
        Whether the 16,281 rows of adult.test follow.

    Returns
    -------
    table
        A DuckDB relation or a pandas data frame.

    Examples
    --------
    ::

        prior = dprad.Prior.from_data(dprad.datasets.adult("data"), columns=["age"])

    """
    place = _place("adult", directory)
    if place is None:
        return _fetch("adult").frame
    read = "FROM read_csv({}, header = false, names = $1, delim = ', ', skip = {})"
    query = "SELECT * " + read.format("$2", 0)
    files = [_file(place, "adult.data")]
    if test:
        # a line of comment comes first, and the labels end in a dot
        files.append(_file(place, "adult.test"))
        query += " UNION ALL SELECT * REPLACE (rtrim(income, '.') AS income) " + read.format(
            "$3", 1
        )
    return materialised("adult", files, lambda c, f: c.sql(query, params=[ADULT_COLUMNS, *f]))


def idx(path: Any) -> Any:
    """Read an array in the IDX format of MNIST, gzipped or not.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    ndarray
        Bytes, in the shape that the file gives.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two-bytes")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]))
    ...     idx(path).tolist()
    [5, 7]

    """
    file = Path(path)
    if not file.is_file():
        raise DpradError(f"{file} cannot be read: it is not a file.")
    try:
        with file.open("rb") as packed:
            two = packed.read(2)
            packed.seek(0)
            with gzip.open(packed) if two == b"\x1f\x8b" else packed as stream:
                found = _array(stream, file)
    except (OSError, EOFError, zlib.error) as error:
        raise DpradError(f"{file} cannot be read ({told(error)}).") from None
    if found is None:
        raise DpradError(f"{file} is not an IDX file of bytes, or is truncated.")
    return found


def _array(stream: Any, file: Path) -> Any:
    """The array of an IDX file, or None: as many bytes as its header says, and none is unpacked
    beyond these.
    """
    head = stream.read(4)
    if len(head) < 4 or head[:3] != b"\x00\x00\x08" or head[3] > 8:
        return None
    lengths = stream.read(4 * head[3])
    if len(lengths) < 4 * head[3]:
        return None
    shape = [int(n) for n in np.frombuffer(lengths, ">u4")]
    size = math.prod(shape)
    if size > LARGEST:
        raise DpradError(
            f"{file} says that it holds {size / 1e6:,.0f} MB, more than {LARGEST / 1e6:,.0f}. Is "
            "it an IDX file?"
        )
    need(size, f"{file}: what its header says", "Is it an IDX file?")
    raw = bytearray()
    while len(raw) <= size and (block := stream.read(min(_BLOCK, size + 1 - len(raw)))):
        raw += block
    return np.frombuffer(raw, np.uint8).reshape(shape) if len(raw) == size > 0 else None


def given(directory: Any = None) -> str | None:
    """The data directory: as given, or from the environment.

    Parameters
    ----------
    directory
        A directory, or None.

    Returns
    -------
    str or None
        None if neither is set.

    Examples
    --------
    >>> given("data")
    'data'

    """
    return directory or os.environ.get("DPRAD_DATA") or None


def _place(name: str, directory: Any) -> Path | None:
    folder = given(directory)
    if folder is None:
        return None
    root = Path(folder)
    if not root.is_dir():
        raise DpradError(f"the data directory {str(root)!r} does not exist.")
    return root / name if (root / name).is_dir() else root


def _file(place: Path, name: str) -> Path:
    for candidate in (place / name, place / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise DpradError(f"{name} (or {name}.gz) is not in {str(place)!r}.")


def _fetch(name: str) -> Any:
    try:
        from sklearn.datasets import fetch_openml
    except ImportError:
        raise DpradError("reading OpenML needs scikit-learn: pip install 'dprad[audit]'.") from None
    try:
        return fetch_openml(name, version=2 if name == "adult" else 1, as_frame=name == "adult")
    except Exception as error:
        raise DpradError(
            f"{name} could not be fetched from OpenML ({type(error).__name__}). Give a directory "
            "with the original files, or set DPRAD_DATA."
        ) from None
