import builtins
import gzip
import pickle
import struct

import numpy as np
import pytest

from selfsent.data import word_vectors as files
from selfsent.data.word_vectors import check_words, form_of, read_fasttext, word_blocks
from selfsent.errors import Damaged, DataError, SettingsError
from selfsent.evaluation.encoders import as_encoder, check_model

SENTENCES = [["red", "car", "stops"], ["the", "late", "train"], ["red", "bus", "late"]] * 20


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def vectors(tmp_path):
    """Those of gensim, and its file in word2vec's form."""
    from gensim.models import KeyedVectors

    made = KeyedVectors(5)
    made.add_vectors([f"w{n}" for n in range(40)] + ["é", "red"], np.random.default_rng(0).normal(size=(42, 5)))
    made.save_word2vec_format(str(tmp_path / "vectors.txt"), binary=True)  # no ending tells
    return made, tmp_path / "vectors.txt"


@pytest.fixture(scope="module")
def fasttext(tmp_path_factory):
    from gensim.models import FastText
    from gensim.models.fasttext import save_facebook_model

    model = FastText(SENTENCES, vector_size=6, min_count=1, bucket=50, workers=1, seed=1, epochs=2)
    save_facebook_model(model, str(path := tmp_path_factory.mktemp("fasttext") / "words"))
    return model.wv, path


def read(path):
    blocks = list(word_blocks(path))
    return [word for words, _ in blocks for word in words], np.concatenate([values for _, values in blocks])


@pytest.mark.parametrize("kind", ["plain", "gzip", "small blocks", "newlines"])
def test_word2vecs_form_is_read_as_gensim_wrote_it(kind, vectors, monkeypatch):
    made, path = vectors
    if kind == "gzip":
        path.write_bytes(gzip.compress(path.read_bytes()))
    elif kind == "small blocks":
        monkeypatch.setattr(files, "TOGETHER", 4)
        monkeypatch.setattr(files, "LONGEST", 60)
    elif kind == "newlines":  # as word2vec itself writes them
        rows = (f"{word} ".encode() + made[word].tobytes() + b"\n" for word in made.index_to_key)
        path.write_bytes(b"42 5\n" + b"".join(rows))
    assert form_of(path) == "word2vec"
    words, values = read(path)
    assert words == made.index_to_key
    np.testing.assert_array_equal(values, made.vectors)
    check_words(path)


def test_a_sentence_is_the_mean_of_words_in_a_binary_file(vectors):
    made, path = vectors
    for name in ("glove", "word2vec"):
        check_model(f"{name}:{path}")
        np.testing.assert_allclose(as_encoder(f"{name}:{path}")(["red w7"])[0], (made["red"] + made["w7"]) / 2)


@pytest.mark.parametrize("size", range(20, 1000, 97))
def test_word2vecs_form_cut_short_is_refused(size, vectors, cache):
    path = vectors[1]
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DataError, match="is cut short: 42 words of 5 numbers by its first line"):
        as_encoder(f"glove:{path}")(["red"])
    assert not list(cache.rglob("*.f32"))


def test_word2vecs_form_that_is_longer_or_not_finite_is_refused(vectors):
    path = vectors[1]
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"42 5", b"41 5"))
    with pytest.raises(DataError, match="holds more than the 41 words"):
        read(path)
    path.write_bytes(whole[:-4] + struct.pack("<f", np.inf))
    with pytest.raises(DataError, match="not finite"):
        read(path)


def test_unknown_words_have_vectors_of_their_pieces(fasttext):
    made, path = fasttext
    check_model(f"fasttext:{path}")
    encoder = as_encoder(f"fasttext:{path}")
    found = encoder(["red", "Red", "redcars unknownish", "trainèd"])
    expected = [made["red"], made["red"], (made["redcars"] + made["unknownish"]) / 2, made["trainèd"]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(
        as_encoder(f"glove:{path}")(["redcars"])[0], made["redcars"], rtol=1e-5
    )  # from the cache


def test_without_buckets_unknown_words_have_none(tmp_path):
    from gensim.models import FastText
    from gensim.models.fasttext import save_facebook_model

    model = FastText(SENTENCES, vector_size=6, min_count=1, bucket=0, max_n=0, workers=1, epochs=1)
    save_facebook_model(model, str(tmp_path / "words"))
    found = as_encoder(f"fasttext:{tmp_path}/words")(["red", "redcars"])
    np.testing.assert_allclose(found, [model.wv["red"], np.zeros(6)])


def test_damaged_pieces_are_made_again(fasttext, cache):
    path = fasttext[1]
    before = as_encoder(f"fasttext:{path}")(["redcars"])
    (file,) = cache.rglob("subwords.f32")
    data = bytearray(file.read_bytes())
    data[7] ^= 1
    file.write_bytes(bytes(data))
    with pytest.warns(Damaged, match="is damaged, and is made again"):
        np.testing.assert_array_equal(as_encoder(f"fasttext:{path}")(["redcars"]), before)


@pytest.mark.parametrize("left", [20, 90, 120, 200, 400, -300, -1])
def test_fasttexts_form_cut_short_is_refused(left, fasttext, tmp_path):
    """Above all where the words are: gensim would look for the end of one for ever."""
    path = tmp_path / "cut"
    path.write_bytes(fasttext[1].read_bytes()[:left])
    for reads in (check_model, lambda name: as_encoder(name)(["red"])):
        with pytest.raises(DataError, match="cannot be read as fastText's binary form: it is cut short"):
            reads(f"fasttext:{path}")


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [("packed", "gunzip it first"), ("classifier", "it is a classifier"), ("quantised", "it is quantised")],
)
def test_what_of_fasttexts_is_no_word_vectors(kind, complaint, fasttext, tmp_path):
    data = bytearray(fasttext[1].read_bytes())
    if kind == "packed":
        data = gzip.compress(data)
    elif kind == "classifier":
        struct.pack_into("<i", data, 72, 3)
    else:
        struct.pack_into("<q", data, 84, 3)
    (tmp_path / "odd").write_bytes(data)
    with pytest.raises(DataError, match=complaint):
        check_model(f"fasttext:{tmp_path}/odd")


class Dangerous:
    def __reduce__(self):
        return pytest.fail, ("it was run",)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickles_are_never_opened(protocol, tmp_path):
    (tmp_path / "vectors.kv").write_bytes(pickle.dumps(Dangerous(), protocol))
    with pytest.raises(DataError, match=r"is a pickle.*save_word2vec_format\('vectors.bin', binary=True\)"):
        as_encoder(f"glove:{tmp_path}/vectors.kv")(["red"])


def test_without_gensim_only_fasttext_is_missing(fasttext, vectors, monkeypatch):
    imported = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "gensim":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for reads in (check_words, read_fasttext):
        with pytest.raises(
            SettingsError, match=r"fastText's binary form needs gensim: pip install 'selfsent\[words\]'"
        ):
            reads(fasttext[1])
    assert len(read(vectors[1])[0]) == 42


def test_a_recurrent_network_takes_them(vectors):
    from selfsent.models.new_bases import _read_file

    tokenizer, table = _read_file(vectors[1])
    rows = tokenizer.convert_tokens_to_ids(vectors[0].index_to_key)
    np.testing.assert_array_equal(table.numpy()[rows], vectors[0].vectors)
