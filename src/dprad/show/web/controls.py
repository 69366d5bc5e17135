"""The inputs of the page: population, attacker, release, and the slider."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from htmltools import TagList
from shiny import Inputs, Session, reactive, render, ui

from dprad.errors import DpradError
from dprad.model.parameters import EPSILON
from dprad.runtime.bench import Bench
from dprad.show.web.guard import uploaded
from dprad.show.web.question import (
    PROMISE,
    SLIDERS,
    Population,
    Question,
    from_file,
    mechanisms_for,
    parameter_of,
    uniform,
)

LARGEST = 10_000
# Seconds that reading a file may take.
READ = 30.0
NEAR = "A guess counts to within"


class Controls:
    """The inputs as one question; invalid input raises a `DpradError`."""

    def __init__(
        self,
        input: Inputs,  # noqa: A002
        session: Session,
        places: dict[str, Population],
        first: Question,
        bench: Bench,
    ) -> None:
        self.input, self.places, self.first = input, places, first
        self.tasks: list[Any] = []  # what is computed for this session
        self.place = _populations(input, session, places, bench, self.tasks)
        self.shape = _shape(self.place)
        self.target = _target(input, self.shape, first)
        self.menu = _menu(self.place, self.target)
        _attacker(self)
        _release(self)
        _slider(self)

    def cancel(self) -> None:
        """Nobody waits for the answers any more."""
        for task in self.tasks:
            task.cancel()

    def chosen(self) -> str:
        """The mechanism by its name."""
        return str(self.input.mechanism() if "mechanism" in self.input else self.first.mechanism)

    def parameter(self) -> str:
        """The parameter of the slider."""
        name, now = self.chosen(), self.place()
        here = self.first.population if isinstance(now, str) else now
        if name.startswith("release") and not here.releases:
            return EPSILON.name
        return parameter_of(here, name)

    def question(self) -> Question:
        """All inputs together, whatever a client sent."""
        try:
            return self._question()
        except DpradError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError):
            raise DpradError("this question cannot be understood.") from None

    def _question(self) -> Question:
        """All inputs together."""
        now = self.place()
        if isinstance(now, str):
            raise DpradError(now)
        value = self.input.value()
        if value is None or value < 0:
            raise DpradError(f"{self.parameter()} must be a number of at least 0.")
        mechanism = self.input.mechanism()
        everything = self.input.kind() == "everything"
        guessed = not everything or mechanism != PROMISE
        return Question(
            population=now,
            knows=self._knows(now),
            target=self.target() if guessed else None,
            eta=0.0 if everything else self._eta(now),
            mechanism=mechanism,
            value=float(value),
        )

    def _knows(self, now: Population) -> Any:
        kind = self.input.kind()
        if kind != "columns":
            return kind
        return [c for c in self.input.columns() if c in now.prior.columns] or "nothing"

    def _eta(self, now: Population) -> float:
        columns = now.prior.columns
        column = self.target() or (columns[0] if len(columns) == 1 else None)
        if column is None or now.prior.column(column).dtype.kind not in "if":
            return 0.0
        return max(0.0, float(self.input.eta() or 0.0))


def _populations(
    input: Inputs,  # noqa: A002
    session: Session,
    places: dict[str, Population],
    bench: Bench,
    tasks: list[Any],
) -> Any:
    """The population, or a sentence that says why there is none yet."""

    @reactive.extended_task
    async def load(path: str, name: str) -> Population | str:
        """In a process of its own, so that nobody else waits; errors become a sentence."""
        try:
            read: Population = await bench.run(from_file, path, name, seconds=READ, long=True)
        except DpradError as error:
            return str(error)
        return read

    tasks.append(load)

    @reactive.effect
    @reactive.event(input.file)
    def _load() -> None:
        files = input.file()
        if files:
            load.cancel()
            try:
                load(uploaded(files[0]["datapath"], _uploads(session)), str(files[0]["name"]))
            except (DpradError, KeyError, TypeError):
                load(os.devnull, "the file")

    @reactive.calc
    def place() -> Population | str:
        key = input.population()
        if key == "uniform":
            size = input.size()
            if not size or not 1 <= size <= LARGEST:
                return f"choose between 1 and {LARGEST:,} values."
            return uniform(int(size))
        if key != "file":
            return places[key]
        if load.status() == "initial":
            return "choose a file first."
        return "reading the file ..." if load.status() == "running" else load.result()

    return place


def _shape(place: Any) -> Any:
    """The columns; new columns need new inputs, the same ones keep the selection."""
    shape: reactive.Value[Any] = reactive.Value(None)

    @reactive.effect
    def _reshape() -> None:
        now = place()
        known = None if isinstance(now, str) else (now.prior.columns, _numeric(now))
        with reactive.isolate():
            if shape() != known:
                shape.set(known)

    return shape


def _target(input: Inputs, shape: Any, first: Question) -> Any:  # noqa: A002
    @reactive.calc
    def target() -> str | None:
        known = shape()
        name = input.target() if "target" in input else first.target
        return name if name and known is not None and name in known[0] else None

    return target


def _menu(place: Any, target: Any) -> Any:
    """What can run here, by name and title."""
    menu: reactive.Value[dict[str, str]] = reactive.Value({})

    @reactive.effect
    def _remenu() -> None:
        now, after = place(), target()
        choices = {} if isinstance(now, str) else mechanisms_for(now, after)
        with reactive.isolate():
            if menu() != choices:
                menu.set(choices)

    return menu


def _attacker(controls: Controls) -> None:
    first = controls.first

    @render.ui
    def attacker() -> Any:
        if controls.shape() is None:
            return None
        with reactive.isolate():
            now = controls.place()
        if isinstance(now, str):
            return None
        columns = list(now.prior.columns)
        opening = now is first.population
        known = first.knows if opening else "nothing"
        choices = {"nothing": "knows nothing about the person"}
        if len(columns) > 1:
            choices["columns"] = "knows some columns"
        choices["everything"] = "has the whole record; was it used?"
        several = {"": "the whole record"} | {c: c for c in columns}
        targets = several if len(columns) > 1 else {"": columns[0]}
        chosen = first.target if opening else (columns[-1] if len(columns) > 1 else None)
        kind = known if isinstance(known, str) else "columns"
        return TagList(
            ui.input_radio_buttons("kind", None, choices, selected=kind),
            ui.panel_conditional(
                "input.kind === 'columns'",
                ui.input_checkbox_group(
                    "columns", "They know", columns,
                    selected=[] if isinstance(known, str) else known,
                ),
            ),
            ui.panel_conditional(
                "input.kind !== 'everything'",
                ui.input_select("target", "They want to find out", targets, selected=chosen or ""),
            ),
            ui.panel_conditional(
                "input.kind !== 'everything' && " + _numeric(now),
                ui.input_numeric("eta", NEAR, first.eta if opening else 0, min=0),
            ),
        )  # fmt: skip


def _release(controls: Controls) -> None:
    first = controls.first

    @render.ui
    def release() -> Any:
        choices = controls.menu()
        if not choices:
            return None
        with reactive.isolate():
            old = controls.chosen()
        usual = first.mechanism if first.mechanism in choices else "grr"
        return ui.input_select(
            "mechanism", None, choices, selected=old if old in choices else usual
        )


def _slider(controls: Controls) -> None:
    """The slider and the number beside it follow each other, and the mechanism."""
    input = controls.input  # noqa: A001
    turned: reactive.Value[str] = reactive.Value(controls.first.parameter)

    def within(value: float) -> float:
        low, high, _ = SLIDERS[controls.parameter()]
        return min(max(value, low), high)

    @reactive.effect
    @reactive.event(input.slider)
    def _slide() -> None:
        now = input.value()
        if now is None or within(now) != input.slider():
            ui.update_numeric("value", value=input.slider())

    @reactive.effect
    @reactive.event(input.value)
    def _type() -> None:
        if input.value() is not None:
            ui.update_slider("slider", value=within(input.value()))

    @reactive.effect
    @reactive.event(input.mechanism)
    def _turn() -> None:
        """Another mechanism may have another parameter."""
        parameter = controls.parameter()
        if parameter == turned():
            return
        turned.set(parameter)
        now, name, here = 1.0, input.mechanism(), controls.place()
        if name.startswith("release") and not isinstance(here, str):
            now = here.releases[int(name.partition(" ")[2])].numbers[parameter]
        low, high, step = SLIDERS[parameter]
        ui.update_slider("slider", label=parameter, min=low, max=high, step=step, value=within(now))
        ui.update_numeric("value", label=parameter, value=now)


def _uploads(session: Session) -> str:
    """The folder of this session's uploads; of all sessions, if Shiny does not say."""
    manager = getattr(session, "_file_upload_manager", None)
    return str(getattr(manager, "_basedir", tempfile.gettempdir()))


def _numeric(population: Population) -> str:
    """A condition for the page: whether what is guessed is a number."""
    columns = population.prior.columns
    numbers = [c for c in columns if population.prior.column(c).dtype.kind in "if"]
    if len(columns) == 1:
        return "true" if numbers else "false"
    return f"{json.dumps(numbers)}.includes(input.target)"
