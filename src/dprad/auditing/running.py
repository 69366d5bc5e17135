"""Runs of the thing under audit: hidden records, chunks, workers, a state file.

Runs are cut into chunks whose sizes depend on nothing but the number of runs, and every chunk has
its own stream of random numbers: any number of workers gives the same counts. Chunks are taken in
order, so a sequential audit stops at the same place too. Each finished chunk is one line of the
state file (JSON, nothing executable); a killed audit goes on after the last whole line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprad.arrays import Column, FloatArray, IntArray
from dprad.auditing.tally import Tally
from dprad.errors import DpradError
from dprad.games import Game
from dprad.mechanisms.black_box import BlackBox
from dprad.simulation import hits
from dprad.workers import stream

# Sizes of chunks: they double every so many, from the first to the largest.
FIRST, LARGEST, DOUBLE = 64, 16_384, 8

Play = Callable[[Any, IntArray, np.random.Generator], IntArray]


def sizes(trials: int) -> list[int]:
    """Sizes of the chunks of so many runs."""
    found: list[int] = []
    left, size = trials, FIRST
    while left > 0:
        found.append(min(size, left))
        left -= found[-1]
        if len(found) % DOUBLE == 0:
            size = min(2 * size, LARGEST)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One audit's counted runs: what is run, on which records, against which attack."""

    mechanism: Any
    read: Column
    labels: Column
    probabilities: FloatArray
    game: Game
    play: Play
    seed: int

    def chunk(self, index: int, size: int, first: int) -> Tally:
        """Run one chunk; `first` is the number of its first call."""
        stream = np.random.SeedSequence(self.seed, spawn_key=(1, index))
        rng = np.random.Generator(np.random.SFC64(stream))  # the fastest that numpy has
        z = self._draw(size, rng)
        outputs = sample(self.mechanism, self.read[z], self.labels[z], rng, first)
        guess = self.play(outputs, z, rng)
        right = hits(self.game, z, guess)
        blind = self._blind(z, guess)
        if self.game.nothing_known:
            return Tally.of(blind, right, None)
        other = self._draw(size, rng)
        return Tally.of(blind, right, hits(self.game, other, self.play(outputs, other, rng)))

    def _draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Records from the prior."""
        p = self.probabilities
        if p[0] == p[-1] and np.all(p == p[0]):
            return rng.integers(len(p), size=size)
        return rng.choice(len(p), size=size, p=p)

    def _blind(self, records: IntArray, guess: IntArray) -> FloatArray:
        """The prior chance of each guess given what is known; NaN for a pass."""
        game = self.game
        assert game.luck is not None and game.fiber_of is not None
        made = guess >= 0
        if game.nothing_known:
            return np.where(made, game.luck[guess], np.nan)
        assert game.target_of is not None and game.right is not None
        chance = np.full(len(records), np.nan)
        fiber = game.fiber_of[records]
        pairs, place = np.unique(
            np.stack([fiber[made], guess[made]], axis=1), axis=0, return_inverse=True
        )
        found = np.empty(len(pairs))
        for i, (x, g) in enumerate(pairs):
            same = np.flatnonzero(game.fiber_of == x)
            right = game.right(game.target_of[same], np.full(len(same), g))
            weight = self.probabilities[same]
            found[i] = min(1.0, float(weight[right].sum() / weight.sum()))
        chance[made] = np.round(found, 15)[place.reshape(-1)]
        return chance


def sample(mechanism: Any, read: Any, labels: Any, rng: np.random.Generator, first: int) -> Any:
    """Outputs by real calls; whatever goes wrong names the record and the call."""
    if not isinstance(mechanism, BlackBox):
        return mechanism.sample(read, rng)
    if mechanism.vectorised:
        try:
            outputs = mechanism.sample(read, rng)
        except DpradError:
            raise
        except (Exception, SystemExit) as error:
            raise DpradError(
                f"run failed in the calls {first:,} to {first + len(read) - 1:,}: "
                f"{type(error).__name__}: {error}"
            ) from None
        _check(list(outputs), labels, first)
        return outputs
    run, results = mechanism.bound(rng), []
    records = read.tolist() if isinstance(read, np.ndarray) else list(read)
    for i, record in enumerate(records):
        try:
            results.append(run(record))
        except (Exception, SystemExit) as error:
            raise DpradError(
                f"run failed at call {first + i:,}, on the record {_plain(labels[i])!r}: "
                f"{type(error).__name__}: {error}"
            ) from None
    _check(results, labels, first)
    return _pack(results)


def _check(results: list[Any], labels: Any, first: int) -> None:
    shape = _shape(results[0]) if results else None
    for i, output in enumerate(results):
        problem = ""
        if output is None:
            problem = "None"
        elif isinstance(output, float | np.floating) and np.isnan(output):
            problem = "NaN"
        elif shape is not None and _shape(output) not in (None, shape):
            problem = f"an output of shape {_shape(output)} after one of shape {shape}"
        if problem:
            raise DpradError(
                f"run returned {problem} at call {first + i:,}, on the record "
                f"{_plain(labels[i])!r}."
            )


def _shape(output: Any) -> tuple[int, ...] | None:
    """Of numbers and arrays; lists and words may have any."""
    return np.shape(output) if isinstance(output, int | float | np.ndarray | np.generic) else None


def _pack(results: list[Any]) -> Any:
    """Outputs as an array: of numbers where they are, else of whatever they are."""
    try:
        packed = np.asarray(results)
        if packed.dtype.kind in "iufb":
            return packed
    except ValueError:
        pass
    found = np.empty(len(results), dtype=object)
    found[:] = results
    return found


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


# -- many chunks ---------------------------------------------------------------------------------
def run_all(
    work: Callable[[int, int, int], Any],
    plan: list[int],
    done: dict[int, Any],
    workers: int,
    threads: bool,
) -> Generator[tuple[int, Any], None, None]:
    """Results of all chunks in order; those in `done` are not run again."""
    starts = np.cumsum([0, *plan]).tolist()
    tasks = [(k, plan[k], starts[k] + 1) for k in range(len(plan)) if k not in done]
    with closing(stream(work, tasks, workers, threads=threads)) as fresh:
        for i in range(len(plan)):
            yield i, (done[i] if i in done else next(fresh))


@dataclass(slots=True)
class State:
    """The state file of an audit: a line that says which, then a line a chunk."""

    path: Path | None
    key: dict[str, Any]
    lines: dict[str, dict[int, Any]]

    @classmethod
    def open(cls, path: Any, key: dict[str, Any]) -> State:
        """Read what is there; a file of another audit is refused, a broken last line dropped."""
        if path is None:
            return cls(None, key, {})
        file = Path(path)
        lines: dict[str, dict[int, Any]] = {}
        if file.exists() and file.stat().st_size:
            try:
                text = file.read_bytes()
            except OSError as error:
                raise DpradError(f"{file} cannot be read: {error.strerror}.") from None
            whole, _, _ = text.rpartition(b"\n")
            rows = [_row(line) for line in whole.split(b"\n") if line.strip()]
            if not rows and b'{"dprad": "audit"'.startswith(text[:17]):
                # killed while the first line was written: nothing was counted yet
                rows, whole = [key | {"dprad": "audit"}], _first(key)
            if not rows or rows[0] is None or rows[0].get("dprad") != "audit":
                raise DpradError(f"{file} is not the state of an audit. Choose another file.")
            for name, value in key.items():
                if rows[0].get(name) != value:
                    raise DpradError(
                        f"{file} belongs to another audit: its {name} is {rows[0].get(name)!r}, "
                        f"here it is {value!r}. Choose another file."
                    )
            for row in rows[1:]:
                if row is not None and {"phase", "chunk", "result"} <= row.keys():
                    lines.setdefault(row["phase"], {})[int(row["chunk"])] = row["result"]
            if not text.endswith(b"\n"):
                # what was cut off is lost; begin a fresh line
                file.write_bytes(whole + b"\n")
        else:
            try:
                file.write_bytes(_first(key) + b"\n")
            except OSError as error:
                raise DpradError(f"{file} cannot be written: {error.strerror}.") from None
        return cls(file, key, lines)

    def done(self, phase: str) -> dict[int, Any]:
        """Results of a phase that are already there."""
        return self.lines.get(phase, {})

    def put(self, phase: str, chunk: int, result: Any) -> None:
        """Keep a result, on disk before anything else happens."""
        if self.path is None or chunk in self.done(phase):
            return
        line = json.dumps({"phase": phase, "chunk": chunk, "result": result}, default=_jsonable)
        with self.path.open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


def _first(key: dict[str, Any]) -> bytes:
    """The line that says which audit it is."""
    return json.dumps({"dprad": "audit", **key}).encode()


def _jsonable(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return str(value)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
