"""Translation by neural models: Marian and its like through transformers, or ctranslate2 where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selfsent.augment.apertium import Translator
from selfsent.errors import BaseEncoderError, first_line
from selfsent.foreign.transformers import silent

_TOKENS = 2048
"""Tokens, padding included, in one batch."""
_LONGEST = 256


@contextmanager
def marian(model: str, beams: int) -> Iterator[Translator]:
    """A translator that a model makes.

    Args:
        model: a directory, or a hub id; a directory that ctranslate2's converter wrote, if that is installed.
        beams: how many translations are followed at once; 1 is greedy.

    Raises:
        BaseEncoderError: there is no such model, or it cannot be loaded.
    """
    try:
        with silent():
            tokenizer, generate = (_converted if (Path(model) / "model.bin").is_file() else _original)(model, beams)
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise BaseEncoderError(f"{model} cannot be loaded as a translator: {first_line(error)}") from None

    def translate(texts: Sequence[str]) -> list[str]:
        encoded = tokenizer(list(texts), truncation=True, max_length=_LONGEST)["input_ids"]
        translated = [""] * len(texts)
        for chosen in batches([len(ids) for ids in encoded]):
            answers = generate([encoded[n] for n in chosen])
            for n, text in zip(chosen, tokenizer.batch_decode(answers, skip_special_tokens=True), strict=True):
                translated[n] = text
        return translated

    yield translate


def batches(lengths: Sequence[int], tokens: int = _TOKENS) -> Iterator[list[int]]:
    """Indices of sentences of similar length, as many at a time as fit into a padded block."""
    order = sorted(range(len(lengths)), key=lambda n: -lengths[n])
    begin = 0
    while begin < len(order):
        chosen = order[begin : begin + max(1, tokens // max(1, lengths[order[begin]]))]
        yield chosen
        begin += len(chosen)


Generate = Callable[[list[list[int]]], list[list[int]]]
"""Token ids of sentences -> token ids of their translations."""


def _original(model: str, beams: int) -> tuple[Any, Generate]:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    network = AutoModelForSeq2SeqLM.from_pretrained(
        model, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
    ).eval()

    @torch.inference_mode()
    def generate(ids: list[list[int]]) -> list[list[int]]:
        block = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
        found = network.generate(
            input_ids=block["input_ids"],
            attention_mask=block["attention_mask"],
            num_beams=beams,
            do_sample=False,
            max_new_tokens=min(_LONGEST, 2 * max(map(len, ids)) + 8),
        )
        return list(found.tolist())

    return tokenizer, generate


def _converted(model: str, beams: int) -> tuple[Any, Generate]:
    """A model that ctranslate2 converted, its tokenizer's files beside it."""
    import ctranslate2
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    network = ctranslate2.Translator(model, device="cpu", intra_threads=0)

    def generate(ids: list[list[int]]) -> list[list[int]]:
        tokens = [tokenizer.convert_ids_to_tokens(one) for one in ids]
        found = network.translate_batch(tokens, beam_size=beams, max_decoding_length=_LONGEST)
        return [tokenizer.convert_tokens_to_ids(one.hypotheses[0]) for one in found]

    return tokenizer, generate
