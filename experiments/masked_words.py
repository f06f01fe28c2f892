"""How well encoders predict masked words of text that none of them has read.

    python experiments/masked_words.py bundled-raw DIR ... --text TEXT --output docs/results/quality/masked_words.json

Of each source 120 documents are drawn, and the first 400 characters of their first four lines read; 15 % of the tokens
are masked. Bits are per character of the masked tokens, so that vocabularies can be compared.
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path

import torch
from bundled import documents
from transformers import AutoModelForMaskedLM, AutoTokenizer

from selfsent.files import read_json, write_json
from selfsent.models.bases import resolve

SOURCES = ("blogs", "imdb-reviews", "news-bbc")
DOCUMENTS, LINES, CHARACTERS, BATCH = 120, 4, 400, 32
MASKED = 0.15


@torch.no_grad()
def score(directory: Path, texts: list[str]) -> dict[str, float]:
    """Bits per character of the masked tokens, and the share of them that is guessed."""
    model = AutoModelForMaskedLM.from_pretrained(directory).float().eval()
    tokenizer = AutoTokenizer.from_pretrained(directory)
    generator = torch.Generator().manual_seed(0)
    loss, right, count, characters = 0.0, 0, 0, 0
    for begin in range(0, len(texts), BATCH):
        batch = tokenizer(
            texts[begin : begin + BATCH], return_tensors="pt", padding=True, truncation=True, max_length=128
        )
        ids = batch["input_ids"]
        chosen = ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
        chosen &= torch.rand(ids.shape, generator=generator) < MASKED
        hidden = ids.masked_fill(chosen, tokenizer.mask_token_id)
        scores = model(input_ids=hidden, attention_mask=batch["attention_mask"]).logits[chosen].log_softmax(-1)
        wanted = ids[chosen]
        loss -= scores.gather(1, wanted[:, None]).sum().item()
        right, count = right + int((scores.argmax(1) == wanted).sum()), count + len(wanted)
        characters += sum(len(token.removeprefix("##")) for token in tokenizer.convert_ids_to_tokens(wanted.tolist()))
    return {"bits per character": loss / characters / math.log(2), "guessed": right / count}


def main() -> None:
    """Score encoders; those that are in the output stay."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("encoders", nargs="+", help="NAME=DIRECTORY, or what ships")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    draw = random.Random(0)
    chosen = [part for name in SOURCES for part in draw.sample(documents(options.text, name), DOCUMENTS)]
    texts = [" ".join(part[:LINES])[:CHARACTERS] for part in chosen]
    for given in options.encoders:
        name, _, place = given.partition("=")
        found = read_json(options.output) if options.output.exists() else {}
        if name not in found:
            write_json(options.output, {**found, name: score(Path(place) if place else resolve(name), texts)})


if __name__ == "__main__":
    main()
