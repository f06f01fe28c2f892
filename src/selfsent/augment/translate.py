"""Back-translation: the views of BSL (Zhang et al. 2021, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfsent.augment.augmenter import Augmenter, Change, Sentences, state_of
from selfsent.errors import BaseEncoderError, first_line
from selfsent.settings import setting

Translator = Callable[[Sequence[str]], list[str]]
"""(n,) texts -> (n,) texts in another language."""
Generate = Callable[[list[list[int]]], list[list[int]]]
"""Token ids of sentences -> token ids of their translations."""

_TOKENS = 2048
"""Tokens, padding included, in one batch."""
_LONGEST = 256
_SHORT = {"eng": "en", "spa": "es", "cat": "ca", "deu": "de", "fra": "fr", "ara": "ar", "tur": "tr", "zho": "zh"}
"""Language codes in the names of opus-mt's models."""


@dataclass(frozen=True)
class Translate(Augmenter):
    """The sentence, translated into another language and back."""

    name = "translate"
    about = "translated into another language and back"
    random = False
    unchanged = "is the corpus in another language than `language` says?"
    chunk = 32  # a few views a second
    always = ("pivot",)

    pivot: str = setting("spa", "language to go through")
    language: str = setting("eng", "language of the corpus")
    there: str | None = setting(None, "model into the pivot, a directory or hub id (default: opus-mt's)")
    back: str | None = setting(None, "the same for the way back")
    beams: int = setting(1, "beam size of translations", minimum=1)

    def identity(self) -> Any:
        """Options, and the state of the models' files."""
        return [*super().identity(), *map(state_of, self.models())]

    @contextmanager
    def start(self) -> Iterator[Change]:
        """Load both models."""
        there, back = (marian(model, self.beams) for model in self.models())

        def change(sentences: Sentences, key: int) -> list[str]:
            return back(there(sentences.texts))

        yield change

    def models(self) -> tuple[str, str]:
        """The models of both directions."""
        language, pivot = (_SHORT.get(name, name) for name in (self.language, self.pivot))
        hub = "Helsinki-NLP/opus-mt-"
        return self.there or f"{hub}{language}-{pivot}", self.back or f"{hub}{pivot}-{language}"


def marian(model: str, beams: int) -> Translator:
    """A neural translator (Marian and similar), through transformers or ctranslate2.

    Args:
        model: a directory or hub id; or, with ctranslate2 installed, a directory written by its converter.
        beams: beam size; 1 is greedy.

    Raises:
        BaseEncoderError: no such model, or it cannot be loaded.
    """
    from selfsent.foreign.transformers import silent

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

    return translate


def batches(lengths: Sequence[int], tokens: int = _TOKENS) -> Iterator[list[int]]:
    """Indices of sentences of similar length, in batches of at most so many padded tokens."""
    order = sorted(range(len(lengths)), key=lambda n: -lengths[n])
    begin = 0
    while begin < len(order):
        chosen = order[begin : begin + max(1, tokens // max(1, lengths[order[begin]]))]
        yield chosen
        begin += len(chosen)


def _original(model: str, beams: int) -> tuple[Any, Generate]:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    options = {"dtype": torch.float32, "use_safetensors": True, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    network = AutoModelForSeq2SeqLM.from_pretrained(model, **options).eval()

    @torch.inference_mode()
    def generate(ids: list[list[int]]) -> list[list[int]]:
        block = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
        length = min(_LONGEST, 2 * max(map(len, ids)) + 8)
        return list(network.generate(**block, num_beams=beams, do_sample=False, max_new_tokens=length).tolist())

    return tokenizer, generate


def _converted(model: str, beams: int) -> tuple[Any, Generate]:
    """A model converted by ctranslate2, with its tokenizer's files in the same directory."""
    import ctranslate2
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    network = ctranslate2.Translator(model, device="cpu", intra_threads=0)

    def generate(ids: list[list[int]]) -> list[list[int]]:
        tokens = [tokenizer.convert_ids_to_tokens(one) for one in ids]
        found = network.translate_batch(tokens, beam_size=beams, max_decoding_length=_LONGEST)
        return [tokenizer.convert_tokens_to_ids(one.hypotheses[0]) for one in found]

    return tokenizer, generate
