"""What a pretrained encoder fills into blanks, and what its card says beside that of any run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from selfsent.errors import SettingsError

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
_FILLS = "\n## What it fills in\n"


def check_prompts(prompts: Sequence[str]) -> None:
    """Refuse a sentence without a blank.

    Raises:
        SettingsError: a prompt has not one [MASK].
    """
    if odd := next((prompt for prompt in prompts if prompt.count("[MASK]") != 1), None):
        raise SettingsError(f"the prompt {odd!r} must have one [MASK], to be filled in")


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
    model = AutoModelForMaskedLM.from_pretrained(directory, local_files_only=True).eval()
    filled = {}
    for prompt in prompts:
        encoded = tokenizer(prompt.replace("[MASK]", tokenizer.mask_token), return_tensors="pt", truncation=True)
        blanks = (encoded["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0]
        if len(blanks) != 1:
            continue
        with torch.no_grad():
            top = model(**encoded).logits[0, blanks[0]].softmax(-1).topk(min(most, len(tokenizer)))
        words = [str(word) for word in tokenizer.convert_ids_to_tokens(top.indices.tolist())]
        filled[prompt] = list(zip(words, (round(value, 4) for value in top.values.tolist()), strict=True))
    return filled


def fills_table(fills: Fills) -> str:
    """The blanks and what is put there, as a table in Markdown."""
    rows = [
        f"| {_plain(prompt)} | {', '.join(f'{_plain(word)} {share:.0%}' for word, share in words)} |"
        for prompt, words in fills.items()
    ]
    return "\n".join(["| sentence | words |", "|---|---|", *rows])


def with_fills(card: str, sources: Sequence[str], fills: Fills) -> str:
    """The card of a run, with what its encoder fills in and what its text was behind it.

    Args:
        card: in Markdown; what was added to it before is replaced.
        sources: what the text is, and its licence.
        fills: blanks and what was put there.
    """
    listed = "\n".join(f"- {_plain(source)}" for source in sources) or "The sources were not given."
    return f"{card.partition(_FILLS)[0]}{_FILLS}\n{fills_table(fills)}\n\n## Sources of the text\n\n{listed}\n"


def _plain(text: str) -> str:
    """Text from outside, safe in a table of Markdown."""
    return re.sub(r"[`|<>\n\r]", " ", text)
