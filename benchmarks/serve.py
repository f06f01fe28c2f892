r"""`selfsent serve` under many clients: seconds of the processor a query, of the server and of the clients apart.

    python benchmarks/serve.py tickets.index --before ../before/src --before-index older.index

200 clients ask again and again over connections that they keep. The builds alternate, each with a server of its own.
What a build allows on idle cores is told by the processor's seconds of a query; what was answered, and when, depends
on what else the machine does. Without an index, one of synthetic tickets is made in a temporary folder. Results go into
docs/results/speed/serve_before_now.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from harness import machine, processor_seconds

from selfsent.files import write_json

sys.path.append(str(Path(__file__).parents[1] / "faults"))
from attack import Server, client, index_of

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "speed" / "serve_before_now.json"


async def asked(server: Server, seconds: float, clients: int) -> dict[str, Any]:
    """Figures of some seconds with a number of clients."""
    taken: list[float] = []
    statuses: Counter[str] = Counter()
    memory, begin = [server.memory], time.perf_counter()
    before = processor_seconds(server.process.pid), time.process_time()
    end = begin + seconds
    asking = [asyncio.create_task(client(server.port, end, each, taken, statuses)) for each in range(clients)]
    while time.perf_counter() < end:
        await asyncio.sleep(seconds / 10)
        memory.append(server.memory)
    await asyncio.gather(*asking)
    count, lasted = len(taken), time.perf_counter() - begin
    p50, p99 = (round(1000 * float(each), 1) for each in np.quantile(taken, (0.5, 0.99)))
    return {
        "answers": dict(statuses),
        "queries a second": round(count / lasted, 1),
        "p50 ms": p50,
        "p99 ms": p99,
        "server, processor ms a query": round(1000 * (processor_seconds(server.process.pid) - before[0]) / count, 3),
        "clients, processor ms a query": round(1000 * (time.process_time() - before[1]) / count, 3),
        "MiB": [memory[1], max(memory), memory[-1]],
    }


def compared(given: argparse.Namespace, index: Path) -> dict[str, list[dict[str, Any]]]:
    """The figures of each round of the builds, which alternate."""
    sides = {"now": (Path(__file__).resolve().parents[1] / "src", index)}
    if given.before:
        sides["before"] = given.before.resolve(), given.before_index or index
    rows: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    random.seed(0)
    for _ in range(given.rounds):
        for side, (source, its_index) in sides.items():
            os.environ["PYTHONPATH"] = str(source)
            server = Server(its_index)
            try:
                asyncio.run(asked(server, given.seconds / 4, given.clients))  # threads and caches are filled
                rows[side].append(asyncio.run(asked(server, given.seconds, given.clients)))
            finally:
                server.process.kill()
                server.process.wait()
            print(side, rows[side][-1], file=sys.stderr)
    return rows


def main() -> None:
    """Measure both builds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path, nargs="?", help="of this build")
    parser.add_argument("--before", type=Path, help="the src folder of the build before")
    parser.add_argument("--before-index", type=Path, help="of the build before (default: the same)")
    parser.add_argument("--tickets", type=int, default=100_000, help="of the index that is made where none is given")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = compared(given, given.index or index_of(Path(folder), given.tickets))
    named = [name for name, value in rows["now"][0].items() if isinstance(value, float)]
    medians = {
        side: {name: statistics.median(row[name] for row in found) for name in named} for side, found in rows.items()
    }
    about = {"clients": given.clients, "seconds": given.seconds, "load of the machine at the end": os.getloadavg()[0]}
    write_json(given.output, {**about, "medians": medians, "runs": rows, "machine": machine()})
    print(medians)


if __name__ == "__main__":
    main()
