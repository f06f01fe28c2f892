import numpy as np
import pytest
import scipy.stats

from naive.metrics import cosine
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.suites import SUITES, TASKS
from selfsent.evaluation.tasks.languages import TATOEBA, found, score_stsb_pair, score_tatoeba
from selfsent.evaluation.tasks.sts import STS17

ENGLISH = [f"word{number} house tree" for number in range(10)]
GERMAN = [f"word{number} haus" for number in range(10)]


@pytest.fixture
def tatoeba(write):
    return Store(write("parallel/en-de/tatoeba_test.parquet", en=ENGLISH, de=GERMAN))


def nearest(queries, answers):
    """Share of the queries whose most similar answer is their own, one by one."""
    hits = 0
    for row, query in enumerate(queries):
        similarities = [cosine(query, answer) for answer in answers]
        hits += similarities.index(max(similarities)) == row
    return 100 * hits / len(queries)


def test_tatoeba_is_the_mean_accuracy_of_both_directions(tatoeba, model):
    def noisy(texts):
        return model.encode(texts) + 2.5 * np.random.default_rng(2).normal(size=(len(texts), model.size))

    vectors = noisy([*ENGLISH, *GERMAN])
    there, back = nearest(vectors[:10], vectors[10:]), nearest(vectors[10:], vectors[:10])
    assert len({there, back, 100.0}) == 3  # else the test could not tell the directions apart
    score = score_tatoeba(TATOEBA["tatoeba-de"], as_encoder(noisy), tatoeba)
    assert score.metrics == pytest.approx({"en to de": there, "de to en": back})
    assert score.score == pytest.approx((there + back) / 2)
    assert "tatoeba-de|accuracy|cos|mean of both directions|n:10" in score.signature
    assert "1000 as published" in score.warnings[0]


def test_an_encoder_that_tells_nothing_apart_finds_one_sentence():
    assert found(np.ones((300, 4), np.float32), np.ones((300, 4), np.float32)).sum() == 1
    assert found(np.zeros((5, 4), np.float32), np.eye(5, 4, dtype=np.float32)).sum() == 1


def test_files_of_the_publisher_are_read(tmp_path, model):
    folder = tmp_path / "tatoeba" / "v1"
    folder.mkdir(parents=True)
    (folder / "tatoeba.deu-eng.eng").write_text("\n".join(ENGLISH) + "\n")
    (folder / "tatoeba.deu-eng.deu").write_text("\n".join(GERMAN) + "\n")
    assert score_tatoeba(TATOEBA["tatoeba-de"], as_encoder(model), Store(tmp_path)).n == 10
    (folder / "tatoeba.deu-eng.deu").write_text("\n".join(GERMAN[1:]) + "\n")
    with pytest.raises(DataError, match=r"9 lines, tatoeba\.deu-eng\.eng 10"):
        Store(tmp_path).load(TATOEBA["tatoeba-de"])
    with pytest.raises(DataError, match="tatoeba-tr is absent"):
        Store(tmp_path).load(TATOEBA["tatoeba-tr"])


def test_cross_lingual_stsb_takes_the_second_sentence_from_the_other_language(write, model):
    first, second = ENGLISH[:6], ENGLISH[4:]
    other = [text.replace("house", "haus") for text in second]
    gold = [0.0, 1.0, 5.0, 2.0, 3.0, 4.0]
    place = "PhilipMay/stsb_multi_mt/{}/test.parquet"
    write(place.format("en"), sentence1=first, sentence2=second, similarity_score=gold)
    root = write(place.format("de"), sentence1=second, sentence2=other, similarity_score=gold)
    score = score_stsb_pair("stsb-en-de", as_encoder(model), Store(root))
    pairs = zip(model.encode(first), model.encode(other), strict=True)
    wanted = scipy.stats.spearmanr([cosine(left, right) for left, right in pairs], gold)[0]
    assert score.score == pytest.approx(100 * wanted)
    assert "stsb-en-de|spearman|cos|sentence1 in English|n:6" in score.signature
    write(place.format("de"), sentence1=second, sentence2=other, similarity_score=gold[::-1])
    with pytest.raises(DataError, match="does not hold the pairs of stsb-multi-en-test in the same order"):
        score_stsb_pair("stsb-en-de", as_encoder(model), Store(root))


def test_the_registry_knows_the_tasks():
    assert SUITES["tatoeba"].tasks == tuple(f"tatoeba-{other}" for other in ("ar", "de", "es", "fr", "tr"))
    assert SUITES["stsb-cross"].tasks == ("stsb-en-de", "stsb-en-es", "stsb-en-fr")
    assert {"stsb-en-de-dev", *SUITES["tatoeba"].tasks, *SUITES["stsb-cross"].tasks} <= TASKS.keys()
    pairs = ["ar-ar", "en-ar", "en-de", "en-en", "en-tr", "es-en", "es-es", "fr-en", "it-en", "ko-ko", "nl-en"]
    assert sorted(SUITES["sts17"].tasks) == [f"sts17-{pair}" for pair in pairs]


@pytest.mark.parametrize("pair", ["en-en", "es-es", "ar-ar", "en-ar", "en-tr", "es-en"])
def test_the_pairs_of_sts17_are_as_published(mirror, pair):
    dataset = next(each for each in STS17 if each.name == f"sts17-{pair}")
    rows = Store(mirror).load(dataset)
    assert len(rows) == 250
    assert not rows.warnings


def test_the_thousand_pairs_are_there(mirror):
    for dataset in TATOEBA.values():
        rows = Store(mirror).load(dataset)
        assert len(rows) == len(set(rows["english"])) == len(set(rows["other"])) == 1000
