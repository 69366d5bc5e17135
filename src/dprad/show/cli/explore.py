"""dprad explore: the web page."""

from __future__ import annotations

from pathlib import Path

from dprad.show.cli.options import Whole
from dprad.show.cli.output import show


def explore(
    scenario: Path | None = None,
    /,
    *,
    ledger: Path | None = None,
    port: Whole | None = None,
    browser: bool = True,
) -> int:
    """Open a local web page to explore the questions; nothing leaves this machine. Ctrl-C stops it.

    Example: dprad explore --port 8765 --no-browser

    Parameters
    ----------
    scenario
        A scenario file to start with.
    ledger
        Also show this ledger of releases, as it is now; without a scenario, start with its own.
    port
        The port of the page, on this machine only; by default a free one, new for every start.
    browser
        Open it in a browser.

    """
    from dprad.show import scenario as scenarios
    from dprad.show import web

    section = None
    if ledger is not None:
        from dprad.show.ledger import Ledger
        from dprad.show.report.ledger import ledger_section

        kept = Ledger.open(ledger)
        if scenario is not None:
            kept.keeps(scenario)
        section = ledger_section(kept.status())
        scenario = kept.scenario if scenario is None else scenario
    loaded = None if scenario is None else scenarios.load(scenario)
    web.explore(loaded, ledger=section, port=port, browser=browser, ready=show)
    return 0
