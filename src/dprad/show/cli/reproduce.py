"""dprad reproduce: rerun the paper's experiments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dprad.errors import DpradError, one_of, part, whole
from dprad.runtime.writing import folder as made_folder
from dprad.show.cli.options import Whole, hands
from dprad.show.cli.output import show


def reproduce(
    name: str | None = None,
    *,
    list_: Annotated[bool, Parameter(name="--list", negative=())] = False,
    data: str | None = None,
    runs: Whole | None = None,
    out: str = "reproduction",
    quick: Annotated[bool, Parameter(negative=())] = False,
    rng: Whole = 0,
    workers: Whole = 1,
    cluster: str | None = None,
) -> int:
    """Rerun an experiment of the paper: table, figure, parameters, and how well it agrees.

    Example: dprad reproduce --list

    Parameters
    ----------
    name
        The experiment, or all. An interrupted one resumes where it stopped.
    list_
        List the experiments.
    data
        The directory with the data; default: the environment variable DPRAD_DATA.
    runs
        Runs per cell; default: as many as in the paper.
    out
        The folder for the files.
    quick
        Small and fast, on built-in data.
    rng
        Seed.
    workers
        Number of processes. It does not change the numbers.
    cluster
        A Dask cluster to run on, as tcp://host:8786.

    """
    from dprad.paper import experiments

    if list_ or name is None:
        width = max(map(len, experiments.EXPERIMENTS))
        lines = [
            f"{n:{width}}  {title} ({where})"
            for n, (_, where, title) in experiments.EXPERIMENTS.items()
        ]
        show("\n".join(lines))
        if name is None and not list_:
            raise DpradError("name an experiment: dprad reproduce NAME.")
        return 0
    if runs is not None:
        whole(runs, "--runs", low=1)
    if name != "all":
        one_of(name, "name", experiments.EXPERIMENTS)
    part("matplotlib", "its figures", "plots")  # before the work, not after it
    folder = made_folder(Path(out))
    names = list(experiments.EXPERIMENTS) if name == "all" else [name]
    for each in names:
        options = experiments.Options(
            name=each, data=data, runs=runs, quick=quick, rng=rng, out=folder
        )
        words = [f"dprad reproduce {each}", *(["--data DIR"] if data else [])]
        words += ["--quick"] if quick else []
        words += [f"--runs {runs}"] if runs is not None else []
        with hands(whole(workers, "--workers", low=1), cluster) as many:
            made = experiments.run(replace(options, workers=many))
        files = experiments.write(made, folder, " ".join(words))
        show(f"{each}: {made.sentences[0]}")
        show(f"  {folder}: {', '.join(f.name for f in files)}")
    return 0
