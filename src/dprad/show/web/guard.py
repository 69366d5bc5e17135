"""Access control: only the browser that was given the address may use the page.

Any web page that you visit can send requests to 127.0.0.1. So every request must name this host
and port (other names that resolve here are refused), must not come from another origin, and must
begin with a token that is new for every start and appears only in the address. Uploads are limited,
and are read from this session's own folder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dprad.errors import DpradError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Most bytes of a request.
MAX_BODY = 100_000_000
# Shiny evaluates conditions on the page and adds scripts of its own; all come from this server.
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "connect-src 'self' {socket}; frame-ancestors 'none'; base-uri 'self'; form-action 'none'"
)


class Guard:
    """An ASGI application in front of the page."""

    def __init__(self, app: Any, host: str, port: int, token: str) -> None:
        self.app, self.prefix = app, f"/{token}"
        # by its number only: "localhost" shares its cookies with every other local server
        self.here = f"{host}:{port}".encode()
        policy = _POLICY.format(socket=f"ws://{host}:{port}")
        self.headers = [
            (b"content-security-policy", policy.encode()),
            (b"x-frame-options", b"DENY"),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it without revealing anything."""
        kind = scope["type"]
        if kind == "lifespan":
            await self.app(scope, receive, send)
            return
        if not self._allowed(scope):
            await _refuse(kind, send)
            return
        path = scope["path"].removeprefix(self.prefix)
        raw = scope.get("raw_path", scope["path"].encode()).removeprefix(self.prefix.encode())
        inner = {**scope, "path": path, "raw_path": raw}
        if kind == "websocket":
            await self.app(inner, receive, send)
            return

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in self.headers}
                others = [h for h in message.get("headers", []) if h[0].lower() not in names]
                message["headers"] = [*others, *self.headers]
            await send(message)

        await self.app(inner, _limited(receive), answer)

    def _allowed(self, scope: Scope) -> bool:
        """The right host, no foreign origin or site, a body within the limit, and the token."""
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if hosts != [self.here] or origins not in ([], [b"http://" + self.here]):
            return False
        if scope["type"] == "websocket" and not origins:
            return False
        sites = _values(scope, b"sec-fetch-site")
        if sites and sites[0] not in (b"same-origin", b"none") and not _visit(scope):
            return False
        lengths = _values(scope, b"content-length")
        if any(not v.isdigit() or int(v[:20]) > MAX_BODY for v in lengths):
            return False
        return bool(scope["path"].startswith(self.prefix + "/"))


def _values(scope: Scope, header: bytes) -> list[bytes]:
    """All values of a header."""
    return [value for name, value in scope["headers"] if name == header]


def _visit(scope: Scope) -> bool:
    """Whether the page itself is opened: a link with the token may come from anywhere."""
    given = {name: value for name, value in scope["headers"] if name.startswith(b"sec-fetch-")}
    opened = given.get(b"sec-fetch-mode"), given.get(b"sec-fetch-dest")
    return scope.get("method") == "GET" and opened == (b"navigate", b"document")


async def _refuse(kind: str, send: Send) -> None:
    if kind == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    text = b"Access denied: open the address that `dprad explore` printed.\n"
    await send({"type": "http.response.body", "body": text})


def _limited(receive: Receive) -> Receive:
    """The body of a request, no longer than allowed."""
    seen = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return {"type": "http.disconnect"} if seen > MAX_BODY else message

    return limited


def uploaded(path: Any, folder: Any) -> str:
    """The path of an upload, if it is one; the claims of the browser are not trusted."""
    try:
        place, inside = Path(path).resolve(strict=True), Path(folder).resolve(strict=True)
    except (TypeError, ValueError, OSError):
        raise DpradError("choose a file first.") from None
    if not place.is_relative_to(inside) or not place.is_file():
        raise DpradError("choose a file first.")
    return str(place)


def forgotten(path: Any, folder: Any) -> None:
    """Delete an upload that another one takes the place of, so that they do not fill the disk."""
    with suppress(DpradError, OSError):
        Path(uploaded(path, folder)).unlink()
