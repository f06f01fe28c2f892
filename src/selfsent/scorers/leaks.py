"""Contaminated scores: STS12 to STS16 for a model trained on STSb, which consists of pairs from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from selfsent.run_record import read_record

LEAKED = ("sts12", "sts13", "sts14", "sts15", "sts16")
_STSB = re.compile(r"(?<![a-z])sts[-_ ]?(b(?![a-z])|bench)", re.IGNORECASE)
_TRAINING = re.compile(r"^### Training Dataset.*?(?=^#{1,3} |\Z)", re.MULTILINE | re.DOTALL)
_CARD = 1 << 18  # maximum number of characters read from a card


def holds_stsb(sources: Iterable[str]) -> bool:
    """Whether STSb is among these corpora, by name."""
    return any(_STSB.search(source) for source in sources)


def trained_on(directory: Path) -> tuple[str, ...]:
    """The training corpora of a model and its bases, as recorded in their runs and cards.

    Args:
        directory: of a model, in a run's directory or not.
    """
    found: list[str] = []
    for path, configs in _lineage(directory, set()):
        found += _of_card(path / "README.md")
        for config in configs:
            source = corpus.get("source") if isinstance(corpus := config.get("corpus"), dict) else None
            found += map(str, source if isinstance(source, list) else [source] if source else [])
    return tuple(dict.fromkeys(found))


def trained_by(directory: Path) -> tuple[str, ...]:
    """The training methods of a model and its bases, as recorded in their runs."""
    configs = (config for _, found in _lineage(directory, set()) for config in found)
    return tuple(dict.fromkeys(str(config["method"]) for config in configs if "method" in config))


def _lineage(directory: Path, seen: set[Path]) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """The directories of a model and its bases, with the configs of their runs and stages."""
    directory = directory.resolve()
    if directory in seen or not directory.is_dir():
        return
    seen.add(directory)
    configs = [found for path in (directory, directory.parent) if (found := _config(path))]
    yield directory, [part for whole in configs for part in (whole, *_dicts(whole.get("stages")))]
    for whole in configs:
        if isinstance(base := whole.get("base"), str):
            yield from _lineage(Path(base), seen)


def _config(run: Path) -> dict[str, Any]:
    record = read_record(run)
    of_chosen = {"method": method} if (method := record.get("method")) else {}  # the record of a comparison
    return record.config | of_chosen if record.config else {}


def _dicts(found: Any) -> list[dict[str, Any]]:
    return [each for each in found.values() if isinstance(each, dict)] if isinstance(found, dict) else []


def _of_card(card: Path) -> list[str]:
    """Training data named in a model card. sentence-transformers separates it from evaluation only in its text."""
    try:
        with card.open(encoding="utf-8") as file:
            text = file.read(_CARD)
    except (OSError, UnicodeDecodeError):
        return []
    if section := _TRAINING.search(text):
        return re.findall(r"^#### (.*)$", section[0], re.MULTILINE)
    try:  # this loader returns strings only, whatever the tags: no objects, and no errors about dates
        head = yaml.BaseLoader(text.split("---")[1]).get_single_data() if text.startswith("---") else {}
    except (yaml.YAMLError, IndexError, RecursionError):
        head = {}
    named = head.get("datasets") if isinstance(head, dict) else None
    names = named if isinstance(named, list) else [named]
    return [*_of_our_card(text), *(name for name in names if isinstance(name, str))]


def _of_our_card(text: str) -> list[str]:
    """The corpus in a card of selfsent: between the last pair of backquotes of its first sentence."""
    for line in text.splitlines():
        before, ours, rest = line.partition("Trained by [selfsent]")
        if ours and rest.endswith("`.") and (not before or before.startswith("Maps ")):
            return [name] if (name := rest[:-2].rpartition(" of `")[2]) else []
    return []
