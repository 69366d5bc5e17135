"""Game: a prior and a threat put together; everything a bound or a solver asks of them.

Records of probability zero are dropped: they add nothing to any sum, and matter only as guesses.
Records that share their fiber and all their success sets are merged into classes: RAD does not
change, and differential privacy survives averaging, so every bound may be applied to classes.
Getting this wrong understates risk (100 records, a binary target, PureDP(1): 0.017, not 0.231).

In the notation of the theory pages: `unlike` is 1 - kappa, kappa of the classes; `p_plus` is
the best chance of a blind guess, and `p_minus` the least prior mass a best attack can have (0 where
passing can help). `least` and `most` bound the masses strictly between 0 and 1 that the set of
records an attack is right about can have; they may be tighter, since passing does not count there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.arrays import BoolArray, Column, FloatArray, IntArray, unlike
from dprad.errors import DpradError
from dprad.memory import block, need
from dprad.priors import Prior
from dprad.success import Relation, Sets, Singletons, Windows, starts, tops
from dprad.threats import Threat, target_values

EARTH_RADIUS = 6_371_008.8  # metres, mean radius
# Distances count as equal to eta within so many units in the last place.
ULPS = 4
# rows of a callable loss are evaluated so many entries at a time
BLOCK_ENTRIES = 2**22
# bytes for each pair of a target and a guess that is right about it, while sets are made of them
MEMBER = 100
# points at which a continuous prior's window masses are bracketed
LINE_POINTS = 20_001


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Game:
    """Classes, fibers and success sets. Build it with `play`.

    `probabilities`, `fiber`, `sets` and what follows are None unless the prior is finite. Of each
    record, `class_of` is its class and `fiber_of` its fiber (-1 where these have probability zero),
    and `target_of` the code of its target value in `guesses`; ``right(targets, guesses)`` says
    which codes of guesses count, and `luck` is the prior mass about which each guess is right.
    `everything_known` says that each fiber is one class; `membership`
    that the attacker knows the record by the terms of the threat.
    """

    unlike: float
    p_plus: float
    p_minus: float
    least: float
    most: float
    nothing_known: bool
    everything_known: bool
    membership: bool
    singletons: bool
    probabilities: FloatArray | None = None
    fiber: IntArray | None = None
    sets: Sets | None = None
    class_of: IntArray | None = None
    fiber_of: IntArray | None = None
    target_of: IntArray | None = None
    guesses: Column | None = None
    right: Callable[[IntArray, IntArray], BoolArray] | None = None
    luck: FloatArray | None = None

    @property
    def kappa(self) -> float:
        """Probability that two draws are of one class."""
        return 1.0 - self.unlike

    @property
    def finite(self) -> bool:
        """Whether the prior is a table."""
        return self.probabilities is not None

    @property
    def uniform(self) -> bool:
        """Whether all classes are equally likely (rounding aside)."""
        p = self.probabilities
        return p is not None and float(p.max() - p.min()) <= 1e-12 * float(p.max())

    def at_values(self, read: Column, pi: FloatArray) -> tuple[Any, Column]:
        """Probability of each class (rows) at each value that is read, sparse; and these values."""
        from scipy import sparse

        assert self.class_of is not None and self.probabilities is not None
        kept = np.flatnonzero(pi > 0)
        points, place = np.unique(read[kept], return_inverse=True)
        shape = (len(self.probabilities), len(points))
        return sparse.csr_array((pi[kept], (self.class_of[kept], place)), shape=shape), points


def play(prior: Prior, threat: Threat) -> Game:
    """Put prior and threat together. O(m log m), plus the size of the success relation."""
    if not isinstance(prior, Prior):
        raise DpradError(
            "prior must be a dprad.Prior, such as dprad.Prior.uniform(10) or dprad.Prior.unknown(),"
            f" but is a {type(prior).__name__}."
        )
    if not isinstance(threat, Threat):
        raise DpradError(f"threat must be a dprad.Threat, but is a {type(threat).__name__}.")
    if prior.kind == "finite":
        return _finite(prior, threat)
    if prior.kind == "continuous":
        return _continuous(prior, threat)
    return Game(
        unlike=1.0,
        p_plus=1.0,
        p_minus=0.0,
        least=0.0,
        most=1.0,
        nothing_known=threat.knows == "nothing",
        everything_known=threat.knows == "everything",
        membership=threat.knows == "everything",
        singletons=False,
    )


# -- finite priors -------------------------------------------------------------------------------
def _finite(prior: Prior, threat: Threat) -> Game:
    pi = prior.probabilities
    assert pi is not None
    kept = np.flatnonzero(pi > 0)
    known = threat.fibers(prior)
    labels, label = np.unique(known[kept], return_inverse=True)
    place = np.minimum(np.searchsorted(labels, known), len(labels) - 1)
    columns = threat.target_columns(prior)
    target_of, values = target_values(prior, columns)
    code = target_of[kept]
    relation = _relation(threat, columns, values)
    # classes: same fiber, same success sets; ordered by fiber, then along the line
    width = int(relation.signature.max()) + 1
    key, class_of_kept = np.unique(label * width + relation.signature[code], return_inverse=True)
    mass = np.minimum(np.bincount(class_of_kept, weights=pi[kept]), 1.0)
    fiber, signature = key // width, key % width
    class_of = np.full(len(pi), -1, dtype=np.intp)
    class_of[kept] = class_of_kept

    alone = bool(np.all(fiber[1:] != fiber[:-1]))
    guessable = np.flatnonzero(relation.guessable[signature])
    if alone or relation.sets is None:
        sets: Sets = Singletons.of(guessable, fiber, mass, relation.guess[signature])
    else:
        sets = relation.sets(fiber, signature, mass)
    singletons = isinstance(sets, Singletons)
    nothing_known = bool(fiber[-1] == fiber[0])
    p_plus, most = _range(sets, fiber)
    splits = nothing_known and _partitions(sets, len(mass))
    return Game(
        unlike=unlike(mass),
        p_plus=p_plus,
        p_minus=min(float(sets.mass.min()), p_plus) if splits else 0.0,
        least=float(sets.mass.min(initial=1.0)),
        most=most,
        nothing_known=nothing_known,
        everything_known=alone,
        membership=threat.knows == "everything",
        singletons=singletons,
        probabilities=mass,
        fiber=fiber,
        sets=sets,
        class_of=class_of,
        fiber_of=np.where(labels[place] == known, place, -1),
        target_of=target_of,
        guesses=values,
        right=relation.right,
        luck=relation.weigh(
            np.bincount(code, weights=pi[kept], minlength=len(values)).astype(float)
        ),
    )


def _range(sets: Sets, fiber: IntArray) -> tuple[float, float]:
    """The greatest mass an attack can be right about, and the greatest of less than everything."""
    if not len(sets.mass):
        return 0.0, 0.0
    best = tops(sets, int(fiber.max()) + 1)
    total = min(1.0, float(best.sum()))
    whole = sets.sizes == np.bincount(fiber)[sets.fiber]
    if len(np.unique(sets.fiber[whole])) < len(best):
        return total, total
    # all can be had; so one fiber must take its second best, which may be a pass
    second = np.zeros(len(best))
    np.maximum.at(second, sets.fiber[~whole], sets.mass[~whole])
    return total, max(0.0, 1.0 - float(np.min(best - second)))


def _partitions(sets: Sets, classes: int) -> bool:
    """Whether some of the sets (one fiber) partition the classes; then passing never helps."""
    if isinstance(sets, Singletons):
        return len(sets.index) == classes
    if isinstance(sets, Windows):
        reached = np.zeros(classes + 1, dtype=bool)
        reached[0] = True
        for i in np.argsort(sets.low, kind="stable"):
            reached[sets.high[i]] |= reached[sets.low[i]]
        return bool(reached[classes])
    assert isinstance(sets, Relation)
    # an exact cover is hard to find in general; one set that covers all is easy
    return bool(np.any(sets.sizes == classes))


@dataclass(frozen=True, slots=True, eq=False)
class _Success:
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


def _relation(threat: Threat, columns: tuple[str, ...], values: Any) -> _Success:
    if isinstance(threat.loss, str) and threat.loss == "exact":
        every = np.arange(len(values))
        return _Success(every, np.ones(len(values), dtype=bool), every, np.equal, np.array, None)
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


def _line(values: Column, eta: float) -> _Success:
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

    return _Success(signature, np.ones(len(first), dtype=bool), first, counts, weigh, sets)


def _general(matrix: Any) -> _Success:
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
    return _Success(signature, guessable, guess, counts, lambda mass: matrix.T @ mass, sets)


def _numbers(values: Column, columns: tuple[str, ...]) -> Column:
    """The values of one numeric column as a sorted array: integers from 0 up, or floats."""
    items: list[Any] = values.tolist() if len(columns) == 1 else [None]
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in items)
    if whole and items[-1] - items[0] < 2**62:
        # counted from the first, which keeps large integers (timestamps) exact
        return np.asarray([v - items[0] for v in items], dtype=np.int64)
    if len(columns) == 1 and items[-1] is None:
        raise DpradError(
            f"loss='absolute' needs numbers, but {columns[0]!r} has missing values. Drop them: "
            "Prior.from_data(..., missing='drop')."
        )
    try:
        if any(isinstance(v, str | bool) or v is None for v in items):
            raise TypeError
        result = np.asarray([float(v) for v in items])
    except (TypeError, ValueError, OverflowError):
        raise DpradError(
            "loss='absolute' needs one target column of numbers, but the target is "
            f"{', '.join(columns)}. Name it: Threat(target=[...], loss='absolute')."
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
        block = np.asarray(loss(part, values))
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


# -- continuous priors ---------------------------------------------------------------------------
def _continuous(prior: Prior, threat: Threat) -> Game:
    """Only the summary: kappa = 0 and the range of a window's mass, bracketed from outside.

    On an interval, windows of half-width eta can always be laid side by side (the two at the ends
    have any width from eta to 2 eta), so passing never helps.
    """
    assert prior.continuous_on is not None
    low, high = prior.continuous_on[1:]
    if threat.knows == "everything":
        return Game(
            unlike=1.0,
            p_plus=1.0,
            p_minus=0.0,
            least=0.0,
            most=1.0,
            nothing_known=False,
            everything_known=True,
            membership=True,
            singletons=False,
        )
    simple = isinstance(threat.loss, str) and threat.loss in ("exact", "absolute")
    if threat.knows != "nothing" or not simple:
        raise DpradError(
            "a continuous prior takes knows='nothing' or 'everything' and loss='exact' or "
            "'absolute'. For more, give a finite prior: Prior.from_counts or Prior.from_data."
        )
    eta = threat.eta
    edge = np.linspace(low, high, LINE_POINTS)
    # any centre in [edge[i], edge[i+1]] has a window between these two
    ends = np.concatenate([edge - eta, edge + eta])
    order = np.argsort(ends, kind="stable")
    upto = np.empty(len(ends))
    upto[order] = np.r_[0.0, np.cumsum(prior.cells(ends[order]))]
    below, above = upto[:LINE_POINTS], upto[LINE_POINTS:]
    outer, inner = above[1:] - below[:-1], above[:-1] - below[1:]
    p_plus = min(1.0, float(outer.max())) if eta > 0 else 0.0
    p_minus = max(0.0, float(inner.min())) if eta > 0 else 0.0
    return Game(
        unlike=1.0,
        p_plus=p_plus,
        p_minus=p_minus,
        least=p_minus,
        most=p_plus,
        nothing_known=True,
        everything_known=False,
        membership=False,
        singletons=False,
    )
