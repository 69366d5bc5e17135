"""Which guesses are right about which target values: the success relation of a loss and its eta.

Exact, on a line (windows, no pair is listed), on the globe (a tree finds the near pairs), or any
function or matrix (sparse, a block of rows at a time).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, told
from dprad.game.sets import Relation, Sets, Singletons, Windows, starts
from dprad.model.threats import Threat
from dprad.numerics.arrays import BoolArray, Column, FloatArray, IntArray
from dprad.runtime.memory import block, need

EARTH_RADIUS = 6_371_008.8  # metres, mean radius
# Distances count as equal to eta within so many units in the last place.
ULPS = 4
# rows of a callable loss are evaluated so many entries at a time
BLOCK_ENTRIES = 2**22
# bytes for each pair of a target and a guess that is right about it, while sets are made of them
MEMBER = 100


@dataclass(frozen=True, slots=True, eq=False)
class Success:
    """The success relation between target values and guesses.

    `signature` numbers the target values by the set of guesses that are right about them; `guess`
    is one of these for each signature. `sets` builds the sets over classes; None where each
    signature is hit by its own guesses only. `right` compares codes of targets and guesses, `weigh`
    gives the mass that each guess is right about from that of the target values.
    """

    signature: IntArray
    guessable: BoolArray
    guess: IntArray
    right: Callable[[IntArray, IntArray], BoolArray]
    weigh: Callable[[FloatArray], FloatArray]
    sets: Callable[[IntArray, IntArray, FloatArray], Sets] | None


def relate(threat: Threat, columns: tuple[str, ...], values: Any) -> Success:
    """The relation that a threat's loss and eta make of these target values."""
    if isinstance(threat.loss, str) and threat.loss == "exact":
        every = np.arange(len(values))
        return Success(every, np.ones(len(values), dtype=bool), every, np.equal, np.array, None)
    if isinstance(threat.loss, str) and threat.loss == "absolute":
        return _line(_numbers(values, columns), threat.eta)
    if isinstance(threat.loss, str):
        matrix = _haversine(values, columns, threat.eta)
    elif callable(threat.loss):
        matrix = _evaluate(threat.loss, values, threat.eta)
    else:
        matrix = threat.loss
        if matrix.shape[0] != len(values):
            raise DpradError(
                f"loss as a matrix must have one row and column for each of the {len(values)} "
                f"target values, but has shape {matrix.shape}."
            )
    return _general(matrix)


def _line(values: Column, eta: float) -> Success:
    """Windows on a line: guess g is right about the values within eta of it."""
    if values.dtype.kind == "i":
        # exact: a whole distance is at most eta iff it is at most its whole part
        reach = min(int(eta), int(values[-1])) if len(values) else 0
        low = np.searchsorted(values, values - reach, "left")
        high = np.searchsorted(values, values + reach, "right")
    else:
        # |0.3 - 0.1| <= 0.2 must hold although floating point says otherwise: a few units in the
        # last place of what is compared
        slack = ULPS * np.finfo(float).eps * (np.abs(values) + eta) if eta > 0 else 0.0
        low = np.searchsorted(values, values - eta - slack, "left")
        high = np.searchsorted(values, values + eta + slack, "right")
    # both ends rise with g, so the guesses that are right about value i are an interval too
    position = np.arange(len(values))
    pairs = np.stack(
        [np.searchsorted(high, position, "right"), np.searchsorted(low, position, "right")], axis=1
    )
    first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)[1:]
    signature = inverse.reshape(-1)
    # signatures low[g] .. high[g]-1, with values numbered by signature
    left = signature[low]
    right = signature[high - 1] + 1

    def sets(fiber: IntArray, own: IntArray, mass: FloatArray) -> Sets:
        width = len(first)
        key = fiber * width + own
        pairs = np.stack([left, right], axis=1)
        windows, guess = np.unique(pairs, axis=0, return_index=True)
        found: list[IntArray] = []
        many = max(1, block(BLOCK_ENTRIES) // len(windows))
        fibers = fiber[starts(fiber)]
        for begin in range(0, len(fibers), many):
            chunk = fibers[begin : begin + many, None]
            a = np.searchsorted(key, chunk * width + windows[:, 0])
            b = np.searchsorted(key, chunk * width + windows[:, 1])
            full = a < b
            bounds = np.stack([a[full], b[full]], axis=1)
            bounds, index = np.unique(bounds, axis=0, return_index=True)
            named = np.broadcast_to(guess, full.shape)[full][index]
            found.append(np.column_stack([bounds, named]))
        a, b, named = np.concatenate(found).T
        if np.all(b - a == 1):
            return Singletons.of(np.unique(a), fiber, mass, first[own])
        return Windows.of(a, b, fiber[a], mass, named)

    def counts(targets: IntArray, guesses: IntArray) -> BoolArray:
        return np.asarray((low[guesses] <= targets) & (targets < high[guesses]))

    def weigh(mass: FloatArray) -> FloatArray:
        total = np.r_[0.0, np.cumsum(mass)]
        return np.asarray(total[high] - total[low])

    return Success(signature, np.ones(len(first), dtype=bool), first, counts, weigh, sets)


def _general(matrix: Any) -> Success:
    """A sparse success relation, targets x guesses."""
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    rows: dict[bytes, int] = {}
    signature = np.empty(matrix.shape[0], dtype=np.intp)
    chosen: list[int] = []
    for i in range(matrix.shape[0]):
        row = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]].tobytes()
        if row not in rows:
            rows[row] = len(rows)
            chosen.append(i)
        signature[i] = rows[row]
    patterns = matrix[np.asarray(chosen)]  # one row a signature
    guessable = np.diff(patterns.indptr) > 0

    def sets(fiber: IntArray, own: IntArray, mass: FloatArray) -> Sets:
        from scipy import sparse

        mine = patterns[own].tocoo()  # classes x guesses
        key, row = np.unique(fiber[mine.row] * matrix.shape[1] + mine.col, return_inverse=True)
        member = sparse.csr_array((np.ones(len(row)), (row, mine.row)), shape=(len(key), len(mass)))
        if np.all(np.diff(member.indptr) == 1):
            return Singletons.of(np.unique(member.indices), fiber, mass, guess[own])
        return Relation.of(member, key // matrix.shape[1], mass, key % matrix.shape[1])

    def counts(targets: IntArray, guesses: IntArray) -> BoolArray:
        return np.asarray(matrix[targets, guesses], dtype=bool).reshape(-1)

    # any guess that is right about a signature will do
    guess = np.full(len(chosen), -1, dtype=np.intp)
    guess[guessable] = patterns.indices[patterns.indptr[:-1][guessable]]
    return Success(signature, guessable, guess, counts, lambda mass: matrix.T @ mass, sets)


def _numbers(values: Column, columns: tuple[str, ...]) -> Column:
    """The values of one numeric column as a sorted array: integers from 0 up, or floats."""
    items: list[Any] = values.tolist() if len(columns) == 1 else [None]
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in items)
    if whole and items[-1] - items[0] < 2**62:
        # counted from the first, which keeps large integers (timestamps) exact
        return np.asarray([v - items[0] for v in items], dtype=np.int64)
    if len(columns) == 1 and items[-1] is None:
        raise DpradError(
            f"loss='absolute' needs numbers, but {columns[0]!r} has missing values. Leave them "
            "out (missing='drop' where a table is counted)."
        )
    try:
        if any(isinstance(v, str | bool) or v is None for v in items):
            raise TypeError
        result = np.asarray([float(v) for v in items])
    except (TypeError, ValueError, OverflowError):
        several = f"the target is {', '.join(columns)}. Name one of them with target="
        text = f"{columns[0]!r} has values that are no numbers, or too large ones"
        raise DpradError(
            "loss='absolute' needs one target column of numbers, but "
            f"{several if len(columns) > 1 else text}."
        ) from None
    if not np.all(np.isfinite(result)) or np.any(np.diff(result) <= 0):
        raise DpradError(
            f"loss='absolute' needs finite numbers that differ as floats, but {columns[0]!r} has "
            "infinite values or values too close to tell apart."
        )
    return result


def _haversine(values: Any, columns: tuple[str, ...], eta: float) -> Any:
    """Pairs of places within eta metres, by a tree on the sphere."""
    from scipy import sparse
    from scipy.spatial import cKDTree

    numeric = len(columns) == 2 and all(values[c].dtype.kind in "iuf" for c in columns)
    if not numeric:
        raise DpradError(
            "loss='haversine' needs two target columns, latitude and longitude in degrees, but the "
            f"target is {', '.join(columns)}."
        )
    lat, lon = (np.radians(values[c].astype(float)) for c in columns)
    if np.any(np.abs(lat) > np.pi / 2 + 1e-12) or np.any(np.abs(lon) > 2 * np.pi + 1e-12):
        raise DpradError(
            f"loss='haversine' needs {columns[0]!r} in [-90, 90] and {columns[1]!r} in [-360, 360] "
            "degrees, latitude first."
        )
    points = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    tree = cKDTree(points)
    angle = min(eta / EARTH_RADIUS, np.pi)
    chord = 2 * np.sin(angle / 2) * (1 + 1e-9) + 1e-9  # a little wide; measured exactly below

    def near(i: Any, j: Any) -> Any:
        h = (
            np.sin((lat[i] - lat[j]) / 2) ** 2
            + np.cos(lat[i]) * np.cos(lat[j]) * np.sin((lon[i] - lon[j]) / 2) ** 2
        )
        return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(h, 1.0))) <= eta

    pairs = int(tree.count_neighbors(tree, chord))
    _affordable(pairs, len(lat))
    # rows of the relation, so many at a time that their near pairs fit a block
    step = max(1, int(len(lat) * block(BLOCK_ENTRIES) / pairs))
    found = []
    for a in range(0, len(lat), step):
        part = cKDTree(points[a : a + step])
        close = part.sparse_distance_matrix(tree, chord, output_type="ndarray")
        i, j = close["i"], close["j"]
        kept = near(a + i, j)
        rows = (np.ones(int(kept.sum()), dtype=bool), (i[kept], j[kept]))
        found.append(sparse.csr_array(rows, shape=(part.n, len(lat))))
    return sparse.vstack(found, format="csr")


def _evaluate(loss: Callable[[Any, Any], Any], values: Any, eta: float) -> Any:
    """A callable loss as a sparse success relation."""
    size = len(values)

    def right(part: Any) -> Any:
        try:
            block = np.asarray(loss(part, values))
        except Exception as error:
            raise DpradError(f"loss failed: {told(error)}.") from None
        if block.shape != (len(part), size):
            raise DpradError(
                f"loss must return a matrix of shape ({len(part)}, {size}), one row a target and "
                f"one column a guess, but returned shape {block.shape}."
            )
        if block.dtype.kind not in "iufb" or np.isnan(block).any():
            raise DpradError("loss must return numbers, but returned NaN or something else.")
        return block <= eta

    return _blocks(right, values)


def _blocks(right: Callable[[Any], Any], values: Any) -> Any:
    """A success relation from dense blocks of its rows."""
    from scipy import sparse

    step = max(1, block(BLOCK_ENTRIES) // len(values))
    found: list[Any] = []
    members = 0
    for a in range(0, len(values), step):
        found.append(sparse.csr_array(right(values[a : a + step])))
        members += found[-1].nnz
        _affordable(members, len(values))
    return sparse.vstack(found, format="csr")


def _affordable(members: int, values: int) -> None:
    need(
        MEMBER * members,
        f"The tolerance ({members:,} pairs of the {values:,} target values or more count as hits)",
        "Choose a smaller eta or coarser values.",
    )
