"""A table without torch: the vectors of sentence-transformers' `StaticEmbedding`, in all layouts."""

import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Tokenizer, models, normalizers

import tiny
from selfsent.errors import AmbiguousTokensWarning, BaseEncoderError
from selfsent.models.encoding import encode, token_ids
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder
from selfsent.models.opening import open_encoder, open_table
from selfsent.models.table import Rows, Table

TEXTS = [*tiny.make_sentences(30, seed=9), "bidi  gafo!", "", "[MASK] bidi"]


@pytest.fixture
def table(base_of):
    return base_of("static")


def layout(kind, table, folder):
    """A table in a layout of sentence-transformers or model2vec, and its peer."""
    if kind.startswith("model2vec"):
        tokenizer, draw = tiny.make_tokenizer().backend_tokenizer, torch.Generator().manual_seed(0)
        size = tokenizer.get_vocab_size()
        rows = torch.randn(10, 8, generator=draw)
        if kind == "model2vec of bytes":
            rows = (rows * 30).to(torch.int8)
        mapping, weights = torch.randint(10, (size,), generator=draw), torch.rand(size, generator=draw)
        folder.mkdir()
        save_file({"embeddings": rows, "mapping": mapping, "weights": weights}, folder / "model.safetensors")
        tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "config.json").write_text('{"model_type": "model2vec", "normalize": true}')
        folded = rows.float()[mapping] * weights[:, None]
        return SentenceTransformer(modules=[StaticEmbedding(tokenizer, folded), Normalize()], device="cpu")
    peer = tiny.peer(table)
    if kind == "normalised":
        peer.append(Normalize())
    torch.manual_seed(0)
    if kind in ("mapped", "bent"):
        size = peer.get_embedding_dimension()
        peer.append(Dense(size, 5, activation_function=torch.nn.Identity() if kind == "mapped" else torch.nn.Tanh()))
    if kind == "prompted":
        peer.prompts, peer.default_prompt_name = {"query": "bidi ", "document": "gafo "}, "query"
    peer.save(str(folder))
    if kind in ("float16", "bfloat16"):
        weights = load_file(folder / "model.safetensors")
        short = {name: weight.to(getattr(torch, kind)) for name, weight in weights.items()}
        save_file(short, folder / "model.safetensors")
        peer = tiny.peer(folder).float()
    if kind == "cut":
        peer[0].tokenizer.enable_truncation(3)
        peer.save(str(folder))
    return peer


def test_tokens_that_are_equal_once_normalized_are_told(table, tmp_path):
    shutil.copytree(table, tmp_path / "model")
    file = tmp_path / "model" / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.add_tokens(["Bidi", "bIdi", "gafo"])
    tokenizer.save(str(file))
    size = Tokenizer.from_file(str(file)).get_vocab_size()
    weights = load_file(tmp_path / "model" / "model.safetensors")
    [(name, rows)] = weights.items()
    save_file({name: torch.cat([rows, rows[: size - len(rows)]])}, tmp_path / "model" / "model.safetensors")
    (tmp_path / "model" / "selfsent.json").unlink(missing_ok=True)
    with pytest.warns(AmbiguousTokensWarning, match=r"has the tokens 'Bidi' and 'bIdi', which are equal"):
        open_encoder(str(tmp_path / "model"))


KINDS = ("plain", "normalised", "mapped", "bent", "prompted", "float16", "bfloat16", "cut", "model2vec")


@pytest.mark.parametrize("kind", [*KINDS, "model2vec of bytes"])
def test_vectors_are_those_of_sentence_transformers(table, tmp_path, kind):
    peer = layout(kind, table, tmp_path / "model")
    found = open_encoder(str(tmp_path / "model"))
    assert isinstance(found, Table)
    assert encode(found, TEXTS) == pytest.approx(peer.encode(TEXTS), abs=1e-6)
    assert encode(found, TEXTS, side="query") == pytest.approx(peer.encode_query(TEXTS), abs=1e-6)
    assert encode(found, TEXTS, side="document") == pytest.approx(peer.encode_document(TEXTS), abs=1e-6)


@pytest.mark.parametrize("kind", ["plain", "normalised", "mapped", "float16", "cut", "model2vec", "model2vec of bytes"])
def test_it_is_the_encoder_that_is_trained(table, tmp_path, kind):
    """One fingerprint, so that an index of either is searched with the other; and the same tokens and sizes."""
    layout(kind, table, tmp_path / "model")
    light, heavy = open_table(tmp_path / "model"), load_encoder(tmp_path / "model")
    assert fingerprint(light) == fingerprint(heavy)
    assert heavy.table.weight.dtype == torch.float32
    assert (light.embedding_size, light.vocabulary_size) == (heavy.embedding_size, heavy.vocabulary_size)
    assert token_ids(light, TEXTS) == token_ids(heavy, TEXTS)
    assert encode(light, TEXTS) == pytest.approx(encode(heavy, TEXTS), abs=3e-6)
    light.cut(3), heavy.cut(3)
    assert encode(light, TEXTS) == pytest.approx(encode(heavy, TEXTS), abs=3e-6)


def test_a_fingerprint_is_computed_once_and_follows_changes(table, monkeypatch):
    model, whole = open_table(table), fingerprint(open_table(table))
    assert fingerprint(model) == whole
    monkeypatch.setattr(Rows, "parts", lambda rows: pytest.fail("computed again"))
    assert fingerprint(model) == fingerprint(model.twin()) == whole
    monkeypatch.undo()
    cut = open_table(table)
    for each in (model, cut):
        each.cut(3)
    assert fingerprint(model) == fingerprint(cut) != whole
    prompted = open_table(table)
    assert fingerprint(prompted) == whole
    prompted.prompts, prompted.default_prompt_name = {"document": "passage: "}, None
    assert fingerprint(prompted) != whole


def test_a_twin_is_cut_alone(table):
    whole = open_table(table)
    twin = whole.twin()
    twin.cut(3)
    assert (twin.embedding_size, whole.embedding_size) == (3, whole.rows.shape[1])


def test_what_is_not_known_needs_torch(table, tmp_path, base_of):
    peer = tiny.peer(table)
    peer.append(Dense(peer.get_embedding_dimension(), 4, activation_function=torch.nn.GELU()))
    peer.save(str(tmp_path / "odd"))
    assert open_table(tmp_path / "odd") is None
    assert encode(open_encoder(str(tmp_path / "odd")), TEXTS) == pytest.approx(peer.encode(TEXTS), abs=1e-6)
    assert open_table(base_of("bert")) is None


def test_a_damaged_table_is_told_in_one_line(table, tmp_path):
    for name, damage in {"tokenizer.json": "{", "modules.json": "[{}]", "model.safetensors": "x" * 20}.items():
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        shutil.copytree(table, tmp_path / "model")
        (tmp_path / "model" / name).write_text(damage)
        with pytest.raises(BaseEncoderError):
            open_encoder(str(tmp_path / "model"))
    rows = load_file(table / "model.safetensors")["embedding.weight"][:5].contiguous()
    shutil.copytree(table, tmp_path / "short")
    save_file({"embedding.weight": rows}, tmp_path / "short" / "model.safetensors")
    with pytest.raises(BaseEncoderError, match="embeddings up to 4 only"):
        open_table(tmp_path / "short")


def test_few_texts_and_many_have_the_same_tokens(table):
    few, many = open_table(table), open_table(table)
    read = few.tokens(TEXTS)
    many.tokens(["word " * 60_000])
    also_read = many.tokens(TEXTS)
    assert ("reader" in vars(few), "reader" in vars(many)) == (False, True)
    for name in ("ids", "lengths", "word_starts"):
        assert np.array_equal(getattr(read, name), getattr(also_read, name))


@pytest.mark.parametrize("kind", ["float16", "model2vec of bytes"])
def test_rows_that_are_held_are_those_that_were_converted(table, tmp_path, kind):
    layout(kind, table, tmp_path / "model")
    first, large = open_table(tmp_path / "model"), open_table(tmp_path / "model")
    vectors = first.vectors(TEXTS[:1])
    assert first.rows.held is None
    first.rows[np.zeros(first.vocabulary_size, np.int64)]
    assert first.rows.held.shape == first.rows.shape
    assert first.vectors(TEXTS[:1]).tolist() == vectors.tolist()
    large.rows.most_held = 10
    large.rows[np.zeros(2 * large.vocabulary_size, np.int64)]
    assert large.rows.held is None
    assert large.vectors(TEXTS).tolist() == first.vectors(TEXTS).tolist()


@pytest.mark.parametrize(
    ("model", "unknown"),
    [
        (models.WordPiece({"a": 0, "[UNK]": 1}, unk_token="[UNK]"), 1),
        (models.Unigram([("a", -1.0), ("b", -2.0), ("<unk>", 0.0)], unk_id=2), 2),
        (models.BPE({"a": 0}, []), None),
    ],
)
def test_the_token_of_what_is_unknown(model, unknown):
    assert Table(Tokenizer(model), Rows(np.zeros((3, 2), np.float32), False)).unknown == unknown
