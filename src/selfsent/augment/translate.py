"""Back-translation: the views of BSL (Zhang et al. 2021, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfsent import extensions
from selfsent.augment.augmenter import Augmenter, Change, state_of
from selfsent.errors import BaseEncoderError, SettingsError, first_line, guess
from selfsent.models.bases import refuse_unsafe
from selfsent.models.weights import require_weights
from selfsent.settings import setting

Translator = Callable[[Sequence[str]], list[str]]
"""(n,) texts -> (n,) texts in another language."""

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

    engine: str = setting("marian", "marian: neural models; apertium: rules, offline, of the package selfsent-papers")
    pivot: str = setting("spa", "language to go through")
    language: str = setting("eng", "language of the corpus")
    there: str | None = setting(None, "model into the pivot, a directory or hub id (default: opus-mt's)")
    back: str | None = setting(None, "the same for the way back")
    beams: int = setting(1, "beam size of translations", minimum=1, flags=())

    def __post_init__(self) -> None:
        super().__post_init__()
        known = ("marian", *extensions.announced("translators"))
        if self.engine not in known:
            here = extensions.hint("apertium comes") if self.engine == "apertium" else ""
            raise SettingsError(f"there is no engine {self.engine!r} for translate; {guess(self.engine, known)}{here}")
        if self.engine != "marian" and (self.there or self.back):
            raise SettingsError(f"`there` and `back` name models of marian: leave them out with engine={self.engine}")

    def identity(self) -> Any:
        """Options, and the state of the files that translations depend on."""
        used = self.models() if self.engine == "marian" else (each.path for each in self._rules())
        return [*super().identity(), *map(state_of, used)]

    def start(self) -> Change:
        """Load both models, or find the programs."""
        both = self._rules()
        there, back = both or [marian(model, self.beams) for model in self.models()]

        return lambda sentences, key: back(there(sentences.texts))

    def _rules(self) -> list[Any]:
        """The translators of an extension, there and back; none for marian."""
        if self.engine == "marian":
            return []
        make = extensions.load("translators", self.engine)
        return [make(self.language, self.pivot), make(self.pivot, self.language)]

    def models(self) -> tuple[str, str]:
        """The models of both directions."""
        language, pivot = (_SHORT.get(name, name) for name in (self.language, self.pivot))
        hub = "Helsinki-NLP/opus-mt-"
        return self.there or f"{hub}{language}-{pivot}", self.back or f"{hub}{pivot}-{language}"


def marian(model: str, beams: int) -> Translator:
    """A neural translator (Marian and similar) of transformers.

    Args:
        model: a directory or hub id.
        beams: beam size; 1 is greedy.

    Raises:
        BaseEncoderError: no such model, or it cannot be loaded.
    """
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    from selfsent.foreign.transformers import silent

    if Path(model).is_dir():
        refuse_unsafe(Path(model))
    options: dict[str, Any] = {"dtype": torch.float32, "use_safetensors": True, "trust_remote_code": False}
    try:
        with silent():
            tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
            network = AutoModelForSeq2SeqLM.from_pretrained(model, **options).eval()
        require_weights(network, model)
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise BaseEncoderError(f"{model} cannot be loaded as a translator: {first_line(error)}") from None

    @torch.inference_mode()
    def translate(texts: Sequence[str]) -> list[str]:
        encoded = tokenizer(list(texts), truncation=True, max_length=_LONGEST)["input_ids"]
        translated = [""] * len(texts)
        for chosen in batches([len(ids) for ids in encoded]):
            block = tokenizer.pad({"input_ids": [encoded[n] for n in chosen]}, return_tensors="pt")
            length = min(_LONGEST, 2 * block["input_ids"].shape[1] + 8)
            answers = network.generate(**block, num_beams=beams, do_sample=False, max_new_tokens=length).tolist()
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
