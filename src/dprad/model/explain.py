"""Results as plain sentences. Reads results by their attributes only.

Plain language first, then one line of mathematics. Odds are given as "x of n tries", with n large
enough for x to be informative. Bounds are rounded up.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

from dprad.model.losses import LOSSES

if TYPE_CHECKING:
    from dprad.model.audits import Audit
    from dprad.model.results import Calibration, Comparison, Risk, WorstPrior

MEASURES = {
    "rad": "extra risk",
    "worst": "largest risk of one person",
    "rero": "attacker's success",
    "tv": "total variation",
}
_SCALES = (100, 1_000, 10_000, 100_000, 1_000_000)


def risk(result: Risk) -> str:
    """One sentence with the odds and the number."""
    who = attacker(result.threat)
    if result.success_in is None or result.success_out is None:
        n = scale(result.rad)
        times = math.ceil(result.rad * n - 1e-9)
        if times == 0:
            return (
                f"{who[0].upper()}{who[1:]} gains nothing if the person takes part (extra risk 0)."
            )
        verb = "says 'in the data'" if membership(result.threat) else "is right"
        more = "more time" if times == 1 else "more times"
        return (
            f"{who[0].upper()}{who[1:]} {verb} at most {times:,} {more} in {n:,} tries if the "
            f"person takes part (extra risk at most {above(result.rad)}; {result.method})."
        )
    n = scale(result.rad)
    verb = "says 'in the data'" if membership(result.threat) else "is right"
    low, high = result.interval
    label = "exact" if result.kind == "exact" else f"estimate, {low:.4f} to {high:.4f}"
    return (
        f"Not in the data: {who} {verb} in {count(result.success_out, n)} of {n:,} tries; in the "
        f"data: in {count(result.success_in, n)} of {n:,} "
        f"(extra risk {nearest(result.rad)}, {label}; {result.method})."
    )


def membership(threat: dict[str, Any]) -> bool:
    """Whether the only question is if the record was used; then 'in the data' may be wrong."""
    return bool(threat["membership"])


def nearest(value: float) -> str:
    """Four decimals of an exact number or an estimate; two significant digits if it is small."""
    return _trimmed(f"{value:.4f}") if value == 0 or value >= 1e-3 else f"{value:.1e}"


def _trimmed(text: str) -> str:
    """Two decimals if the others are zero."""
    return text[:-2] if text.endswith("00") and "." in text[:-3] else text


def number(result: Risk) -> str:
    """The extra risk: exact and rounded to nearest, a bound rounded up, or an estimate and its
    interval.
    """
    return bounded(result.rad, result.interval, result.kind)


def bounded(rad: float, interval: tuple[float, float], kind: str) -> str:
    """The same, from its parts."""
    if kind == "upper-bound":
        return f"at most {above(rad)}"
    if kind == "estimate":
        return f"{nearest(rad)} ({nearest(interval[0])} to {nearest(interval[1])})"
    return nearest(rad)


def amount(value: float) -> str:
    """Four digits, with thousands separators if it is large."""
    if not math.isfinite(value):
        return "without limit"
    if abs(value) >= 1e15:
        return f"{value:.3e}"
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    rounded = round(value, 3 - math.floor(math.log10(abs(value)))) if value else 0.0
    text = f"{rounded:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def calibration(plan: Calibration) -> str:
    """The value to set, and what it achieves."""
    what = MEASURES.get(plan.measure, f"bound {plan.measure}")
    lines = [
        f"{plan.family} with {plan.parameter} = {safely(plan.value, plan.rising)} keeps the {what} "
        f"at or below {plan.max_risk:g}. {_tightness(plan)}"
    ]
    if plan.error is not None and math.isfinite(plan.error):
        lines.append(f"The noise stays within {amount(plan.error)} in 95 of 100 cases.")
    lines.append(str(plan.risk))
    return "\n".join(lines)


def _tightness(plan: Calibration) -> str:
    """Whether less noise would suffice: known if the risk is exact, else only for the promise."""
    if plan.limited:
        return "It is the end of the range searched; less noise was not tried."
    if plan.measure == "tv" or (plan.measure in MEASURES and plan.risk.kind == "exact"):
        return "Any less noise would exceed it."
    if plan.risk.kind == "estimate":
        return "The risk is estimated: slightly less noise may suffice; more trials would show."
    return "The guarantee does not allow less noise; the mechanism behind it may."


def safely(value: float, rising: bool) -> str:
    """Seven digits of a parameter, rounded towards more noise."""
    if value == int(value) and abs(value) < 1e15:
        return f"{value:.0f}"
    digits = 6 - math.floor(math.log10(abs(value)))
    scaled = value * 10.0**digits
    return f"{(math.floor(scaled) if rising else math.ceil(scaled)) / 10.0**digits:.7g}"


def rows(table: Comparison) -> list[tuple[str, ...]]:
    """A heading and one line per mechanism; a star marks those that no other beats."""
    lines: list[tuple[str, ...]] = [("", "mechanism", "extra risk", "95% error", "variance")]
    for c in table.candidates:
        error = "" if c.error is None else f"{c.error:.4g}"
        variance = "" if c.variance is None else f"{c.variance:.4g}"
        low, high = c.risk.interval
        sure = c.risk.kind == "estimate"
        risk = f"{c.risk.rad:.4f} ({low:.4f} to {high:.4f})" if sure else above(c.risk.rad)
        lines.append(("*" if c.frontier else "", c.name, risk, error, variance))
    return lines


def comparison(table: Comparison) -> str:
    """A table, least risk first; a star marks those that no other beats on both counts."""
    return aligned(rows(table))


def aligned(cells: list[tuple[str, ...]]) -> str:
    """The rows of a comparison as a table."""
    widths = [max(len(row[i]) for row in cells) for i in range(5)]
    lines = ["  ".join(x.ljust(w) for x, w in zip(r, widths, strict=True)).rstrip() for r in cells]
    return "\n".join([*lines, "* nothing else here has both less risk and less error"])


def worst(result: WorstPrior) -> str:
    """Lower and upper bound on the worst case, and how far the search went."""
    sure = below(result.risk.interval[0])
    estimate = ", estimated" if result.risk.kind == "estimate" else ""
    tried = "1 prior was" if result.tried == 1 else f"{result.tried:,} priors were"
    end = "; then the search was stopped, so a riskier one may be near" if result.stopped else ""
    return (
        f"The extra risk of the worst prior is between {sure} and {above(result.bound.rad)}: a "
        f"prior was found with extra risk {result.risk.rad:.4f}{estimate}, and no prior exceeds "
        f"{above(result.bound.rad)} ({result.bound.method}). {tried} tried{end}."
    )


def audit(result: Audit) -> str:
    """The verdict, its basis, and what is only an estimate."""
    level = f"{100 * result.confidence:.4g}%"
    lost = f", delta = {result.delta:g}" if result.delta else ""
    whom = "added or removed" if result.in_out else "replaced"
    if result.verdict == "violated" and result.epsilon_lower <= result.epsilon_claimed:
        lines = [f"Violated, at {level} confidence: the outputs tell more than the claim allows."]
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
    if result.verdict == "consistent":
        lines.append(_how_hard(result))
    if result.epsilon_estimate is not None and result.epsilon_interval is not None:
        low, high = (
            f"{x:.3f}" if math.isfinite(x) else "infinite" for x in result.epsilon_interval
        )
        lines.append(
            f"If it is the supposed mechanism, it behaves like epsilon = "
            f"{result.epsilon_estimate:.3f} ({low} to {high}). This estimate refutes nothing."
        )
    lines.append(
        f"The attack guessed in {result.trials - result.passes:,} of {result.trials:,} runs and "
        f"was right in {result.successes:,}; extra risk {_trimmed(f'{result.rad:.4f}')} "
        f"({' to '.join(_trimmed(f'{x:.4f}') for x in result.rad_interval)})."
    )
    lines += [f"Note: {note}." for note in result.notes]
    return "\n".join(lines)


def _how_hard(result: Audit) -> str:
    """What a consistent audit would have found, and how near it was."""
    found = (
        "No violation, however large, could have been found with so few calls."
        if result.would_find is None
        else f"A violation with epsilon {above(result.would_find)} or more would have been found "
        "if every call had shown it; one that shows rarely, or that was not learned, may be larger."
    )
    runs, wealth = result.wealth[-1] if result.wealth else (0, 0.0)
    needed = -math.log(1.0 - result.confidence)
    if wealth > 0.3 * needed:
        found += f" The evidence grows: at this rate {math.ceil(runs * needed / wealth):,} calls "
        found += "would refute the claim."
    return found


def below(value: float) -> str:
    """Four digits, rounded down."""
    return f"{math.floor(value * 1e4 + 1e-9) / 1e4:g}"


def attacker(threat: dict[str, Any]) -> str:
    """The attacker, as the subject of a sentence."""
    knows, target = threat["knows"], threat["target"]
    if knows == "everything":
        return "an attacker who knows the whole record and asks whether it was used"
    if knows == "nothing":
        known = "knows nothing about the person"
    elif knows == "function":
        known = "knows part of the record"
    else:
        known = f"knows {listed(knows)}"
    if membership(threat):
        return f"an attacker who knows {listed(knows)} and asks whether the record was used"
    goal = "the whole record" if target == "record" else listed(target)
    return f"an attacker who {known} and guesses {goal}{tolerance(threat)}"


def tolerance(threat: dict[str, Any]) -> str:
    """How close a guess must be."""
    eta, loss = threat["eta"], threat["loss"]
    if loss not in LOSSES:
        return " closely enough"
    return LOSSES[loss].words(amount(eta)) if eta > 0 else ""


def details(result: Risk, *, every_bound: bool = False) -> str:
    """Further explanation, line by line; optionally also the bounds that do not apply."""
    lines = []
    if result.baseline is not None and not membership(result.threat):
        lines.append(f"A blind guess, without any release, is right in {share(result.baseline)}.")
    if result.kind == "upper-bound":
        lines.append(
            f"The attacker's total success rate, for any reason, is at most {above(result.rero)}."
        )
    elif not membership(result.threat):
        lines.append(
            "The odds are for the attack that gains most from the person taking part. The attack "
            f"with the highest total success rate is right in {share(result.rero)}."
        )
    bounds = [b for b in result.bounds if b.measure == "rad"]
    valid = [b for b in bounds if b.value is not None]
    if valid:
        lines += ["", f"Bounds on the extra risk, rounded up ({len(valid)}; the smallest counts):"]
        valid.sort(key=lambda b: (b.title != result.method, b.value))
        lines += [f"  {above(b.value or 0.0, 6)}  {b.title}" for b in valid]
    if every_bound:
        lines += ["", "Bounds that do not apply:"]
        lines += [f"  {b.title}: {b.reason}" for b in bounds if b.value is None]
    lines += ["", "This holds if:"]
    lines += [f"  - {line}" for line in result.assumptions]
    return "\n".join(lines).lstrip("\n")


def html(text: str) -> str:
    """Sentences as paragraphs, for a notebook."""
    return "".join(f"<p>{escape(line)}</p>" for line in text.split("\n") if line.strip())


def html_table(cells: list[tuple[str, ...]]) -> str:
    """A table whose first row is the heading, for a notebook."""

    def row(tag: str, values: tuple[str, ...]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(v)}</{tag}>" for v in values) + "</tr>"

    body = "".join(row("td", values) for values in cells[1:])
    return f"<table><thead>{row('th', cells[0])}</thead><tbody>{body}</tbody></table>"


def scale(difference: float) -> int:
    """The number of tries for stating a difference: the fewest that make it at least two."""
    return next((n for n in _SCALES if difference * n >= 2), _SCALES[-1] if difference else 100)


def count(probability: float, n: int) -> str:
    """About how many of n tries."""
    times = probability * n
    return f"{round(times):,}" if times >= 0.5 or times == 0 else "fewer than 1"


def share(probability: float) -> str:
    """A chance as odds."""
    n = scale(probability)
    return f"{count(probability, n)} of {n:,} tries"


def above(value: float, digits: int = 4) -> str:
    """Rounded up to this many decimals; to two significant digits if the value is small."""
    if 0 < value < 10.0 ** (1 - digits):
        places = 1 - math.floor(math.log10(value))
        return f"{math.ceil(value * 10**places - 1e-6) / 10**places:.1e}"
    text = f"{math.ceil(value * 10**digits - 1e-6) / 10**digits:.{digits}f}"
    return _trimmed(text) if digits == 4 else text


def listed(names: Any) -> str:
    """a, b and c."""
    words = [names] if isinstance(names, str) else list(names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
