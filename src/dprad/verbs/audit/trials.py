"""Runs of the thing under audit: hidden records, chunks, workers, a state file.

Runs are divided into chunks whose sizes depend only on the number of runs, and every chunk has its
own stream of random numbers: any number of workers gives the same counts. Chunks are taken in
order, so a sequential audit also stops at the same place. In a state file each finished chunk is
one line, with a digest of its first outputs: before an audit resumes, some chunks are run again and
must agree.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from dprad.attacks.counting import Play, counted
from dprad.attacks.optimal import OptimalAttack
from dprad.errors import DpradError, kind, records_shown, told
from dprad.exact.posterior import part
from dprad.game.game import Table
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.black_box import BlackBox
from dprad.numerics.arrays import Column, FloatArray, IntArray
from dprad.runtime.workers import stream
from dprad.verbs.audit.fingerprint import digest_of_outputs
from dprad.verbs.audit.frozen import PLAIN, CopyError, frozen
from dprad.verbs.audit.supports import support_bets
from dprad.verbs.audit.tally import Tally

# Sizes of chunks: they double after every few, from the first to the largest.
FIRST, LARGEST, DOUBLE = 16, 16_384, 16
# Calls of a chunk whose outputs are remembered, and the least number of chunks run again.
REMEMBERED, AGAIN = 64, 4
# Seconds that running chunks again may take, and the share of all calls that are run again even if
# it takes longer.
PATIENCE, SHARE = 2.0, 0.1

# A chunk to run again: its place, its size, its first call, and how many of its calls.
Task = tuple[int, int, int, int]

CHANGED = (
    "this audit cannot be continued: repeated calls do not agree with the state file. The "
    "function has changed since, or has its own random numbers besides rng. Start again with "
    "another file."
)

HINT = " To see its text and the record, use show_records."
# What may tell the record is an output, and not an end of the audit.
_OUTPUT = (
    " If that happens where it is used, too, it is an output, and may tell the record: return a "
    "word for it, such as 'none', or a list, which may have any length."
)


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of this many runs: their number, sizes and first calls. Nothing is listed."""

    runs: int

    def __len__(self) -> int:
        """How many chunks."""
        low, high = 0, 2 * DOUBLE * 64 + self.runs // LARGEST
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.start(middle) >= self.runs else (middle + 1, high)
        return low

    def start(self, chunk: int) -> int:
        """Runs before a chunk."""
        steps = min(chunk // DOUBLE, (LARGEST // FIRST).bit_length() - 1)
        return DOUBLE * FIRST * ((1 << steps) - 1) + (chunk - DOUBLE * steps) * (FIRST << steps)

    def __getitem__(self, chunk: int) -> int:
        """The size of a chunk."""
        return min(self.start(chunk + 1), self.runs) - self.start(chunk)


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Hidden records and outputs of a chunk; equal if the outputs are. Of a stored chunk there may
    only be the digest, and what was booked.
    """

    records: IntArray
    outputs: Any
    digest: str
    booked: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calls) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One audit's counted runs: what is run, on which records, against which attack."""

    mechanism: Mechanism
    read: Column
    labels: Column
    game: Table
    play: Play | None
    attack: OptimalAttack | None
    seed: int

    def chunk(self, index: int, size: int, first: int) -> tuple[Tally | Calls, str]:
        """Run one chunk, whose first call is number `first`: counts, or the calls themselves if
        what is bet on them is still to be learned; and a digest of outputs.
        """
        z, outputs, rng = self._calls(index, size, first, size)
        seen = digest_of_outputs(part(outputs, slice(REMEMBERED)))
        if self.play is None:
            return Calls(z, outputs, digest_of_outputs(outputs)), seen
        guess, right, luck = counted(
            self.play, self.game, outputs, z, rng, lambda: self._draw(size, rng)
        )
        other = None if self.game.nothing_known else luck > 0
        bets = None if self.attack is None else support_bets(self.attack, outputs, z)
        return Tally.of(self._blind(z, guess), right, other, bets), seen

    def secrets(self, index: int, size: int) -> IntArray:
        """The hidden records of a chunk."""
        stream = np.random.SeedSequence(self.seed, spawn_key=(1, index))
        return self._draw(size, np.random.Generator(np.random.SFC64(stream)))

    def _calls(
        self, index: int, size: int, first: int, calls: int
    ) -> tuple[IntArray, Any, np.random.Generator]:
        """Hidden records of a chunk, the outputs of its first calls, and its stream."""
        stream = np.random.SeedSequence(self.seed, spawn_key=(1, index))
        rng = np.random.Generator(np.random.SFC64(stream))  # the fastest generator of numpy
        z = self._draw(size, rng)
        some = z[:calls]
        return z, sample(self.mechanism, self.read[some], self.labels[some], rng, first), rng

    def replay(
        self,
        plan: Chunks,
        stored: dict[int, Any],
        firsts: dict[int, str],
        workers: int = 1,
        over: Callable[[], bool] = lambda: False,
    ) -> int | None:
        """Run stored chunks again, in random order: how many calls agreed, None if any did not.

        At least `AGAIN` chunks and as many as the time limit allows; only the first calls of a
        chunk, if all of them would take long. Then more, until it is a `SHARE` of all calls.
        """
        order = sorted(stored)
        secrets.SystemRandom().shuffle(order)
        done: dict[int, int] = {}  # calls of a chunk that were run again

        def agrees(task: Task, found: tuple[Any, str]) -> bool:
            i, _, _, calls = task
            done[i] = calls
            if found[1] != firsts[i] or found[0] not in (None, stored[i]):
                return False
            kept = stored[i]
            if isinstance(kept, Calls) and kept.outputs is not None:
                return digest_of_outputs(part(kept.outputs, slice(REMEMBERED))) == firsts[i]
            stored[i] = kept if found[0] is None else found[0]  # as it was now, not as it is stored
            return True

        begin = time.monotonic()
        for k, i in enumerate(order):
            if k >= AGAIN and time.monotonic() - begin > PATIENCE:
                break
            start = time.monotonic()
            size, some = plan[i], self._some(plan[i])
            task = (i, size, plan.start(i) + 1, some)
            if not agrees(task, self._again(*task)):
                return None
            if some == size or (time.monotonic() - start) * size / some > PATIENCE:
                continue
            task = (i, size, plan.start(i) + 1, size)
            if not agrees(task, self._again(*task)):
                return None
        tasks = list(self._more(plan, order, done))
        threads = not isinstance(self.mechanism, BlackBox)
        with closing(stream(self._again, tasks, workers, threads=threads)) as results:
            for task in tasks:
                if over():
                    break
                if not agrees(task, next(results)):
                    return None
        return sum(done.values())

    def _some(self, size: int) -> int:
        """How many calls of a chunk can be run again alone."""
        single = isinstance(self.mechanism, BlackBox) and self.mechanism.one_by_one
        return min(size, REMEMBERED) if single else size

    def _more(self, plan: Chunks, order: list[int], done: dict[int, int]) -> Iterator[Task]:
        """Tasks until enough calls are run again: a little of each chunk, then whole ones."""
        made = dict(done)
        wanted = SHARE * sum(plan[i] for i in order) - sum(made.values())
        for least in (self._some, int):
            for i in order:
                calls, before = least(plan[i]), made.get(i, 0)
                if wanted <= 0:
                    return
                if calls > before:
                    made[i], wanted = calls, wanted - (calls - before)
                    yield i, plan[i], plan.start(i) + 1, calls

    def _again(self, index: int, size: int, first: int, calls: int) -> tuple[Any, str]:
        """A chunk, or a digest of its first calls only."""
        if calls < size:
            return None, digest_of_outputs(self._calls(index, size, first, calls)[1])
        return self.chunk(index, size, first)

    def _draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Records from the prior."""
        p = self.game.pi
        if p[0] == p[-1] and np.all(p == p[0]):
            return rng.integers(len(p), size=size)
        return rng.choice(len(p), size=size, p=p)

    def _blind(self, records: IntArray, guess: IntArray) -> FloatArray:
        """The prior chance of each guess given what is known; NaN for a pass."""
        game = self.game
        made = guess >= 0
        if game.nothing_known:
            return np.where(made, game.luck[guess], np.nan)
        chance = np.full(len(records), np.nan)
        fiber = game.fiber_of[records]
        pairs, place = np.unique(
            np.stack([fiber[made], guess[made]], axis=1), axis=0, return_inverse=True
        )
        chances = np.empty(len(pairs))
        for i, (x, g) in enumerate(pairs):
            same = np.flatnonzero(game.fiber_of == x)
            right = game.right(game.target_of[same], np.full(len(same), g))
            weight = game.pi[same]
            chances[i] = min(1.0, float(weight[right].sum() / weight.sum()))
        chance[made] = np.round(chances, 15)[place.reshape(-1)]
        return chance


def sample(
    mechanism: Mechanism, read: Any, labels: Any, rng: np.random.Generator, first: int
) -> Any:
    """Outputs by real calls; errors name the record and the call."""
    if not isinstance(mechanism, BlackBox):
        return mechanism.sample(read, rng)
    if mechanism.vectorised:
        try:
            outputs = mechanism.bound(rng)(read)
            count = len(outputs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise DpradError(
                f"run failed in the calls {first:,} to {first + len(read) - 1:,}: {told(error)}."
                f"{HINT}"
            ) from None
        if count != len(read):
            raise DpradError(
                f"run must return one output per record, but returned {count} for {len(read)} "
                "records."
            )
        outputs = _copied(outputs)
        if outputs.dtype.kind not in "iub" and not _no_nan(outputs):
            _check(list(outputs), labels, first)
        return outputs
    run, results = mechanism.bound(rng), []
    records = read.tolist() if isinstance(read, np.ndarray) else list(read)
    for i, record in enumerate(records):
        try:
            output = run(record)
            results.append(output if type(output) in PLAIN else frozen(output))
        except (KeyboardInterrupt, CopyError):
            raise
        except BaseException as error:
            raise DpradError(
                f"run failed at call {first + i:,}, on {_which(labels[i])}: {told(error)}."
                f"{_OUTPUT}{HINT}"
            ) from None
    _check(results, labels, first)
    return packed(results)


def _check(results: list[Any], labels: Any, first: int) -> None:
    shape = _shape(results[0]) if results else None
    for i, output in enumerate(results):
        problem = ""
        if output is None:
            problem = "None"
        elif isinstance(output, float | np.floating) and np.isnan(output):
            problem = "NaN"
        elif shape is not None and _shape(output) not in (None, shape):
            problem = "an output of another shape than before"
            if records_shown():
                problem = f"an output of shape {_shape(output)} after one of shape {shape}"
        if problem:
            raise DpradError(
                f"run returned {problem} at call {first + i:,}, on {_which(labels[i])}.{_OUTPUT}"
            )


def _shape(output: Any) -> tuple[int, ...] | None:
    """The shape of numbers and arrays; lists and words may have any."""
    return np.shape(output) if isinstance(output, int | float | np.ndarray | np.generic) else None


def packed(results: Any) -> Any:
    """Outputs as an array of numbers if they are numbers or lists or arrays of them, of one type;
    else of objects (a table has labels, too); those of a composition stay.
    """
    if isinstance(results, tuple) or type(results) is np.ndarray:
        return results
    if all(map(_numbers, results)) and len(set(map(_types, results))) == 1:
        try:
            packed = np.asarray(results)
            if packed.dtype.kind in "iub" or (packed.dtype.kind == "f" and not _rounded(packed)):
                return packed
        except (ValueError, OverflowError):
            pass
    objects = np.empty(len(results), dtype=object)
    for i, output in enumerate(results):
        objects[i] = output
    return objects


def _copied(outputs: Any) -> Any:
    """Many outputs that were returned together, as they are now."""
    if isinstance(outputs, np.ma.MaskedArray):
        masks = np.ma.getmaskarray(outputs)
        return packed([*map(list, zip(outputs.filled(), masks, strict=True))])
    if isinstance(outputs, list | tuple):
        return packed(list(map(frozen, outputs)))
    if callable(getattr(outputs, "detach", None)):
        outputs = np.asarray(outputs.detach().cpu())
    if type(outputs) not in (np.ndarray, np.recarray, np.memmap):  # labels would be lost
        raise DpradError(
            f"run returned a {kind(type(outputs))} for many records. Return an array or a list: "
            "one output per record, with all that goes out (a label of its own, too)."
        )
    array = np.array(outputs)
    return packed(list(map(frozen, array))) if array.dtype.hasobject else array


def _no_nan(outputs: Any) -> bool:
    """Whether these are numbers without NaN, in an array."""
    return outputs.dtype.kind == "f" and not np.isnan(outputs).any()


def _rounded(numbers: Any) -> bool:
    """Whether whole numbers among these may have been rounded."""
    return bool(np.any(np.abs(numbers) >= 2.0**53))


def _numbers(output: Any) -> bool:
    """Whether an output is a number, or a list or array of numbers and nothing more."""
    if type(output) is np.ndarray:
        return output.dtype.kind in "iufb"
    if type(output) in (list, tuple):
        return all(map(_numbers, output))
    return isinstance(output, bool | int | float | np.number | np.bool_)


def _types(output: Any) -> Any:
    """What numbers are stored as, each in its place."""
    if type(output) is np.ndarray:
        return repr(output.dtype)
    if type(output) in (list, tuple):
        return type(output), *((k, len(list(g))) for k, g in groupby(map(_types, output)))
    return type(output)


def _which(label: Any) -> str:
    """The record of a call; its place is not given, since records are hidden from the attack."""
    plain = label.item() if isinstance(label, np.generic) else label
    return f"the record {plain!r}" if records_shown() else "a record"


# -- many chunks ---------------------------------------------------------------------------------
def run_all(
    work: Callable[[int, int, int], Any],
    plan: Chunks,
    done: dict[int, Any],
    workers: int,
    threads: bool,
) -> Generator[tuple[int, Any], None, None]:
    """Results of all chunks in order; those in `done` are not run again."""
    count = len(plan)
    tasks = ((k, plan[k], plan.start(k) + 1) for k in range(count) if k not in done)
    with closing(stream(work, tasks, workers, threads=threads)) as fresh:
        for i in range(count):
            yield i, (done[i] if i in done else next(fresh))
