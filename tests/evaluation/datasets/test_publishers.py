import json

import pytest

from selfsent.errors import DataError
from selfsent.evaluation.datasets import publishers as p


@pytest.fixture
def put(tmp_path):
    def write(path, text, encoding="utf-8"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text.encode(encoding))
        return tmp_path

    return write


READERS = [
    p.read_twitterpara,
    p.read_askubuntu,
    p.read_cqadupstack,
    p.read_scidocs,
    p.read_afs,
    p.read_bws,
    p.read_sick,
    lambda root: p.read_trec(root, "TREC_10.label"),
]


@pytest.mark.parametrize("reader", READERS)
def test_absent_files_are_none(reader, tmp_path):
    assert reader(tmp_path) is None


def test_twitterpara(put):
    put(
        p.USEB / "twitterpara/Twitter_URL_Corpus_test.txt",
        "a cat \tthe cat \t(4,6)\thttp://x\n\nb\tc\t(0,6)\thttp://y\n",
    )
    root = put(p.USEB / "twitterpara/test.data", "7\ttopic\td e\td f\t3\tx/y\tz\n")
    assert p.read_twitterpara(root) == {
        "sentence1": ["a cat", "b", "d e"],
        "sentence2": ["the cat", "c", "d f"],
        "score": [4.0, 0.0, 3.0],
        "subset": ["twitterurl", "twitterurl", "pit"],
    }


def test_askubuntu_is_in_bm25_order_and_skips_queries_without_gold(put):
    put(p.USEB / "askubuntu/text_tokenized.txt", "".join(f"{n}\ttitle {n}\tbody\n" for n in range(1, 6)))
    root = put(p.USEB / "askubuntu/test.txt", "1\t3\t2 3 4\t1.5 0.5 9.0\n5\t\t2 3\t1 2\n")
    assert p.read_askubuntu(root) == {
        "query": ["1", "1", "1"],
        "sentence1": ["title 1"] * 3,
        "sentence2": ["title 4", "title 2", "title 3"],
        "relevant": [0, 0, 1],
    }


def test_askubuntu_names_a_question_without_text(put):
    put(p.USEB / "askubuntu/text_tokenized.txt", "1\ttitle\tbody\n")
    with pytest.raises(DataError, match="lacks the question 2"):
        p.read_askubuntu(put(p.USEB / "askubuntu/test.txt", "1\t2\t2\t1.0\n"))


def test_cqadupstack(put):
    put(p.USEB / "cqadupstack/corpus.json", json.dumps({"gis": {"q": "how", "a": "how to", "b": "why"}}))
    root = put(p.USEB / "cqadupstack/retrieval_split.json", json.dumps({"valid": {}, "test": {"gis": {"q": ["a"]}}}))
    assert p.read_cqadupstack(root) == {
        "forum": ["gis"] * 3,
        "id": ["q", "a", "b"],
        "text": ["how", "how to", "why"],
        "relevant": ["a", "", ""],
    }


def test_scidocs_keeps_untitled_candidates_and_drops_untitled_queries(put):
    corpus = {"q": {"title": "Q"}, "a": {"title": "A"}, "b": {"title": None}, "r": {"title": ""}}
    test = {"cite": {"q": {"a": 1, "b": 1}, "r": {"a": 1}}}
    columns = p.read_scidocs(put(p.USEB / "scidocs/data.json", json.dumps({"corpus": corpus, "test": test})))
    assert columns["query"] == ["q", "q"]
    assert columns["sentence2"] == ["A", ""]
    assert columns["relevant"] == [1, 1]


def test_afs_is_latin_1_with_score_first_and_sentences_last(put):
    heading = ",".join(f"column{number}" for number in range(11)) + "\n"
    for key, score in (("DP", 1), ("GC", 2), ("GM", 3)):
        row = f'{score}.5,{"x," * 8}"na\u00efve, {key}","second"\n'
        root = put(f"argument-similarity/afs/ArgPairs_{key}.csv", heading + row, "iso-8859-1")
    columns = p.read_afs(root)
    assert columns["sentence1"] == ["na\u00efve, DP", "na\u00efve, GC", "na\u00efve, GM"]
    assert columns["sentence2"] == ["second"] * 3
    assert columns["score"] == [1.5, 2.5, 3.5]
    assert columns["subset"] == ["death penalty", "gun control", "gay marriage"]


def test_bws(put):
    path = "argument-similarity/bws/BWS_Argument_Similarity_Corpus.csv"
    columns = p.read_bws(put(path, 'topic,argument1,argument2,score,extra\nCloning,"a, b",c,0.25,x\n'))
    assert columns == {"sentence1": ["a, b"], "sentence2": ["c"], "score": [0.25], "subset": ["Cloning"]}
    with pytest.raises(DataError, match="lacks the column argument1"):
        p.read_bws(put(path, "topic,score\na,1\n"))


def test_sick(put):
    text = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n1\ta\tb\t4.5\tNEUTRAL\n"
    columns = p.read_sick(put("SentEval/SICK/SICK_test_annotated.txt", text))
    assert columns == {"sentence1": ["a"], "sentence2": ["b"], "score": [4.5]}


def test_trec(put):
    root = put("SentEval/TREC/TREC_10.label", "NUM:dist How far is \u00e9 ?\nDESC:def What is x ?\n", "iso-8859-1")
    assert p.read_trec(root, "TREC_10.label") == {"text": ["How far is \u00e9 ?", "What is x ?"], "label": [5, 1]}
    with pytest.raises(DataError, match="none of the classes"):
        p.read_trec(put("SentEval/TREC/TREC_10.label", "XYZ:dist How far ?\n"), "TREC_10.label")


def test_short_lines_and_wrong_encodings_name_the_place(put):
    with pytest.raises(DataError, match=r"SICK_test_annotated.txt, line 2: 2 fields"):
        p.read_sick(put("SentEval/SICK/SICK_test_annotated.txt", "a\tb\tc\td\n1\ta\n"))
    with pytest.raises(DataError, match="is not utf-8"):
        p.read_sick(put("SentEval/SICK/SICK_test_annotated.txt", "a\tb\tc\u00e9\td\n", "iso-8859-1"))
    with pytest.raises(DataError, match="is not JSON"):
        p.read_scidocs(put(p.USEB / "scidocs/data.json", "{"))


def test_the_mirrors_table_equals_the_publishers_files(mirror):
    from selfsent.evaluation.datasets.declared import Store
    from selfsent.evaluation.tasks.useb import TWITTERPARA

    table = Store(mirror).load(TWITTERPARA)
    assert table.warnings == ()
    assert p.read_twitterpara(mirror) == {name: table[name] for name in ("sentence1", "sentence2", "score", "subset")}
