"""The explorer: a local page, bound to this machine, that needs no network.

`question.py` holds what the page asks and the answers, without any page; `app.py` draws it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from dprad.errors import DpradError, whole

HOST = "127.0.0.1"


def explore(
    scenario: Any = None,
    *,
    port: int = 8765,
    browser: bool = True,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the page until Ctrl-C. `scenario`: a `dprad.scenario.Scenario`, or None."""
    number = whole(port, "port", low=1)
    if number > 65535:
        raise DpradError(f"port must be at most 65535, but is {port!r}.")
    try:
        import shiny
    except ImportError:
        raise DpradError("the page needs Shiny: pip install 'dprad[web]'.") from None
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, number))
        except OSError:
            raise DpradError(
                f"port {number} is taken on this machine; choose another one: --port "
                f"{number + 1 if number < 65535 else 8765}."
            ) from None
    from dprad.web.app import make_app

    ready(f"The page is at http://{HOST}:{number}/ (Ctrl-C ends it).")
    serve: Any = shiny.run_app
    serve(make_app(scenario), host=HOST, port=number, launch_browser=browser, log_level="warning")
