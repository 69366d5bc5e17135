"""The plan of an audit: what is called, the claim, and how often it may be called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dprad.errors import DpradError, number, told, whole
from dprad.game.game import Table
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.black_box import BlackBox, own_randomness
from dprad.mechanisms.foreign import as_mechanism, as_subject, by_epsilon, not_called
from dprad.mechanisms.tables import Published
from dprad.model.guarantees import ADD_REMOVE, REPLACE_ONE, Guarantee, PureDP
from dprad.numerics.arrays import Column
from dprad.numerics.random import Seed, seed
from dprad.verbs.audit import fingerprint, independence
from dprad.verbs.audit.state import State

# Delta at which a claim given as a curve is tested.
SMALL = 1e-6
# Largest epsilon for the attack of a named mechanism, if a larger one is claimed.
LARGE = 20.0

# Stands for "nothing was given".
NOBODY: Any = type("Nobody", (), {"__repr__": lambda _: "nobody"})()

CONVERTED = (
    "the claim is about adding or removing a person; two records that are both present were "
    "compared, so it was converted to replaced records. With absent= it is tested as it stands"
)
_NO_REPLAY = (
    "this audit cannot be replayed: the function has its own random numbers. Let it take rng, "
    "run(record, rng), and the same seed gives the same result"
)
_NO_EPSILON = (
    "no model-based estimate: the model has no epsilon. Give a function epsilon -> mechanism"
)
_SUBTRACTED = (
    "the model takes tables from which everybody else is subtracted; if there are other people in "
    "them, leave it out, and bets are learned"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Number of runs, confidence, and how to run them."""

    trials: int
    alpha: float
    sequential: bool
    precision: float | None
    workers: int
    progress: bool
    trace: bool
    bits: bool
    seed: int

    @classmethod
    def of(
        cls,
        *,
        trials: int,
        confidence: float,
        sequential: bool,
        precision: float | None,
        workers: int,
        progress: bool,
        trace: bool,
        bits: bool,
        rng: Seed,
    ) -> Settings:
        """Checked."""
        alpha = 1.0 - number(confidence, "confidence", low=0, high=1)
        if not 0 < alpha < 1:
            raise DpradError(
                f"confidence must lie strictly between 0 and 1, but is {confidence!r}."
            )
        return cls(
            trials=whole(trials, "trials", low=10),
            alpha=alpha,
            sequential=sequential,
            precision=None if precision is None else number(precision, "precision", low=0),
            workers=whole(workers, "workers", low=1),
            progress=progress,
            trace=trace,
            bits=bits,
            seed=seed(rng),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything that is known before the first call."""

    subject: Mechanism
    claim: Guarantee
    tested: Guarantee
    point: tuple[float, float]
    question: Question
    read: Column
    attack: Any
    model: Model | None
    settings: Settings
    told: dict[str, Any]
    absent: Any

    @classmethod
    def of(
        cls,
        run: Any,
        claim: Guarantee,
        question: Question,
        attack: Any,
        model: Any,
        vectorised: bool,
        settings: Settings,
        absent: Any,
    ) -> Plan:
        """Validated; nothing is called yet except vectorised functions, for a check."""
        check_claim(claim)
        game = question.table("audit")
        subject = as_subject(run, vectorised).prepared(question)
        in_out = absent is not NOBODY
        tested, point = as_tested(claim, in_out)
        thing = subject if model is None else model
        supposed = Model.of(thing, point[0], question, given=model is not None)
        # a table is made of whole records
        whole = isinstance(subject, BlackBox) and supposed is not None and supposed.table
        read = subject.read(replace(question, query=question.prior.columns) if whole else question)
        own_randomness(subject, settings.workers)
        if in_out:
            _check_absent(claim, subject, attack)
            _check_different(read[game.pi > 0], absent)
        if isinstance(subject, BlackBox) and subject.vectorised:
            independence.check(subject, read[game.pi > 0], settings.seed)
        told = {
            "attack": attack, "model": model, "query": question.query, "vectorised": vectorised,
            "absent": absent,
        }  # fmt: skip
        return cls(
            subject, claim, tested, point, question, read, attack, supposed, settings, told, absent
        )

    @property
    def in_out(self) -> bool:
        """Whether a record is compared with none."""
        return self.absent is not NOBODY

    @property
    def game(self) -> Table:
        """The finite game of the question."""
        return self.question.table("audit")

    @property
    def notes(self) -> list[str]:
        """Notes that apply whatever the result."""
        always = [] if self.replayable else [_NO_REPLAY]
        if self.tested is not self.claim:
            always.append(CONVERTED)
        if route := not_called(self.subject):
            always.append(route)
        if self.model is None or not self.model.given:
            return always
        if self.model.table:
            return [*always, _SUBTRACTED] if isinstance(self.subject, BlackBox) else always
        return always if self.model.at is not None else [*always, _NO_EPSILON]

    def sharing(self, share: float, trials: int) -> Plan:
        """With this share of the error, and so many trials."""
        settings = replace(self.settings, alpha=share * self.settings.alpha, trials=trials)
        return replace(self, settings=settings)

    @property
    def learned(self) -> Plan:
        """Without an attack and a model, on other random numbers."""
        settings = replace(self.settings, seed=self.settings.seed + 1)
        return replace(self, attack=None, model=None, settings=settings)

    @property
    def replayable(self) -> bool:
        """Whether the same seed gives the same calls."""
        return not isinstance(self.subject, BlackBox) or self.subject.takes_rng

    def open(self, path: Any) -> State:
        """The state file of this audit."""
        if path is None:
            return State(None)
        file = State.open(path, fingerprint.key(self))
        if file.lines and not self.replayable:
            raise DpradError(
                "this audit cannot be continued: the function has its own random numbers, and "
                "might repeat those of the first session. Let it take rng: run(record, rng)."
            )
        return file


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The supposed mechanism: at the claimed epsilon, and at every one.

    `given` says that the user named it; otherwise it is the audited mechanism itself.
    """

    named: Mechanism
    at: Callable[[float], Mechanism] | None
    given: bool

    @property
    def table(self) -> bool:
        """Whether it is a table about many people."""
        return isinstance(self.named, Published)

    @classmethod
    def of(cls, thing: Any, epsilon: float, question: Question, *, given: bool) -> Model | None:
        """From a mechanism, or a function epsilon -> mechanism; None without a likelihood."""
        if isinstance(thing, Mechanism) or not callable(thing):
            mechanism = (as_mechanism(thing, "model") if given else thing).prepared(question)
            if not mechanism.likelihood and not given:
                return None
            return cls(mechanism, by_epsilon(mechanism), given)

        def family(at: float) -> Mechanism:
            try:
                made = thing(at)
            except Exception as error:
                if not isinstance(thing, type):
                    raise DpradError(
                        f"model failed at epsilon = {at:g} ({told(error)}). Call it to see why."
                    ) from None
                if not isinstance(error, TypeError):
                    raise
                raise DpradError(
                    f"model takes an object, or a function epsilon -> mechanism, but got the class "
                    f"{thing.__name__}, which needs more than an epsilon ({told(error)})."
                ) from None
            return as_mechanism(made, "model").prepared(question)

        return cls(family(min(epsilon, LARGE)), family, given)


def check_claim(claim: Any) -> None:
    """A `DpradError` if it is no guarantee."""
    if not isinstance(claim, Guarantee):
        raise DpradError(
            "claim must be a guarantee, such as dprad.PureDP(1.0, neighbours='replace-one'), "
            f"but is {claim!r}."
        )


def as_tested(claim: Guarantee, in_out: bool) -> tuple[Guarantee, tuple[float, float]]:
    """The claim between the data sets that are compared, and an (epsilon, delta) it implies."""
    tested = claim if in_out else _replaced(claim)
    return tested, _point(claim, tested)


def _replaced(claim: Guarantee) -> Guarantee:
    """What the claim says about replaced records."""
    if isinstance(claim, PureDP) and claim.neighbours != REPLACE_ONE:
        return PureDP(2 * claim.epsilon, neighbours=REPLACE_ONE)
    return claim.replace_one()


def _point(claim: Guarantee, tested: Guarantee) -> tuple[float, float]:
    """An (epsilon, delta) that the tested claim implies, for people."""
    if tested.point is not None:
        return tested.point
    if claim.point is not None:  # of an (epsilon, delta) promise, converted
        epsilon = 2 * claim.point[0]
        return epsilon, float(tested.delta(epsilon))
    return tested.epsilon_at(SMALL), SMALL


def _check_absent(claim: Guarantee, subject: Mechanism, attack: Any) -> None:
    if claim.neighbours != ADD_REMOVE:
        raise DpradError(
            "absent is for a claim about adding or removing a person (neighbours='add-remove'); "
            "this one is, or may be, about replaced records."
        )
    if not isinstance(subject, BlackBox):
        raise DpradError("absent needs a function that can be called without the person.")
    if attack is not None:
        raise DpradError("absent and an attack cannot be combined: the bets are learned.")


def _check_different(records: Column, absent: Any) -> None:
    """Of a single record, that nobody is not the same."""
    present = records.tolist()
    if len(present) == 1 and type(present[0]) is type(absent) and present[0] == absent:
        raise DpradError("absent is the record itself: an audit would compare it with itself.")
