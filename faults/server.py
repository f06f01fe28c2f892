"""`selfsent serve` under 10,000 broken, huge and hostile requests, beside clients that send a byte a second."""

from __future__ import annotations

import asyncio
from typing import Any

from world import World

REQUESTS, SLOW = 10_000, 50
GROWTH = 1.2
"""Times the memory after a tenth of the requests, at the end."""
_FINE = {"200", "400", "403", "404", "405", "413", "415", "422", "431", "503", "cut"}


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """The one attack."""
    return [{"kind": "hostile requests", "requests": REQUESTS, "slow clients": SLOW}][:count]


class Server:
    """The part of the campaign.

    Args:
        world: a folder for tickets and their index.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Attack a server, and see whether it still serves."""
        from attack import attack, index_of, serving

        with serving(index_of(self.world.folder, 20_000), "--timeout", "5") as server:
            found = asyncio.run(attack(server, case["requests"], case["slow clients"]))
            status, _, log = server.stop()
        early, late = found["MiB"][len(found["MiB"]) // 10], max(found["MiB"][-3:])
        polite = found["well-behaved client"]["statuses"]
        odd = {kind: count for kind, count in found["statuses"].items() if kind not in _FINE}
        fault = f"answers {odd}" if odd else None
        fault = fault or (f"the well-behaved client got {polite}" if {*polite} - {"200", "503"} else None)
        fault = fault or (f"memory grows: {early} MB, then {late} MB" if late > GROWTH * early else None)
        fault = fault or ("it does not serve any more" if not found["alive"] else None)
        fault = fault or (f"status {status}: {log[-300:]}" if status or "Traceback" in log else None)
        told = {"ends": found["statuses"], "MiB": [early, late], "polite": polite}
        return {**told, "p99 ms": found["well-behaved client"]["p99 ms"], "fault": fault}
