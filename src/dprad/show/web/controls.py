"""The inputs of the page as one question: population, attackers, releases, accepted risk."""

from __future__ import annotations

from typing import Any

from htmltools import TagList
from shiny import Inputs, Outputs, Session, reactive, render, ui

from dprad.errors import DpradError
from dprad.model.threats import Threat
from dprad.runtime.bench import Bench
from dprad.show.web.cards import Attackers, Releases
from dprad.show.web.field import field
from dprad.show.web.population import Population, menu, uniform
from dprad.show.web.question import Question
from dprad.show.web.upload import Waiting, upload
from dprad.verbs.attackers import MOST, standard

LARGEST = 10_000
# Most own attackers, and most releases unless a scenario has more.
ATTACKERS, RELEASES = 3, 4


class Controls:
    """The inputs as one question; invalid input raises a `DpradError`."""

    def __init__(
        self,
        input: Inputs,  # noqa: A002
        output: Outputs,
        session: Session,
        places: dict[str, Population],
        opening: list[tuple[str, float, str]],
        bench: Bench,
    ) -> None:
        self.input, self.places = input, places
        self.tasks: list[Any] = []  # what is computed for this session
        self.place = _populations(input, places, upload(input, session, bench, self.tasks))
        self.shape = _shape(self.place)
        home = next(iter(places.values()))
        number = max(RELEASES, len(opening))
        first = (home, opening)
        self.releases = Releases(input, output, self.place, self.shape, first, number)
        self.attackers = Attackers(input, output, self.place, self.shape, ATTACKERS)
        _who(self)

    def cancel(self) -> None:
        """Nobody waits for the answers any more."""
        for task in self.tasks:
            task.cancel()

    def question(self) -> Question:
        """All inputs together, whatever a client sent."""
        try:
            return self._question()
        except DpradError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError):
            raise DpradError("this question cannot be understood.") from None

    def _question(self) -> Question:
        now = self.place()
        if isinstance(now, str):
            raise DpradError(now)
        accepted = self.input.accepted()
        if accepted is not None and not 0 <= accepted <= 1:
            raise DpradError("the accepted risk must be between 0 and 1.")
        who = self.input.who()
        sensitive = self._sensitive(now) if who == "standard" else None
        return Question(
            population=now,
            attackers=self._attackers(now, who, sensitive),
            releases=self.releases.made(),
            accepted=None if accepted is None else float(accepted),
            worst=self.input.worst() == "worst",
            standard=who == "standard",
            sensitive=sensitive,
        )

    def _attackers(
        self, now: Population, who: str, sensitive: tuple[str, ...] | None
    ) -> tuple[tuple[str, Threat], ...]:
        if who == "own":
            return self.attackers.made(now.prior)
        if who == "scenario" and now.attackers:
            return now.attackers
        return tuple(standard(now.prior, sensitive))

    def _sensitive(self, now: Population) -> tuple[str, ...] | None:
        """The sensitive columns; None if all are."""
        columns = now.prior.columns
        if len(columns) < 2 or "sensitive" not in self.input:
            return None
        ticked = self.input.sensitive()
        if not ticked:
            raise DpradError("tick at least one column that the attackers try to find out.")
        named = tuple(c for c in columns if c in ticked)
        # none: they are those of another table, about to change
        return None if len(named) in (0, len(columns)) else named


def _populations(input: Inputs, places: dict[str, Population], from_upload: Any) -> Any:  # noqa: A002
    """The population, or a sentence that says why there is none yet."""

    @reactive.calc
    def place() -> Population | str:
        kind = input.population()
        if kind == "uniform":
            size = input.size()
            if not size or not 1 <= size <= LARGEST:
                return f"choose between 1 and {LARGEST:,} values."
            return uniform(int(size))
        now: Population | str = from_upload() if kind == "file" else places[kind]
        if isinstance(now, Population) and now.counted and "whole" in input and input.whole():
            return now.whole()
        return now

    return place


def _shape(place: Any) -> Any:
    """What the inputs depend on; while it stays the same they keep what was chosen."""
    shape: reactive.Value[Any] = reactive.Value(None)

    @reactive.effect
    def _reshape() -> None:
        now = place()
        known = None
        if not isinstance(now, str):
            prior = now.prior
            kinds = [prior.column(c).dtype.kind in "if" for c in prior.columns]
            known = (prior.columns, kinds, menu(now), len(now.attackers))
        with reactive.isolate():
            # while a file is counted again, the inputs stay
            if shape() != known and not isinstance(now, Waiting):
                shape.set(known)

    return shape


def _who(controls: Controls) -> None:
    @render.ui
    def whole_table() -> Any:
        """Whether the table is the whole population, where that can be said."""
        if controls.input.population() not in ("file", "scenario"):
            return None
        if controls.input.population() == "scenario" and not controls.places["scenario"].counted:
            return None
        box = ui.input_checkbox("whole", "The table is the whole population")
        return field("whole", box)

    @render.ui
    def who_is_it() -> Any:
        if controls.shape() is None:
            return None
        with reactive.isolate():
            now = controls.place()
        if isinstance(now, str):
            return None
        choices = {"standard": "all standard attackers", "own": "attackers of my own"}
        if now.attackers:
            own = f"the scenario's attackers ({len(now.attackers)})"
            choices = {"scenario": own} | choices
        radio = ui.input_radio_buttons("who", None, choices, selected=next(iter(choices)))
        columns = list(now.prior.columns)
        return TagList(
            field("who", radio),
            ui.panel_conditional(
                "input.who === 'standard'",
                field(
                    "sensitive",
                    ui.input_checkbox_group(
                        "sensitive", "They try to find out", columns, selected=columns, inline=True
                    ),
                ),
            )
            if 1 < len(columns) <= MOST
            else None,
        )
