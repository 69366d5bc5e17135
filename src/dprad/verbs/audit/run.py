"""The counted runs of an audit, chunk by chunk, until enough is known or all are done."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from dprad import bounds
from dprad.errors import DpradError
from dprad.game.game import Table
from dprad.mechanisms.black_box import BlackBox
from dprad.runtime.progress import Meter, Stop
from dprad.verbs.audit.certificates import HIGHEST
from dprad.verbs.audit.conclude import Hypothesis, enough
from dprad.verbs.audit.plan import Plan
from dprad.verbs.audit.state import State
from dprad.verbs.audit.tally import Tally
from dprad.verbs.audit.target import Target
from dprad.verbs.audit.trials import CHANGED, Chunks, Job, run_all


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts, the results on the way, and the tested claim.

    `replayed`: how many calls of an earlier session were run again, and how many there were.
    """

    tally: Tally
    seen: tuple[Tally, ...]
    test: Hypothesis
    interrupted: bool
    replayed: tuple[int, int]


def count(plan: Plan, target: Target, file: State, stop: Stop, begin: float) -> Counts:
    """Run all chunks, or as many as needed; stored ones are not run again."""
    settings, game = plan.settings, target.game
    runs = settings.trials - target.studied
    # a claim given as a curve limits the extra risk more than any one of its points
    _, limit = bounds.least(bounds.evaluate(plan.claim, game), "rad")
    test = Hypothesis(game, *plan.point, limit, settings.alpha)
    _warn_if_hopeless(plan, game, runs)
    job = Job(plan.subject, target.read, target.labels, game, target.play, settings.seed)
    chunks = Chunks(runs)
    stored, again = _stored(job, chunks, file, settings.workers, stop)
    meter = Meter(settings.progress, runs, begin)
    threads = not isinstance(plan.subject, BlackBox)
    results = run_all(job.chunk, chunks, stored, settings.workers, threads)
    tally, interrupted = Tally(), False
    seen: list[Tally] = []
    try:
        for i, (part, first) in results:
            tally = tally + part
            file.put("runs", i, part.to_plain(), first)
            meter.show(tally.runs)
            if settings.trace and (not seen or tally.runs >= 2 * seen[-1].runs):
                seen.append(tally)
            if i not in stored and stop.now():
                break
            if settings.sequential and enough(tally, test, settings.precision):
                break
    except KeyboardInterrupt:
        interrupted = True
    finally:
        results.close()
        meter.close()
    if tally.runs == 0:
        raise DpradError("the audit was stopped before the first runs were counted.")
    before = sum(part.runs for part, _ in stored.values())
    return Counts(tally, tuple(seen), test, interrupted, (again, before))


def _stored(
    job: Job, chunks: Chunks, file: State, workers: int, stop: Stop
) -> tuple[dict[int, tuple[Tally, str]], int]:
    """Chunks of an earlier session, and how many of their calls were run again and agreed."""
    done = {i: Tally.checked(p, chunks, i) for i, p in file.done("runs").items()}
    firsts = {i: file.firsts["runs", i] for i in done}
    again = job.replay(chunks, done, firsts, workers, stop.now)
    if file.done("refused") or again is None:
        file.put("refused", 0, None, "")  # remember this
        raise DpradError(CHANGED)
    return {i: (part, firsts[i]) for i, part in done.items()}, again


def _warn_if_hopeless(plan: Plan, game: Table, runs: int) -> None:
    """Warn beforehand if not even perfect guesses could refute the claim."""
    (epsilon, delta), alpha = plan.point, plan.settings.alpha
    if delta > 0 or not game.nothing_known:
        return
    chance = float(game.luck[game.luck > 0].min(initial=1.0))
    if not 0 < chance < 1 or epsilon > HIGHEST:
        return
    odds = math.log(chance / (1.0 - chance)) + epsilon
    cap = 1.0 / (1.0 + math.exp(-min(odds, 700.0)))
    needed = math.log(0.9 * alpha) / math.log(cap) if cap < 1 else math.inf
    if runs < needed:
        more = (
            "some more"
            if plan.settings.sequential
            else f"{math.ceil(needed):,}"
            if needed < 1e15
            else "no"
        )
        warnings.warn(
            f"{runs:,} runs cannot refute epsilon = {epsilon:g}, not even if every guess is right; "
            f"that takes {more} runs at this confidence.",
            stacklevel=4,
        )
