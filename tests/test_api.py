import gc
import json
import os
import shutil
from pathlib import Path

import pytest

import selfsent
import tiny
from selfsent.errors import RunError, SelfsentError, SettingsError


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
    """A corpus of 1,100 documents of two sentences."""
    lines = tiny.make_sentences(2200, seed=1)
    path = tmp_path_factory.mktemp("text") / "documents.txt"
    path.write_text("".join(f"{a}\n{b}\n\n" for a, b in zip(lines[::2], lines[1::2], strict=True)))
    return selfsent.read_corpus(path)


@pytest.fixture(scope="module")
def scored_run(with_documents, base, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "run"
    return selfsent.train(with_documents, "simcse", base, output, steps=3, batch_size=8, max_length=32, dropout=0.1)


def test_train_on_a_list_of_sentences(base, tmp_path):
    lines, steps = [], []
    run = selfsent.train(
        tiny.make_sentences(40),
        method="mlm",
        base=base,
        output=tmp_path / "run",
        steps=2,
        batch_size=8,
        progress=tiny.heard(notice=lines.append, step=lambda step, total, figures: steps.append((step, total))),
    )
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
    assert set(scored_run.search) == set(scores) | {"base_with_words", "words_over_base", "words_over_bm25", "asked"}
    less = scored_run.search["with_words"]["score"] - scored_run.search["base_with_words"]["score"]
    assert scored_run.search["words_over_base"]["score"] == pytest.approx(less)
    assert scored_run.search["asked"].startswith("the first sentence of a document finds the rest of it: 500 queries")
    shown = str(scored_run)
    assert shown.startswith("Search: nDCG@10")
    assert "The next sentence: MRR@10" in shown
    assert scores["difference"]["score"] == pytest.approx(scores["trained"]["score"] - scores["base"]["score"])
    assert scores["difference"]["low"] <= scores["difference"]["score"] <= scores["difference"]["high"]
    assert scores["over_tfidf"]["score"] == pytest.approx(scores["trained"]["score"] - scores["tfidf"]["score"])
    assert scored_run.record["asked"]["corpus"]["sentences"] == 2200 - 1000
    assert len(scored_run.neighbours) == 3
    for entry in scored_run.neighbours:
        for side in ("before", "after"):
            cosines = [found["cosine"] for found in entry[side]]
            assert cosines == sorted(cosines, reverse=True)
            assert entry["sentence"] not in [found["sentence"] for found in entry[side]]


def test_the_trained_score_is_the_score_of_the_saved_model(scored_run, with_documents):
    from_directory = selfsent.evaluate(scored_run.directory / "model", documents=with_documents)
    from_object = selfsent.evaluate(scored_run.model, documents=with_documents)
    for result in (from_directory, from_object):
        assert result.scores["context"].score == pytest.approx(scored_run.scores["trained"]["score"], abs=0.05)


def test_held_out_documents_are_not_trained_on(with_documents):
    from selfsent.evaluation.hold_out import HoldOut

    parts = HoldOut.of(with_documents, dev=False, notice=print)
    assert parts.dev is None
    train, test = (set(with_documents.documents[rows]) for rows in (parts.train, parts.test))
    assert not train & test
    assert len(train) + len(test) == 1100
    assert len(parts.train) + len(parts.test) == len(with_documents)


def test_development_documents_are_neither(tmp_path):
    from selfsent.evaluation.hold_out import HoldOut

    lines = tiny.make_sentences(3200, seed=2)
    path = tmp_path / "documents.txt"
    path.write_text("".join(f"{a}\n{b}\n\n" for a, b in zip(lines[::2], lines[1::2], strict=True)))
    corpus = selfsent.read_corpus(path)
    parts = HoldOut.of(corpus, dev=True, notice=print)
    groups = [set(corpus.documents[rows]) for rows in (parts.train, parts.dev, parts.test)]
    assert [len(group) for group in groups] == [600, 500, 500]
    assert len(set.union(*groups)) == 1600
    assert HoldOut.of(corpus, dev=False, notice=print).test.tolist() == parts.test.tolist()


def test_errors_are_raised_not_printed(base, tmp_path, capsys):
    with pytest.raises(SettingsError, match="did you mean 'learning_rate'"):
        selfsent.train(["a b", "c d"], base=base, output=tmp_path / "run", lerning_rate=1)
    with pytest.raises(SelfsentError, match="only one distinct text"):
        selfsent.train(["a b", "a b"], base=base, output=tmp_path / "run")
    with pytest.raises(RunError, match="holds no finished run"):
        selfsent.load_run(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


def test_a_corpus_is_not_read_before_the_rest_is_checked(tmp_path):
    def corpus():
        raise AssertionError("read too early")

    with pytest.raises(SettingsError, match="no method"):
        selfsent.train(corpus, "tsdea", output=tmp_path / "run")
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="lies in, a file"):
        selfsent.train(corpus, output=tmp_path / "file")


def test_pairs_are_kept_apart_and_scored_by_search(base, tmp_path):
    words = tiny.make_sentences(600, seed=4)
    (tmp_path / "pairs.csv").write_text("a,b\n" + "".join(f"{words[n]},{words[n + 300]}\n" for n in range(300)))
    corpus = selfsent.read_corpus(tmp_path / "pairs.csv", text_columns=("a", "b"))
    heard = []
    run = selfsent.train(
        corpus, None, base, tmp_path / "run", steps=2, batch_size=8, progress=tiny.heard(notice=heard.append)
    )
    assert run.record["asked"]["corpus"]["sentences"] == 240
    assert "kept aside to score by: 60 rows, which share no text with the others; training on 240 rows" in heard
    assert run.scores is None
    assert run.search["asked"] == "a text of “a” finds its “b”: 60 queries among 300 texts"
    assert {"with_words", "bm25", "words_over_bm25", "over_tfidf"} < set(run.search)
    assert run.figures["search"] == run.search["with_words"]["score"]
    assert len(run.neighbours) == 3
    assert selfsent.load_run(run.directory).search == run.search
    assert str(run).startswith("Search: nDCG@10")
    card = (run.directory / "model" / "README.md").read_text()
    for shown in (card, (run.directory / "report.html").read_text(), run._repr_html_()):
        assert "a text of “a” finds its “b”: 60 queries among 300 texts" in shown
    everything = selfsent.train(corpus, "mnrl", base, tmp_path / "all", steps=1, batch_size=8, hold_out=0, quiet=True)
    assert (everything.record["asked"]["corpus"]["sentences"], everything.search) == (300, None)


def test_scores_of_an_earlier_version_are_read(scored_run, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(scored_run.directory, old)
    scores = json.loads((old / "scores.json").read_text())
    del scores["search"]
    (old / "scores.json").write_text(json.dumps(scores))
    run = selfsent.load_run(old)
    assert (run.scores, run.search) == (scored_run.scores, None)
    assert str(run).startswith("The next sentence: MRR@10")
    assert "<h2>The next sentence" in run._repr_html_()


def test_who_presses_tab_is_offered_public_names_alone():
    import selfsent

    assert dir(selfsent) == sorted(selfsent.__all__)


def test_a_notebook_is_shown_the_page_of_a_run(base_of, tmp_path):
    texts = tiny.make_sentences(40)
    run = selfsent.train(texts, "mlm", base_of("bert"), tmp_path / "run", steps=4, batch_size=8, quiet=True)
    assert (run.directory / "report.html").is_file()
    assert repr(run) == str(run)
    assert '<td class="text">mlm</td>' in run._repr_html_()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")
def test_no_file_of_a_run_stays_open(base, tmp_path):
    def opened():
        return {place for file in Path("/proc/self/fd").iterdir() if (place := os.path.realpath(file)).startswith("/")}

    before = opened()
    gc.disable()  # a program with much in memory may not collect for many runs
    try:
        for number in range(2):
            texts = tiny.make_sentences(40, seed=number)
            selfsent.train(texts, "simcse", base, tmp_path / str(number), steps=1, batch_size=8, map_points=0)
        after = opened()
    finally:
        gc.enable()
    assert {place for place in after - before if str(tmp_path) in place or "tokens-" in place} == set()


def test_a_run_stands_wherever_a_model_can_be_named(scored_run, with_documents, tmp_path):
    from selfsent.evaluation.encoders import as_encoder
    from selfsent.search import Index, encode_to_file, search

    texts = with_documents.texts()[:3]
    expected = scored_run.model.encode(texts)
    assert as_encoder(scored_run)(texts) == pytest.approx(expected, abs=1e-5)
    again = selfsent.train(
        texts * 3 + tiny.make_sentences(20), "simcse", scored_run, tmp_path / "r", steps=1, quiet=True
    )
    assert again.record["asked"]["base"] == str(scored_run.directory)
    few = selfsent.read_corpus(texts)
    assert encode_to_file(scored_run, few, str(tmp_path / "v.npy")).rows == 3
    assert [hits[0][0] for hits in search(scored_run, few, texts, 1)] == [0, 1, 2]
    with pytest.raises(SettingsError, match="SentenceTransformer is no encoder of selfsent: give the directory"):
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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("text_column", r"it belongs to the corpus: train\(read_corpus\(..., text_column=...\), ...\)"),
        ("map", "it is `map_points`"),
        ("track", "it is `trackers`"),
        ("settings", "the preset is `preset`"),
        ("seeds", "selfsent.over_seeds"),
    ],
)
def test_names_of_the_command_line_lead_to_those_of_python(name, said, tmp_path):
    with pytest.raises(SettingsError, match=said):
        selfsent.train(["a b", "c d"], output=tmp_path / "r", quiet=True, **{name: "x"})


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
    selfsent.evaluate(scored_run, documents=with_documents, progress=mine, quiet=True)
    assert len(mine.heard) == 1


def test_so_does_a_run_where_bases_and_teachers_are_named(scored_run, tmp_path):
    from selfsent.comparison.trials import known_bases
    from selfsent.methods import get_method

    assert [base.name for base in known_bases(scored_run, print)] == [str(scored_run.directory)]
    assert get_method("distil").options(teacher=scored_run).teachers == (str(scored_run.directory),)


def test_views_that_were_made_of_one_text_are_no_pairs_to_be_searched(base, tmp_path):
    heard = []
    told = tiny.heard(notice=heard.append)
    corpus, common = tiny.make_sentences(300, seed=5), {"steps": 1, "batch_size": 8, "progress": told}
    run = selfsent.train(corpus, "simcse", base, tmp_path / "run", views=f"mlm:model={base}", **common)
    assert run.search is None
    assert run.record["asked"]["corpus"]["sentences"] == 300
    assert any(line.startswith("no label-free score: the corpus has no documents") for line in heard)
