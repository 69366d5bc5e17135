"""The cards of releases and of own attackers. Each keeps its inputs while others come and go."""

from __future__ import annotations

import json
import math
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import Inputs, Outputs, reactive, render, ui

from dprad.errors import DpradError
from dprad.model.explain import listed
from dprad.model.guarantees import ADD_REMOVE, REPLACE_ONE, UNKNOWN
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.show.scenario.release import Release
from dprad.show.web.field import field, key
from dprad.show.web.population import (
    PROMISE,
    PROMISED,
    SLIDERS,
    Population,
    base,
    menu,
    parameter_of,
    readable,
    released,
)
from dprad.show.web.tables import TABLES

NEIGHBOURS: dict[str, str] = {
    REPLACE_ONE: "one record is replaced",
    ADD_REMOVE: "one record is added or removed",
    UNKNOWN: "not stated: the worse counts",
}


class Cards:
    """Which cards of a kind are there; the first always is."""

    def __init__(self, input: Inputs, add: str, number: int, opened: int) -> None:  # noqa: A002
        self.on = [reactive.Value(k < opened) for k in range(number)]

        @reactive.effect
        @reactive.event(input[add])
        def _add() -> None:
            for shown in self.on:
                if not shown():
                    shown.set(True)
                    return

        for k in range(1, number):
            self._removing(input, add, k)

    def _removing(self, input: Inputs, add: str, k: int) -> None:  # noqa: A002
        @reactive.effect
        @reactive.event(input[key(f"remove_{add}", k)])
        def _remove() -> None:
            self.on[k].set(False)

    def active(self) -> list[int]:
        """The numbers of the cards."""
        return [k for k, shown in enumerate(self.on) if shown()]


def card(title: str, add: str, k: int, *inside: Any) -> Tag:
    """A card with its heading, and a button to remove it."""
    close = ui.input_action_button(
        key(f"remove_{add}", k), "Remove", class_="btn-sm btn-link", title=f"Remove {title}"
    )
    head = tags.div(tags.strong(f"{title} {k + 1}"), close if k else None, class_="cardhead")
    return tags.div(head, *inside, class_="slot")


# -- releases ----------------------------------------------------------------------------------
class Releases:
    """The cards of releases. `first`: what each shows when the page opens."""

    def __init__(
        self,
        input: Inputs,  # noqa: A002
        output: Outputs,
        place: Any,
        shape: Any,
        first: tuple[Population, list[tuple[str, float, str]]],
        number: int,
    ) -> None:
        self.input, self.place, self.shape = input, place, shape
        self.home, self.opening = first
        self.turned: dict[int, str] = {}  # the parameter that each card shows
        self.cards = Cards(input, "more", number, len(self.opening))
        for k in range(number):
            self._card(output, k)
            self._amount(output, k)
            _synchronised(self, k)

    def now(self) -> Population | None:
        """The population, if there is one."""
        here = self.place()
        return None if isinstance(here, str) else here

    def opened(self, k: int) -> tuple[str, float, str]:
        """What a card shows when it is new: mechanism, amount, column."""
        with reactive.isolate():
            here = self.now()
        if here is self.home and k < len(self.opening):
            return self.opening[k]
        columns = () if here is None else here.prior.columns
        return "grr" if columns else PROMISE, 1.0, columns[-1] if len(columns) > 1 else ""

    def given(self, name: str, k: int, otherwise: Any) -> Any:
        """The value of an input, or what it would be if it is not there yet."""
        known = key(name, k)
        return self.input[known]() if known in self.input else otherwise

    def _card(self, output: Outputs, k: int) -> None:
        @output(id=f"release{k}")
        @render.ui
        def shown() -> Any:
            if not self.cards.on[k]() or self.shape() is None:
                return None
            with reactive.isolate():
                here = self.now()
                if here is None:
                    return None
                choices, start = menu(here), self.opened(k)[0]
                old = self.given("mechanism", k, start)
            chosen = next((m for m in (old, start, PROMISE) if m in choices), PROMISE)
            select = ui.input_select(key("mechanism", k), "Protected by", choices, selected=chosen)
            return card(
                "Release", "more", k, field("mechanism", select), ui.output_ui(f"amount{k}")
            )

    def _amount(self, output: Outputs, k: int) -> None:
        @output(id=f"amount{k}")
        @render.ui
        def amount() -> Any:
            mechanism = self.input[key("mechanism", k)]()
            if self.shape() is None:
                return None
            with reactive.isolate():
                here = self.now()
                if here is None or mechanism not in menu(here):
                    return None
                return self._inputs(here, mechanism, k)

    def _inputs(self, here: Population, mechanism: str, k: int) -> TagList:
        """The inputs of a mechanism or a promise, with the values they had."""
        name = parameter_of(here, mechanism)
        own = base(here, mechanism)
        start = self.opened(k)
        kept = self.turned.get(k, name) == name
        value = self.given("value", k, start[1]) if kept else 1.0
        if own is not None:
            value = float(own.numbers[name])
        low, high, step = SLIDERS[name]
        value = 1.0 if value is None else value
        self.turned[k] = name
        within = min(max(value, low), high)
        parts: list[Any] = []
        places = readable(here).get(mechanism, ())
        if len(places) > 1:
            titles = {p: p or "the whole record" for p in places}
            old = self.given("reads", k, start[2])
            chosen = next((p for p in (old, start[2], places[-1]) if p in places), places[-1])
            select = ui.input_select(key("reads", k), "It reads", titles, selected=chosen)
            parts.append(field("reads", select))
        parts.append(
            field("value", ui.input_numeric(key("value", k), name, value, min=0, step=step))
        )
        slider = ui.input_slider(key("slider", k), None, low, high, within, step=step)
        parts.append(tags.div(slider, class_="field", data_help="value"))
        if mechanism == PROMISE:
            delta = self.given("delta", k, 0.0)
            box = ui.input_numeric(key("delta", k), "delta", delta, min=0, max=1, step=1e-6)
            parts.append(field("delta", box))
        if mechanism in TABLES or mechanism in PROMISED:
            old = self.given("neighbours", k, REPLACE_ONE)
            radio = ui.input_radio_buttons(
                key("neighbours", k), "Neighbouring tables", NEIGHBOURS, selected=old
            )
            parts.append(field("neighbours", radio))
        return TagList(*parts)

    def made(self) -> tuple[Release, ...]:
        """All releases, as a scenario has them."""
        here = self.now()
        assert here is not None
        return tuple(self._made(here, k) for k in self.cards.active())

    def _made(self, here: Population, k: int) -> Release:
        mechanism = self.input[key("mechanism", k)]()
        value = typed(self.input[key("value", k)]())
        name = parameter_of(here, mechanism)
        if value is None or value < 0:
            raise DpradError(f"release {k + 1}: {name} must be a number of at least 0.")
        places = readable(here).get(mechanism, ("",))
        reads = self.given("reads", k, "") if len(places) > 1 else places[0]
        reads = reads if reads in places else places[-1]
        delta = self.given("delta", k, 0.0) if mechanism == PROMISE else 0.0
        neighbours = self.given("neighbours", k, REPLACE_ONE)
        made = released(
            here, mechanism, float(value), reads=reads, delta=float(delta or 0.0),
            neighbours=neighbours,
        )  # fmt: skip
        if made.mechanism is None or made.mechanism in TABLES:
            made.subject(here.prior, Threat())  # refuses a delta above 1 and the like
        return made


def typed(value: Any) -> float | None:
    """The number in a box; None if it is empty, or if a browser sends something else."""
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def _synchronised(releases: Releases, k: int) -> None:
    """The slider and the number beside it follow each other."""
    input = releases.input  # noqa: A001
    slider, box = key("slider", k), key("value", k)

    def within(value: float) -> float:
        low, high, _ = SLIDERS[releases.turned.get(k, "epsilon")]
        return min(max(value, low), high)

    @reactive.effect
    @reactive.event(input[slider])
    def _slide() -> None:
        now, slid = typed(input[box]()), typed(input[slider]())
        if slid is not None and (now is None or within(now) != slid):
            ui.update_numeric(box, value=slid)

    @reactive.effect
    @reactive.event(input[box])
    def _type() -> None:
        now = typed(input[box]())
        if now is not None:
            ui.update_slider(slider, value=within(now))


# -- attackers ---------------------------------------------------------------------------------
class Attackers:
    """The cards of attackers of one's own."""

    def __init__(
        self,
        input: Inputs,  # noqa: A002
        output: Outputs,
        place: Any,
        shape: Any,
        number: int,
    ) -> None:
        self.input, self.place, self.shape = input, place, shape
        self.cards = Cards(input, "more_attackers", number, 1)
        for k in range(number):
            self._card(output, k)

    def _card(self, output: Outputs, k: int) -> None:
        @output(id=f"attacker{k}")
        @render.ui
        def shown() -> Any:
            if not self.cards.on[k]() or self.shape() is None:
                return None
            with reactive.isolate():
                here = self.place()
            if isinstance(here, str):
                return None
            return card("Attacker", "more_attackers", k, *_attacker(here.prior, k))

    def made(self, prior: Prior) -> tuple[tuple[str, Threat], ...]:
        """All own attackers, with names."""
        return tuple(self._made(prior, k) for k in self.cards.active())

    def _made(self, prior: Prior, k: int) -> tuple[str, Threat]:
        columns = prior.columns
        kind = self.input[key("kind", k)]()
        if kind == "everything":
            return "someone who has the whole record", Threat(knows="everything")
        picked = self.input[key("columns", k)]() if kind == "columns" else ()
        known = [c for c in columns if c in picked]
        target = self.input[key("target", k)]()
        about: dict[str, Any] = {"knows": known or "nothing"}
        if target in columns:
            about["target"] = [target]
        guessed = target if target in columns else columns[0] if len(columns) == 1 else None
        if guessed is not None and prior.column(guessed).dtype.kind in "if":
            eta = max(0.0, float(self.input[key("eta", k)]() or 0.0))
            about |= {"loss": "absolute", "eta": eta} if eta > 0 else {}
        who = f"someone who knows {listed(known)}" if known else "a stranger"
        goal = target if target in columns else "the whole record"
        near = f" to within {about['eta']:g}" if "eta" in about else ""
        link = " and" if known else " who"
        return f"{who}{link} guesses {goal}{near}", Threat(**about)


def _attacker(prior: Prior, k: int) -> list[Any]:
    """The inputs of an attacker."""
    columns = list(prior.columns)
    choices = {"nothing": "knows nothing about the person"}
    if len(columns) > 1:
        choices["columns"] = "knows some columns"
    choices["everything"] = "has the whole record; was it used?"
    several = {"": "the whole record"} | {c: c for c in columns}
    targets = several if len(columns) > 1 else {"": columns[0] if columns else "the whole record"}
    kind, known, target, eta = (key(n, k) for n in ("kind", "columns", "target", "eta"))
    radio = ui.input_radio_buttons(kind, None, choices)
    boxes = ui.input_checkbox_group(known, "They know", columns)
    chosen = columns[-1] if len(columns) > 1 else ""
    select = ui.input_select(target, "They want to find out", targets, selected=chosen)
    near = ui.input_numeric(eta, "A guess counts to within", 0, min=0)
    guesses = f"input.{kind} !== 'everything'"
    return [
        field("kind", radio),
        ui.panel_conditional(f"input.{kind} === 'columns'", field("columns", boxes)),
        ui.panel_conditional(guesses, field("target", select)),
        ui.panel_conditional(f"{guesses} && {_numeric(prior, target)}", field("eta", near)),
    ]


def _numeric(prior: Prior, target: str) -> str:
    """A condition for the page: whether what is guessed is a number."""
    columns = prior.columns
    numbers = [c for c in columns if prior.column(c).dtype.kind in "if"]
    if len(columns) <= 1:
        return "true" if numbers else "false"
    return f"{json.dumps(numbers)}.includes(input.{target})"
