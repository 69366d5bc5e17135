"""Audits as plain sentences. Reads results by their attributes only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dprad.model.explain import above, below, trimmed

if TYPE_CHECKING:
    from dprad.model.audits import Audit

# Percent: what is next to certain is not certain.
SURE = 100 - 1e-10


def audit(result: Audit) -> str:
    """The verdict, its basis, and what is only an estimate."""
    level = f"{min(100 * result.confidence, SURE):.12g}%"
    lost = f", delta = {result.delta:g}" if result.delta else ""
    whom = "added or removed" if result.in_out else "replaced"
    if result.verdict == "violated" and result.epsilon_lower <= result.epsilon_claimed:
        lines = [
            f"Violated, at {level} confidence: the outputs tell more than the claimed epsilon "
            f"{result.epsilon_claimed:.6g} allows ({whom} records{lost})."
        ]
    elif result.verdict == "violated":
        known = (
            f"cannot be below {below(result.epsilon_lower)}"
            if result.epsilon_lower < 100
            else "is infinite: some outputs reveal the record"
        )
        lines = [
            f"Violated, at {level} confidence: epsilon {known}, but {result.epsilon_claimed:.6g} "
            f"was claimed ({whom} records{lost})."
        ]
    elif not result.conclusive:
        lines = [_nothing(result, f"({whom} records{lost})", level)]
    else:
        lines = [
            f"Consistent with the claim: {result.trials:,} runs refute epsilon below "
            f"{below(result.epsilon_lower)} at {level} confidence, and "
            f"{result.epsilon_claimed:.6g} is claimed ({whom} records{lost}). This does not "
            "prove the claim."
        ]
    if result.unverified:
        lines.append(
            f"It rests on {result.unverified:,} calls of an earlier session that were not run "
            "again: if what cannot be seen of the function has changed since, they are not its own."
        )
    if result.verdict == "consistent" and result.conclusive:
        lines.append(_how_hard(result))
    if result.epsilon_estimate is not None and result.epsilon_interval is not None:
        low, high = (
            f"{x:.3f}" if math.isfinite(x) else "infinite" for x in result.epsilon_interval
        )
        lines.append(
            f"If it is the supposed mechanism, it behaves like epsilon = "
            f"{result.epsilon_estimate:.3f} ({low} to {high}). This estimate refutes nothing."
        )
    lines.append(_counted(result))
    if result.differ:
        lines.append(
            "What differs most between the two, of all that outputs hold: "
            f"{'; '.join(result.differ)}."
        )
    lines += [f"Note: {note}." for note in result.notes]
    return "\n".join(lines)


def _counted(result: Audit) -> str:
    """What the attack did. Its average gain is no measure of the harm of a broken promise."""
    told = (
        f"The attack guessed in {result.trials - result.passes:,} of {result.trials:,} runs and "
        f"was right in {result.successes:,}"
    )
    if result.verdict == "violated":
        return f"{told}."
    low, high = (trimmed(f"{x:.4f}") for x in result.rad_interval)
    return f"{told}; extra risk {trimmed(f'{result.rad:.4f}')} ({low} to {high})."


def _nothing(result: Audit, whom: str, level: str) -> str:
    """An audit that could not have failed says nothing."""
    said = (
        f"Cannot be told: {result.trials:,} runs are too few for this audit to find a violation of "
        f"epsilon = {result.epsilon_claimed:.6g}, however large {whom}. This says nothing about "
        "the claim."
    )
    if result.epsilon_lower > 0:
        said += f" They refute epsilon below {below(result.epsilon_lower)} at {level} confidence."
    return said


def _how_hard(result: Audit) -> str:
    """What a consistent audit would have found, and how near it was."""
    assert result.would_find is not None
    lost = f" (delta = {result.delta:g})" if result.delta else ""
    found = (
        f"A violation with epsilon {above(result.would_find)} or more{lost} would have been found "
        "if every call had shown it openly; one that shows rarely, that is hidden (see the notes), "
        "or that was not learned, may be larger."
    )
    runs, wealth = result.wealth[-1] if result.wealth else (0, 0.0)
    needed = -math.log(1.0 - result.confidence)
    if wealth > 0.3 * needed:
        found += f" The evidence grows: at this rate {math.ceil(runs * needed / wealth):,} calls "
        found += "would refute the claim."
    return found
