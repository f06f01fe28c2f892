"""A table of token vectors: the same vectors as sentence-transformers, and what it refuses."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import BertPreTokenizer

import selfsent
import tiny
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.methods import METHODS
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder
from selfsent.models.static import PlainTable, StaticEncoder, new_table
from selfsent.scorers.load_scorer import load_scorer
from selfsent.training.plan import Plan

TEXTS = [*tiny.make_sentences(30, seed=9), "bidi  gafo!", "", "[MASK] bidi"]


@pytest.fixture
def table(base_of):
    return base_of("static")


def by_hand(model, text):
    """The mean of the rows of a text's tokens."""
    ids = model.sentence_transformer[0].tokenizer.encode(text, add_special_tokens=False).ids
    rows = [model.table.weight[token].detach().double().numpy() for token in ids]
    return np.mean(rows, axis=0) if rows else np.zeros(model.hidden_size)


def test_vectors_are_means_and_those_of_sentence_transformers(table):
    model = load_encoder(table)
    found = encode(model, TEXTS)
    assert found == pytest.approx(np.stack([by_hand(model, text) for text in TEXTS]), abs=1e-6)
    assert found == pytest.approx(tiny.peer(table).encode(TEXTS), abs=1e-6)
    packed = tiny.pack([model.tokenizer(text)["input_ids"] for text in TEXTS[:9]])
    assert model(packed).detach().numpy() == pytest.approx(found[:9], abs=1e-6)
    assert model.pool(model.token_vectors(packed), packed).detach().numpy() == pytest.approx(found[:9], abs=1e-6)


def test_what_is_behind_the_table_is_kept(table, tmp_path):
    unit = tiny.peer(table)
    unit.append(Normalize())
    unit.save(str(tmp_path / "unit"))
    assert PlainTable.read(tmp_path / "unit") is None
    selfsent.train(TEXTS, method="whitening", base=tmp_path / "unit", output=tmp_path / "run")
    ordinary = tiny.peer(tmp_path / "run" / "model")
    assert [type(module).__name__ for module in ordinary] == ["StaticEmbedding", "Normalize", "Dense"]
    assert encode(load_encoder(tmp_path / "run"), TEXTS) == pytest.approx(ordinary.encode(TEXTS), abs=1e-5)


DOCUMENTS = "\n\n".join("\n".join(TEXTS[start : start + 5]) for start in range(0, 30, 5))


def test_neighbours_whiten_a_table_in_part_and_leave_it_a_table(table, tmp_path):
    (tmp_path / "documents.txt").write_text(DOCUMENTS)
    common = {"base": table, "epochs": 1, "batch_size": 8, "hold_out": 0, "quiet": True}
    corpus = selfsent.read_corpus(tmp_path / "documents.txt")
    for name, whiten in (("default", None), ("not", 0), ("more", 0.5)):
        selfsent.train(corpus, output=tmp_path / name, whiten=whiten, **common)
    default, plain, more = (encode(load_encoder(tmp_path / name), TEXTS[:30]) for name in ("default", "not", "more"))
    assert default.mean(axis=0) == pytest.approx(np.zeros(default.shape[1]), abs=1e-5)
    assert np.abs(plain.mean(axis=0)).max() > 1e-3
    spread = [np.linalg.svd(each - each.mean(axis=0), compute_uv=False) for each in (plain, default, more)]
    steep = [float(values[0] / values[5]) for values in spread]
    assert steep[0] > steep[1] > steep[2]
    modules = json.loads((tmp_path / "default" / "model" / "modules.json").read_text())
    assert len(modules) == 1
    assert "whitened at the end with strength 0.1" in (tmp_path / "default" / "model" / "README.md").read_text()


@pytest.mark.parametrize(("strength", "stays"), [(0.3, True), (1.0, False)])
def test_a_sign_without_length_stays_without_where_a_table_is_whitened_in_part(table, tmp_path, strength, stays):
    """The mean, taken off it, would be all that it has."""
    silent = load_encoder(table)
    number = silent.tokenizer.convert_tokens_to_ids("[UNK]")
    silent.table.weight.data[number] = 0
    silent.save(tmp_path / "silent")
    selfsent.train(TEXTS, "whitening", tmp_path / "silent", tmp_path / "run", strength=strength, ridge=0.1, quiet=True)
    length = load_encoder(tmp_path / "run").table.weight.data[number].norm().item()
    assert (length < 1e-6) is stays


def test_training_does_not_depend_on_the_scale_of_a_table(table, tmp_path):
    """Neither the default rate nor the whitening does: rows of seven times the length learn the same."""
    (tmp_path / "documents.txt").write_text(DOCUMENTS)
    longer = load_encoder(table)
    longer.table.weight.data *= 7
    longer.save(tmp_path / "longer")
    runs = {"batch_size": 8, "overwrite": True, "quiet": True, "output": tmp_path / "run"}

    def cosines(base):
        vectors = encode(load_encoder(base), TEXTS[:30])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors @ vectors.T

    trained = [
        cosines(selfsent.train(tmp_path / "documents.txt", base=base, **runs).directory)
        for base in (table, tmp_path / "longer")
    ]
    assert np.abs(trained[0] - cosines(table)).max() > 0.1
    assert trained[0] == pytest.approx(trained[1], abs=0.02)


def test_punctuation_that_says_nothing_goes_on_to_say_nothing(table, tmp_path):
    """A row that is short stays short in training and whitening, however often its token occurs."""
    quiet = load_encoder(table)
    token = quiet.tokenizer.convert_tokens_to_ids("!")
    quiet.table.weight.data[token] *= 1e-3
    quiet.save(tmp_path / "quiet")
    corpus = [f"{text}{' !' * 9}" for text in TEXTS[:30]]
    (tmp_path / "documents.txt").write_text("\n\n".join("\n".join(corpus[at : at + 5]) for at in range(0, 30, 5)))
    run = selfsent.train(
        tmp_path / "documents.txt", base=tmp_path / "quiet", output=tmp_path / "run", batch_size=8, quiet=True
    )
    rows = load_encoder(run.directory).table.weight.detach().norm(dim=1)
    assert rows[token] < 0.01 * rows.median()


def test_a_linear_map_becomes_part_of_the_table(table):
    """The mean of mapped rows is the mapped mean, so that nothing needs to follow the table."""
    model, before = load_encoder(table), encode(load_encoder(table), TEXTS)
    weight, bias = torch.randn(5, model.hidden_size).double(), torch.randn(5).double()
    model.put_affine(weight, bias)
    assert (len(model.sentence_transformer), model.hidden_size, model.embedding_size) == (1, 5, 5)
    has_tokens = before.any(axis=1)
    expected = np.where(has_tokens[:, None], before @ weight.numpy().T + bias.numpy(), 0)
    assert not has_tokens.all()
    assert encode(model, TEXTS) == pytest.approx(expected, abs=1e-5)


def of_model2vec(directory, tokenizer, **weights):
    save_file(weights, directory / "model.safetensors")
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "config.json").write_text(json.dumps({"model_type": "model2vec"}))


def test_a_table_of_model2vec_in_8_bits_is_read_as_model2vec_averages_it(tmp_path):
    tokenizer = tiny.make_tokenizer().backend_tokenizer
    rows = np.random.default_rng(0).integers(-128, 128, (tokenizer.get_vocab_size(), 8)).astype(np.int8)
    of_model2vec(tmp_path, tokenizer, embeddings=rows)
    ids = tokenizer.encode(TEXTS[0], add_special_tokens=False).ids
    assert encode(load_encoder(tmp_path), TEXTS[:1])[0] == pytest.approx(rows[ids].mean(0), rel=1e-6)


def test_cuts_that_a_table_asks_for_are_told(tmp_path, caplog):
    tokenizer = tiny.make_tokenizer().backend_tokenizer
    tokenizer.enable_truncation(12)
    rows = np.random.default_rng(0).normal(size=(tokenizer.get_vocab_size(), 8)).astype(np.float32)
    of_model2vec(tmp_path, tokenizer, embeddings=rows)
    vectors = selfsent.encode(tmp_path, ["ba " * 12, "ba " * 12 + "ka", "ba " * 30])
    assert vectors[1] == pytest.approx(vectors[0]), "the end was read"
    said = "2 texts are cut after 12 tokens, which is all that this encoder reads"
    assert [record.getMessage() for record in caplog.records] == [said]


def test_the_name_of_a_special_token_is_read_as_sentence_transformers_reads_it(tmp_path):
    """A tokenizer knows its unknown token by the model alone; transformers would add it to what is found in texts."""
    tokenizer = Tokenizer(WordPiece({"[UNK]": 0, "[": 1, "]": 2, "un": 3, "##k": 4, "a": 5}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), BertPreTokenizer()
    of_model2vec(tmp_path, tokenizer, embeddings=np.eye(6, dtype=np.float32))
    model, texts = load_encoder(tmp_path), ["[UNK]", "a [unk] a", "b"]
    expected = SentenceTransformer(modules=[StaticEmbedding.load(str(tmp_path))], device="cpu").encode(texts)
    assert encode(model, texts) == pytest.approx(expected)
    assert expected[0] == pytest.approx([0, 0.25, 0.25, 0.25, 0.25, 0])
    assert model.tokenizer(texts)["input_ids"] == [[1, 3, 4, 2], [5, 1, 3, 4, 2, 5], [0]], "training reads it so"
    assert model.tokenizer.unk_token_id == 0


@pytest.mark.parametrize("kind", ["static", "bert"])
def test_a_tokenizer_that_outgrew_its_model_is_told_at_loading(base_of, tmp_path, kind):
    shutil.copytree(base_of(kind), tmp_path / "base")
    path = tmp_path / "base" / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    rows = tokenizer.get_vocab_size()
    tokenizer.add_tokens(["hard disk"])
    tokenizer.save(str(path))
    told = (
        rf"its tokenizer numbers tokens up to {rows}, and it has embeddings up to {rows - 1} only: take the tokenizer"
    )
    with pytest.raises(BaseEncoderError, match=told):
        load_encoder(tmp_path / "base")
    with pytest.raises(BaseEncoderError, match=told):
        selfsent.encode(str(tmp_path / "base"), ["a text"])
    with pytest.raises(BaseEncoderError, match=told):  # which asks sentence-transformers for what selfsent cannot load
        load_scorer(str(tmp_path / "base"))


def test_a_cross_encoder_whose_tokenizer_outgrew_it_is_told_at_loading(base_of, tmp_path):
    CrossEncoder(str(base_of("bert")), num_labels=1, device="cpu").save_pretrained(str(tmp_path / "scorer"))
    load_scorer(str(tmp_path / "scorer"))
    path = tmp_path / "scorer" / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.add_tokens(["hard disk"])
    tokenizer.save(str(path))
    with pytest.raises(BaseEncoderError, match="its tokenizer numbers tokens up to"):
        load_scorer(str(tmp_path / "scorer"))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"method": "tsdae"}, "tsdae needs a transformer, and"),
        ({"method": "simcse"}, "the two views of a sentence would be identical"),
        ({"method": "simcse", "delete_words": 0.3, "pooling": "cls"}, "leave out pooling=cls"),
        ({"method": "simcse", "delete_words": 0.3, "dropout": 0.1}, "without dropout: leave out `dropout`"),
        (
            {"method": "simcse", "delete_words": 0.3, "head": "cnn-pool"},
            "for a head: leave out head=cnn-pool",
        ),
        ({"method": "whitening", "layers": "first+last"}, "without layers: leave out layers"),
    ],
)
def test_options_that_a_table_lacks_are_refused_before_a_text_is_read(table, tmp_path, options, complaint):
    def texts():
        raise AssertionError("read")
        yield

    with pytest.raises((BaseEncoderError, SettingsError), match=complaint) as caught:
        selfsent.train(texts(), base=table, output=tmp_path / "run", **options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "given", "base"),
    [
        ("neighbours", {}, "bundled"),
        ("tsdae", {}, "bundled-raw"),
        ("infomax", {}, "bundled-encoder"),
        ("simcse", {}, "bundled-encoder"),
        ("simcse", {"delete_words": 0.3}, "bundled"),
        ("simcse", {"positives": "neighbours"}, "bundled"),
        ("ntxent", {"columns": True}, "bundled"),
        ("neighbours", {"dropout": 0.1}, "bundled-encoder"),
        ("softmax", {"head": "cnn-pool"}, "bundled-encoder"),
    ],
)
def test_the_base_is_the_best_that_a_method_can_train(method, given, base):
    assert Plan.resolve(METHODS[method], **given).base == base


def test_a_table_is_made_with_a_vocabulary_of_the_text_or_of_an_encoder(table, tmp_path):
    own = load_encoder(selfsent.make_table(TEXTS, tmp_path / "own", size=6, vocabulary_size=80))
    assert (own.embedding_size, own.vocabulary_size <= 80) == (6, True)
    theirs = load_encoder(selfsent.make_table(None, tmp_path / "theirs", tokenizer=table))
    assert theirs.vocabulary_size == load_encoder(table).vocabulary_size
    for given in ({"corpus": TEXTS, "tokenizer": table}, {"corpus": None}):
        with pytest.raises(SettingsError, match="give either a corpus"):
            selfsent.make_table(output=tmp_path / "none", **given)
    with pytest.raises(SettingsError, match="leave out `cased`"):
        selfsent.make_table(None, tmp_path / "none", tokenizer=table, cased=True)
    assert not (tmp_path / "none").exists()


def test_special_tokens_are_known():
    wrapped = new_table(tiny.make_tokenizer("pieces").backend_tokenizer, 4).tokenizer
    assert wrapped.unk_token == "<unk>"
    assert set(wrapped.all_special_tokens) == {"<unk>", "<s>", "</s>", "<pad>", "<mask>"}
    assert wrapped("bidi")["input_ids"] == wrapped("bidi", add_special_tokens=False)["input_ids"]


def test_signs_weigh_little_in_the_table_that_ships():
    model = load_encoder("bundled")
    known = model.tokenizer.get_vocab()
    length = {token: float(model.table.weight[row].detach().norm()) for token, row in known.items()}
    signs = {token for token in known if not any(map(str.isalnum, token))} | {model.tokenizer.unk_token}
    assert {"=", "_", "*", "[UNK]"} <= signs
    assert 0 < min(length[sign] for sign in signs) <= max(length[sign] for sign in signs) < 0.1 * length["network"]
    one, other, same = encode(model, [f"{text} {'=' * 80}" for text in ("fast ball", "old Volvo", "old Volvos")])
    assert np.dot(one, other) < 0.5 * np.dot(other, same)


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_fingerprint_and_files_are_those_of_sentence_transformers(table, tmp_path):
    model = load_encoder(table)
    assert isinstance(model.sentence_transformer, PlainTable)
    ordinary = tiny.peer(table)
    assert fingerprint(model) == fingerprint(StaticEncoder(ordinary))
    assert model.embedding_size == ordinary.get_embedding_dimension()
    model.save(tmp_path / "saved")
    ordinary.save(str(tmp_path / "ordinary"), create_model_card=False)
    assert files(tmp_path / "saved") == files(tmp_path / "ordinary")


def test_what_is_appended_is_saved_with_it(table, tmp_path):
    model = load_encoder(table)
    width = model.embedding_size
    model.sentence_transformer.append(Dense(width, 3))
    model.save(tmp_path / "saved")
    assert model.embedding_size == 3
    ordinary = tiny.peer(tmp_path / "saved")
    assert ordinary.encode(TEXTS) == pytest.approx(encode(model, TEXTS), abs=1e-6)


@pytest.mark.parametrize("about", [{"prompts": {"q": "find: "}, "default_prompt_name": "q"}, {"truncate_dim": 8}])
def test_whatever_else_is_configured_is_left_to_sentence_transformers(base_of, tmp_path, about):
    shutil.copytree(base_of("static"), tmp_path / "table")
    tiny.change_json(tmp_path / "table" / "config_sentence_transformers.json", **about)
    assert PlainTable.read(tmp_path / "table") is None
    ordinary = tiny.peer(tmp_path / "table")
    assert encode(load_encoder(tmp_path / "table"), TEXTS) == pytest.approx(ordinary.encode(TEXTS), abs=1e-6)


@pytest.mark.full
def test_saving_a_table_alone_imports_no_sentence_transformers(tmp_path):
    code = (
        "import sys; from selfsent.models.loading import load_encoder\n"
        "load_encoder('bundled').save(sys.argv[1])\n"
        "assert 'sentence_transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "saved")], check=True)
    ordinary = tiny.peer(tmp_path / "saved")
    assert ordinary.encode(TEXTS) == pytest.approx(encode(load_encoder("bundled"), TEXTS), abs=1e-6)


def test_searching_with_it_imports_neither_library(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(tiny.make_sentences(10)))
    code = (
        "import sys; from selfsent.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'sentence_transformers', 'torch._dynamo', 'sklearn'} & sys.modules.keys()"
    )
    command = [sys.executable, "-c", code, "search", "bundled", str(tmp_path / "text.txt"), "bidi"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
