"""The model card that lies beside a trained model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from selfsent.display import counted
from selfsent.methods.postprocessing import whitened
from selfsent.report.scores import NAMES, Scores, differences, ranked, title, told
from selfsent.settings import WITHOUT_STEPS

_CARD = """---
library_name: sentence-transformers
pipeline_tag: {pipeline}
{licence}tags:
- sentence-transformers
- {tag}
- selfsent
- {method}
---

# A {kind} trained with {method}

{dimension}Trained by selfsent {version} from `{base}` on {sentences} of `{source}`.

```python
{usage}
```{needs}

## Data

{corpus}

## Method

`{method}`, pooling `{pooling}`, {steps}{whitened}.

| setting | value |
|---|---|
{settings}

## Scores

{scores}

## How it was made

Seed {seed}; corpus fingerprint `{fingerprint}`; {versions}.
"""


_VECTORS = """from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/directory")
vectors = model.encode(["a sentence", "another one"])"""
_OWN = """from selfsent.models.saved import load_sentence_transformer

model = load_sentence_transformer("path/to/this/directory")
vectors = model.encode(["a sentence", "another one"])"""
_PAIRS = """from sentence_transformers import CrossEncoder

model = CrossEncoder("path/to/this/directory")
scores = model.predict([("a sentence", "another one")])"""
_KINDS = {
    False: {"kind": "sentence encoder", "pipeline": "sentence-similarity", "tag": "feature-extraction"},
    True: {"kind": "cross-encoder", "pipeline": "text-ranking", "tag": "cross-encoder"},
}


def _plain(text: str) -> str:
    """Text from outside, safe inside a line of Markdown."""
    return re.sub(r"[`|<>\[\]\n\r]", " ", text)


def _score_lines(scores: Scores | None) -> str:
    if not scores:
        why = "no documents were kept apart, or the corpus has none of several sentences"
        return f"Not scored: {why}. Score it with `selfsent evaluate`."
    rows = ranked(scores).items()
    return "\n".join(
        [
            f"**{title(scores)}.** {_plain(told(scores))}",
            "",
            "| | score | 95 % interval |",
            "|---|---|---|",
            *(f"| {NAMES[key]} | {one['score']:.2f} | {one['low']:.2f} to {one['high']:.2f} |" for key, one in rows),
            "",
            *(
                f"{one} less {other}, paired: {less['score']:+z.2f} ({less['low']:+z.2f} to {less['high']:+z.2f})."
                for (one, other), less in differences(scores).items()
            ),
        ]
    )


def licence_of(directory: Path) -> str | None:
    """The licence that the card of a model names in its metadata; None where there is none."""
    try:
        card = (directory / "README.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    head = re.match(r"---\n(.*?)\n---", card, re.DOTALL)
    found = re.search(r"^license: *([\w.-]+) *$", head[1], re.MULTILINE) if head else None
    return found[1] if found else None


def _steps(record: dict[str, Any], settings: dict[str, Any]) -> str:
    if not record["steps"]:
        return "a fit, no steps"
    kept = record.get("kept")
    best = f", of which that of step {kept['step']:,} was kept: the best score along the way" if kept else ""
    return f"{counted(record['steps'], 'step')} of {counted(settings['batch_size'], 'text')}{best}"


def model_card(
    record: dict[str, Any],
    corpus: str,
    scores: Scores | None,
    dimension: int | None = None,
    alone: bool = True,
    joins: bool = False,
    licence: str | None = None,
    search: Scores | None = None,
) -> str:
    """A model card in Markdown, with the metadata block that hubs read.

    Args:
        record: the content of `run.json`.
        corpus: the corpus report, in words.
        scores: base, trained, TF-IDF and difference by the next sentence, when there are any.
        dimension: size of the vectors.
        alone: whether the model loads where selfsent is not installed.
        joins: whether it is a cross-encoder.
        licence: what the base's own card says of its weights, from which these derive.
        search: the same by search.
    """
    asked, settings = record["asked"], {**record["asked"]["settings"], "steps": record["steps"]}
    used = settings if record["steps"] else {name: settings[name] for name in WITHOUT_STEPS}
    listed = {**asked["options"], **used, "precision": record["precision"], "processes": record["processes"]}
    usage = _PAIRS if joins else _VECTORS if alone else _OWN
    return _CARD.format(
        **_KINDS[joins],
        usage=usage,
        method=asked["method"],
        dimension=f"Maps sentences to {dimension} numbers. " if dimension else "",
        version=record["versions"]["selfsent"],
        base=_plain(asked["base"].rsplit("/", 2)[-1] if asked["base"].startswith("/") else asked["base"]),
        licence=f"license: {licence}\n" if licence else "",
        sentences=counted(asked["corpus"]["sentences"], "text"),
        source=_plain(asked["corpus"]["source"]),
        corpus=_plain(corpus),
        pooling=asked["pooling"],
        steps=_steps(record, settings),
        whitened=whitened(asked.get("whiten", 0)),
        needs="" if alone else "\n\nThis model has a module of selfsent's own: `pip install selfsent` first.",
        settings="\n".join(f"| {name} | {value} |" for name, value in listed.items() if value is not None),
        scores="\n\n".join(_score_lines(each) for each in (search, scores) if each) or _score_lines(None),
        seed=settings["seed"],
        fingerprint=asked["corpus"]["fingerprint"],
        versions=", ".join(f"{name} {version}" for name, version in record["versions"].items()),
    )
