"""The page of a run of pretraining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from selfsent.pretraining.card import Fills
from selfsent.report.pages import curves, render

PAGE = "report.html"
"""The page of a run, in its directory."""
_CURVES = {
    "loss": "loss of a masked token",
    "held_out_loss": "the same on held-out text",
    "bits_per_character": "bits per character, held out",
}


def pretraining_page(
    record: Mapping[str, Any], about: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], fills: Fills
) -> str:
    """The page of a finished run.

    Args:
        record: the content of its `run.json`.
        about: figures of the text.
        metrics: its log.
        fills: blanks and what was put there.
    """
    asked, result = record["asked"], record["result"]
    given = {**asked["shape"], **asked["options"], **asked["settings"]}
    told = {
        "corpus": asked["corpus"]["source"],
        "text": record["corpus"],
        "tokens": f"{about['train_tokens']:,} to train on, {about['held_out_tokens']:,} held out",
        "parameters": f"{record['parameters']:,}",
        "steps": f"{record['steps']:,}",
        "seconds": f"{record['seconds']:.0f}",
        "settings": ", ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in given.items() if value is not None
        ),
        "versions": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
    }
    return render(
        "pretraining.html",
        headline=f"Held-out loss {result['held_out_loss']:.3f}, {result['bits_per_character']:.3f} bits per character",
        curves=curves(metrics, _CURVES),
        fills=[(prompt, ", ".join(f"{word} {share:.0%}" for word, share in words)) for prompt, words in fills.items()],
        about=[((name, str(value)), False) for name, value in told.items()],
    )
