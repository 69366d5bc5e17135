"""A file of the user: looked at, columns picked, counted. All in processes of their own."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from htmltools import TagList, tags
from shiny import Inputs, Session, reactive, render, ui

from dprad.data.overview import Seen
from dprad.errors import DpradError
from dprad.runtime.bench import Bench
from dprad.show.web.field import field
from dprad.show.web.guard import forgotten, uploaded
from dprad.show.web.population import LIMITS, Population, from_file, look, picked

# Seconds that reading a file may take.
READ = 30.0
UNREAD = "the file cannot be read."


class Waiting(str):
    """Why there is no population yet: it is being read."""

    __slots__ = ()


def upload(input: Inputs, session: Session, bench: Bench, tasks: list[Any]) -> Any:  # noqa: A002
    """A function that gives the population in the file, or says why there is none yet."""
    file: reactive.Value[tuple[str, str]] = reactive.Value(("", ""))
    seen, load = _reading(bench)
    tasks += [seen, load]

    @reactive.effect
    @reactive.event(input.file)
    def _look() -> None:
        files = input.file()
        if files:
            seen.cancel()
            load.cancel()
            try:
                path, name = uploaded(files[0]["datapath"], _uploads(session)), files[0]["name"]
            except (DpradError, KeyError, TypeError):
                path, name = os.devnull, "the file"
            if path != file()[0]:
                forgotten(file()[0], _uploads(session))
            file.set((path, str(name)))
            seen(path, str(name))

    _picking(input, file, seen, load)

    def population() -> Population | str:
        if seen.status() == "initial":
            return "choose a file first."
        if seen.status() != "success":
            return Waiting("Reading the file")
        found = seen.result()
        if isinstance(found, str):
            return found
        if "picked" in input and not input.picked():
            return "pick at least one column."
        if load.status() == "error":
            return UNREAD
        counted: Population | str = Waiting("Counting the rows")
        return load.result() if load.status() == "success" else counted

    return population


def _reading(bench: Bench) -> tuple[Any, Any]:
    """Tasks that look at a file, and count its rows; errors become a sentence."""

    @reactive.extended_task
    async def seen(path: str, name: str) -> list[Seen] | str:
        try:
            found: list[Seen] = await bench.run(look, path, name, seconds=READ, long=True)
        except DpradError as error:
            return str(error)
        except Exception:  # whatever a library makes of it
            return UNREAD
        return found

    @reactive.extended_task
    async def load(path: str, name: str, columns: tuple[str, ...]) -> Population | str:
        try:
            work = (from_file, path, name, list(columns))
            read: Population = await bench.run(*work, seconds=READ, long=True)
        except DpradError as error:
            return str(error)
        except Exception:
            return UNREAD
        return read

    return seen, load


def _picking(input: Inputs, file: Any, seen: Any, load: Any) -> None:  # noqa: A002
    """The columns of the file, to pick from; those that are picked are counted."""
    counted: list[Any] = [None]  # what is counted last, or being counted

    @render.ui
    def columns() -> Any:
        found = seen.result()
        if isinstance(found, str):
            return None
        able = {s.name: _row(s) for s in found if s.fits}
        label = f"Columns of a record, {LIMITS.columns} at most (type, how many values)"
        boxes = ui.input_checkbox_group("picked", label, able, selected=picked(found))
        odd = [s.name for s in found if not s.fits]
        said = f"Not offered, as their values are too long: {', '.join(odd)}." if odd else None
        return TagList(field("picked", boxes), said and tags.p(said, class_="soft"))

    @reactive.effect
    def _load() -> None:
        found = seen.result()
        if isinstance(found, str):
            return
        names = {s.name for s in found if s.fits}
        given = input.picked() if "picked" in input else None
        if given is None or not set(given) <= names:  # those of another file, or none yet
            given = picked(found)
        chosen = tuple(s.name for s in found if s.name in given)
        if chosen and counted[0] != (file(), chosen):
            counted[0] = (file(), chosen)
            load.cancel()
            load(*file(), chosen)


def _row(seen: Seen) -> Any:
    """A column in the list: name, type, how many values."""
    return tags.span(
        tags.span(seen.name, class_="name"),
        tags.span(f"{seen.kind}, {seen.distinct:,}", class_="soft"),
        class_="column",
    )


def _uploads(session: Session) -> str:
    """The folder of this session's uploads; of all sessions, if Shiny does not say."""
    manager = getattr(session, "_file_upload_manager", None)
    return str(getattr(manager, "_basedir", tempfile.gettempdir()))
