"""The web server: uvicorn, with limits on slow clients, long headers and answers that nobody reads."""

from __future__ import annotations

import signal
import socket
from asyncio import TimerHandle, Transport

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from selfsent.errors import SettingsError

CONNECTIONS = 2000
"""Maximum number of connections; further ones are answered 503."""
_HEADERS = 1 << 15
"""Maximum size of the headers of a request, in bytes."""
_PATIENCE = 3
"""Time limits until a connection is cut: one to send a request, one to answer it, and one to read the answer."""


class _Impatient(HttpToolsProtocol):
    """HTTP of uvicorn, which by itself waits for headers and readers for ever, and reads headers of any length."""

    seconds: float
    _cut: TimerHandle | None = None

    def _wait(self, seconds: float | None) -> None:
        """Cut the connection after so many seconds, in place of when it would have been cut."""
        if self._cut is not None:
            self._cut.cancel()
        self._cut = self.loop.call_later(seconds, self.transport.abort) if seconds else None
        self._room = _HEADERS

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait(_PATIENCE * self.seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._wait(_PATIENCE * self.seconds)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._room -= len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._room -= len(name) + len(value)
        if self._room < 0:
            raise ValueError("the headers are too long")  # which the parser turns into a 400
        super().on_header(name, value)

    def on_response_complete(self) -> None:
        self._wait(self.seconds)  # uvicorn closes gracefully, and so waits for a client that does not read
        super().on_response_complete()


def listen(host: str, port: int) -> socket.socket:
    """A socket to serve on; the port is free, or the error says so before any model is loaded.

    Raises:
        SettingsError: the address cannot be had.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise SettingsError(f"port {port} of {host} cannot be used ({error}): give another `port`") from error


def server_of(app: ASGIApp, timeout: float) -> uvicorn.Server:
    """A server that is not running yet.

    Args:
        app: the application.
        timeout: seconds for a request.
    """
    config = uvicorn.Config(
        app,
        http=type("Impatient", (_Impatient,), {"seconds": timeout}),
        ws="none",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=round(timeout) + 1,
        timeout_graceful_shutdown=round(timeout) + 1,
    )
    return uvicorn.Server(config)


def serve(app: ASGIApp, listening: socket.socket, timeout: float) -> None:
    """Serve until Ctrl-C or SIGTERM; requests that are being answered are answered."""
    for each in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it has stopped
        signal.signal(each, lambda *_: None)
    server_of(app, timeout).run([listening])
