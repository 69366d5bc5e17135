"""The target of the runs: the question as asked, or two data sets that are compared.

A pure claim with a named mechanism or an attack of the user is tested on the question as asked: the
records of the prior are hidden, and bets are placed on sets of them. Everything else is a
comparison of two data sets, with learned bets (`session.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.attacks.counting import Play, player
from dprad.attacks.optimal import OptimalAttack, best_attack
from dprad.errors import DpradError, record
from dprad.game.game import Table
from dprad.game.question import Question
from dprad.mechanisms.black_box import BlackBox
from dprad.model.guarantees import PureDP
from dprad.model.priors import Prior
from dprad.numerics.arrays import Column
from dprad.runtime.interrupts import interruptible
from dprad.runtime.progress import Stop
from dprad.runtime.workers import stream
from dprad.verbs.audit import fingerprint, versus
from dprad.verbs.audit.outputs import translated
from dprad.verbs.audit.plan import Model, Plan
from dprad.verbs.audit.session import Session
from dprad.verbs.audit.state import State, decode, encode
from dprad.verbs.audit.trials import CHANGED, PATIENCE, REMEMBERED, SHARE, packed, sample

# Share of the runs that may be used for choosing among records, most of them, and the least of a
# record in a round; up to so many records need one round.
STUDY, CALLS, FEWEST, FEW = 0.1, 300, 8, 5


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Records to draw, how they are read and called, and what bets on their outputs.

    Either `play`, an attack on the question (with bets on sets, if `attack` is the optimal one), or
    a `session` of bets on two data sets. `studied` calls chose the records, `unverified` of them in
    an earlier session and not again; `model` is set if the extra risk can be compared with that of
    the supposed mechanism.
    """

    question: Question
    read: Column
    labels: Column
    play: Play | None
    attack: OptimalAttack | None
    session: Session | None
    model: Model | None
    studied: int
    notes: tuple[str, ...]
    unverified: int = 0

    @property
    def game(self) -> Table:
        """The finite game of the question."""
        return self.question.table("audit")


class TooFewError(DpradError):
    """There are too few calls, or records, for any bet."""


def choose(plan: Plan, file: State, stop: Stop) -> Target:
    """The question as asked, or two data sets."""
    attack, model = plan.attack, plan.model
    one_by_one = not isinstance(plan.tested, PureDP) or plan.game.everything_known or plan.in_out
    if one_by_one or (attack is None and model is None):
        return _compared(plan, file, stop)
    if attack is None:
        assert model is not None
        attack = best_attack(model.named if model.given else plan.subject, plan.question)
    play = player(attack, plan.question)
    optimal = attack if isinstance(attack, OptimalAttack) else None
    if optimal is not None and optimal.mechanism is not plan.subject:
        called = isinstance(plan.subject, BlackBox)
        play = translated(play, optimal.mechanism, _support(plan) if called else None)
        optimal = None if called else optimal
    return Target(
        plan.question, plan.read, _support(plan), play, optimal, None, model, 0, tuple(plan.notes)
    )


def _support(plan: Plan) -> Column:
    support = plan.question.prior.support
    assert support is not None  # there is a finite game
    return support


# -- two data sets ---------------------------------------------------------------------------------
def _compared(plan: Plan, file: State, stop: Stop) -> Target:
    """Two records, equally likely; or one, and a data set without it."""
    study = _Study.of(plan)
    if len(study.places) < 2:
        raise TooFewError("an audit compares records: the prior must have at least two.")
    samples: dict[int, Any] = {}
    replayed, calls = (0, 0), 0
    pair = (int(study.places[0]), int(study.places[-1]))
    if len(study.places) > 2:
        samples, replayed = study.outputs(file, stop)
        calls = study.calls
        pair = versus.choose_pair(samples, plan.tested, plan.settings.seed, study.absent)
    if plan.settings.trials - calls < 10:
        raise TooFewError(f"trials must leave runs to count: give more than {calls:,}.")
    known = versus.known_scores(plan, pair, study.read)
    session = Session(plan.tested, plan.settings.seed, known, plan.settings.bits)
    if samples:
        for secret, z in enumerate(pair):
            session.study(packed(samples[z]), np.full(study.most, secret))
    labels: Column = np.array([None, None], dtype=object)
    labels[:] = [_plain(study.read[z]) for z in pair]
    notes = (*plan.notes, _note(plan, pair, calls, study.absent), *_again(*replayed))
    return Target(
        Question.of(Prior.uniform(2)), study.read[list(pair)], labels, None, None, session, None,
        calls, notes, replayed[1] - replayed[0],
    )  # fmt: skip


def _note(plan: Plan, pair: tuple[int, int], calls: int, absent: int | None) -> str:
    """What was compared."""
    support = _support(plan)
    named = [
        "a data set without it" if z == absent else f"record {record(_plain(support[z]), z + 1)}"
        for z in sorted(pair, key=lambda z: z == absent)
    ]
    how = f", chosen by {calls:,} calls on which nothing was bet" if calls else ""
    return f"compared {named[0]} and {named[1]} of {len(support):,}, in order{how}"


@dataclass(frozen=True, slots=True, eq=False)
class _Study:
    """Some records, and one or two rounds of calls that choose two of them: after the first the
    better half stays.

    `read` holds what is read from every record, and last what stands for none (`absent`); `rounds`
    how many records there are in each, and calls of every one. Calls of a record in a round are
    stored together, as number ``round * len(places) + its place``.
    """

    plan: Plan
    places: Any
    rounds: tuple[tuple[int, int], ...]
    read: Column
    absent: int | None

    @classmethod
    def of(cls, plan: Plan) -> _Study:
        chance = np.random.default_rng(np.random.SeedSequence(plan.settings.seed, spawn_key=(0,)))
        places, read, absent = versus.candidates(plan.game.pi, chance), plan.read, None
        if plan.in_out:
            absent = len(read)
            joined: Column = np.empty(absent + 1, dtype=object)
            joined[:-1] = [_plain(v) for v in read]
            joined[-1] = plan.absent
            places, read = np.r_[places, absent], joined
        third = min(CALLS, int(STUDY * plan.settings.trials)) // 3
        n = len(places)
        last = min(n, max(FEW, (n + 1) // 2))
        rounds = [(last, max(FEWEST, 2 * third // max(last, FEW)))]
        if n > last:  # a third of the calls choose the better half
            rounds.insert(0, (n, max(FEWEST, third // n)))
        return cls(plan, places, tuple(rounds), read, absent)

    @property
    def calls(self) -> int:
        """All of them."""
        return sum(n * each for n, each in self.rounds)

    @property
    def most(self) -> int:
        """Calls of a record that stays to the end."""
        return sum(each for _, each in self.rounds)

    def run(self, index: int, size: int, first: int) -> list[Any]:
        """Outputs of one record in one round; its first call is number `first`."""
        plan, place = self.plan, int(self.places[index % len(self.places)])
        stream_of = np.random.SeedSequence(plan.settings.seed, spawn_key=(0, index))
        records = np.repeat(self.read[[place]], size, axis=0)
        outputs = sample(plan.subject, records, records, np.random.default_rng(stream_of), first)
        if isinstance(outputs, tuple):
            return outputs  # type: ignore[return-value]
        return outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)

    def outputs(self, file: State, stop: Stop) -> tuple[dict[int, Any], tuple[int, int]]:
        """Outputs by record, of those that are left; they are stored in the state file."""
        with interruptible() as look:
            return self._outputs(file, stop, look)

    def _outputs(
        self, file: State, stop: Stop, look: Callable[[], None]
    ) -> tuple[dict[int, Any], tuple[int, int]]:
        done = self._stored(file)
        again = self._replay(done, file, look)
        settings, left, before = self.plan.settings, self.places.tolist(), 0
        samples: dict[int, Any] = {}
        for number, (count, each) in enumerate(self.rounds):
            if number:
                samples = {z: samples[z] for z in self._better(samples, count)}
                left = list(samples)
            at = [number * len(self.places) + self.places.tolist().index(z) for z in left]
            todo = [(i, each, before + k * each + 1) for k, i in enumerate(at) if i not in done]
            fresh = stream(self.run, todo, settings.workers, threads=False)
            for i, z in zip(at, left, strict=True):
                outputs = done[i] if i in done else next(fresh)
                look()  # what a function made of Ctrl-C is no output of it
                if file.journal is not None:
                    file.put("study", i, [encode(o) for o in outputs], "")
                samples[z] = _longer(samples.get(z), outputs)
                if stop.now():
                    fresh.close()
                    raise TooFewError("max_seconds passed while records were still being chosen.")
            fresh.close()
            before += count * each
        return samples, (again, sum(self._size(i) for i in done))

    def _better(self, samples: dict[int, Any], count: int) -> list[int]:
        plan = self.plan
        return versus.better(samples, plan.tested, plan.settings.seed, self.absent, count)

    def _size(self, index: int) -> int:
        return self.rounds[index // len(self.places)][1]

    def _stored(self, file: State) -> dict[int, list[Any]]:
        """Stored outputs of an earlier session, from a file that may have been forged."""
        try:
            stored = {i: decode(outputs) for i, outputs in file.done("study").items()}
            sound = all(0 <= i < len(self.places) * len(self.rounds) for i in stored)
            if sound and all(len(outputs) == self._size(i) for i, outputs in stored.items()):
                return stored
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            pass
        raise DpradError("the state file is damaged: the outputs used for learning cannot be read.")

    def _replay(self, done: dict[int, list[Any]], file: State, look: Callable[[], None]) -> int:
        """Run it again, a share of the calls of every record and all while that is quick.

        Returns how many agreed.
        """
        subject = self.plan.subject
        single = isinstance(subject, BlackBox) and subject.one_by_one

        def some(i: int) -> int:
            share = max(REMEMBERED, math.ceil(SHARE * self._size(i)))
            return min(self._size(i), share) if single else self._size(i)

        begin, calls = time.monotonic(), 0
        tasks = [(i, some(i), 1) for i in done]
        with closing(stream(self.run, tasks, self.plan.settings.workers, threads=False)) as results:
            for i, outputs in zip(done, results, strict=True):
                look()
                self._agree(outputs, done[i][: some(i)], file)
                calls += some(i)
        each = (time.monotonic() - begin) / max(calls, 1)
        for i in done:
            size = self._size(i)
            if some(i) == size:
                continue
            if time.monotonic() - begin + each * size > PATIENCE:
                break
            outputs = self.run(i, size, 1)
            look()
            self._agree(outputs, done[i], file)
            calls += size - some(i)
        return calls

    def _agree(self, outputs: list[Any], stored: list[Any], file: State) -> None:
        if file.done("refused") or not _alike(outputs, stored):
            file.put("refused", 0, None, "")  # and it stays so
            raise DpradError(CHANGED)


def _again(again: int, before: int) -> list[str]:
    """How much of an earlier session's study was run again."""
    if not before:
        return []
    return [f"{before:,} of these are from an earlier session; {again:,} were run again and agreed"]


def _longer(one: Any, other: Any) -> Any:
    """Both, one after the other; outputs of a composition are a tuple of arrays."""
    if one is None:
        return other
    if isinstance(one, tuple):
        return tuple(np.concatenate(both) for both in zip(one, other, strict=True))
    return one + other


def _alike(one: Any, other: Any) -> bool:
    return fingerprint.digest_of_outputs(one) == fingerprint.digest_of_outputs(other)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
