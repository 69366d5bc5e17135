"""Dial: the parameter that a calibration varies, and its search range."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dprad.errors import DpradError, interval, number, told
from dprad.game.query import number_read
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.model.guarantees import Guarantee
from dprad.model.parameters import TURNED, Goal, Parameter


@dataclass(frozen=True, slots=True)
class Dial:
    """A parameter of `family`, by `name` (empty: its only argument), with `fixed` other arguments.

    `rising` says whether risk grows with the value (None: unknown). The search range is `low` to
    `high`; `scaled` if it is in units of the sensitivity.
    """

    family: Callable[..., Any]
    name: str
    fixed: dict[str, Any]
    low: float
    high: float
    rising: bool | None
    whole: bool
    scaled: bool = False

    @classmethod
    def of(
        cls,
        family: Callable[..., Any],
        parameter: str | None,
        between: tuple[float, float] | None,
        fixed: dict[str, Any],
        question: Question,
    ) -> Dial:
        """Determine the free parameter, what follows from the prior, and the search range."""
        arguments = _arguments(family)
        name = _free(family, arguments, parameter, fixed)
        usual = _declared(family).get(name, TURNED.get(name))
        fixed = _sized(arguments, fixed, question)
        if between is not None:
            low, high = interval(between, "between")
            if low <= 0:
                raise DpradError(f"between must be positive, but starts at {low:g}.")
            return cls(family, name, fixed, low, high, None, usual is not None and usual.whole)
        if usual is None:
            what = f"the parameter {name!r}" if name else "the argument of the function"
            raise DpradError(f"say where to look for {what}: between=(low, high).")
        unit = number(fixed.get("sensitivity", 1.0), "sensitivity", low=0) if usual.scaled else 1.0
        kind = _mechanism(family)
        own = kind is not None and kind.noise is not None and kind.noise.name == name
        most = kind.highest if kind is not None and own else math.inf
        high = min(usual.high * unit, most)
        turns = usual.rising, usual.whole, usual.scaled
        return cls(family, name, fixed, usual.low * unit, high, *turns)

    @classmethod
    def to_set(
        cls,
        family: Callable[..., Any],
        parameter: str | None,
        fixed: dict[str, Any],
        question: Question,
    ) -> Dial:
        """A dial for values that are given: nothing is searched, so there is no range."""
        arguments = _arguments(family)
        alone = not isinstance(family, type) and len(arguments) == 1 and not fixed
        if alone and parameter not in arguments:
            parameter = next(iter(arguments))  # a function of one number
        name = _free(family, arguments, parameter, fixed)
        usual = _declared(family).get(name, TURNED.get(name))
        fixed = _sized(arguments, fixed, question)
        whole = usual is not None and usual.whole
        return cls(family, name, fixed, -math.inf, math.inf, None, whole)

    def make(self, value: float) -> Any:
        """What `assess` takes, at this value."""
        argument = int(value) if self.whole else value
        try:
            if self.name:
                return self.family(**{self.name: argument}, **self.fixed)
            return self.family(argument)
        except TypeError as error:
            what = f"{self.called('the function')} cannot be made"
            ours = isinstance(self.family, type)  # of a class: which arguments it lacks
            raise DpradError(f"{what}: {error if ours else told(error)}.") from None

    def start(self, target: float, question: Question) -> float:
        """Where the search starts: the guess of the family, or the middle of the range."""
        game = question.game
        share = min(target / game.unlike, 0.999) if game.unlike > 0 else 0.5
        values = 2 if game.count is None else game.count
        noisy = isinstance(self.family, type) and issubclass(self.family, Mechanism)
        if noisy and isinstance(question.query, str):  # records that read alike are one value
            values = min(values, number_read(question.prior, question.threat, question.query))
        guess: Callable[[Goal], float | None] | None = getattr(self.family, "first_guess", None)
        value = None if guess is None else guess(Goal(target, share, values, self.fixed))
        if value is None:
            value = math.sqrt(self.low * self.high)
            value = min(1.0, value) if self.rising is not False and not self.whole else value
        value = min(max(value, self.low), self.high)
        return float(round(value)) if self.whole else value

    def edges(self, subject: Any, value: float) -> list[float]:
        """Values at which the risk may turn, as declared by the mechanism, if its noise is this
        value.
        """
        noise = type(subject).noise if isinstance(subject, Mechanism) else None
        if noise is None or subject.describe().get(noise.name) != value:
            return []
        return [edge for edge in subject.edges() if edge < self.high]

    def called(self, otherwise: str) -> str:
        """The name of the family."""
        return str(getattr(self.family, "__name__", otherwise))

    def title(self, kind: str) -> str:
        """What was calibrated, by name, or else by the kind of mechanism that was made."""
        name = self.called("")
        return name if name.isidentifier() else kind


def _declared(family: Any) -> dict[str, Parameter]:
    """The parameter that the family itself declares to set its noise."""
    kind = _mechanism(family)
    if kind is not None:
        return {} if kind.noise is None else {kind.noise.name: kind.noise}
    if isinstance(family, type) and issubclass(family, Guarantee) and family.takes:
        return {family.takes[0].name: family.takes[0]}
    return {}


def _mechanism(family: Any) -> type[Mechanism] | None:
    return family if isinstance(family, type) and issubclass(family, Mechanism) else None


def takes(family: Any) -> set[str] | None:
    """The names of the arguments of a family; None if it takes any."""
    arguments = _arguments(family)
    free = any(p.kind is p.VAR_KEYWORD for p in arguments.values())
    return None if free or not arguments else set(arguments)


def _arguments(family: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(family).parameters)
    except (TypeError, ValueError):
        return {}


def _required(argument: inspect.Parameter) -> bool:
    return argument.default is inspect.Parameter.empty


def _free(
    family: Any, arguments: dict[str, inspect.Parameter], given: str | None, fixed: dict[str, Any]
) -> str:
    """The name of the free parameter; empty for a function with one positional argument."""
    names = list(arguments)
    if given is not None:
        takes_any = any(p.kind is p.VAR_KEYWORD for p in arguments.values())
        if names and given not in names and not takes_any:
            raise DpradError(f"parameter must be one of {', '.join(names)}, but is {given!r}.")
        if given in fixed:
            raise DpradError(f"parameter {given!r} is the one to find; do not give it a value.")
        return given
    turned = TURNED | _declared(family)
    free = [n for n in names if n in turned and n not in fixed]
    required = [n for n in free if _required(arguments[n])]
    for candidates in (free, required):
        if len(candidates) == 1:
            return candidates[0]
    kind = _mechanism(family)
    turns = None if kind is None else kind.turns(fixed)
    if turns in free:
        return turns
    if len(names) == 1 and not fixed:
        return "" if names[0] not in turned else names[0]
    what = getattr(family, "__name__", "the function")
    raise DpradError(
        f"say which parameter is free with parameter=...; {what} has "
        f"{', '.join(names) or 'none by name'}."
    )


def _sized(
    arguments: dict[str, inspect.Parameter], fixed: dict[str, Any], question: Question
) -> dict[str, Any]:
    """The size of a categorical mechanism, taken from the prior if it was left out."""
    missing = "size" in arguments and "size" not in fixed and _required(arguments["size"])
    if not missing or question.prior.kind != "finite" or callable(question.query):
        return fixed
    read = number_read(question.prior, question.threat, question.query)
    return {**fixed, "size": read}
