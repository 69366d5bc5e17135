"""Lines to draw: the risks of mechanism classes, guarantee classes or functions at given values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dprad.errors import DpradError, number
from dprad.exact import Sampling
from dprad.game.question import Question
from dprad.model.guarantees import Guarantee
from dprad.runtime.progress import steps
from dprad.verbs.assess import answer
from dprad.verbs.dial import Dial, takes

if TYPE_CHECKING:
    from dprad.model.results import Risk

Line = tuple[Sequence[float], Sequence["Risk"]]


def lines_of(
    families: Any,
    values: Any,
    parameter: str | None,
    question: Question,
    sampling: Sampling,
    fixed: dict[str, Any],
) -> tuple[dict[str, Line], str]:
    """The risk of every family at every value, by name, and the name of the parameter."""
    points = _points(values)
    kinds, names = _listed(families)
    shared = [takes(kind) for kind in kinds]
    if question.prior.kind == "unknown" and "size" not in fixed:
        for kind, known in zip(kinds, shared, strict=True):
            if isinstance(kind, type) and known is not None and "size" in known:
                raise DpradError(
                    f"prior must be given: {kind.__name__} is over a list of values. "
                    "Prior.uniform(10) has ten of them."
                )
    for name in fixed:
        if all(known is not None and name not in known for known in shared):
            raise DpradError(f"{name} is no argument of {', '.join(names) or 'the function'}.")
    dials = [
        Dial.to_set(kind, parameter, {k: v for k, v in fixed.items() if _wants(known, k)}, question)
        for kind, known in zip(kinds, shared, strict=True)
    ]
    label = parameter or _parameter(dials)
    lines: dict[str, Line] = {}
    asked = [(dial, value) for dial in dials for value in points]
    found = [_risk(dial.make(v), question, sampling) for dial, v in steps("points", asked)]
    for k in range(len(dials)):
        risks = found[k * len(points) : (k + 1) * len(points)]
        name = names[k] or str(risks[0].subject["kind"])
        if name in lines:
            raise DpradError(f"two lines are called {name}: give names, as in {{name: function}}.")
        lines[name] = points, risks
    return lines, label


def _risk(subject: Any, question: Question, sampling: Sampling) -> Risk:
    promised = isinstance(subject, Guarantee)  # which reads nothing
    return answer(subject, replace(question, query=None) if promised else question, sampling)


def _listed(families: Any) -> tuple[list[Callable[..., Any]], list[str]]:
    """What to draw, and its names; a function without a name is called what it returns."""
    if isinstance(families, Mapping):
        kinds, names = list(families.values()), [str(name) for name in families]
    else:
        several = isinstance(families, Iterable) and not callable(families)
        kinds = list(families) if several else [families]
        called = [str(getattr(kind, "__name__", "")) for kind in kinds]
        names = [name if name.isidentifier() else "" for name in called]
    if not kinds:
        raise DpradError("plot_risk takes at least one class or function to draw.")
    for kind in kinds:
        if not callable(kind):
            raise DpradError(
                "plot_risk takes classes (such as mechanisms.GRR), functions of one number that "
                "return a mechanism or a guarantee, or lines as {name: (values, risks)}, but got a "
                f"{type(kind).__name__}."
            )
    return kinds, names


def _points(values: Any) -> list[float]:
    if values is None:
        raise DpradError("say at which values to draw: plot_risk(family, values, ...).")
    try:
        points = [number(value, "values") for value in values]
    except TypeError:
        raise DpradError(
            f"values must be a list of numbers, but is a {type(values).__name__}. An axis is "
            "given as ax=."
        ) from None
    if not points:
        raise DpradError("values must be a list of numbers, but is empty.")
    return sorted(points)


def _parameter(dials: list[Dial]) -> str:
    """What the horizontal axis shows; families that turn different things do not share one."""
    usual = sorted({dial.name for dial in dials if isinstance(dial.family, type)})
    if len(usual) > 1:
        raise DpradError(
            f"these families are not turned by the same parameter, but by {', '.join(usual)}. "
            "Say which with parameter=, or give functions of one number."
        )
    return usual[0] if usual else dials[0].name or "value"


def _wants(known: set[str] | None, name: str) -> bool:
    return known is None or name in known
