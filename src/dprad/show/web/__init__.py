"""The explorer: a local web page, bound to this machine, that needs no network.

`population.py` and `question.py` hold the questions and answers, independent of the page;
`controls.py`, `cards.py` and `upload.py` read the inputs; `app.py`, `drawn.py` and `chart.py` show
the answers; `guard.py` controls access.
"""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dprad.errors import DpradError, whole

HOST = "127.0.0.1"
# Bytes of the longest message that the page may send: inputs are short, and files come by other
# requests. One of a megabyte would keep the page busy for seconds.
MESSAGE = 2**17


def explore(
    scenario: Any = None,
    *,
    ledger: Any = None,
    port: int | None = None,
    browser: bool = True,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the page until Ctrl-C. `scenario`: a `dprad.scenario.Scenario`, or None; `ledger`: the
    section of a report that shows one, or None.

    The address contains a token that is new for every start; requests without it are refused.
    """
    number = 0 if port is None else whole(port, "port", low=1)
    if number > 65535:
        raise DpradError(f"port must be at most 65535, but is {port!r}.")
    try:
        import shiny  # noqa: F401 - to say so before anything is opened
        import uvicorn
    except ImportError:
        raise DpradError("the page needs Shiny: pip install 'dprad[web]'.") from None
    with _listening(number) as listener, tempfile.TemporaryDirectory(prefix="dprad-") as folder:
        from dprad.runtime.bench import Bench
        from dprad.show.web.app import make_app
        from dprad.show.web.guard import Guard
        from dprad.show.web.question import imports

        number = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        address = f"http://{HOST}:{number}/{token}/"
        before, tempfile.tempdir = (
            tempfile.tempdir,
            folder,
        )  # uploads go there, and are deleted with it
        bench = Bench()
        bench.warm(imports)
        ended = _ending()
        try:
            app = Guard(make_app(scenario, bench, ledger), HOST, number, token)
            config = uvicorn.Config(
                app, log_level="warning", ws_max_size=MESSAGE, server_header=False
            )
            ready(f"The page is at {address} (Ctrl-C stops it; keep the address private).")
            if browser:
                _open(address, Path(folder))
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            tempfile.tempdir = before
            bench.end()
            for number_, handler in ended.items():
                signal.signal(number_, handler)


def _ending() -> dict[int, Any]:
    """A closed terminal, or a polite kill, ends the page as Ctrl-C does; the old handlers."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [getattr(signal, n) for n in ("SIGTERM", "SIGHUP") if n in dir(signal)]
    return {n: signal.signal(n, stop) for n in numbers}


def _open(address: str, folder: Path) -> None:
    """Through a file in a private folder: command-line arguments are visible to everybody here."""
    import webbrowser

    page = folder / "open.html"
    page.write_text(f'<meta http-equiv="refresh" content="0; url={address}">', encoding="utf-8")
    webbrowser.open(page.as_uri())


def _listening(port: int) -> socket.socket:
    """A socket that listens from now on, so that of two simultaneous starts one fails."""
    listener = socket.socket()
    if sys.platform != "win32":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise DpradError(
            f"port {port} is in use on this machine; choose another one: --port "
            f"{port + 1 if port < 65535 else 8765}."
        ) from None
    return listener
