"""dprad atlas: what published deployments mean, and a registry entry from a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dprad.errors import DpradError
from dprad.show.cli.output import show


def atlas(
    folder: Path | None = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    source: str | None = None,
    export: Path | None = None,
) -> int:
    """The extra risk behind a registry of deployments, as a page, a table and a figure.

    Example: dprad atlas registry --out atlas

    Parameters
    ----------
    folder
        A folder of registry files (YAML); default: the current folder.
    out
        The folder for atlas.html, atlas.md, atlas.csv and atlas.svg (default: atlas). With
        --export, the file for the entry (default: print it).
    source
        Where the files are from, in words, for the page; default: the name of the folder.
    export
        Instead, write a registry entry from this scenario file.

    """
    from datetime import UTC, datetime

    from dprad.show import atlas as made

    day = datetime.now(UTC).date()
    if export is not None:
        from dprad.runtime.writing import write
        from dprad.show.atlas.schema import write as yaml_of
        from dprad.show.scenario import load

        if folder is not None or source is not None:
            raise DpradError("--export takes a scenario file only: leave out folder and --source.")
        scenario = load(export)
        text = yaml_of(made.exported(scenario, day))
        if out is None:
            show(text.rstrip())
        else:
            write(out, text, inputs=scenario.files)
            show(f"Wrote {out}. Fill in what is marked, and check every field.")
        return 0
    home = Path() if folder is None else folder
    rows = made.collect(home)
    named = source or f"registry files of {home.resolve().name}"
    target = Path("atlas") if out is None else out
    files = made.write(rows, target, made.Source(named, day), made.registered(home))
    known = sum(bool(row.unit) for row in rows)
    show(f"{len(rows)} deployments, {known} with parameters.")
    show(f"  {target}: {', '.join(file.name for file in files)}")
    return 0
