"""Broken, huge and hostile requests to `selfsent serve`, beside slow clients and one that is well-behaved."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

TEAMS = ("sales", "support", "finance", "people", "facilities")
THINGS = (
    "printer scanner laptop invoice password router screen keyboard badge lamp phone server backup licence mailbox"
    " calendar projector heating door window chair desk cable network account payroll contract order delivery refund"
).split()
TROUBLES = (
    "does not answer|is broken|shows an error|is missing|was changed twice|stopped working|needs to be replaced|is slow"
    "|cannot be found|blinks red|asks for a password|was sent to the wrong address|makes a noise|is locked"
).split("|")
PLACES = (
    "on the second floor|in the Berlin office|since Monday|after the update|for the new colleague|in room {number}"
    "|at the warehouse|for customer {number}|before the meeting|again|with error {number}|of order {number}"
).split("|")


def sentence(draw: random.Random) -> str:
    """A sentence of a ticket."""
    place = draw.choice(PLACES).format(number=draw.randrange(100, 9999))
    return f"The {draw.choice(THINGS)} {draw.choice(TROUBLES)} {place}."


def index_of(folder: Path, count: int) -> Path:
    """An index of synthetic tickets, made once."""
    tickets, index = folder / f"tickets-{count}.csv", folder / f"tickets-{count}.index"
    if not index.exists():
        draw = random.Random(0)
        with tickets.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(("id", "body", "team"))
            for number in range(count):
                body = " ".join(sentence(draw) for _ in range(draw.randrange(2, 8)))
                table.writerow((f"T-{number}", body, draw.choice(TEAMS)))
        carried = ("--text-column", "body", "--id-column", "id", "--keep", "team")
        command = ("-m", "selfsent", "index", "bundled", str(tickets), *carried, "--output", str(index))
        subprocess.run([sys.executable, *command], check=True)
    return index


class Server:
    """`selfsent serve` in a process of its own."""

    def __init__(self, index: Path, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        command = [sys.executable, "-m", "selfsent", "serve", str(index), "--port", str(self.port), *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)
        while self.process.poll() is None:
            try:
                self.health = json.load(urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=20))
                return
            except OSError:
                time.sleep(0.2)
        raise SystemExit(self.process.communicate()[1].decode())

    @property
    def memory(self) -> float:
        """Resident MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)

    def stop(self) -> tuple[int, float, str]:
        """Status, seconds to stop, and what it wrote."""
        begin = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        log = self.process.communicate(timeout=60)[1].decode()
        return self.process.returncode, round(time.perf_counter() - begin, 2), log


@contextmanager
def serving(index: Path, *options: str) -> Iterator[Server]:
    """A server, ended whatever happens."""
    server = Server(index, *options)
    try:
        yield server
    finally:
        server.process.kill()


def post(path: str, body: bytes, length: int | None = None) -> bytes:
    """The bytes of a request."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of an answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    status, length = int(head[9:12]), 0
    for line in head.split(b"\r\n")[1:]:
        if line.lower().startswith(b"content-length:"):
            length = int(line[15:])
    return status, await reader.readexactly(length)


async def client(port: int, end: float, number: int, taken: list[float], statuses: Counter[str]) -> None:
    """One of the clients: a search of ten hits, again and again."""
    draw = random.Random(number)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    while (begin := time.perf_counter()) < end:
        query = json.dumps({"query": sentence(draw), "top": 10}).encode()
        try:
            writer.write(post("/search", query))
            status, body = await answer(reader)
            whole = len(json.loads(body)["hits"]) == 10 if status == 200 else True
            statuses[str(status) if whole else "short"] += 1
        except (OSError, asyncio.IncompleteReadError, ValueError, KeyError):
            statuses["lost"] += 1
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        taken.append(time.perf_counter() - begin)
    writer.close()


_CONDITIONS = [
    *("team=a\rb", "team=\x00", "team", "=", "team<", "'; DROP TABLE inputs; --=1", "id=" + "a," * 400, 'team="a'),
    *(["team=sales"] * 3000, ["team=" + "a," * 490] * 20, "id>\ud800", "team=sales"),
]


def hostile(draw: random.Random) -> tuple[str, bytes]:
    """A request of somebody who means harm, and its kind."""
    path = draw.choice(("/search", "/v1/embeddings"))
    word, junk = sentence(draw), draw.randbytes(draw.randrange(1, 2000))
    values: list[Any] = [None, True, -1, 1e400, 10**400, [], {}, [[]], "", " ", "\ud800", "\x00", 10**6, "x" * 40_000]
    fields = {name: draw.choice(values) for name in ("top", "where", "lexical_weight", "length", "mark", "dimensions")}
    bodies = {
        "no JSON": junk,
        "cut JSON": json.dumps({"query": word, "input": word}).encode()[: draw.randrange(1, 30)],
        "deep": b'{"query":' + b"[" * draw.choice((1000, 100_000)),
        "deep and whole": b'{"input":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        "wrong types": json.dumps({"query": draw.choice(values), "input": draw.choice(values)}).encode(),
        "wrong fields": json.dumps({"query": word, "input": word, **fields}).encode(),
        "conditions": json.dumps({"query": word, "where": draw.choice(_CONDITIONS)}).encode(),
        "tokens": json.dumps({"input": draw.choice(([1, 2], [[1], [2]]))}).encode(),
        "many texts": json.dumps({"input": ["a"] * 3000}).encode(),
        "long number": b'{"query":"a","top":' + b"9" * draw.choice((100, 10_000)) + b"}",
        "odd characters": json.dumps(
            {"query": "\u0301" * 5000 + "\ud83d\u202e\x00", "input": "\ud800\udfff\x00"}
        ).encode(),
        "a well-formed one": json.dumps({"query" if path == "/search" else "input": word}).encode(),
    }
    kind = draw.choice(
        (*bodies, "huge", "hangs up", "says too little", "no HTTP", "long headers", "other method", "odd path")
    )
    if kind in bodies:
        return kind, post(path, bodies[kind])
    odd = {
        "huge": lambda: post(path, b'{"query":"' + b"a" * 6_000_000 + b'"}'),
        "hangs up": lambda: post(path, b'{"query":', 1000),
        "says too little": lambda: post(path, b'{"query":"a"}', 5),
        "no HTTP": lambda: junk,
        "long headers": lambda: b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        "other method": lambda: b"DELETE /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        "odd path": lambda: b"GET /%00%ff/../../etc/passwd?\xe4 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }
    return kind, odd[kind]()


async def attack(server: Server, requests: int, slow: int) -> dict[str, Any]:
    """Figures of an attack, beside clients that send a byte a second, and one that is well-behaved."""
    draw, statuses, kinds = random.Random(1), Counter[str](), Counter[str]()
    memory, room = [], asyncio.Semaphore(50)
    end = asyncio.Event()

    async def one(kind: str, sent: bytes) -> None:
        async with room:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 24)
            status = "cut"
            try:
                writer.write(sent)
                if kind != "hangs up":
                    status = str((await asyncio.wait_for(answer(reader), 30))[0])
            except TimeoutError:
                status = "no answer"
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                pass
            finally:
                writer.close()
            statuses[status] += 1
            kinds[f"{kind}: {status}"] += 1

    async def crawl() -> None:
        """A header or body, a byte a second; a connection that is cut is opened again."""
        while not end.is_set():
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                for byte in post("/search", b'{"query":"slow"}'):
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(1)
            except OSError:
                kinds["slow: cut"] += 1

    crawlers = [asyncio.create_task(crawl()) for _ in range(slow)]
    taken: list[float] = []
    well: Counter[str] = Counter()
    polite = asyncio.create_task(client(server.port, time.perf_counter() + 1e9, 0, taken, well))
    done = 0
    while done < requests:
        count = min(500, requests - done)
        tasks = []
        for _ in range(count):
            tasks.append(asyncio.create_task(one(*hostile(draw))))
            await asyncio.sleep(0)  # the well-behaved client is in this process
        await asyncio.gather(*tasks)
        done += count
        memory.append(server.memory)
    end.set()
    for task in (polite, *crawlers):
        task.cancel()
    health = json.load(urllib.request.urlopen(f"http://127.0.0.1:{server.port}/health", timeout=20))
    return {
        "requests": requests,
        "slow clients": slow,
        "statuses": dict(statuses),
        "kinds": dict(sorted(kinds.items())),
        "well-behaved client": {"statuses": dict(well), "p99 ms": round(1000 * float(np.quantile(taken, 0.99)), 1)},
        "MiB": memory,
        "alive": health["status"] == "ok",
    }
