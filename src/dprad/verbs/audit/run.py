"""The counted runs of an audit, chunk by chunk, until enough is known or all are done."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

from dprad.errors import DpradError
from dprad.game.game import Table
from dprad.mechanisms.black_box import BlackBox
from dprad.runtime.interrupts import interruptible
from dprad.runtime.progress import Meter, Stop
from dprad.verbs.audit.conclude import rarest, risk_interval
from dprad.verbs.audit.evidence import Counted, Evidence, Learned, to_plain
from dprad.verbs.audit.findable import LESSON, Tested, fewest, least_found, least_learned
from dprad.verbs.audit.plan import Plan, Settings
from dprad.verbs.audit.state import State
from dprad.verbs.audit.tally import Tally
from dprad.verbs.audit.target import Target, TooFewError
from dprad.verbs.audit.trials import CHANGED, Chunks, Job, run_all


@dataclass(frozen=True, slots=True)
class Counts:
    """The evidence, the wealth and the counts on the way.

    `replayed`: how many calls of an earlier session were run again, and how many there were.
    """

    evidence: Evidence
    wealth: tuple[tuple[int, float], ...]
    trace: tuple[tuple[int, float, Tally], ...]
    interrupted: bool
    replayed: tuple[int, int]


def count(plan: Plan, target: Target, file: State, stop: Stop, begin: float) -> Counts:
    """Run all chunks, or as many as needed; stored ones are not run again."""
    settings, game = plan.settings, target.game
    runs = settings.trials - target.studied
    evidence = evidence_of(plan, target)
    _warn_if_hopeless(plan, target, runs)
    job = Job(
        plan.subject, target.read, target.labels, game, target.play, target.attack, settings.seed
    )
    chunks = Chunks(runs)
    stored, again = _stored(job, evidence, chunks, file, settings.workers, stop)
    meter = Meter(settings.progress, runs, begin)
    threads = not isinstance(plan.subject, BlackBox)
    results = run_all(job.chunk, chunks, stored, settings.workers, threads)
    interrupted, needed = False, -math.log(settings.alpha)
    wealth: list[tuple[int, float]] = []
    trace: list[tuple[int, float, Tally]] = []
    try:
        with interruptible() as look:
            for i, (part, first) in results:
                look()  # what a function made of Ctrl-C is no output of it
                kept = evidence.add(part)
                if i not in stored and file.journal is not None:
                    file.put("runs", i, to_plain(kept), first)
                runs_so_far = evidence.tally.runs
                wealth.append((runs_so_far, evidence.log_wealth()))
                meter.show(runs_so_far)
                if settings.trace and (not trace or runs_so_far >= 2 * trace[-1][0]):
                    trace.append(_known(evidence, settings.alpha))
                if i not in stored and stop.now():
                    break
                if settings.sequential and _enough(evidence, game, needed, settings):
                    break
    except KeyboardInterrupt:
        interrupted = True
    finally:
        results.close()
        meter.close()
    if evidence.tally.runs == 0:
        if interrupted:
            raise KeyboardInterrupt
        raise TooFewError("the audit was stopped before the first runs were counted.")
    if settings.trace and trace[-1][0] < evidence.tally.runs:
        trace.append(_known(evidence, settings.alpha))
    before = sum(chunks[i] for i in stored)
    return Counts(evidence, tuple(wealth), tuple(trace), interrupted, (again, before))


def _known(evidence: Evidence, alpha: float) -> tuple[int, float, Tally]:
    """Runs so far, what is certified by them, and their counts."""
    return evidence.tally.runs, evidence.refuted(alpha, sequential=True), evidence.tally


def evidence_of(plan: Plan, target: Target) -> Evidence:
    """Counted bets, or a session."""
    if target.session is None:
        return Counted(plan.point[0])
    return Learned(target.session, plan.point[1])


def _enough(evidence: Evidence, game: Table, needed: float, settings: Settings) -> bool:
    """Whether a sequential audit may stop: refuted, or known to this precision."""
    if evidence.log_wealth() >= needed:
        return True
    if settings.precision is None:
        return False
    low, high = risk_interval(evidence.tally, game, settings.alpha, sequential=True)
    return high - low <= settings.precision


def _stored(
    job: Job, evidence: Evidence, chunks: Chunks, file: State, workers: int, stop: Stop
) -> tuple[dict[int, tuple[Any, str]], int]:
    """Chunks of an earlier session, and how many of their calls were run again and agreed."""
    done = {i: evidence.stored(p, job, chunks, i) for i, p in file.done("runs").items()}
    firsts = {i: file.first("runs", i) for i in done}
    with interruptible() as look:
        again = job.replay(chunks, done, firsts, workers, stop.now)
        look()  # what a function made of Ctrl-C is no other output
    if file.done("refused") or again is None:
        file.put("refused", 0, None, "")  # remember this
        raise DpradError(CHANGED)
    return {i: (part, firsts[i]) for i, part in done.items()}, again


def _warn_if_hopeless(plan: Plan, target: Target, runs: int) -> None:
    """Warn beforehand if these calls cannot find a violation, not even outputs that reveal the
    record.
    """
    case, session = Tested(plan.tested, plan.point, plan.settings.alpha), target.session

    def found(calls: int) -> bool:
        if session is None:
            return least_found(case, calls, rarest(target.game)) is not None
        known = session.studied
        return least_learned(case, calls - (0 if known else LESSON), calls + known) is not None

    if found(runs):
        return
    needed = fewest(found, runs)
    takes = f"takes about {needed:,} runs at this confidence"
    if not math.isfinite(needed):
        takes = "would take more runs than anybody can make"
    warnings.warn(
        f"{runs:,} runs cannot refute epsilon = {plan.point[0]:g}, not even if every output "
        f"reveals the record; that {takes}.",
        stacklevel=4,
    )
