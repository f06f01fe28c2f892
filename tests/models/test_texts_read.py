import shutil

import numpy as np
import pytest

from selfsent.data.corpus import read_corpus
from selfsent.errors import BaseEncoderError
from selfsent.models.texts_read import FILE, TextsRead

TITLES = [f"Printer {number} broken" for number in range(40)]
BODIES = [f"The printer in room {number} does not start. Please help {number} times over." for number in range(40)]


@pytest.mark.parametrize(
    "how",
    [
        {"text_columns": ("subject", "body")},
        {"text_column": ("subject", "body")},
        {"text_column": ("subject", "body"), "split_sentences": True},
        {"text_column": "body", "split_sentences": True},
        {"text_column": "body"},
    ],
)
def test_texts_are_known_however_they_were_read(how):
    rows = [{"subject": title, "body": body} for title, body in zip(TITLES, BODIES, strict=True)]
    corpus = read_corpus(rows[:30], **how)
    read = TextsRead.of_corpus(corpus, np.arange(len(corpus)))
    expected = [True] * 30 + [False] * 10
    assert read.of(BODIES).tolist() == expected
    assert read.of([body.upper().replace(".", " .") for body in BODIES]).tolist() == expected
    assert read.of([f"{title} {body}" for title, body in zip(TITLES, BODIES, strict=True)]).tolist() == expected
    assert read.shares(BODIES).tolist() == [1.0] * 30 + [0.0] * 10
    first = [body.partition(". ")[0] for body in BODIES]  # one sentence, behind a title without a full stop
    assert read.of(first).tolist() == expected


@pytest.mark.parametrize(
    ("joined", "line"),
    [
        (False, "RLSJNJzhmkd3QuBbXssTf4XyyYCc5cyP"),
        (True, "p2YPJo6ciC4gGKcyRLSJNDGfeDic4ZpHAce9V3dC4FteyxN/hfLJgJzlzI8CNviP"),
    ],
)
def test_records_of_earlier_models_stay_comparable(joined, line):
    """The saved hashes of a build that took text by text: with others, no saved model would know its texts."""
    texts = ["Printer problem The printer in room 12 does not start. Please help 3 times over. Grüße!"]
    texts += ["ILGAZ ılgaz Straße. 今天天气很好。走吧", "...", ""]
    assert TextsRead.of_texts(texts, joined).line == line
    assert TextsRead.of_texts(iter(texts), joined).shares(texts).tolist() == [1.0, 1.0, 0.0, 0.0]
    assert TextsRead.of_texts([], joined).line == ""


def test_only_rows_of_the_training_are_recorded():
    corpus = read_corpus(BODIES, split_sentences=True)
    rows = np.flatnonzero(np.asarray(corpus.documents) < 10)
    assert TextsRead.of_corpus(corpus, rows).of(BODIES).tolist() == [True] * 10 + [False] * 30


def test_sentences_of_several_documents_say_nothing_of_one():
    read = TextsRead.of_texts(["Kind regards. Thanks a lot. My laptop is lost."])
    same = " Kind regards. Thanks a lot."
    assert read.of(["My laptop is lost." + same, "The lift stands still." + same]).tolist() == [True, False]
    assert read.of(["Kind regards."]).tolist() == [True]


def test_a_record_is_small_merged_saved_and_never_text(tmp_path):
    one, other = TextsRead.of_texts(BODIES[:20]), TextsRead.of_texts(BODIES[10:])
    both = one | other
    assert both.of(BODIES).all()
    assert (TextsRead() | one) == one == (one | TextsRead())
    both.save(tmp_path)
    size = (tmp_path / FILE).stat().st_size
    assert size <= 4 * 2 * len(BODIES) + 128
    assert (
        TextsRead.read(tmp_path).hashes.tolist() == both.hashes.tolist() == TextsRead.of_line(both.line).hashes.tolist()
    )
    assert b"rinter" not in (tmp_path / FILE).read_bytes()
    assert not TextsRead.read(tmp_path / "none")
    TextsRead().save(tmp_path / "none")


@pytest.mark.parametrize("kind", ["no array", "cut off", "open bracket", "other numbers"])
def test_a_damaged_record_is_named(tmp_path, kind):
    TextsRead.of_texts(BODIES).save(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    contents = {"no array": b"nothing", "cut off": whole[:-5], "open bracket": whole.replace(b"}", b" ")}
    contents["other numbers"] = whole.replace(b"<u4", b"<f4")
    (tmp_path / FILE).write_bytes(contents[kind])
    with pytest.raises(BaseEncoderError, match="the record of what the model has read, is damaged"):
        TextsRead.read(tmp_path)


def test_few_texts_look_read_by_chance():
    rng = np.random.default_rng(0)
    million = TextsRead(np.unique(rng.integers(0, 1 << 32, 1_000_000, dtype=np.uint32)))
    others = [f"sentence {number} that was never read by it" for number in range(4000)]
    assert million.of(others).mean() <= 0.01


def test_a_model_carries_what_it_and_its_bases_have_read(tmp_path):
    from sentence_transformers import SentenceTransformer

    import selfsent
    from selfsent.models.loading import load_encoder
    from selfsent.models.merge import WeightInterpolation
    from selfsent.scorers.load_scorer import load_scorer

    first = selfsent.train(
        BODIES[:20], "simcse", "bundled", tmp_path / "one", delete_words=0.3, steps=1, quiet=True
    ).directory
    second = selfsent.train(
        BODIES[20:30], "simcse", first, tmp_path / "two", delete_words=0.3, steps=1, quiet=True
    ).directory
    WeightInterpolation(load_encoder("bundled"), load_encoder(second)).at(0.5).save(tmp_path / "merged")
    shutil.copytree(second / "model", tmp_path / "copy")
    expected = [True] * 30 + [False] * 10
    for model in (second, second / "model", tmp_path / "copy", tmp_path / "merged"):
        assert load_scorer(str(model)).texts_read.of(BODIES).tolist() == expected
    assert SentenceTransformer(str(tmp_path / "copy")).encode(BODIES[:2]).shape == (2, 256)
    assert load_scorer(str(first)).texts_read.of(BODIES).tolist() == [True] * 20 + [False] * 20
    assert not load_scorer("bundled").texts_read
    scorer = load_scorer(str(first))
    scorer(["a text"])
    scorer.write(tmp_path / "vectors.parquet")
    assert (
        load_scorer(str(tmp_path / "vectors.parquet")).texts_read.hashes.tolist() == scorer.texts_read.hashes.tolist()
    )
