"""Results as plain sentences. Reads results by their attributes only.

Plain language first, then one line of mathematics. Odds are given as "x of n tries", with n large
enough for x to be informative. Bounds are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING, Any

from dprad.model.guarantees.neighbours import UNKNOWN
from dprad.model.losses import LOSSES
from dprad.model.parameters import TURNED

if TYPE_CHECKING:
    from dprad.model.comparisons import Comparison
    from dprad.model.results import Risk

MEASURES = {
    "rad": "extra risk",
    "worst": "largest risk of one person",
    "rero": "attacker's success",
    "tv": "total variation",
    "advantage": "advantage of a membership test",
    "summary": "summary of the promise",
}
_NAMES = {"tv": "total variation"}
_SCALES = (100, 1_000, 10_000, 100_000, 1_000_000)


def risk(result: Risk) -> str:
    """The odds; why they are doubtful; whether they are an average that hides somebody; whom they
    leave out.
    """
    return "\n".join([sentence(result), *doubtful(result.doubts), *beside(result), *result.notes])


def doubtful(doubts: Iterable[str]) -> list[str]:
    """A line for each doubt about the guarantee."""
    return [f"Cannot be relied on: {doubt}" for doubt in doubts]


def sentence(result: Risk, *, named: bool = True) -> str:
    """One sentence: the odds without and with the person in the data, and their difference;
    optionally without the name of the release.
    """
    against = [f"against {subject(result.subject)}"] if named else []
    if result.threat.get("group") is not None:
        against.append(f"for {people(result.threat)}")
    text = ", ".join([*against, _odds(result)])
    return f"{text[0].upper()}{text[1:]}."


def _odds(result: Risk) -> str:
    who, asks, n = attacker(result.threat), membership(result.threat), scale(result.rad)
    if result.success_in is not None and result.success_out is not None:
        low, high = result.interval
        label = "exact" if result.kind == "exact" else f"estimate, {low:.4f} to {high:.4f}"
        verb = "says 'in the data'" if asks else "is right"
        absent, present = (
            ("it was not", "it was") if asks else ("the person is not in the data", "they are")
        )
        return (
            f"{who} {verb} in {count(result.success_out, n)} of {n:,} tries if {absent}, and in "
            f"{count(result.success_in, n)} of {n:,} if {present} "
            f"(extra risk {nearest(result.rad)}, {label})"
        )
    times = math.ceil(result.rad * n - 1e-9)
    if times == 0:
        return f"{who} gains nothing if the person takes part (extra risk 0)"
    most = f"(extra risk at most {above(result.rad)})"
    more = f"at most {times:,} more {'time' if times == 1 else 'times'} in {n:,} tries"
    if asks:
        return f"{who} says 'in the data' {more} if the person takes part {most}"
    if result.baseline is None:
        return f"{who} is right {more} if the person takes part, whatever was known before {most}"
    # no attack is right more often than `rero`, so one that gains all this starts low enough
    top = max(min(math.ceil(result.rero * n - 1e-9), n), times)
    start = min(result.baseline, (top - times) / n)
    return (
        f"the chance that {who} is right may rise from {count(start, n)} to "
        f"{round(start * n) + times:,} of {n:,} tries if the person takes part {most}"
    )


def beside(result: Risk) -> list[str]:
    """The most exposed person, and attackers who know more; nothing if no one gains more."""
    lines, same = [], False
    if result.worst is not None and result.worst_interval is not None:
        known = str(result.worst_kind)
        told = above if known == "upper-bound" else nearest
        same = result.worst <= result.rad or told(result.worst) in {
            above(result.rad),
            nearest(result.rad),
        }
        largest = bounded(result.worst, result.worst_interval, known)
        lines = [
            f"For the most exposed person the extra risk is {largest}; the number above is the "
            f"average over {people(result.threat)}."
        ]
    if result.method.startswith("simulated"):
        lines.append(f"Measured with a {result.method}; a better attack may gain more.")
    if same:
        return []
    knows, whole = result.threat["knows"], result.threat["target"] == "record"
    if knows != "everything" and not (membership(result.threat) and whole) and result.rad > 0:
        lines.append(
            f"Asked about an attacker who {_known(knows)}; one who knows more may gain more."
        )
    return lines


def people(threat: dict[str, Any]) -> str:
    """Who is asked about."""
    group = threat.get("group")
    if group is None:
        return "people"
    return "people of the group" if group == "function" else f"people with {group}"


def _runs(plain: dict[str, Any]) -> int:
    """How many releases a composition has."""
    if "mechanisms" in plain:
        return sum(map(_runs, plain["mechanisms"]))
    return int(plain["times"]) * _runs(plain["mechanism"]) if plain["kind"] == "Repeated" else 1


def subject(plain: dict[str, Any]) -> str:
    """A promise or a mechanism in a few words, from its plain data."""
    kind = " ".join(str(plain.get("kind", "the mechanism")).split())[:60]
    if kind == "Repeated":
        return f"{plain['times']:,} runs of {subject(plain['mechanism'])}"
    if kind == "Composed":
        return f"{_runs(plain):,} releases together"
    if kind == "BlackBox":
        return f"the function {plain['function']}"
    if "reports" in plain:
        return f"{reports(plain)} of {_protocol(kind, plain)}"
    numbers = [
        f"{_NAMES.get(name, name.replace('_', ' '))} {_short(value)}"
        for name, value in plain.items()
        if (name in TURNED or (name == "delta" and value))
        and isinstance(value, int | float)
        and not isinstance(value, bool)
    ]
    if "noise" in plain:
        return _tables(kind, plain)
    if "neighbours" in plain:
        what = f"promise of {listed(numbers)}" if numbers else "promised profile"
        near = plain["neighbours"]
        return f"a {what} ({'neighbours not stated' if near == UNKNOWN else near})"
    if "for_record" in plain:
        numbers[-1] += f" ({_short(plain['for_record'])} for the whole record)"
    return f"{kind} with {listed(numbers)}" if numbers else f"the mechanism {kind}"


def reports(plain: dict[str, Any]) -> str:
    """How many reports of a protocol over time are seen."""
    many = int(plain["reports"])
    return "one report" if many == 1 else f"{many:,} reports"


def _protocol(kind: str, plain: dict[str, Any]) -> str:
    """A protocol over time, with what sets its noise."""
    names = [n for n in ("epsilon_inf", "epsilon_one", "f") if n in plain]
    return f"{kind} with {listed([f'{n} {_short(plain[n])}' for n in names])}"


def _tables(kind: str, plain: dict[str, Any]) -> str:
    """A table release: what is published, and its noise."""
    of, by = plain.get("of"), plain.get("by", [])
    if kind == "Marginals":
        what, by = f"{len(by)} tables of counts", []
    else:
        named = {"Counts": "counts", "Histogram": f"a histogram of {of}", "Mean": f"means of {of}"}
        what = named.get(kind, f"sums of {of}")
    cells = f" by {listed(list(by))}" if by else ""
    who = f" where {plain['where']}" if "where" in plain else ""
    amount = [f"{n} {_short(plain[n])}" for n in ("epsilon", "rho", "scale") if n in plain]
    near = f", {plain['neighbours']}" if "neighbours" in plain and "scale" not in plain else ""
    rest = [f", {plain['times']:,} times"] if "times" in plain else []
    rest += [f", keys by {n} {_short(plain[n])}" for n in ("threshold", "delta") if n in plain]
    return f"{what}{cells}{who} ({plain['noise']} noise, {listed(amount)}{near}{''.join(rest)})"


def _short(value: float) -> str:
    return amount(value) if value == 0 or value >= 1e-3 else f"{value:.4g}"


def compared(interval: tuple[float, float], kind: str, limit: float) -> str:
    """How a risk stands to a limit: "stays within", "exceeds", or "may exceed" if that is not
    known.
    """
    if interval[1] <= limit:
        return "stays within"
    return "exceeds" if kind != "upper-bound" and interval[0] > limit else "may exceed"


def membership(threat: dict[str, Any]) -> bool:
    """Whether the only question is if the record was used; then 'in the data' may be wrong."""
    return bool(threat["membership"])


def nearest(value: float) -> str:
    """Four decimals of an exact number or an estimate; two significant digits if it is small."""
    return trimmed(f"{value:.4f}") if value == 0 or value >= 1e-3 else f"{value:.1e}"


def trimmed(text: str) -> str:
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


def safely(value: float, rising: bool) -> str:
    """At most four digits of a parameter, rounded towards more noise; whole numbers in full."""
    if value == int(value) and abs(value) < 1e15:
        return f"{value:.0f}"
    unit = math.floor(math.log10(abs(value))) - 3
    scaled = value / 10.0**unit if unit >= 0 else value * 10.0**-unit
    # a number of four digits stays itself, though its multiple is not quite whole
    near = round(scaled)
    if abs(scaled - near) > 1e-9 * near:
        near = math.floor(scaled) if rising else math.ceil(scaled)
    return f"{Decimal(near).scaleb(unit).normalize():{'f' if -8 < unit < 12 else 'g'}}"


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
    doubts = [f"{c.name}: {d}" for c in table.candidates for d in c.risk.doubts]
    return "\n".join([aligned(rows(table)), *doubtful(doubts)])


def aligned(cells: list[tuple[str, ...]]) -> str:
    """The rows of a comparison as a table."""
    widths = [max(len(row[i]) for row in cells) for i in range(5)]
    lines = ["  ".join(x.ljust(w) for x, w in zip(r, widths, strict=True)).rstrip() for r in cells]
    return "\n".join([*lines, "* nothing else here has both less risk and less error"])


def below(value: float) -> str:
    """Four digits, rounded down."""
    return f"{math.floor(value * 1e4 + 1e-9) / 1e4:g}"


def attacker(threat: dict[str, Any]) -> str:
    """The attacker, as the subject of a sentence."""
    knows, target = threat["knows"], threat["target"]
    if knows == "everything":
        return "an attacker who knows the whole record and asks whether it was used"
    known = _known(knows) + (" about the person" if knows == "nothing" else "")
    if membership(threat):
        return f"an attacker who knows {listed(knows)} and asks whether the record was used"
    goal = "the whole record" if target == "record" else listed(target)
    return f"an attacker who {known} and guesses {goal}{tolerance(threat)}"


def _known(knows: Any) -> str:
    return "knows part of the record" if knows == "function" else f"knows {listed(knows)}"


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
    gains = "The odds are for the attack that gains most from the person taking part."
    if result.kind == "upper-bound":
        limit = above(result.rero)
        most = f"The attacker's total success rate, for any reason, is at most {limit}."
        odds = result.baseline is not None and not membership(result.threat) and result.rad > 0
        lines.append(f"{gains} {most}" if odds else most)
    elif not membership(result.threat):
        best = f"The attack with the highest total success rate is right in {share(result.rero)}."
        lines.append(f"{gains} {best}")
    lines.append(f"Method: {result.method}.")
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
        places = min(1 - math.floor(math.log10(value)), 308)
        return f"{math.ceil(value * 10**places - 1e-6) / 10**places:.1e}"
    text = f"{math.ceil(value * 10**digits - 1e-6) / 10**digits:.{digits}f}"
    return trimmed(text) if digits == 4 else text


def listed(names: Any) -> str:
    """a, b and c."""
    words = [names] if isinstance(names, str) else list(names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
