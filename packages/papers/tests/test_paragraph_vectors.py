import os
import random
import subprocess
import sys

import numpy as np
import pytest

import tiny
from selfsent.errors import CorpusError, Damaged, DataError, SettingsError
from selfsent.evaluation import evaluate
from selfsent.scorers.load_scorer import check_model, is_directory_or_id, load_scorer
from selfsent_papers.paragraph_vectors import ParagraphVectors

pytest.importorskip("gensim", reason="gensim is not installed")

TOPICS = (
    ["cat", "dog", "hamster", "paw", "fur", "tail", "whisker", "bark", "purr", "kennel", "leash", "vet"],
    ["stock", "bond", "market", "trader", "price", "share", "dividend", "broker", "yield", "equity", "fund", "index"],
)


def sentences(count, seed):
    draw = random.Random(seed)
    return [" ".join(draw.choices(topic, k=8)) for topic in TOPICS for _ in range(count)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paragraphs")
    (folder / "topics.txt").write_text("\n".join(sentences(800, 1)) + "\n")
    return folder / "topics.txt"


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SELFSENT_CACHE", str(folder := tmp_path_factory.mktemp("cache")))
        yield folder


@pytest.mark.parametrize("kind", ["dm", "dbow"])
def test_the_nearest_of_a_sentence_is_of_its_topic(kind, corpus):
    texts = sentences(25, 2)
    scorer = load_scorer(f"{kind}:{corpus}")
    vectors = scorer(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near = vectors @ vectors.T - 2 * np.eye(50)
    assert np.mean(near.argmax(1) // 25 == np.arange(50) // 25) > 0.9
    assert scorer.pooling == kind


@pytest.mark.parametrize("kind", ["dm", "dbow"])
def test_a_vector_is_the_same_alone_twice_and_in_another_process(kind, corpus):
    texts = ["The dog and the cat purr.", "a bond, a share", "Market?"]
    encoder = ParagraphVectors(kind, str(corpus))
    found = encoder(texts)
    np.testing.assert_array_equal(encoder(texts[::-1])[::-1], found)
    np.testing.assert_array_equal(np.concatenate([encoder([text]) for text in texts]), found)
    code = (
        "import sys; from selfsent_papers.paragraph_vectors import ParagraphVectors as P;"
        f"sys.stdout.buffer.write(P({kind!r}, {str(corpus)!r})({texts!r}).tobytes())"
    )
    # It trains again.
    where = {"SELFSENT_CACHE": os.environ["SELFSENT_CACHE"] + "/another", "PYTHONHASHSEED": "7"}
    where |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, "-c", code], env={**os.environ, **where}, capture_output=True, check=True)
    np.testing.assert_array_equal(np.frombuffer(told.stdout, np.float32).reshape(found.shape), found)


def test_it_is_trained_once_and_again_where_the_cache_is_damaged(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    from gensim.models import Doc2Vec

    trained, train = [], Doc2Vec.train
    monkeypatch.setattr(Doc2Vec, "train", lambda *given, **how: trained.append(1) or train(*given, **how))
    found = ParagraphVectors("dbow", str(corpus))(["dog"])
    ParagraphVectors("dbow", str(corpus))(["dog"])
    assert len(trained) == 1
    (file,) = tmp_path.rglob("output.f32")
    tiny.flip_bit(file, 100)
    with pytest.warns(Damaged, match="is damaged, and is made again"):
        np.testing.assert_array_equal(ParagraphVectors("dbow", str(corpus))(["dog"]), found)
    assert len(trained) == 2
    kept = (tmp_path / "paragraph-vectors").rglob("*.*")
    assert {path.name for path in kept} == {"input.f32", "output.f32", "words.json", "sums.json"}


def test_words_nobody_knows_and_no_texts(corpus):
    encoder = ParagraphVectors("dbow", str(corpus))
    assert not encoder(["unheard of", ""]).any()
    assert encoder([]).shape == (0, 100)


def test_they_are_scored_like_any_model(corpus, tmp_path):
    (tmp_path / "pairs.tsv").write_text("dog cat\tpaw fur\t5\ndog fur\tbond fund\t0\nshare\tbond price\t4\n")
    check_model(f"dbow:{corpus}")
    assert not is_directory_or_id(f"dbow:{corpus}")
    assert "|pool:dbow|" in evaluate(f"dbow:{corpus}", pairs=tmp_path / "pairs.tsv").scores["pairs"].signature


def test_what_cannot_be_trained(tmp_path, monkeypatch):
    with pytest.raises(CorpusError, match="no such file"):
        check_model("dbow:nowhere.txt")
    (tmp_path / "rare.txt").write_text("one two three\nfour five six\n")
    with pytest.raises(DataError, match="no word is in the corpus 5 times or more"):
        load_scorer(f"dm:{tmp_path}/rare.txt")(["one"])
    for name in [name for name in sys.modules if name.partition(".")[0] == "gensim"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(SettingsError, match=r"needs gensim: pip install 'selfsent-papers\[words\]'"):
        check_model(f"dm:{tmp_path}/rare.txt")
