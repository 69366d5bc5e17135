"""The adapter for foreign objects: any object with `sample` can be a mechanism.

Optional attributes: `log_likelihood`, `guarantee`, `size` (it then reads category codes), `reads`
(converts the values), `describe`, `assumes`, `error` and `variance`. No other code in the package
inspects the attributes of an object.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.black_box import BlackBox
from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import Column, FloatArray


def as_mechanism(subject: Any, who: str, *, also: str = "") -> Mechanism:
    """`subject` as a mechanism, or a `DpradError` that says what `who` takes (and `also`)."""
    if isinstance(subject, Mechanism):
        _check_own(type(subject))
        return subject
    if isinstance(subject, type):
        name = subject.__name__
        raise DpradError(
            f"{who} takes an object, but got the class {name}. Give its parameters: {name}(...)."
        )
    if callable(getattr(subject, "sample", None)):
        return Foreign(subject)
    raise DpradError(
        f"{who} takes {also}a mechanism (such as dprad.mechanisms.GRR(epsilon=1.0, size=10)), but "
        f"got a {type(subject).__name__}. Wrap a function: mechanisms.BlackBox(function)."
    )


def _check_own(kind: type) -> None:
    """Refuse a class that draws otherwise than the mechanism of ours that it is derived from: the
    answers of that one would be given for it.
    """
    below = list(itertools.takewhile(lambda c: not _home(c), kind.__mro__))
    if not below:
        return
    base = kind.__mro__[len(below)]
    changed = {"sample", "log_likelihood", "entries"} & {n for c in below for n in vars(c)}
    if changed and base is not Mechanism and not inspect.isabstract(base):
        raise DpradError(
            f"{kind.__name__} changes {' and '.join(sorted(changed))} of {base.__name__}, but "
            "would be taken for one. Derive it from dprad.mechanisms.Mechanism."
        )


def _home(kind: type) -> bool:
    return kind.__module__.startswith("dprad.mechanisms.")


def as_subject(run: Any, vectorised: bool) -> Mechanism:
    """What is audited: a mechanism, an object with `sample` or `randomise`, or a function."""
    if isinstance(run, Mechanism):
        return run
    if inspect.isroutine(run) or isinstance(run, functools.partial):  # whatever it has besides
        return BlackBox(run, vectorised=vectorised)
    if not isinstance(run, type) and hasattr(run, "sample"):
        return Foreign(run)
    if hasattr(run, "randomise"):
        return BlackBox(run.randomise, vectorised=False)
    return BlackBox(run, vectorised=vectorised)


def not_called(subject: Mechanism) -> str:
    """What an audited object could be called by, too, but is not; empty if nothing."""
    run = subject.run if isinstance(subject, BlackBox) else None
    thing: Any = getattr(run, "__self__", None) if run is not None else subject
    used = "sample" if run is None else str(getattr(run, "__name__", ""))
    thing = thing.inner if isinstance(thing, Foreign) else thing
    routes = {"sample": "sample", "randomise": "randomise", "__call__": "a call of itself"}
    if used not in routes or thing is None or ours(subject):
        return ""
    others = [said for name, said in routes.items() if name != used and hasattr(thing, name)]
    if not others:
        return ""
    return f"called was the method {used} of the object, not {' and not '.join(others)}"


def ours(mechanism: Mechanism) -> bool:
    """Whether it, with all its parts, is a mechanism of this package: it draws as it says."""
    if isinstance(mechanism, (BlackBox, Foreign)) or not is_dataclass(mechanism):
        return False
    if not type(mechanism).__module__.startswith("dprad.mechanisms."):
        return False
    held = (getattr(mechanism, f.name, None) for f in fields(mechanism))
    parts = (part for value in held for part in (value if isinstance(value, tuple) else (value,)))
    return all(ours(part) for part in parts if isinstance(part, Mechanism))


def by_epsilon(mechanism: Mechanism) -> Callable[[float], Mechanism] | None:
    """The same mechanism at every epsilon; None if it has no replaceable epsilon."""
    inner: Any = mechanism.inner if isinstance(mechanism, Foreign) else mechanism
    if not is_dataclass(inner) or "epsilon" not in {f.name for f in fields(inner)}:
        return None
    made: Any = inner
    return lambda at: as_mechanism(replace(made, epsilon=at), "model")


@dataclass(frozen=True, slots=True)
class Foreign(Mechanism):
    """A foreign object with `sample`."""

    inner: Any

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self.inner).__name__

    @property
    def likelihood(self) -> bool:  # type: ignore[override]
        """Whether it has one."""
        return hasattr(self.inner, "log_likelihood")

    @property
    def guarantee(self) -> Guarantee | None:
        """Its promise, if stated."""
        promise = getattr(self.inner, "guarantee", None)
        return promise if isinstance(promise, Guarantee) else None

    @property
    def assumes(self) -> str | None:
        """Its assumption, if stated."""
        return getattr(self.inner, "assumes", None)

    @property
    def reads_codes(self) -> int | None:
        """Its size, if it has one."""
        return getattr(self.inner, "size", None)

    def read(self, question: Question) -> Column:
        """Codes if it has a size, else the values, as converted by `reads`."""
        if self.reads_codes is not None:
            return question.codes(self.reads_codes, self.name)
        reads = getattr(self.inner, "reads", None)
        if reads is None:
            raise DpradError(
                f"a {self.name} does not say what it reads from a record: give it a size (category "
                "codes) or a method reads(values)."
            )
        found = np.asarray(reads(question.values()))
        if found.ndim != 1 or len(found) != question.prior.size:
            raise DpradError(
                f"reads of {self.name} must return one value per record ({question.prior.size:,}), "
                f"but returned an array of shape {found.shape}."
            )
        return found

    def sample(self, records: Any, rng: np.random.Generator) -> Any:
        """One output per record."""
        return self.inner.sample(records, rng)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """Its own."""
        if not self.likelihood:
            raise DpradError(f"a {self.name} has no likelihood.")
        return np.asarray(self.inner.log_likelihood(outputs, records))

    def error(self, confidence: float = 0.95) -> float | None:
        """Its own, if any."""
        own = getattr(self.inner, "error", None)
        return None if own is None else float(own(confidence))

    def variance(self, people: int = 1) -> float | None:
        """Its own, if any."""
        own = getattr(self.inner, "variance", None)
        return None if own is None else float(own(people))

    def spread(self, count: int) -> list[Any]:
        """Its codes, or numbers within its clamp, bounds or sensitivity."""
        if self.reads_codes is not None:
            return list(range(self.reads_codes))
        span = getattr(self.inner, "clamp", None) or getattr(self.inner, "bounds", None)
        step = getattr(self.inner, "sensitivity", None)
        if span is None and step is None:
            raise DpradError(
                f"worst_prior cannot tell which numbers a {self.name} reads. Give values=."
            )
        ends: Any = span or (0.0, step)
        low, high = float(ends[0]), float(ends[1])
        top = high if step is None else min(high, low + float(step))
        return [float(v) for v in np.linspace(low, top, count)]

    def checked(self, outputs: Any) -> Any:
        """One entry per output; only the object knows what they look like."""
        values = outputs if isinstance(outputs, tuple) else np.asarray(outputs)
        if not isinstance(values, tuple) and values.ndim == 0:
            raise DpradError(f"outputs must be a list of what a {self.name} returns.")
        return values

    def describe(self) -> dict[str, Any]:
        """Its own description, or the name of its class and the plain fields of a dataclass."""
        own = getattr(self.inner, "describe", None)
        if own is not None:
            return dict(own())
        named = fields(self.inner) if is_dataclass(self.inner) else ()
        plain = {f.name: getattr(self.inner, f.name) for f in named}
        return {
            "kind": self.name,
            **{k: v for k, v in plain.items() if isinstance(v, int | float | str | bool)},
        }
