"""The service as an ASGI application: routes, the token, limits, and the search page."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send

from selfsent.errors import SelfsentError
from selfsent.report.pages import render
from selfsent.serving.batches import Batcher
from selfsent.serving.engine import Engine, Piece, pieces_of, size_of
from selfsent.serving.judging import Judging
from selfsent.serving.limits import Limits
from selfsent.serving.requests import EmbeddingsRequest, JudgeRequest, SearchRequest, openapi, parse

_SECURITY = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store"}
_SECURITY |= {"cross-origin-resource-policy": "same-origin", "x-frame-options": "DENY"}
_NOTHING = "default-src 'none'; frame-ancestors 'none'"
"""Content policy of answers that are no page."""
_THREADS = 4
"""Maximum number of batches at a time; measured on two cores, where it is two."""
_HEARD = 8
"""How many times the largest body is read and thrown away: most clients hear an answer only when they have sent all."""


class _Application(Starlette):
    """Starlette for its start and end alone: its routing and layers take a quarter of the time of HTTP."""

    def __init__(self, service: _Service) -> None:
        super().__init__(lifespan=service.running)
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._service if scope["type"] == "http" else super().__call__
        await answer(scope, receive, send)


def application(
    engine: Engine,
    limits: Limits,
    token: str | None = None,
    names: Sequence[str] = (),
    judging: Judging | None = None,
) -> Starlette:
    """The service as an ASGI application.

    Args:
        engine: answers requests.
        limits: of requests.
        token: that clients must send; None for none.
        names: the host names that requests may carry; none for any. A page of elsewhere can point its own name at this
            machine, and so read what only this machine may.
        judging: keeps judgements of hits; None without them.
    """
    return _Application(_Service(engine, limits, token, names, judging))


class _Service:
    def __init__(
        self, engine: Engine, limits: Limits, token: str | None, names: Sequence[str], judging: Judging | None
    ) -> None:
        self._engine, self._limits, self._token, self._names = engine, limits, token, names
        self._judging = judging
        self._batcher = Batcher(engine.work, size_of, limits.max_waiting, min(_THREADS, os.cpu_count() or 1))
        self._page, self._policy = _page()
        self._routes = {("POST", "/search"): self._search, ("POST", "/v1/embeddings"): self._embeddings}
        self._routes |= {("POST", "/judge"): self._judge} if judging else {}
        pages = {"/": self._start, "/health": self._health, "/openapi.json": self._description}
        pages |= {"/v1/models": self._models}
        self._routes |= {(method, path): way for path, way in pages.items() for method in ("GET", "HEAD")}

    @asynccontextmanager
    async def running(self, app: Starlette) -> AsyncIterator[None]:
        """The work, while the service runs."""
        task = asyncio.create_task(self._batcher.run())
        yield
        task.cancel()
        self._batcher.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answered(request)
        except ClientDisconnect:
            return
        except HTTPException as error:
            answer = _refusal(error.status_code, error.detail, error.headers)
        except SelfsentError as error:
            answer = _refusal(400, str(error))
        except (TimeoutError, asyncio.QueueFull):
            answer = _refusal(503, "busy: come again in a second", {"retry-after": "1"})
        except Exception as error:  # the message may hold a text
            sys.stderr.write(f"selfsent serve: {type(error).__name__} while answering {scope['path']}\n")
            answer = _refusal(500, "an error of the service")
        answer.headers.update(_SECURITY)
        answer.headers.setdefault("content-security-policy", _NOTHING)
        await answer(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        name = re.sub(r":\d*$", "", request.headers.get("host", "")).lower()
        if self._names and name not in self._names:
            raise HTTPException(421, "this host name is not allowed: see --allowed-host")
        if (way := self._routes.get((request.method, request.scope["path"]))) is None:
            raise HTTPException(404, "there is no such path, or not by this method")
        # A page of elsewhere may not read an answer, but could keep the service at work.
        if request.method == "POST" and request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise HTTPException(403, "pages of elsewhere may not ask")
        if (request.method == "POST" or way == self._models) and not self._admits(request):
            raise HTTPException(401, "give the token, as Authorization: Bearer TOKEN", {"www-authenticate": "Bearer"})
        return await way(request)

    async def _search(self, request: Request) -> Response:
        asked = parse(SearchRequest, await self._body(request), self._limits)
        [(hits, about)] = await self._worked([self._engine.with_rate(asked)])
        judged = {"judged": self._judging.of(asked.query, hits)} if self._judging else {}
        return JSONResponse({"model": self._engine.model, "hits": hits, **about, **judged})

    async def _judge(self, request: Request) -> Response:
        """Keep a judgement; requests that a form or script of another site could send are refused, token or not."""
        assert self._judging is not None
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "a judgement is sent as application/json")
        origin, host = (request.headers.get(name, "").lower() for name in ("origin", "host"))
        own = not origin or request.headers.get("sec-fetch-site") == "same-origin"
        if not own and origin.partition("//")[2] != host:
            raise HTTPException(403, "pages of elsewhere may not judge")
        asked = parse(JudgeRequest, await self._body(request), self._limits)
        async with asyncio.timeout(self._limits.timeout):
            return JSONResponse(await asyncio.to_thread(self._judging.judge, asked))

    async def _embeddings(self, request: Request) -> Response:
        asked = parse(EmbeddingsRequest, await self._body(request), self._limits)
        done = await self._worked(pieces_of(asked))
        tokens, entries = sum(count for _, count in done), ",".join(entry for found, _ in done for entry in found)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        head = json.dumps({"object": "list", "model": self._engine.model, "usage": usage})
        return Response(f'{head[:-1]}, "data": [{entries}]}}', media_type="application/json")

    async def _start(self, request: Request) -> Response:
        return HTMLResponse(self._page, headers={"content-security-policy": self._policy})

    async def _health(self, request: Request) -> Response:
        known = self._engine.about | (self._judging.about if self._judging else {}) if self._admits(request) else {}
        return JSONResponse({"status": "ok"} | known)

    async def _models(self, request: Request) -> Response:
        model = {"id": self._engine.model, "object": "model", "created": 0, "owned_by": "selfsent"}
        return JSONResponse({"object": "list", "data": [model]})

    async def _description(self, request: Request) -> Response:
        return Response(openapi(self._token is not None, self._judging is not None), media_type="application/json")

    def _admits(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").encode()
        return self._token is None or hmac.compare_digest(given, f"Bearer {self._token}".encode())

    async def _body(self, request: Request) -> bytes:
        most, body, count = self._limits.max_body, bytearray(), 0
        try:
            async with asyncio.timeout(self._limits.timeout):
                async for chunk in request.stream():
                    count += len(chunk)
                    body += chunk if count <= most else b""
                    if count > _HEARD * most:
                        break
        except TimeoutError:
            raise HTTPException(408, "the request was sent too slowly", {"connection": "close"}) from None
        if count > most:
            raise HTTPException(413, f"the request is larger than {most:,} bytes", {"connection": "close"})
        return bytes(body)

    async def _worked(self, pieces: Iterable[Piece]) -> list[Any]:
        """The results of pieces of work, one after the other, so that other requests get their turn."""
        async with asyncio.timeout(self._limits.timeout):
            return [await self._batcher.submit(piece) for piece in pieces]


def _refusal(status: int, message: str, headers: Any = None) -> Response:
    """An error, as OpenAI's API spells it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return JSONResponse(error, status, headers)


def _page() -> tuple[str, str]:
    """The search page, and a policy by which a browser runs nothing but its own script and loads nothing else."""
    page, own = render("serve.html"), ""
    for tag in ("script", "style"):
        parts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digests = (base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts)
        own += f"{tag}-src " + " ".join(f"'sha256-{digest}'" for digest in digests) + "; "
    nothing = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return page, f"default-src 'none'; {own}connect-src 'self'; {nothing}"
