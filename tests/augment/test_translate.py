import pytest
import torch

import tiny
from selfsent.augment.translate import Translate, batches, marian
from selfsent.errors import BaseEncoderError

SENTENCES = tiny.make_sentences(6, words=(2, 6))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny Marian with random weights."""
    from transformers import MarianConfig, MarianMTModel

    tokenizer = tiny.make_tokenizer("word pieces")
    config = MarianConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=128,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.sep_token_id, init_std=0.5,
        decoder_start_token_id=tokenizer.pad_token_id, forced_eos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    directory = tmp_path_factory.mktemp("marian")
    MarianMTModel(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return str(directory)


def test_one_translation_a_sentence(model, views):
    from transformers import AutoTokenizer, MarianMTModel

    found = marian(model, 1)(SENTENCES)
    network, tokenizer = MarianMTModel.from_pretrained(model).eval(), AutoTokenizer.from_pretrained(model)
    for text, translated in zip(SENTENCES, found, strict=True):
        ids = tokenizer(text, return_tensors="pt")
        out = network.generate(ids["input_ids"], attention_mask=ids["attention_mask"], num_beams=1, max_new_tokens=100)
        alone = tokenizer.decode(out[0], skip_special_tokens=True)
        assert alone.startswith(translated)  # the limit on length is the batch's longest
        assert translated
    maker = Translate(there=model, back=model)
    assert len(views(maker, SENTENCES[:3])) == 3
    assert maker.identity() != Translate(there=model, back=model, beams=2).identity()


def test_batches_hold_every_sentence_once():
    lengths = [5, 900, 3, 3000, 7] * 20
    chosen = list(batches(lengths))
    assert sorted(number for batch in chosen for number in batch) == list(range(100))
    assert max(len(batch) * max(lengths[n] for n in batch) for batch in chosen) <= 3000
    assert len(chosen) < 70


def test_models_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BaseEncoderError, match=f"{tmp_path} cannot be loaded as a translator: "):
        marian(str(tmp_path), 1)
    assert Translate(pivot="deu").models() == ("Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en")
