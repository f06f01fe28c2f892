import gc
import json
import os
import shutil
import sqlite3
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tiny
from naive import words as naive
from selfsent.data.corpus import read_corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.errors import DataError, OutputError, SelfsentError, SettingsError
from selfsent.index import Index, compaction, write_index
from selfsent.index.calibration import Calibration, read_calibrations, write_calibration
from selfsent.index.conditions import condition
from selfsent.index.files import MANIFEST, SUMS, IndexFiles
from selfsent.index.limits import LIMITS, IndexLimits
from selfsent.index.rows import PostingsWriter, RowWriter
from selfsent.index.snapshot import Snapshot
from selfsent.index.writer import check_index_output
from selfsent.integrity import signed
from selfsent.lexical import Analyzer, analyzer
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.search import encode_to_file, search
from selfsent.search.ivf import IVF

TICKETS = [
    {"id": "t0", "team": "sales", "n": 1, "open": True, "created": "2024-01-09 10:00", "text": "ba de fi"},
    {"id": "t1", "team": "it", "n": 2, "open": False, "created": "2024-01-31 23:00", "text": "ko mi"},
    {"id": "t2", "team": "it", "n": 3, "open": True, "created": "2024-02-01 07:00", "text": "ba de fi"},
    {"id": "t3", "team": "a, b", "n": 10, "open": None, "created": None, "text": "la nu po"},
    {"id": "t4", "team": None, "n": None, "open": False, "created": "2025-01-01 00:00", "text": "ri sa te"},
]
CARRIED = ("id", "team", "n", "open", "created")


@pytest.fixture(params=["in the database", "in lists"])
def limits(request):
    """Limits that leave the vectors of tests in the database, or put those of a new index into lists."""
    return LIMITS if request.param == "in the database" else IndexLimits(max_unindexed=20, max_compared=3)


@pytest.fixture
def made(encoder, tmp_path):
    """Makes an index of rows."""

    def make(rows=TICKETS, metadata_columns=CARRIED, id_column="id", name="i", limits=LIMITS, **how):
        corpus = read_corpus(rows, metadata_columns=metadata_columns, cache=tmp_path / "cache", min_rows=1, **how)
        write_index(encoder, corpus, tmp_path / name, "name", fingerprint(encoder), id_column=id_column, limits=limits)
        return Index(tmp_path / name, limits)

    return make


@pytest.fixture
def built(encoder, tmp_path):
    """Builds an index of a corpus."""

    def build(corpus, limits=LIMITS, **how):
        write_index(encoder, corpus, tmp_path / "i", "name", fingerprint(encoder), limits=limits, **how)
        return Index(tmp_path / "i", limits)

    return build


def texts_of(index):
    """All rows of an index, as the database holds them."""
    with sqlite3.connect(IndexFiles(index.path).rows) as db:
        return [text for (text,) in db.execute("SELECT text FROM inputs JOIN texts USING(doc_id) ORDER BY number")]


def with_ids(letter, texts, folder):
    """A corpus of texts with the ids letter0, letter1 and so on."""
    path = tiny.write_table(
        folder / "rows.jsonl", [{"id": f"{letter}{n}", "text": text} for n, text in enumerate(texts)]
    )
    return read_corpus(path, metadata_columns=("id",), cache=folder, min_rows=1)


@pytest.fixture
def rows(sentences, tmp_path_factory):
    """A corpus with ids, an empty and a repeated text."""
    return with_ids("t", [*sentences[:40], "", sentences[3]], tmp_path_factory.mktemp("rows"))


@pytest.fixture
def more(sentences, tmp_path_factory):
    return with_ids("m", [sentences[3], *sentences[40:60], sentences[45]], tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize("weight", [0, 0.5, 3])
def test_an_index_ranks_as_a_search_of_the_texts(encoder, rows, sentences, tmp_path, weight, limits):
    how = {"id_column": "id", "limits": limits}
    assert write_index(encoder, rows, tmp_path / "i", "name", fingerprint(encoder), **how) == (40, 0, 0)
    index = Index(tmp_path / "i", limits)
    index.check_model(fingerprint(encoder), "name")
    queries = [sentences[3], sentences[60], "ba de fi", "nothing of it"]
    found = index.search(encode(encoder, queries), 5, queries, weight)
    for mine, exact in zip(found, search(encoder, rows, queries, 5, lexical_weight=weight), strict=True):
        assert [(hit.row, hit.id) for hit in mine] == [(hit.row, hit.id) for hit in exact]
        np.testing.assert_allclose([hit[1:4] for hit in mine], [hit[1:4] for hit in exact], atol=1e-3)
    assert (found[0][0].row, found[0][0].id) == (3, "t3")
    assert index.describe(found[0][:1]) == [{"row": 3, "id": "t3", "repeats": 1, "text": sentences[3]}]
    assert index.texts([7, 3]) == [sentences[7], sentences[3]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i"]


def test_words_are_those_of_all_texts(encoder, rows, sentences, built):
    index, terms = built(rows, language="none"), [Analyzer()(text) for text in sentences[:40]]
    [everything] = index.search(encode(encoder, ["ba de de fi xq"]), 60, ["ba de de fi xq"])
    shared = [naive.bm25_share(Analyzer()("ba de de fi xq"), terms[hit.row], terms) for hit in everything]
    assert [hit.lexical_score for hit in everything] == pytest.approx(shared, abs=1e-5)
    assert max(shared) > 0
    assert {hit.lexical_score for hit in index.search(encode(encoder, ["ba"]), 5)[0]} == {0}


@pytest.mark.parametrize("mend", ["compact", "add"])
def test_texts_are_stemmed_again_after_an_update(encoder, rows, more, built, monkeypatch, mend):
    with monkeypatch.context() as before:
        before.setattr(analyzer, "_RULES", 0)
        before.setitem(analyzer._OWN_STEMS, "korean", lambda word: word + "x")
        index = built(rows, language="korean")
        assert not index.has_old_words
        assert index.search(encode(encoder, ["fi"]), 5, ["fi"])[0][0].lexical_score > 0
        write_calibration(index.path, Calibration((1.0,), (0.0,), 0.0, "made up", 40, 40))
    index = Index(index.path)
    assert index.has_old_words
    assert {hit.lexical_score for hit in index.search(encode(encoder, ["fi"]), 5, ["fi"])[0]} == {0}
    index.compact() if mend == "compact" else index.upsert(more, encoder)
    assert not index.has_old_words
    assert not read_calibrations(index.path)  # of other scores
    [hits] = index.search(encode(encoder, ["fi"]), 60, ["fi"])
    found = {text for hit, [text] in ((hit, index.texts([hit])) for hit in hits) if hit.lexical_score}
    assert found == {text for text in texts_of(index) if "fi" in text.split()}


def test_the_best_by_words_are_candidates(encoder, rows, sentences, built, limits):
    index = built(rows, replace(limits, candidates=1), min_recall=0.01)
    far = sentences[int(np.argmin(encode(encoder, sentences[:40]) @ encode(encoder, [sentences[5]])[0]))]
    [[best]] = index.search(encode(encoder, [sentences[5]]), 1, [far], lexical_weight=100)
    assert index.texts([best]) == [far]


@pytest.mark.parametrize(("candidates", "more"), [(8, 0), (300, 1)], ids=["same words", "nearly the same"])
@pytest.mark.parametrize("weight", [30, 1000])
def test_cosines_decide_among_texts_with_nearly_the_same_words(
    encoder, tmp_path, built, limits, candidates, more, weight
):
    draw, words = np.random.default_rng(0), ["ba", "de", "fi", "ko", "mi", "la"]
    texts = [" ".join([*draw.permutation(words), *["nu"] * (more * i // 3)]) for i in range(60)]
    corpus = read_corpus([*texts, "po ri"], cache=tmp_path / "cache", min_rows=1)
    index = built(corpus, replace(limits, candidates=candidates), min_recall=1, language="none")
    queries = ["fi", "la ko"]
    found = index.search(encode(encoder, queries), 5, queries, weight)
    exact = search(encoder, corpus, queries, 5, lexical_weight=weight, language="none")
    assert [[hit.row for hit in mine] for mine in found] == [[hit.row for hit in each] for each in exact]
    np.testing.assert_allclose([hit[1:4] for hit in found[0]], [hit[1:4] for hit in exact[0]], atol=1e-3)


def test_no_vectors_are_searched_where_words_decide(encoder, rows, sentences, built, monkeypatch):
    index, queries = built(rows, IndexLimits(max_unindexed=20)), [sentences[3], sentences[7]]
    vectors, searched, whole = encode(encoder, queries)[::-1], [], IVF.search
    monkeypatch.setattr(IVF, "search", lambda ivf, asked, *how: searched.append(len(asked)) or whole(ivf, asked, *how))
    hits = index.search(vectors, 1, queries, lexical_weight=1000)
    assert [[hit.row for hit in each] for each in hits] == [[3], [7]]
    assert not searched
    mixed = ["nothing of it", *queries]
    hits = index.search(encode(encoder, mixed), 1, mixed, lexical_weight=1000)
    assert [hit.row for [hit] in hits][1:] == [3, 7]
    assert searched == [1]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (None, "t0 t1 t3 t4"),
        ("team=it", "t1 t2"),
        ("team=sales,it", "t0 t1"),
        ('team="a, b"', "t3"),
        ("team=", "t4"),
        ("team!=it", "t0 t3 t4"),
        ("n>=2", "t1 t2 t3"),
        ("n<2", "t0"),
        ("n=10.0", "t3"),
        ("open=true", "t0"),
        ("created<=2024-01", "t0 t1"),
        ("created>2024-01-31", "t2 t4"),
        (["created>=2024-01-31", "created<2024-02-01"], "t1"),
        (["team=it", "n>2"], "t2"),
        ("team=nobody", ""),
    ],
)
def test_conditions_hold_before_texts_are_ranked(encoder, made, where, ids):
    for max_compared in (10, 0):
        index = made(name=f"i{max_compared}", limits=IndexLimits(max_compared=max_compared))
        [hits] = index.search(encode(encoder, ["ba de fi"]), 5, ["ba de fi"], where=where)
        assert sorted(hit.id for hit in hits) == ids.split()
    again = {row["id"]: row["repeats"] for row in index.describe(hits, where)}
    assert again.get("t0", 0) == (where in (None, "team=sales,it", "open=true"))


@pytest.mark.parametrize(
    ("where", "complaint"),
    [
        ("team", "'team' is no condition"),
        ("stage=x", "no column 'stage'; there are"),
        ("n>many", "'many' is no value of n, a column of int"),
        ("open=perhaps", "'perhaps' is no value of open, a column of bool"),
        ("text=ko", "no column 'text'"),
    ],
)
def test_conditions_that_are_none(encoder, made, where, complaint):
    with pytest.raises(SettingsError, match=complaint):
        made().search(encode(encoder, ["ba"]), where=where)


def test_names_of_columns_are_no_sql():
    columns = {"row": int, 'x"; DROP': str, "Team": str, "team": str}
    assert condition(['x"; DROP=1', "team=2"], columns) == ("(0 OR c0 IN (?)) AND (0 OR c2 IN (?))", ["1", "2"])


def test_a_row_takes_the_place_of_those_with_its_id(encoder, made, sentences, limits):
    first = [{**TICKETS[0], "id": f"t{n}", "text": text} for n, text in enumerate(sentences[:30])]
    index = made(first, limits=limits)
    changed = [
        {**TICKETS[0], "id": "t3", "text": "pa pe pi"},
        {**TICKETS[0], "id": "t4", "text": ""},
        {**TICKETS[0], "id": "t5", "text": sentences[6]},
        {**TICKETS[0], "id": "new", "text": "pa pe po"},
        {**TICKETS[0], "id": "new", "text": "pa pe pu"},
    ]
    assert index.upsert(changed, encoder) == (3, 1, 4)
    assert (len(index), index.rows) == (29, 35)
    assert texts_of(index) == [*sentences[:3], *sentences[6:30], "pa pe pi", sentences[6], "pa pe pu"]
    vectors = encode(encoder, ["pa pe pi", sentences[3]])
    (hit, *_), others = index.search(vectors, 40, ["pa pe pi", sentences[3]])
    assert (hit.id, hit.row) == ("t3", 30)
    assert sentences[3] not in index.texts(others)
    assert "pa pe po" not in index.texts(others)
    assert index.describe([6])[0]["repeats"] == 1
    left = [{"id": "x", "text": text} for text in index.texts(others)]
    exact = made(left, metadata_columns=("id",), id_column=None, name="again", limits=limits)
    [mine], [theirs] = (each.search(vectors[:1], 9, ["pa pe pi"], 0.5) for each in (index, exact))
    assert index.texts(mine) == exact.texts(theirs)
    np.testing.assert_allclose([hit.lexical_score for hit in mine], [hit.lexical_score for hit in theirs], atol=1e-6)


def test_deleted_rows_are_gone(encoder, made, sentences, limits):
    first = [{**TICKETS[0], "id": n, "text": text} for n, text in enumerate([*sentences[:30], sentences[7]])]
    index = made(first, limits=limits)
    assert index.delete([3, "7", "nobody", 99]) == 2
    vectors = encode(encoder, [sentences[3], sentences[7]])
    found, same = index.search(vectors, 40, [sentences[3], sentences[7]])
    assert sentences[3] not in index.texts(found)
    assert (same[0].id, same[0].row, len(index)) == (30, 30, 29)
    assert index.delete([30]) == 1
    assert len(index) == 28
    assert index.upsert([{**TICKETS[0], "id": 3, "text": sentences[3]}], encoder) == (1, 0, 0)
    [[hit, *_], _] = index.search(vectors, 1)
    assert (hit.id, hit.row) == (3, 31)
    with pytest.raises(DataError, match="holds no row 7, or no longer"):
        index.describe([7])
    with pytest.raises(SettingsError, match="a list of ids"):
        index.delete("3")
    with pytest.raises(SettingsError, match="has no ids: make it again with `id_column`"):
        made(name="plain", id_column=None).delete(["t1"])


def test_a_compacted_index_is_as_one_made_anew(encoder, made, sentences, limits):
    index = made([{**TICKETS[0], "id": n, "text": text} for n, text in enumerate(sentences[:40])], limits=limits)
    index.delete(range(0, 10, 3))
    index.upsert([{**TICKETS[1], "id": n, "text": sentences[n]} for n in (40, 41)], encoder)
    queries = [sentences[3], sentences[41], "ba de"]
    vectors = encode(encoder, queries)
    before, files = index.search(vectors, 50, queries), IndexFiles(index.path).manifest["files"]
    index.compact()
    after = index.search(vectors, 50, queries)
    assert IndexFiles(index.path).manifest["files"] != files
    new, old = ([[hit[:1] + hit[4:] for hit in hits] for hits in each] for each in (after, before))
    assert new == old
    for mine, theirs in zip(after, before, strict=True):
        np.testing.assert_allclose([hit[1:4] for hit in mine], [hit[1:4] for hit in theirs], atol=1e-6)
    with sqlite3.connect(IndexFiles(index.path).rows) as db:
        assert db.execute("SELECT COUNT(*) FROM tombstones").fetchone() == (0,)
        assert db.execute("SELECT COUNT(*), COUNT(DISTINCT term) FROM postings").fetchone()[0] > 0
    assert sorted(path.name for path in index.path.parent.iterdir()) == ["cache", "i"]
    assert index.rows == 42


@pytest.mark.parametrize("due", [{"max_tombstones_share": 20}, {"max_unindexed": 0}, {"max_blocks": 1}], ids=str)
def test_an_index_compacts_itself(encoder, made, sentences, due):
    rows = [{**TICKETS[0], "id": n, "text": text} for n, text in enumerate(sentences[:40])]
    index = made(rows, limits=IndexLimits(**due, unindexed_share=1000))
    files = IndexFiles(index.path).manifest["files"]
    index.upsert([{**TICKETS[1], "id": n, "text": sentences[n + 40]} for n in range(5)], encoder)
    assert IndexFiles(index.path).manifest["files"] != files
    assert len(index) == 40


def test_an_open_index_sees_what_others_write(encoder, made, sentences):
    index = made()
    other, query = Index(index.path), encode(encoder, ["pa pe pi"])
    with other.snapshot():
        index.upsert([{**TICKETS[0], "id": "new", "text": "pa pe pi"}], encoder)
        assert len(other) == 4
        assert other.search(query, 1)[0][0].id != "new"
    assert (len(other), other.search(query, 1)[0][0].id) == (5, "new")
    with other.snapshot():
        before = other.search(query, 5)
        index.compact()
        index.delete(["t1"])
        assert other.search(query, 5) == before
        assert len(other.describe(before[0])) == 5
    assert len(other) == 4
    made(TICKETS[:2], name=index.path.name)
    assert (len(other), len(index)) == (2, 2)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed on Linux alone")
def test_files_before_a_compaction_are_given_up_by_idle_threads_too(made):
    index = made()
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(len, index).result() == len(index) == 4
        index.delete(["t1"])
        index.compact()
        assert len(index) == 3
        files = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    own = [each for each in files if each.startswith(str(index.path.parent))]
    assert own
    assert not [each for each in own if each.endswith("(deleted)")]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed on Linux alone")
def test_an_index_that_is_dropped_gives_up_its_files_without_a_garbage_collection(encoder, made):
    index = made()
    index.search(encode(encoder, ["x"]), 2, ["x"])
    gc.disable()
    try:
        path = str(index.path)
        del index
        files = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    finally:
        gc.enable()
    assert not [each for each in files if each.startswith(path) and not each.endswith(".sqlite")]


def test_many_threads_search_while_one_writes(encoder, made, sentences):
    index = made([{**TICKETS[0], "id": n, "text": text} for n, text in enumerate(sentences[:30])])
    queries = sentences[:8]
    vectors, faults, done = encode(encoder, queries), [], threading.Event()

    def read():
        try:
            while not done.is_set():
                with index.snapshot():
                    for hits in index.search(vectors, 40, queries):
                        rows = index.describe(hits)
                        assert len({row["id"] for row in rows}) == len(rows) == len(index)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(6):
        index.upsert([{**TICKETS[0], "id": n, "text": f"{sentences[30 + n]} {n}"}], encoder)
        index.delete([29 - n])
        if n % 3 == 0:
            index.compact()
    done.set()
    for thread in threads:
        thread.join()
    assert faults == []


def test_split_texts_are_found_by_row_and_sentence(encoder, made):
    rows = [{"id": 7, "text": "Ba de fi. Ko mi lo."}, {"id": 8, "text": "Ko mi lo. La nu po."}]
    index = made(rows, ("id",), split_sentences=True)
    [[hit]] = index.search(encode(encoder, ["La nu po."]), 1)
    assert (hit.row, hit.id, hit.sentence) == (1, 8, 1)
    assert index.describe([hit]) == [{"row": 1, "sentence": 1, "id": 8, "repeats": 0, "text": "La nu po."}]
    assert index.upsert([{"id": 7, "text": "Pa pe. Ko mi lo."}], encoder) == (1, 1, 1)
    assert texts_of(index) == ["Ko mi lo.", "La nu po.", "Pa pe.", "Ko mi lo."]


def test_a_text_is_found_once_by_its_best_passage(encoder, made, limits):
    long = " ".join(f"ba de fi gu ha ke la mo nu po {'ri sa te' if number == 7 else 'vu wi'}." for number in range(12))
    short = [{"id": f"s{number}", "text": f"ri mo {'ko ' * number}"} for number in range(9)]
    rows = [{"id": "l", "text": long}, *short]
    index = made(rows, ("id",), passages=25, limits=limits)
    assert index.part == "passage"
    assert index.reading["passages"] == 25
    query = "ri sa te"
    [hits] = index.search(encode(encoder, [query], side="query"), texts=[query], top=10)
    assert sorted(hit.id for hit in hits) == sorted(row["id"] for row in rows)
    [found] = index.describe([next(hit for hit in hits if hit.id == "l")])
    assert "ri sa te" in found["text"]
    corpus = read_corpus(rows, metadata_columns=("id",), passages=25)
    [expected] = search(encoder, corpus, [query], language="none", lexical_weight=index.lexical_weight)
    assert [(hit.id, hit.sentence) for hit in hits] == [(hit.id, hit.sentence) for hit in expected]
    index.upsert([{"id": "l", "text": "only this"}], encoder)
    assert texts_of(index).count("only this") == 1
    assert len(texts_of(index)) == len(rows)
    index.delete(["l"])
    assert len(texts_of(index)) == len(rows) - 1
    whole = read_corpus(rows, metadata_columns=("id",))
    with pytest.raises(SettingsError, match=r"has the columns|made with passages=25, and not with no passages"):
        index.upsert(whole, encoder)
    with pytest.raises(SettingsError, match="made with passages=25, and not with passages=30"):
        index.upsert(read_corpus(rows, metadata_columns=("id",), passages=30), encoder)


def test_a_text_of_many_passages_keeps_no_other_out(encoder, made):
    words = tiny.make_sentences(700, seed=3, words=(3, 3))
    long = " ".join(f"{each.capitalize()} ri sa te ri sa te ri." for each in words)
    rows = [{"id": "long", "text": long}, *({"id": f"s{n}", "text": f"{each} ko."} for n, each in enumerate(words[:9]))]
    query, corpus = "ri sa te", read_corpus(rows, metadata_columns=("id",), passages=10)
    index = made(rows, ("id",), passages=10)
    assert len(index) > 600
    [hits] = index.search(encode(encoder, [query], side="query"), texts=[query], top=5)
    [expected] = search(encoder, corpus, [query], 5, language="none", lexical_weight=index.lexical_weight)
    assert [hit.id for hit in hits] == [hit.id for hit in expected]
    assert len(hits) == 5


def test_rows_are_those_of_the_table(encoder, tmp_path):
    frame = pd.DataFrame({"id": ["a", "b", "c", "d"], "text": ["ko", "", "ko", "ba de"]})
    for metadata_columns, ids in (("id", ["a", "d"]), (None, [None, None])):
        corpus = read_corpus(frame, metadata_columns=metadata_columns, cache=tmp_path / "cache")
        hits = sorted(search(encoder, corpus, ["ko"])[0])
        assert [(hit.row, hit.id) for hit in hits] == [(0, ids[0]), (3, ids[1])]


def test_rows_without_ids_are_added(encoder, rows, more, sentences, built):
    index = built(rows)
    assert index.upsert(more, encoder) == (20, 1, 0)
    assert (len(index), index.rows) == (60, 42 + 22)
    hits = index.search(encode(encoder, [sentences[3], sentences[45], sentences[59]]), 1)
    assert [index.describe(each)[0] for each in hits] == [
        {"row": 3, "id": "t3", "repeats": 2, "text": sentences[3]},
        {"row": 42 + 6, "id": "m6", "repeats": 1, "text": sentences[45]},
        {"row": 42 + 20, "id": "m20", "repeats": 0, "text": sentences[59]},
    ]


def test_another_model_columns_or_cleaning_are_refused(encoder, encoder_of, rows, more, sentences, built, tmp_path):
    other, index = encoder_of("bert", initializer_range=0.4), built(rows)
    with pytest.raises(DataError, match="holds vectors of another model"):
        index.upsert(more, other)
    plain = read_corpus(sentences, metadata_columns=(), cache=tmp_path / "cache")
    with pytest.raises(SettingsError, match=r"has the columns row \(int\), id \(str\), text \(str\), and not row"):
        index.upsert(plain, encoder)
    table = [{"id": "x", "text": "ba", "subject": "ko"}]
    both = "with text_column=text, and not with text_column=subject and text_column"
    for how, complaint in (
        ({"text_column": ["subject", "text"]}, both),
        ({"clean": "urls"}, "with no clean=, and not with clean=urls: give the same"),
    ):
        other_rows = read_corpus(table, metadata_columns="id", cache=tmp_path / "cache", min_rows=1, **how)
        with pytest.raises(SettingsError, match=complaint):
            index.upsert(other_rows, encoder)
    assert len(index) == 40


def test_whole_or_not_at_all(encoder, rows, more, built, tmp_path, monkeypatch):
    index, output = built(rows), tmp_path / "i"
    before = {path.name: path.read_bytes() for path in output.iterdir() if path.suffix in (".json", ".sqlite")}

    def killed(*_):
        raise KeyboardInterrupt

    for owner, name in ((RowWriter, "replace"), (PostingsWriter, "flush")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, killed)
            with pytest.raises(KeyboardInterrupt):
                index.upsert(more, encoder)
        assert len(index) == 40
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "make_lookups", killed)
        with pytest.raises(KeyboardInterrupt):
            index.compact()
    del index
    left = {path.name: path.read_bytes() for path in output.iterdir() if path.suffix in (".json", ".sqlite")}
    assert left == before
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


def test_a_file_of_vectors_saves_encoding(encoder, rows, tmp_path, monkeypatch):
    encode_to_file(encoder, rows, tmp_path / "v.npy")
    monkeypatch.setattr("selfsent.search.vectors.encode_stream", None)
    stored = VectorsFile(tmp_path / "v.npy")
    assert write_index(encoder, rows, tmp_path / "i", "name", "f", file=stored).new == 40


def test_places_that_cannot_be_used(rows, built, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x").touch()
    for path in ("file", "other"):
        with pytest.raises(OutputError, match="is not an index of selfsent"):
            check_index_output(tmp_path / path, add=False, overwrite=True)
        with pytest.raises(DataError, match="holds no index: make one with"):
            Index(tmp_path / path)
    built(rows)
    with pytest.raises(OutputError, match="already holds an index: add to it"):
        check_index_output(tmp_path / "i", add=False, overwrite=False)
    check_index_output(tmp_path / "i", add=False, overwrite=True)
    about = json.loads((tmp_path / "i" / MANIFEST).read_text())
    (tmp_path / "i" / MANIFEST).write_text(json.dumps(about | {"version": 1}))
    with pytest.raises(DataError, match="another version of selfsent: make it again with selfsent index build name"):
        Index(tmp_path / "i")


def test_an_index_that_cannot_be_written_is_searched(encoder, made):
    index = made()
    for path in (*index.path.iterdir(), index.path):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert len(Index(index.path).search(encode(encoder, ["ko mi"]), 2)[0]) == 2
    finally:
        index.path.chmod(0o755)


def test_columns_of_another_order_or_look_are_added(encoder, sentences, built, tmp_path):
    def table(name, rows):
        (tmp_path / name).write_text("a,b,text\n" + "".join(f"{a},{b},{text}\n" for a, b, text in rows))
        return tmp_path / name

    first, later = table("1.csv", [("x1", 1, sentences[0]), ("x2", 2, sentences[1])]), table("2.csv", [(5, 3, "ko mi")])
    first, later = (
        read_corpus(path, metadata_columns=metadata_columns, cache=tmp_path, min_rows=1)
        for path, metadata_columns in ((first, ("a", "b")), (later, ("b", "a")))
    )
    index = built(first)
    index.upsert(later, encoder)
    assert [(told["a"], told["b"]) for told in index.describe([0, 1, 2])] == [("x1", 1), ("x2", 2), ("5", 3)]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("file", [0, 1, MANIFEST])
def test_a_changed_byte_is_found(encoder, rows, more, built, tmp_path, limits, file, large):
    built(rows, limits)
    files = json.loads((tmp_path / "i" / MANIFEST).read_text())["files"]
    if file == 1 and len(files) == 1:
        pytest.skip("all vectors are in the database")
    path = tmp_path / "i" / (file if file == MANIFEST else files[file])
    data = bytearray(path.read_bytes())
    for damaged in (b"", data[: len(data) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(SelfsentError, match=r"damaged|holds no index"):
            Index(tmp_path / "i")
    if file == MANIFEST:
        return
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))
    if large:
        index = Index(tmp_path / "i", replace(limits, verified_on_opening=0))
        with pytest.raises(DataError, match="damaged"):
            index.upsert(more, encoder)
    else:
        with pytest.raises(DataError, match=rf"damaged \({path.name} is not as it was written\)"):
            Index(tmp_path / "i")


def test_a_write_reads_no_file_again_that_is_as_old_as_its_checksum_and_a_compaction_reads_all(
    encoder, rows, more, built, tmp_path
):
    limits = IndexLimits(max_unindexed=20, verified_on_opening=0)
    built(rows, limits)
    copy = shutil.copytree(tmp_path / "i", tmp_path / "copy")  # of files that this process has not seen
    index, vectors = Index(copy, limits), copy / IndexFiles(copy).manifest["files"][1]
    data, about = bytearray(vectors.read_bytes()), vectors.stat()
    data[len(data) // 2] ^= 4
    vectors.write_bytes(bytes(data))
    os.utime(vectors, ns=(about.st_atime_ns, about.st_mtime_ns))
    index.upsert(more, encoder)  # which does not use it
    with pytest.raises(DataError, match=rf"damaged \({vectors.name} is not as it was written\)"):
        index.compact()
    vectors.touch()
    with pytest.raises(DataError, match=rf"damaged \({vectors.name} is not as it was written\)"):
        index.upsert(more, encoder)


def test_checksums_are_those_of_the_files_after_every_write(encoder, rows, more, built, tmp_path, limits):
    index = built(rows, limits)
    for change in (lambda: index.upsert(more, encoder), index.compact, lambda: index.upsert(more, encoder)):
        about = json.loads((tmp_path / "i" / SUMS).read_text())
        files = {name: tmp_path / "i" / name for name in json.loads((tmp_path / "i" / MANIFEST).read_text())["files"]}
        assert about["sums"] == {name: zlib.crc32(file.read_bytes()) for name, file in files.items()}
        stats = {name: [file.stat().st_size, file.stat().st_mtime_ns] for name, file in files.items()}
        assert about["stats"] == stats
        change()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (MANIFEST, '"nprobe": 1', '"nprobe": 5'),
        (SUMS, '"sums"', '"suns"'),
        (SUMS, '"version"', '"vers"'),
        (SUMS, "}", ""),
        (SUMS, '"checksum": ', '"checksum": 1'),
    ],
)
def test_changes_of_what_describes_an_index_are_found(made, tmp_path, file, old, new):
    made()
    path = tmp_path / "i" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=f"{file} is not as it was written"):
        Index(tmp_path / "i")


def test_what_a_killed_compaction_left_goes_with_the_next_change(made, tmp_path):
    index, left = made(), tmp_path / ".i.selfsent-0123abcd"
    left.mkdir()
    index.delete(["nobody"])
    assert left.exists()  # somebody may be writing it
    os.utime(left, (0, 0))
    index.delete(["nobody"])
    assert not left.exists()


@pytest.mark.parametrize("name", ["../elsewhere", "/etc/passwd", "a/b"])
def test_an_index_has_no_files_elsewhere(made, tmp_path, name):
    made()
    about = json.loads((tmp_path / "i" / MANIFEST).read_text())
    for files in ([name, *about["files"][1:]], [*about["files"][:1], name]):
        (tmp_path / "i" / MANIFEST).write_text(json.dumps(signed({**about, "files": files})))
        with pytest.raises(DataError, match="is elsewhere"):
            Index(tmp_path / "i")


def test_cosines_that_are_none_are_refused(encoder, made, monkeypatch):
    index, query = made(), encode(encoder, ["ba du"])
    for cosine in (5.4, float("nan")):
        damaged = cosine * np.sign(query)
        monkeypatch.setattr(Snapshot, "take", lambda _, doc_ids, damaged=damaged: np.tile(damaged, (len(doc_ids), 1)))
        with pytest.raises(DataError, match="its vectors are not as they were written"):
            index.search(query, 1)


def test_what_cannot_be_searched(encoder, made):
    index, vectors = made(), encode(encoder, ["ba", "de"])
    with pytest.raises(SettingsError, match="`lexical_weight` is -1"):
        index.search(vectors, 1, ["ba", "de"], lexical_weight=-1)
    with pytest.raises(SettingsError, match="put it into a list"):
        index.search(vectors, 1, "ba")
    with pytest.raises(SettingsError, match="2 vectors of queries were given, and 1 texts of them"):
        index.search(vectors, 1, ["ba"])
