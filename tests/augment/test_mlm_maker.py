import re

import numpy as np
import pytest
import torch

import tiny
from selfsent.augment.mlm import MaskAndRefill
from selfsent.augment.refill import Refiller
from selfsent.errors import BaseEncoderError

TEXTS = tiny.make_sentences(20, words=(4, 14))


def changed(text, view):
    return sum(a != b for a, b in zip(text.split(), view.split(), strict=True))


@pytest.mark.parametrize(
    ("name", "pick"), [("bert", "sample"), ("bert", "best"), ("roberta", "sample"), ("albert", "sample")]
)
def test_other_tokens_in_the_same_places(name, pick, base_of, views):
    refiller = Refiller(str(base_of(name)), 0.2, pick == "best")
    made = views.through(refiller.change, TEXTS)
    assert all(changed(text, view) >= 1 for text, view in zip(TEXTS, made, strict=True))
    assert views.through(refiller.change, TEXTS, size=7) == made
    assert views.through(refiller.change, TEXTS[::-1], rows=range(len(TEXTS) - 1, -1, -1)) == made[::-1]
    assert views.through(refiller.change, TEXTS, key=1) != made
    before, after = (sum(map(len, refiller.model.tokenizer(texts)["input_ids"])) for texts in (TEXTS, made))
    assert abs(after - before) < 0.25 * before


def test_every_token_another_and_the_rest_as_it_was_written(base_of, views):
    text = "Taba, BAKI-dafe (folu)  tina! 42 ta2"
    everything = Refiller(str(base_of("bert")), 1.0, False).change
    for key in range(5):
        (made,) = views.through(everything, [text], key=key)
        assert re.fullmatch(r"[A-Z]\w*, [A-Z]\w*-\w+ \(\w+\)  \w+! 42 .*", made)
        assert all(a != b for a, b in zip(re.findall(r"\w+", text)[:5], re.findall(r"\w+", made)[:5], strict=True))
    some = views.through(everything, TEXTS)
    assert all(
        a != b for text, view in zip(TEXTS, some, strict=True) for a, b in zip(text.split(), view.split(), strict=True)
    )


def test_guesses_are_those_of_transformers(base_of, views):
    from transformers import AutoModelForMaskedLM

    refiller = Refiller(str(base_of("bert")), 0.3, True)
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(base_of("bert")).eval(), refiller.model.tokenizer
    words = [word for text in TEXTS for word in text.split() if len(tokenizer.tokenize(word)) == 1]
    texts = [" ".join(words[start : start + 7]) for start in range(0, len(words), 7)]  # a word is a token
    kinds = torch.from_numpy(refiller.vocabulary.kinds)
    for text, view in zip(texts, views.through(refiller.change, texts), strict=True):
        hidden = np.array([a != b for a, b in zip(text.split(), view.split(), strict=True)])
        assert hidden.any()
        ids = np.array(tokenizer(text)["input_ids"])
        own = ids[1:-1][hidden]
        ids[1:-1][hidden] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = model(torch.from_numpy(ids)[None]).logits[0, 1:-1][torch.from_numpy(hidden)]
        logits[:, kinds != 0] = -torch.inf  # a word for a word
        logits[np.arange(len(own)), own] = -torch.inf
        assert np.array(view.split())[hidden].tolist() == tokenizer.convert_ids_to_tokens(logits.argmax(1).tolist())


def test_a_model_that_cannot_guess(base_of, tmp_path):
    with pytest.raises(BaseEncoderError, match="has no language-model head"):
        Refiller(str(base_of("gpt2")), 0.2, False)
    with pytest.raises(BaseEncoderError, match="holds no encoder"):
        MaskAndRefill(model=str(tmp_path)).identity()
