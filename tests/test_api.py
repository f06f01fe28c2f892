import gc
import inspect
import json
import os
import shutil
from pathlib import Path

import pytest

import selfsent
import tiny
from selfsent.errors import RunError, SelfsentError, SettingsError
from selfsent.methods import SimCSE


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SELFSENT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def base(base_of):
    return base_of("bert", initializer_range=0.5)


@pytest.fixture(scope="module")
def with_documents(tmp_path_factory):
    """A corpus of 300 documents of two sentences."""
    lines = tiny.make_sentences(600, seed=1)
    path = tmp_path_factory.mktemp("text") / "documents.txt"
    path.write_text("".join(f"{a}\n{b}\n\n" for a, b in zip(lines[::2], lines[1::2], strict=True)))
    return selfsent.read_corpus(path)


@pytest.fixture(scope="module")
def scored_run(with_documents, base, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "run"
    return selfsent.train(with_documents, "simcse", base, output, steps=3, batch_size=8, max_length=32, dropout=0.1)


def test_train_on_a_list_of_sentences(base, tmp_path):
    lines, steps = [], []
    progress = tiny.heard(notice=lines.append, step=lambda step, total, figures: steps.append((step, total)))
    how = {"steps": 2, "batch_size": 8, "progress": progress}
    run = selfsent.train(tiny.make_sentences(40), method="mlm", base=base, output=tmp_path / "run", **how)
    assert run.scores is None
    assert str(run) == f"The model is in {run.directory / 'model'}"
    assert run.neighbours == []
    assert steps == [(1, 2), (2, 2)]
    assert run.model.encode(["ba de", "fi"]).shape == (2, 32)
    assert any("no label-free score" in line for line in lines)
    again = selfsent.load_run(tmp_path / "run")
    assert (again.record, again.scores) == (run.record, None)


def test_a_corpus_with_documents_is_scored_before_and_after(scored_run, with_documents):
    scores = scored_run.scores
    kinds = {"base", "trained", "with_words", "tfidf", "bm25"}
    assert set(scores) == kinds | {"difference", "over_tfidf", "over_bm25"}
    found = scored_run.search_scores
    assert set(found) == set(scores) | {"base_with_words", "words_over_base", "words_over_bm25", "asked"}
    less = found["with_words"]["score"] - found["base_with_words"]["score"]
    assert found["words_over_base"]["score"] == pytest.approx(less)
    assert found["asked"].startswith("the first sentence of a document finds the rest of it: 60 queries")
    shown = str(scored_run)
    assert shown.startswith("Search: nDCG@10")
    assert "The next sentence: MRR@10" in shown
    assert scores["difference"]["score"] == pytest.approx(scores["trained"]["score"] - scores["base"]["score"])
    assert scores["difference"]["low"] <= scores["difference"]["score"] <= scores["difference"]["high"]
    assert scores["over_tfidf"]["score"] == pytest.approx(scores["trained"]["score"] - scores["tfidf"]["score"])
    assert scored_run.record["config"]["corpus"]["sentences"] == 600 - 120
    assert len(scored_run.neighbours) == 3
    for entry in scored_run.neighbours:
        for side in ("before", "after"):
            cosines = [found["cosine"] for found in entry[side]]
            assert cosines == sorted(cosines, reverse=True)
            assert entry["sentence"] not in [found["sentence"] for found in entry[side]]


def test_errors_are_raised_not_printed(base, tmp_path, capsys):
    with pytest.raises(SettingsError, match="did you mean 'learning_rate'"):
        selfsent.train(["a b", "c d"], base=base, output=tmp_path / "run", lerning_rate=1)
    with pytest.raises(SelfsentError, match="only one distinct text"):
        selfsent.train(["a b", "a b"], base=base, output=tmp_path / "run")
    with pytest.raises(RunError, match="holds no finished run"):
        selfsent.load_run(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


def test_pairs_are_kept_apart_and_scored_by_search(base, tmp_path):
    words = tiny.make_sentences(600, seed=4)
    (tmp_path / "pairs.csv").write_text("a,b\n" + "".join(f"{words[n]},{words[n + 300]}\n" for n in range(300)))
    corpus = selfsent.read_corpus(tmp_path / "pairs.csv", text_columns=("a", "b"))
    heard = []
    run = selfsent.train(
        corpus, None, base, tmp_path / "run", steps=2, batch_size=8, progress=tiny.heard(notice=heard.append)
    )
    assert run.record["config"]["corpus"]["sentences"] == 240
    assert "kept aside to score by: 60 rows, which share no text with the others; training on 240 rows" in heard
    assert run.scores is None
    assert run.search_scores["asked"] == "a text of “a” finds its “b”: 60 queries among 300 texts"
    assert {"with_words", "bm25", "words_over_bm25", "over_tfidf"} < set(run.search_scores)
    assert len(run.neighbours) == 3
    assert selfsent.load_run(run.directory).search_scores == run.search_scores
    assert str(run).startswith("Search: nDCG@10")
    card = (run.directory / "model" / "README.md").read_text()
    for shown in (card, (run.directory / "report.html").read_text(), run._repr_html_()):
        assert "a text of “a” finds its “b”: 60 queries among 300 texts" in shown
    everything = selfsent.train(corpus, "mnrl", base, tmp_path / "all", steps=1, batch_size=8, hold_out=0, quiet=True)
    assert (everything.record["config"]["corpus"]["sentences"], everything.search_scores) == (300, None)


def test_scores_of_an_earlier_version_are_read(scored_run, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(scored_run.directory, old)
    scores = json.loads((old / "scores.json").read_text())
    del scores["search"]
    (old / "scores.json").write_text(json.dumps(scores))
    run = selfsent.load_run(old)
    assert (run.scores, run.search_scores) == (scored_run.scores, None)
    assert str(run).startswith("The next sentence: MRR@10")
    assert "<h2>The next sentence" in run._repr_html_()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")
def test_no_file_of_a_run_stays_open(base, tmp_path):
    def opened():
        return {place for file in Path("/proc/self/fd").iterdir() if (place := os.path.realpath(file)).startswith("/")}

    before = opened()
    gc.disable()  # a program with much in memory may not collect for many runs
    try:
        for number in range(2):
            texts = tiny.make_sentences(40, seed=number)
            selfsent.train(texts, "simcse", base, tmp_path / str(number), steps=1, batch_size=8)
        after = opened()
    finally:
        gc.enable()
    assert {place for place in after - before if str(tmp_path) in place or "tokens-" in place} == set()


def test_a_run_stands_wherever_a_model_can_be_named(scored_run, with_documents, tmp_path):
    from selfsent.index import Index
    from selfsent.scorers.load_scorer import load_scorer
    from selfsent.search import encode_to_file, search

    texts = with_documents.texts()[:3]
    expected = scored_run.model.encode(texts)
    assert load_scorer(scored_run)(texts) == pytest.approx(expected, abs=1e-5)
    assert selfsent.encode(scored_run, texts) == pytest.approx(expected, abs=1e-5)
    (hits,) = selfsent.search(scored_run, with_documents, texts[:1], 2, lexical_weight=0)
    assert (hits[0].row, hits[0].dense_score) == (0, pytest.approx(1))
    again = selfsent.train(
        texts * 3 + tiny.make_sentences(20), "simcse", scored_run, tmp_path / "r", steps=1, quiet=True
    )
    assert again.record["config"]["base"] == str(scored_run.directory)
    few = selfsent.read_corpus(texts)
    assert encode_to_file(scored_run, few, str(tmp_path / "v.npy")).rows == 3
    assert [hits[0][0] for hits in search(scored_run, few, texts, 1)] == [0, 1, 2]
    with pytest.raises(SettingsError, match="SentenceTransformer is no encoder of selfsent: give its directory"):
        search(scored_run.model, few, texts)
    with pytest.raises(SelfsentError, match="does not exist"):
        Index("nowhere.index")


def test_train_leaves_random_numbers_and_what_transformers_says_alone(base, tmp_path):
    import torch
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_info()
    logging.enable_progress_bar()
    try:
        torch.manual_seed(5)
        before = torch.get_rng_state()
        selfsent.train(tiny.make_sentences(20), "simcse", base, tmp_path / "r", steps=1, batch_size=4, quiet=True)
        assert (torch.get_rng_state() == before).all()
        assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (logging.INFO, True)
    finally:
        logging.set_verbosity(verbosity)
        if not bars:
            logging.disable_progress_bar()


def test_a_result_is_shown_as_a_table_and_heard(scored_run, with_documents):
    from selfsent.progress import Progress

    class Mine(Progress):
        heard = ()

        def notice(self, line):
            self.heard += (line,)

    mine = Mine()
    result = selfsent.evaluate(scored_run, documents=with_documents, progress=mine)
    assert mine.heard == ("context",)
    assert repr(result) == str(result)
    assert result._repr_markdown_() == result.to_markdown()


def test_views_that_were_made_of_one_text_are_no_pairs_to_be_searched(base, tmp_path):
    heard = []
    told = tiny.heard(notice=heard.append)
    corpus, common = tiny.make_sentences(300, seed=5), {"steps": 1, "batch_size": 8, "progress": told}
    run = selfsent.train(corpus, "simcse", base, tmp_path / "run", augmentations=[f"mlm:model={base}"], **common)
    assert run.search_scores is None
    assert run.record["config"]["corpus"]["sentences"] == 300
    assert any(line.startswith("no label-free score: each text is one sentence") for line in heard)


def test_public_names_are_functions_that_say_what_they_take():
    assert dir(selfsent) == sorted(selfsent.__all__)
    assert all(getattr(selfsent, name) is not None for name in selfsent.__all__)
    names = inspect.signature(selfsent.train).parameters
    assert {"augmentations", "preset", "learning_rate", "dev"} < names.keys()
    assert not {"clock", "scorer"} & names.keys()


def test_a_method_is_given_by_its_options_or_its_name(base, tmp_path):
    texts, common = tiny.make_sentences(40), {"steps": 1, "batch_size": 8, "quiet": True}
    for method, temperature in ((SimCSE(temperature=0.1), 0.1), ("simcse", 0.05)):
        run = selfsent.train(texts, method, base, tmp_path / str(temperature), **common)
        assert run.record["config"]["options"]["temperature"] == temperature


def test_vectors_pairs_and_groups(base):
    corpus = selfsent.read_corpus(["ba de fi go", "ko mi", "la nu po", "Ba de fi go"])
    assert selfsent.encode(base, ["ba", "de"]).shape == (2, 32)
    best, *_ = selfsent.pairs(base, corpus, top=2)
    assert (best.first, best.second) == (0, 3)
    assert selfsent.cluster(base, corpus, 2).sizes.sum() == 4
    texts = ["ba de fi go", "ko mi", "la nu po"]
    for number, text in enumerate(texts):
        groups = selfsent.cluster(base, selfsent.read_corpus([*texts, "", text]), 3)
        assert groups.cluster[number] == groups.cluster[4] == 0, "the largest is that of the row that is there twice"
        assert (groups.sizes.tolist(), groups.cluster[3], len(groups.cluster)) == ([2, 1, 1], -1, 5)
    with pytest.raises(SettingsError, match="`lexical_weight` is -1"):
        selfsent.pairs(base, corpus, lexical_weight=-1)


def test_the_warranty_gives_the_encoder_back(base_of, tmp_path, monkeypatch):
    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    lines, told = tiny.make_sentences(400, seed=3, words=(6, 12)), []
    corpus = selfsent.read_corpus([{"text": t, "d": n // 4} for n, t in enumerate(lines)], document_column="d")
    given = {"steps": 2, "batch_size": 8, "hold_out": 40, "warranty": 0.3}
    given["progress"] = tiny.heard(notice=told.append)
    run = selfsent.train(corpus, "neighbours", base_of("static"), tmp_path / "run", learning_rate=10.0, **given)
    found = run.record["warranty"]
    assert found["alpha"] == 0  # so high a rate breaks the table
    assert "Keep your model; rank with words" in str(run)
    assert any(line.startswith("warranty: Keep your model") for line in told)
    weights = [path / "model.safetensors" for path in (base_of("static"), run.directory / "model")]
    assert weights[0].read_bytes()[-4096:] == weights[1].read_bytes()[-4096:]  # after the header, which has a checksum
    assert (run.directory / "trained" / "model.safetensors").is_file()

    record = json.loads((run.directory / "run.json").read_text())  # killed after the model was put aside
    record = {key: value for key, value in record.items() if key not in ("warranty", "checksum")}
    (run.directory / "run.json").write_text(json.dumps({**record, "status": "trained"}))
    shutil.rmtree(run.directory / "model")
    again = selfsent.train(
        corpus, "neighbours", base_of("static"), run.directory, resume=True, learning_rate=10.0, **given
    )
    assert again.record["warranty"] == found
    with pytest.raises(SettingsError, match="documents kept apart"):
        selfsent.train(tiny.make_sentences(40), "simcse", base_of("bert"), tmp_path / "none", warranty=0.3, steps=1)
