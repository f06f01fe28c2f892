"""Servers of language models that lie, break off, send too much or never end: a result, or one line and status 2."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from world import Traps, World

SECRET = "a-key-that-only-the-endpoint-may-see"
MEMORY = 4 << 30
"""Bytes of address space beyond what a command has at its start, as a limit."""


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """Each of them once."""
    return [{"kind": kind} for kind in [*LIES][:count]]


class Endpoints:
    """The part of the campaign.

    Args:
        world: has texts to ask about.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Ask a server that answers so."""
        folder, lie = self.world.new("endpoint"), LIES[case["kind"]]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                with suppress(OSError):
                    lie(self)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        text, output = folder / "text.txt", folder / "queries.jsonl"
        text.write_text("".join(self.world.sentences.read_text().splitlines(keepends=True)[:8]))
        address = f"http://127.0.0.1:{server.server_port}/v1"
        given = ["queries", text, "--queries-from", address, "--llm", "m", "--timeout", 2, "--round-trip", 0]
        traps = Traps(environment={"OPENAI_API_KEY": SECRET}, before=_at_once)
        done = self.world.do([*given, "--output", output], folder / "cache", traps)
        server.shutdown()
        server.server_close()
        fault = done.fault or (f"status {done.status} and a file" if done.status and output.exists() else None)
        shown = [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
        if SECRET in done.said or shown:
            fault = "the key is shown"
        elif "\x1b" in done.said:
            fault = "control characters are shown"
        elif done.status == 0:
            fault = fault or _odd(output)
        shutil.rmtree(folder, ignore_errors=True)
        return {"status": done.status, "said": done.last.replace(address, "ADDRESS")[:250], "fault": fault}


def _at_once() -> None:
    """Do not wait between tries, and do not take more memory than a bit."""
    import resource

    from selfsent.augment import endpoint

    endpoint._LONGEST_WAIT = 0.01
    endpoint.Endpoint.__init__.__defaults__ = (*endpoint.Endpoint.__init__.__defaults__[:-1], 0.01)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (pages + MEMORY, pages + MEMORY))


def _odd(output: Path) -> str | None:
    """What is wrong with the queries in a file."""
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    long = [row for row in rows if len(row["query"]) > 10_000 or not row["query"].strip()]
    return f"an odd query: {long[0]['query'][:80]!r}" if long else None


def _body(data: bytes, status: int = 200, **headers: str) -> Callable[[Any], None]:
    def lie(handler: Any) -> None:
        handler.send_response(status)
        for name, value in {"Content_Length": str(len(data)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return lie


def _content(content: Any) -> Callable[[Any], None]:
    return _body(json.dumps({"choices": [{"message": {"content": content}}]}).encode())


def _for_ever(handler: Any) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b'{"choices": [' + b" " * (1 << 20))


def _trickle(handler: Any) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" ")
        time.sleep(0.1)


def _endless_head(handler: Any) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(10_000):
        handler.wfile.write(b"X-More: " + b"a" * 1000 + b"\r\n")


LIES: dict[str, Callable[[Any], None]] = {
    "questions": _content("1. What is ba?\n2. Who has ko?\n3. Where is de?"),
    "nothing": _body(b""),
    "a page": _body(b"<html><script>alert(1)</script></html>", Content_Type="text/html"),
    "cut JSON": _body(b'{"choices": [{"message": {"content": "what'),
    "deep JSON": _body(b"[" * 200_000),
    "no choices": _body(b'{"choices": []}'),
    "other types": _body(b'{"choices": {"0": {"message": "x"}}}'),
    "a number": _content(7),
    "null": _content(None),
    "no UTF-8": _body(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "lone surrogates": _content("what is \ud800?"),
    "control characters": _content("what \x1b[2J\x1b]0;title\x07 is \u202eit\u2066\x00?"),
    "one long line": _content("what " * 150_000),
    "many lines": _content("what is it?\n" * 50_000),
    "spaces": _content(" \n\n\t" * 1000),
    "too much": _for_ever,
    "a trickle": _trickle,
    "an endless head": _endless_head,
    "hangs up": lambda handler: handler.connection.close(),
    "no HTTP": lambda handler: handler.wfile.write(b"220 mail.example ESMTP\r\n"),
    "a longer body promised": _body(b"{}", Content_Length="1000"),
    "a negative length": _body(b"{}", Content_Length="-5"),
    "packed, and not": _body(b"{}", Content_Encoding="gzip"),
    "elsewhere": _body(b"", 307, Location="http://127.0.0.1:9/v1"),
    "round in circles": _body(b"", 308, Location="/v1/chat/completions"),
    "the key is wrong": _body(json.dumps({"error": {"message": f"wrong key {SECRET} \x1b[2J"}}).encode(), 401),
    "no such model": _body(b'{"error": {"message": "no such model"}}', 404),
    "come again never": _body(b"", 429, Retry_After="999999999"),
    "broken": _body(b"oops", 500),
    "an odd status": _body(b"", 299),
}
