"""Options that several commands share, turned into priors, threats and mechanisms."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from dprad.errors import DpradError, one_of, share
from dprad.mechanisms import catalogue
from dprad.mechanisms.base import Card
from dprad.model.losses import LOSSES
from dprad.model.parameters import Parameter as Number

if TYPE_CHECKING:
    from dprad.model.priors import Prior
    from dprad.model.threats import Threat

SUBJECT = Group("The promise or the mechanism", sort_key=1)
PRIOR = Group("What is known about the population (default: nothing)", sort_key=3)
THREAT = Group("The attacker", sort_key=4)
OUTPUT = Group("Output", sort_key=7)
QUERY = (
    "What the mechanism reads: a column, columns separated by commas, or a comparison, as in "
    "'smoker = \"yes\" and age >= 40', which reads 1 or 0. Default: the target, or the only column."
)


def _whole(_: Any, tokens: Any) -> int:
    """A whole number, as 100000, 100_000 or 1e5; fractions are not rounded."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
        if value == int(value) and abs(value) < 1e18:
            return int(value)
    except (ValueError, OverflowError):
        pass
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    raise ValueError(f"must be a whole number, but is {shown!r}")


def _share(_: Any, tokens: Any) -> float:
    """A share, as 0.05 or 5%."""
    try:
        return share(tokens[0].value, "it")
    except DpradError as error:
        raise ValueError(str(error).removeprefix("it ")) from None


Share = Annotated[float, Parameter(converter=_share)]
Whole = Annotated[int, Parameter(converter=_whole)]


def hands(workers: int, address: str | None) -> AbstractContextManager[int]:
    """The number of workers: on the cluster at this address, or here."""
    from dprad.runtime.workers import cluster

    return nullcontext(workers) if address is None else cluster(address)


def _type(number: Number) -> Any:
    """What an option for this parameter takes."""
    if number.choices:
        return Literal[number.choices] | None
    if number.interval:
        return str | None
    return Whole | None if number.whole else float | None


def number_options(group: Group, *numbers: Number) -> Any:
    """A class of options, one for each declared parameter."""
    own = [
        (n.name, Annotated[_type(n), Parameter(group=group, help=n.help)], None) for n in numbers
    ]
    return Parameter(name="*")(
        make_dataclass(
            "Numbers", own, frozen=True, kw_only=True, namespace={"__module__": __name__}
        )
    )


def list_options(group: Group, *numbers: Number) -> Any:
    """The same, with several values of each, separated by commas."""
    own = [
        (n.name, Annotated[str | None, Parameter(group=group, help=f"Values of {n.name}.")], None)
        for n in numbers
    ]
    return Parameter(name="*")(
        make_dataclass("Lists", own, frozen=True, kw_only=True, namespace={"__module__": __name__})
    )


def given(options: Any) -> dict[str, Any]:
    """Options by name, None if not used; those that are intervals as two numbers."""
    values = {f.name: getattr(options, f.name) for f in fields(options)}
    return {
        f"--{name}": _interval(value, f"--{name}")
        if value is not None and catalogue.NUMBERS[name].interval
        else value
        for name, value in values.items()
    }


def named_mechanisms() -> str:
    """Short names of the mechanisms, for help texts."""
    cards = [card(name) for name in catalogue.FAMILIES]
    kinds = {"codes": "for categories ", "numbers": "for numbers ", "range": "for bounded numbers "}
    parts = [
        words + ", ".join(c.name for c in cards if c.reads == reads)
        for reads, words in kinds.items()
    ]
    return "; ".join(parts)


def mechanism(
    name: str, given: dict[str, Any], prior: Prior, threat: Threat, query: Any = None
) -> Any:
    """A mechanism from its name and options, with the size or range of its values."""
    noise = f"--{card(name).takes[0].name}"
    if prior.kind == "finite" and given.get(noise) is None:
        raise DpradError(f"--mechanism {name} needs {noise}.")
    made, chosen = parts(name, given, prior, threat, query)
    return made(**chosen)


def card(name: str) -> Card:
    """The card of a mechanism."""
    return catalogue.card(one_of(name, "--mechanism", catalogue.FAMILIES))


def parts(
    name: str, given: dict[str, Any], prior: Prior, threat: Threat, query: Any = None
) -> tuple[Any, dict[str, Any]]:
    """The class and its arguments, as far as known."""
    takes = {f"--{t}" for t in card(name).names}
    if prior.kind != "finite":
        raise DpradError(f"--mechanism {name} needs a population: give --data or --uniform.")
    without(f"--mechanism {name}", {o: v for o, v in given.items() if o not in takes})
    chosen = {o.removeprefix("--"): v for o, v in given.items() if v is not None}
    return catalogue.parts(name, chosen, prior, threat, query)


def asks(query: Any, prior: Prior) -> bool:
    """Whether a comparison is read, whose range is that of yes and no."""
    from dprad.model.predicates import is_predicate

    return isinstance(query, str) and is_predicate(query, prior.columns)


def queried(text: str | None, prior: Prior) -> Any:
    """What the mechanism reads: a column, a comparison, or columns separated by commas."""
    if text is None or text in prior.columns or asks(text, prior):
        return text
    names = listed(text, "--query") or []
    return names if len(names) > 1 else names[0]


def _interval(text: str, option: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise DpradError(f"{option} must be two numbers, as in 0:100, but is {text!r}.") from None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Population:
    """The prior.

    Parameters
    ----------
    data
        A CSV or Parquet file, one row per person; may be larger than memory.
    columns
        The columns of a record, comma-separated (default: all).
    weight
        A column of survey weights.
    missing
        keep missing values as a category (default), drop such rows, or refuse them.
    domain
        Possible whole values of the only column, as low:high.
    glob
        Whether *, ? and [...] in --data stand for several files.
    encoding
        Encoding of a CSV file that is not in UTF-8: latin-1, cp1252, utf-16, ...
    decimal
        The decimal sign of a CSV file: . (default) or a comma.
    whole
        Say that the table is the whole population, not a sample of it.
    uniform
        Instead of --data: this many equally likely values 0, 1, 2, ...

    """

    data: Annotated[str | None, Parameter(group=PRIOR)] = None
    columns: Annotated[str | None, Parameter(group=PRIOR)] = None
    weight: Annotated[str | None, Parameter(group=PRIOR)] = None
    missing: Annotated[str | None, Parameter(group=PRIOR)] = None
    domain: Annotated[str | None, Parameter(group=PRIOR)] = None
    glob: Annotated[bool, Parameter(group=PRIOR, negative=())] = False
    encoding: Annotated[str | None, Parameter(group=PRIOR)] = None
    decimal: Annotated[str | None, Parameter(group=PRIOR)] = None
    whole: Annotated[bool, Parameter(group=PRIOR, negative=())] = False
    uniform: Annotated[float | None, Parameter(group=PRIOR)] = None

    def given(self) -> dict[str, Any]:
        """Options that were used."""
        own = {f"--{f.name}": getattr(self, f.name) for f in fields(self)}
        return {name: None if value is False else value for name, value in own.items()}

    @property
    def public(self) -> bool:
        """Whether the range of the values is not that of the data."""
        return self.data is None or self.domain is not None

    def prior(self) -> Prior:
        """A file, equally likely values, or nothing known."""
        from dprad.model.priors import Prior

        if self.data is None:
            for name in (f.name for f in fields(self) if f.name not in ("data", "uniform")):
                if getattr(self, name):
                    raise DpradError(f"--{name} needs --data, which is missing.")
            if self.uniform is None:
                return Prior.unknown()
            return Prior.uniform(self.uniform)  # type: ignore[arg-type]
        if self.uniform is not None:
            raise DpradError("give --data or --uniform, not both.")
        values = None
        if self.domain is not None:
            low, _, high = self.domain.partition(":")
            try:
                values = range(int(low), int(high) + 1)
            except ValueError:
                raise DpradError(
                    f"--domain must be two whole numbers, as in 0:100, but is {self.domain!r}."
                ) from None
        return Prior.from_data(
            self.data,
            columns=listed(self.columns, "--columns"),
            weight=self.weight,
            missing=self.missing or "keep",
            domain=values,
            glob=self.glob,
            encoding=self.encoding,
            decimal=self.decimal or ".",
            whole=self.whole,
        )


_LOSSES = "; ".join(f"{loss.name}: {loss.help}" for loss in LOSSES.values()) + "."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Feared:
    """The threat.

    Parameters
    ----------
    knows
        nothing, everything, or the columns the attacker knows, comma-separated. `assess`
        and `calibrate` ask about a standard set of attackers unless something about them is said.
    target
        The columns they guess, comma-separated (default: the whole record).
    eta
        A guess counts if its loss is at most this.

    """

    knows: Annotated[str | None, Parameter(group=THREAT)] = None
    target: Annotated[str | None, Parameter(group=THREAT)] = None
    loss: Annotated[str, Parameter(group=THREAT, help=_LOSSES)] = "exact"
    eta: Annotated[float, Parameter(group=THREAT)] = 0.0

    def given(self) -> dict[str, Any]:
        """Options that were used."""
        own = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        return {f"--{name}": None if v == usual else v for name, (v, usual) in own.items()}

    def threat(self) -> Threat:
        """The threat as the library takes it."""
        from dprad.model.threats import KNOWS, Threat

        given = "nothing" if self.knows is None else self.knows
        known = given if given in KNOWS else listed(given, "--knows")
        assert known is not None
        target = listed(self.target, "--target")
        return Threat(knows=known, target=target, loss=self.loss, eta=self.eta)


def attackers(
    prior: Prior, feared: Feared, sensitive: str | None = None
) -> list[tuple[str, Threat]]:
    """The attacker that the options describe, or a standard set if they say nothing."""
    from dprad.verbs.attackers import standard

    if not any(value is not None for value in feared.given().values()):
        return standard(prior, listed(sensitive, "--sensitive"))
    if sensitive is not None:
        raise DpradError("--sensitive is for a standard set of attackers; leave out the others.")
    return [("", feared.threat())]


def unasked(
    attackers: list[tuple[str, Threat]],
    prior: Prior,
    mechanism: str | None,
    numbers: Any,
    query: Any,
) -> str:
    """What else could be asked about, where one attacker was described; nothing with a set of
    them. O(m log m).
    """
    from dprad.model.verdicts import ONE
    from dprad.show.scenario.release import Release, unasked

    name, threat = attackers[0]
    if name:
        return ""
    if mechanism == "dpsgd":
        return ONE
    return f"{ONE} {unasked([Release('', mechanism, numbers, query)], prior, [threat])}".rstrip()


def tell(unasked: str, *, whole: bool = False) -> None:
    """Print it; unless whole, without its first sentence, which the risk has said already."""
    from dprad.model.verdicts import ONE
    from dprad.show.cli.output import show

    said = unasked if whole else unasked.removeprefix(ONE).lstrip()
    if said:
        show(f"\n{said}")


def listed(names: str | None, option: str) -> list[str] | None:
    """Names separated by commas."""
    if names is None:
        return None
    items = [n.strip() for n in names.split(",") if n.strip()]
    if not items:
        raise DpradError(f"{option} must be a list, separated by commas, but is {names!r}.")
    return items


def without(option: str, others: dict[str, Any]) -> None:
    """Refuse options that do not apply here."""
    for name, value in others.items():
        if value is not None:
            raise DpradError(f"{name} does not apply with {option}; leave it out.")
