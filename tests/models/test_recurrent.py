"""Recurrent networks over word vectors: the same states as loops, the same vectors as sentence-transformers."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import selfsent
import tiny
from naive import recurrence
from selfsent.errors import BaseEncoderError, Damaged, SettingsError
from selfsent.methods import METHODS
from selfsent.models import new_bases
from selfsent.models.bases import resolve
from selfsent.models.encoding import encode
from selfsent.models.export import export
from selfsent.models.loading import load_encoder
from selfsent.models.recurrent import KINDS, new_recurrent
from selfsent.models.saved import is_sentence_encoder, needs_selfsent
from selfsent.training import defaults
from selfsent.training.plan import make_plan

TEXTS = [*tiny.make_sentences(20, seed=9), "bidi  gafo!", "", "[MASK] bidi"]
WORDS = "the 1 2 3\ncat .5 .4 .3\n</s> 1 1 1\nsat 3 1 2\nCat 9 9 9\ncat 7 7 7\n"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path_factory.getbasetemp() / "recurrent"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The directory of a tiny network of each kind."""
    folder = tmp_path_factory.mktemp("networks")
    for kind in KINDS:
        new_recurrent(kind, tiny.make_tokenizer(), 6, 5, seed=1).save(folder / kind)
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


def test_states_of_a_new_gru_are_turned_and_not_stretched(saved):
    weight = load_encoder(saved / "gru").transformer.weight_hh_l0.detach()
    for block in weight.split(6):
        torch.testing.assert_close(block @ block.T, torch.eye(6), atol=1e-5, rtol=0)


def test_only_a_gru_needs_selfsent(saved):
    assert {kind: needs_selfsent(saved / kind) for kind in KINDS} == {"gru": True, "lstm": False, "bilstm": False}
    with pytest.raises(ValueError, match=r"selfsent\.models\.heads\.gru\.Gru"):
        SentenceTransformer(str(saved / "gru"), device="cpu")


def test_another_pooling_and_a_head_can_be_put_in(saved, tmp_path):
    model = load_encoder(saved / "bilstm", "mean")
    assert model.pooling == "mean"
    options = {"method": "sdae", "base": saved / "bilstm", "head": "ngram-cnn", "filters": 4, "steps": 2}
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
        ({"method": "sdae", "head": "ngram-cnn", "masked": False}, "modules that read padding need a transformer"),
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


def test_a_network_by_name_is_made_once_and_is_always_the_same(monkeypatch, tmp_path):
    first = resolve("gru:4")
    before = {path.name: path.read_bytes() for path in first.rglob("*.safetensors")}
    with monkeypatch.context() as patched:
        patched.setattr(new_bases, "_write_encoder", lambda *_: pytest.fail("made again"))
        assert resolve("gru:4") == first
        assert resolve("gru:0004") == first
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    again = resolve("gru:4")
    assert again != first
    assert {path.name: path.read_bytes() for path in again.rglob("*.safetensors")} == before
    model = load_encoder("gru:4")
    assert (model.embedding_size, model.words.embedding_dim, model.pooling) == (4, new_bases.WORDS, "lasttoken")
    assert model.words.weight.requires_grad
    assert not is_sentence_encoder(again)


def test_a_damaged_network_is_made_again(monkeypatch, tmp_path):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    place = next(path for path in resolve("lstm:3").rglob("*.safetensors"))
    good = place.read_bytes()
    place.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.warns(Damaged, match="is made again"):
        resolve("lstm:3")
    assert place.read_bytes() == good


def test_words_of_a_file_get_their_vectors_and_keep_them(tmp_path):
    (tmp_path / "words.txt").write_text(WORDS)
    model = load_encoder(f"bilstm:2:{tmp_path / 'words.txt'}")
    rows = {token: model.words.weight[number].tolist() for token, number in model.tokenizer.get_vocab().items()}
    mean = pytest.approx([21.5 / 6, 20.4 / 6, 22.3 / 6], abs=1e-5)
    assert rows["[PAD]"] == [0, 0, 0]
    assert (rows["[UNK]"], rows["<s>"], rows["</s>"]) == (mean, mean, [1, 1, 1])
    assert (rows["Cat"], rows["cat"]) == ([9, 9, 9], pytest.approx([0.5, 0.4, 0.3]))
    assert model.tokenizer.convert_ids_to_tokens(model.tokenizer("the Cat sat up")["input_ids"]) == [
        *("<s>", "the", "Cat", "sat", "[UNK]", "</s>")
    ]
    assert not model.words.weight.requires_grad


def test_words_are_lower_case_where_those_of_the_file_are(tmp_path, monkeypatch):
    monkeypatch.setattr(new_bases, "MOST_WORDS", 4)
    (tmp_path / "words.txt").write_text(WORDS)
    model = load_encoder(f"gru:2:{tmp_path / 'words.txt'}")
    assert model.vocabulary_size == 7
    assert model.tokenizer.convert_ids_to_tokens(model.tokenizer("THE Cat")["input_ids"])[1:3] == ["the", "cat"]


def test_vectors_of_a_table(base_of, tmp_path):
    shipped = load_encoder("lstm:2:bundled")
    assert torch.equal(shipped.words.weight, load_encoder("bundled").table.weight)
    assert not shipped.words.weight.requires_grad
    new = selfsent.make_table(TEXTS, tmp_path / "new", size=6, vocabulary_size=80, quiet=True)
    assert load_encoder(f"gru:2:{new}").words.weight.requires_grad, "vectors that nobody has trained stay as they are"


@pytest.mark.parametrize("method", ["sdae", "skip-thoughts"])
def test_baselines_begin_with_a_gru(method):
    made = make_plan(METHODS[method])
    assert (made.base, made.pooling) == ("gru", "lasttoken")
    assert make_plan(METHODS[method], base="bilstm").pooling == "max"


def test_large_networks_have_the_rates_of_small_ones(saved, base_of, monkeypatch):
    monkeypatch.setattr(defaults, "LARGE", 1000)
    small, large = METHODS["sdae"].defaults.learning_rate, METHODS["sdae"].large_learning_rate
    rates = [make_plan(METHODS["sdae"], base=base).settings.learning_rate for base in (saved / "gru", base_of("bert"))]
    assert rates == [small, large]
