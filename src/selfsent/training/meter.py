"""How fast a run goes and what it loses, between two lines of its log."""

from __future__ import annotations

import time


class Meter:
    """Sums over the steps since the last log line."""

    def __init__(self) -> None:
        self.since = time.perf_counter()
        self.total = self.count = self.norm = 0.0
        self.sentences = self.tokens = 0

    def add(self, total: float, count: float, norm: float, sentences: int, tokens: int) -> None:
        """Count one step."""
        self.total, self.count, self.norm = self.total + total, self.count + count, norm
        self.sentences, self.tokens = self.sentences + sentences, self.tokens + tokens

    def leave_out(self, seconds: float) -> None:
        """Time that no step took."""
        self.since += seconds

    @property
    def loss(self) -> float:
        """Mean loss."""
        return self.total / max(self.count, 1e-12)

    def speeds(self) -> dict[str, float]:
        """Sentences and tokens a second, over all processes."""
        seconds = max(time.perf_counter() - self.since, 1e-9)
        return {"sentences_per_second": self.sentences / seconds, "tokens_per_second": self.tokens / seconds}
