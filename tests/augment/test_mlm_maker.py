import re

import numpy as np
import pytest
import torch

import tiny
from selfsent.augment.mlm import MaskAndRefill
from selfsent.augment.refill import Refiller, Vocabulary, _with_capitals_at
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


def test_words_are_drawn_by_their_probability(base_of):
    refiller = Refiller(str(base_of("bert")), 0.2, False)
    kinds = refiller.vocabulary.kinds
    allowed = np.flatnonzero(kinds == 0)
    logits = torch.full((4000, len(kinds)), 9.0)
    logits[:, torch.from_numpy(allowed)] = -torch.inf
    logits[:, allowed[:3]] = torch.log(torch.tensor([0.5, 0.3, 0.2]))
    before = torch.full((4000,), int(allowed[2]))
    drawn = refiller._drawn(logits, before, torch.rand(4000, generator=torch.Generator().manual_seed(0)).double())
    shares = torch.bincount(drawn, minlength=len(kinds))[torch.from_numpy(allowed[:3])] / 4000
    assert shares.tolist() == pytest.approx([5 / 8, 3 / 8, 0], abs=0.03)


def test_guesses_are_those_of_transformers(base_of):
    from transformers import AutoModelForMaskedLM

    refiller = Refiller(str(base_of("bert")), 0.2, True)
    model = AutoModelForMaskedLM.from_pretrained(base_of("bert")).eval()
    ids = [np.array(refiller.model.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS[:6]]
    hidden = [refiller._hidden(one, row, 3) for row, one in enumerate(ids)]
    found = refiller._guesses(ids, hidden, np.arange(6), 3)
    for one, where, guessed in zip(ids, hidden, found, strict=True):
        whole = [*refiller.template.prefix, *np.where(where, refiller.mask, one), *refiller.template.suffix]
        with torch.no_grad():
            logits = model(torch.tensor([whole])).logits[0, 1:-1][torch.from_numpy(where)]
        for place, guess, own in zip(logits, guessed, one[where], strict=True):
            kinds = refiller.vocabulary.kinds
            place[torch.from_numpy((kinds != kinds[own]) | (np.arange(len(place)) == own))] = -torch.inf
            assert guess == int(place.argmax())


def test_what_a_vocabulary_says():
    tokenizer = tiny.make_tokenizer("word pieces")
    words = Vocabulary(tokenizer, len(tokenizer) + 3)
    assert set(words.kinds[tokenizer.all_special_ids]) == {-1}
    assert list(words.kinds[-3:]) == [-1] * 3
    for token, place in tokenizer.get_vocab().items():
        if words.kinds[place] >= 0:
            assert words.kinds[place] == token.startswith("##")
            assert words.texts[place] == token.removeprefix("##")
    assert {0, 1} <= set(words.kinds)
    bars = tiny.make_tokenizer("pieces")
    words = Vocabulary(bars, len(bars))
    assert any(token.startswith("▁") and words.kinds[place] == 0 for token, place in bars.get_vocab().items())


@pytest.mark.parametrize(
    ("text", "start", "piece"),
    [
        ("the PLAYING", 8, "ED"),
        ("the DOGS", 4, "ED"),
        ("the DOGs", 6, "ed"),
        ("the Playing", 8, "ed"),
        ("the Playing", 4, "Ed"),
        ("the playing", 8, "ed"),
        ("A dog", 0, "Ed"),
        ("an iPhone", 4, "ed"),
    ],
)
def test_capitals_of_pieces(text, start, piece):
    assert _with_capitals_at("ed", text, start) == piece


def test_a_model_that_cannot_guess(base_of, tmp_path):
    with pytest.raises(BaseEncoderError, match="has no language-model head"):
        Refiller(str(base_of("gpt2")), 0.2, False)
    with pytest.raises(BaseEncoderError, match="holds no encoder"):
        MaskAndRefill(model=str(tmp_path)).identity()
