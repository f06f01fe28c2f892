"""The card of a pretrained encoder, and the blanks it fills in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Fills = Mapping[str, Sequence[tuple[str, float]]]

PROMPTS = (
    "She poured the hot [MASK] into a cup.",
    "The train to the city leaves at seven in the [MASK].",
    "He was born in a small [MASK] near the sea.",
    "The doctor told the [MASK] to rest for a week.",
    "You have to turn the computer off and [MASK] again.",
    "In winter the lake is covered with [MASK].",
    "The court decided that the law was [MASK].",
    "Most birds can [MASK], but some cannot.",
    "They [MASK] the house and moved to another country.",
    "Two and two make [MASK].",
)

_CARD = """---
library_name: transformers
pipeline_tag: fill-mask
tags:
- bert
- masked-lm
- selfsent
---

# A small encoder, pretrained from scratch with masked language modelling

Trained by selfsent {version} on nothing but text. It is a place to start training from, not a good sentence encoder
as it stands.

```
selfsent train sentences.txt --base path/to/this/directory --output run
```

| | |
|---|---|
| architecture | BERT with its masked-language-model head: {shape} |
| parameters | {parameters:,} |
| vocabulary | {vocabulary} |
| objective | masked language modelling: {ratio:.0%} of the tokens, of these 80 % masked, 10 % replaced, 10 % kept |
| start | {start} |
| training | {steps:,} steps, {tokens:,} tokens, {minutes:.1f} minutes on `{device}`, {precision} |
| held-out masked-LM loss | {loss:.3f} (15 % of the tokens masked) |
| bits per character | {bits:.3f} (of the masked tokens; not comparable with left-to-right models) |

## Text

{corpus}

{sources}

## What it fills in

{fills}

## How it was made

| setting | value |
|---|---|
{settings}

Corpus fingerprint `{fingerprint}`; {versions}.

Without dropout, on blocks of {length} tokens; longer input has position embeddings that were not trained. It has learnt
whatever biases its text holds, and nothing was done about them.
"""


def fill(directory: Path, prompts: Sequence[str], most: int = 4) -> dict[str, list[tuple[str, float]]]:
    """What a masked language model puts into the blanks of some sentences, with probabilities.

    Args:
        directory: the model.
        prompts: sentences with one [MASK] each; one that is cut off before it is left out.
        most: words for each.
    """
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    model = AutoModelForMaskedLM.from_pretrained(directory, dtype=torch.float32, local_files_only=True).eval()
    filled = {}
    for prompt in prompts:
        encoded = tokenizer(prompt.replace("[MASK]", tokenizer.mask_token), return_tensors="pt", truncation=True)
        blanks = (encoded["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0]
        if len(blanks) != 1:
            continue
        with torch.no_grad():
            shares = model(**encoded).logits[0, blanks[0]].softmax(-1)
        top = shares.topk(min(most, len(shares)))
        words = [str(tokenizer.convert_ids_to_tokens(number)) for number in top.indices.tolist()]
        filled[prompt] = list(zip(words, (round(value, 4) for value in top.values.tolist()), strict=True))
    return filled


def _plain(text: str) -> str:
    """Text from outside, safe in a table of Markdown."""
    return re.sub(r"[`|<>\n\r]", " ", text)


def fills_table(fills: Fills) -> str:
    """The blanks and what is put there, as a table in Markdown."""
    rows = [
        f"| {_plain(prompt)} | {', '.join(f'{_plain(word)} {share:.0%}' for word, share in words)} |"
        for prompt, words in fills.items()
    ]
    return "\n".join(["| sentence | words |", "|---|---|", *rows])


def pretraining_card(record: dict[str, Any], about: dict[str, Any], sources: Sequence[str], fills: Fills) -> str:
    """A model card in Markdown, with the metadata block that hubs read.

    Args:
        record: the content of `run.json`.
        about: figures of the text.
        sources: what the text is, and its licence.
        fills: blanks and what was put there.
    """
    asked, result = record["asked"], record["result"]
    options = asked["options"]
    listed = {**asked["settings"], "held out": options["held_out"], "processes": record["processes"]}
    size = f"{options['vocabulary_size']:,} word pieces at most, {'cased' if options['cased'] else 'uncased'}"
    return _CARD.format(
        version=record["versions"]["selfsent"],
        shape=", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in asked["shape"].items()),
        parameters=record["parameters"],
        vocabulary="of another encoder" if asked["tokenizer"] else f"its own: {size}",
        ratio=options["ratio"],
        start=options["start"],
        steps=record["steps"],
        tokens=result["tokens"],
        minutes=record["seconds"] / 60,
        device=record["device"],
        precision=record["precision"],
        loss=result["held_out_loss"],
        bits=result["bits_per_character"],
        corpus=f"{_plain(record['corpus'])}; {about['train_tokens']:,} tokens to train on,"
        f" {about['held_out_tokens']:,} held out.",
        sources="\n".join(f"- {_plain(source)}" for source in sources) or "The sources were not given.",
        fills=fills_table(fills),
        settings="\n".join(f"| {name} | {value} |" for name, value in listed.items() if value is not None),
        fingerprint=asked["corpus"]["fingerprint"],
        versions=", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        length=asked["settings"]["max_length"],
    )
