"""The target of the counted runs, fixed before the first of them: records and an attack.

Either the question as asked, with the attack of the user or of a named mechanism; or the two
records that uncounted runs showed to be the easiest to tell apart, and an attack learned on them.
"""

from __future__ import annotations

import math
import time
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
from dprad.model.priors import Prior
from dprad.numerics.arrays import Column
from dprad.runtime.progress import Stop
from dprad.runtime.workers import stream
from dprad.verbs.audit import fingerprint, learning
from dprad.verbs.audit.outputs import translated
from dprad.verbs.audit.plan import Model, Plan
from dprad.verbs.audit.state import State, decode, encode
from dprad.verbs.audit.trials import CHANGED, PATIENCE, REMEMBERED, SHARE, sample

# Share of the runs used for learning an attack, and the most of them.
STUDY, MOST_STUDIED = 0.25, 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Records to draw, how they are read and called, and the attack on their outputs.

    `studied` calls were made to find it, `unverified` of them in an earlier session and not again;
    `model` is set if the extra risk can be compared with that of the supposed mechanism.
    """

    question: Question
    read: Column
    labels: Column
    play: Play
    model: Model | None
    studied: int
    notes: tuple[str, ...]
    unverified: int = 0

    @property
    def game(self) -> Table:
        """The finite game of the question."""
        return self.question.table("audit")


def choose(plan: Plan, file: State, stop: Stop) -> Target:
    """The attack of the user, that of the named mechanism, or a learned one."""
    attack, model = plan.attack, plan.model
    if attack is None and model is not None:
        mechanism = model.named if model.given else plan.subject
        attack = best_attack(mechanism, plan.question)
    if attack is None:
        return _learned(plan, file, stop)
    play = player(attack, plan.question)
    if isinstance(attack, OptimalAttack) and attack.mechanism is not plan.subject:
        called = isinstance(plan.subject, BlackBox)
        play = translated(play, attack.mechanism, _support(plan) if called else None)
    return Target(plan.question, plan.read, _support(plan), play, model, 0, tuple(plan.notes))


def _support(plan: Plan) -> Column:
    support = plan.question.prior.support
    assert support is not None  # there is a finite game
    return support


def _learned(plan: Plan, file: State, stop: Stop) -> Target:
    """Two records, equally likely, and which outputs to bet on."""
    study = _Study.of(plan)
    samples, replayed = study.outputs(file, stop)
    counted = plan.settings.trials - study.calls
    if counted < 10:
        raise DpradError(
            f"trials must leave runs to count: give more than {plan.settings.trials:,}."
        )
    learned = learning.learn(
        samples,
        trials=counted,
        delta=plan.point[1],
        alpha=plan.settings.alpha,
        seed=plan.settings.seed,
    )
    a, b = learned.pair
    support = _support(plan)
    note = (
        f"compared record {record(_plain(support[a]), a + 1)} and record "
        f"{record(_plain(support[b]), b + 1)} of {len(support):,}, in order, found by "
        f"{study.calls:,} calls that are not counted"
    )
    labels: Column = np.array([None, None], dtype=object)
    labels[:] = [_plain(plan.read[a]), _plain(plan.read[b])]
    two = Question.of(Prior.uniform(2))
    notes = (*plan.notes, note, *_again(*replayed))
    left = replayed[1] - replayed[0]
    return Target(two, plan.read[[a, b]], labels, learned, None, study.calls, notes, left)


@dataclass(frozen=True, slots=True, eq=False)
class _Study:
    """Some records, and how often each is called for learning."""

    plan: Plan
    places: Any
    each: int

    @classmethod
    def of(cls, plan: Plan) -> _Study:
        chance = np.random.default_rng(np.random.SeedSequence(plan.settings.seed, spawn_key=(0,)))
        places = learning.candidates(plan.game.pi, chance)
        budget = int(min(STUDY * plan.settings.trials, MOST_STUDIED))
        return cls(plan, places, max(4, budget // max(len(places), 1)))

    @property
    def calls(self) -> int:
        """All of them."""
        return self.each * len(self.places)

    def run(self, index: int, size: int, first: int) -> list[Any]:
        """Outputs of one record; its first call is number `first`."""
        plan, place = self.plan, int(self.places[index])
        stream_of = np.random.SeedSequence(plan.settings.seed, spawn_key=(0, index))
        records = np.repeat(plan.read[[place]], size, axis=0)
        labels = np.repeat(_support(plan)[[place]], size)
        outputs = sample(plan.subject, records, labels, np.random.default_rng(stream_of), first)
        return outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)

    def outputs(self, file: State, stop: Stop) -> tuple[dict[int, Any], tuple[int, int]]:
        """Outputs by record; they are stored in the state file."""
        done = self._stored(file)
        again = self._replay(done, file)
        samples: dict[int, Any] = {}
        todo = [(i, self.each, i * self.each + 1) for i in range(len(self.places)) if i not in done]
        fresh = stream(self.run, todo, self.plan.settings.workers, threads=False)
        for i in range(len(self.places)):
            outputs = done[i] if i in done else next(fresh)
            if file.journal is not None:
                file.put("study", i, [encode(o) for o in outputs], "")
            samples[int(self.places[i])] = outputs
            if stop.now():
                fresh.close()
                raise DpradError("max_seconds passed while the attack was still being learnt.")
        return samples, (again, self.each * len(done))

    def _stored(self, file: State) -> dict[int, list[Any]]:
        """Stored outputs of an earlier session, from a file that may have been forged."""
        try:
            stored = {i: decode(outputs) for i, outputs in file.done("study").items()}
            sound = all(0 <= i < len(self.places) for i in stored)
            if sound and all(len(outputs) == self.each for outputs in stored.values()):
                return stored
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            pass
        raise DpradError("the state file is damaged: the outputs used for learning cannot be read.")

    def _replay(self, done: dict[int, list[Any]], file: State) -> int:
        """Run it again, a share of the calls of every record and all while that is quick.

        Returns how many agreed.
        """
        subject = self.plan.subject
        single = isinstance(subject, BlackBox) and subject.one_by_one
        share = max(REMEMBERED, math.ceil(SHARE * self.each))
        some = min(self.each, share) if single else self.each
        begin, calls = time.monotonic(), 0
        tasks = [(i, some, 1) for i in done]
        with closing(stream(self.run, tasks, self.plan.settings.workers, threads=False)) as results:
            for i, outputs in zip(done, results, strict=True):
                self._agree(outputs, done[i][:some], file)
                calls += some
        each = (time.monotonic() - begin) / max(calls, 1)
        for i in done if some < self.each else ():
            if time.monotonic() - begin + each * self.each > PATIENCE:
                break
            self._agree(self.run(i, self.each, 1), done[i], file)
            calls += self.each - some
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


def _alike(one: Any, other: Any) -> bool:
    return fingerprint.digest(one) == fingerprint.digest(other)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
