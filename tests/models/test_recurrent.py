"""Recurrent networks over word vectors: the same states as loops, the same vectors as sentence-transformers."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import selfsent
import tiny
from naive import recurrence
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.models.encoding import encode
from selfsent.models.export import export
from selfsent.models.loading import load_encoder
from selfsent.models.saved import needs_selfsent

TEXTS = [*tiny.make_sentences(20, seed=9), "bidi  gafo!", "", "[MASK] bidi"]
KINDS = ("gru", "lstm", "bilstm")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The directory of a tiny network of each kind."""
    folder = tmp_path_factory.mktemp("networks")
    for kind in KINDS:
        tiny.save_recurrent(folder / kind, kind, 6, 5, seed=1)
    return folder


def by_hand(model, text):
    """The vector of a text, from states that loops compute."""
    network, ids = model.transformer, model.tokenizer(text)["input_ids"]
    inputs = model.words.weight.detach().double().numpy()[ids]
    names = "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"
    forth, back = ([network.state_dict().get(name + end) for name in names] for end in ("", "_reverse"))
    forth, back = ([None if part is None else part.double().numpy() for part in parts] for parts in (forth, back))
    loop = recurrence.gru if isinstance(network, torch.nn.GRU) else recurrence.lstm
    states = recurrence.both_ways(loop, inputs, forth, back) if network.bidirectional else loop(inputs, *forth)
    return np.max(states, axis=0) if model.pooling == "max" else states[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_those_of_loops_and_of_sentence_transformers(kind, saved):
    model = load_encoder(saved / kind)
    found = encode(model, TEXTS)
    assert found == pytest.approx(np.stack([by_hand(model, text) for text in TEXTS]), abs=1e-6)
    own = {"trust_remote_code": True} if kind == "gru" else {}
    ordinary = SentenceTransformer(str(saved / kind), device="cpu", **own)
    assert found == pytest.approx(ordinary.encode(TEXTS), abs=1e-5)
    alone = np.concatenate([encode(model, [text]) for text in TEXTS])
    assert found == pytest.approx(alone, abs=1e-6)
    assert found.shape == (len(TEXTS), model.embedding_size)


def test_only_a_gru_needs_selfsent(saved):
    assert {kind: needs_selfsent(saved / kind) for kind in KINDS} == {"gru": True, "lstm": False, "bilstm": False}
    with pytest.raises(ValueError, match=r"selfsent\.models\.heads\.gru\.Gru"):
        SentenceTransformer(str(saved / "gru"), device="cpu")


def test_another_pooling_and_a_head_can_be_put_in(saved, tmp_path):
    model = load_encoder(saved / "bilstm", "mean")
    assert model.pooling == "mean"
    options = {"method": "ct", "base": saved / "bilstm", "head": "ngram-cnn", "filters": 4, "steps": 2}
    selfsent.train(TEXTS, output=tmp_path / "run", batch_size=4, quiet=True, **options)
    again = load_encoder(tmp_path / "run")
    assert [type(part).__name__ for part in again.sentence_transformer][:2] == ["WordEmbeddings", "LSTM"]
    ordinary = SentenceTransformer(str(tmp_path / "run" / "model"), device="cpu")
    assert encode(again, TEXTS) == pytest.approx(ordinary.encode(TEXTS), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"method": "tsdae"}, "this base is a recurrent network: choose a transformer"),
        ({"method": "tsdae", "scratch": True}, "this base is a recurrent network: choose a transformer"),
        ({"method": "simcse", "delete_words": 0.3, "dropout": 0.1}, "without dropout: leave out `dropout`"),
        ({"method": "ct", "head": "ngram-cnn", "masked": False}, "modules that read padding need a transformer"),
        ({"method": "whitening", "layers": "first+last"}, "which has one layer"),
    ],
)
def test_options_that_a_recurrent_network_lacks_are_refused(saved, tmp_path, options, complaint):
    with pytest.raises((BaseEncoderError, SettingsError), match=complaint) as caught:
        selfsent.train(TEXTS, base=saved / "lstm", output=tmp_path / "run", quiet=True, **options)
    assert "\n" not in str(caught.value)


def test_an_export_is_refused(saved, base_of, tmp_path):
    for model, complaint in ((saved / "lstm", "makes no graph"), (base_of("static"), "needs no graph")):
        with pytest.raises(SettingsError, match=complaint):
            export(load_encoder(model), tmp_path / "graph")


def test_a_damaged_or_another_network_is_refused(saved, tmp_path):
    model = load_encoder(saved / "lstm")
    model.sentence_transformer[1].encoder = torch.nn.LSTM(5, 6, num_layers=2, batch_first=True)
    model.sentence_transformer[1].num_layers = 2
    model.save(tmp_path / "two")
    with pytest.raises(BaseEncoderError, match="a recurrent network of one layer and a pooling"):
        load_encoder(tmp_path / "two")
