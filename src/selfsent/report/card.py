"""The model card of a trained model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from selfsent.display import counted, markdown
from selfsent.methods.postprocessing import whitened
from selfsent.report.pages import render
from selfsent.report.scores import Scores, scores_table
from selfsent.settings import WITHOUT_STEPS

_KINDS = {
    False: {"kind": "sentence encoder", "pipeline": "sentence-similarity", "tag": "feature-extraction"},
    True: {"kind": "cross-encoder", "pipeline": "text-ranking", "tag": "cross-encoder"},
}


def licence_of(directory: Path) -> str | None:
    """The licence in the metadata of a model's card, or None."""
    try:
        card = (directory / "README.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    head = re.match(r"---\n(.*?)\n---", card, re.DOTALL)
    found = re.search(r"^license: *([\w.-]+) *$", head[1], re.MULTILINE) if head else None
    return found[1] if found else None


def model_card(
    record: dict[str, Any],
    corpus: str,
    scores: Scores | None,
    alone: bool = True,
    joins: bool = False,
    licence: str | None = None,
    search: Scores | None = None,
) -> str:
    """A model card in Markdown, with the metadata block for hubs.

    Args:
        record: the content of `run.json`.
        corpus: the corpus report, in words.
        scores: scores before and after training by the next sentence, if any.
        alone: whether the model loads without selfsent.
        joins: whether it is a cross-encoder.
        licence: of the base's weights.
        search: the scores by search, if any.
    """
    config, settings = record["config"], {**record["config"]["settings"], "steps": record["steps"]}
    used = settings if record["steps"] else {name: settings[name] for name in WITHOUT_STEPS}
    listed = {**config["options"], **used, "precision": record["precision"], "processes": record["processes"]}
    steps = "a fit, no steps"
    if record["steps"]:
        steps = f"{counted(record['steps'], 'step')} of {counted(settings['batch_size'], 'text')}"
        if kept := record.get("kept"):
            steps += f", of which that of step {kept['step']:,} was kept: the best score along the way"
    base = config["base"].rsplit("/", 2)[-1] if config["base"].startswith("/") else config["base"]
    tables = [scores_table(each) for each in (search, scores) if each]
    return render(
        "card.md",
        **_KINDS[joins],
        joins=joins,
        alone=alone,
        method=config["method"],
        version=record["versions"]["selfsent"],
        base=_plain(base),
        licence=licence,
        sentences=counted(config["corpus"]["sentences"], "text"),
        source=_plain(config["corpus"]["source"]),
        corpus=_plain(corpus),
        pooling=config["pooling"],
        steps=steps,
        whitened=whitened(config.get("whiten", 0)),
        sizes=config.get("sizes", ()),
        warranty=record.get("warranty", {}).get("line"),
        settings=[(name, value) for name, value in listed.items() if value is not None],
        scores=[(table.title, markdown(table)) for table in tables],
        seed=settings["seed"],
        fingerprint=config["corpus"]["fingerprint"],
        versions=", ".join(f"{name} {version}" for name, version in record["versions"].items()),
    )


def _plain(text: str) -> str:
    """Foreign text, escaped for a line of Markdown."""
    return re.sub(r"[`|<>\[\]\n\r]", " ", text)
