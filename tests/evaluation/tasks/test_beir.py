import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tiny
from selfsent.errors import DataError, SelfsentError, SettingsError
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks.beir import read_task, read_tasks

CORPUS = [("d1", "Cars", "red  and blue"), ("d10", "", "the rain"), ("7", "Snow", ""), ("q3", "", "cold winds")]
QUERIES = [("q1", "red cars"), ("q2", "rain"), ("q3", "cold winds"), ("q4", "nobody asks")]
JUDGED = [("q1", "d1", 2), ("q1", "7", 1), ("q2", "d10", 1), ("q2", "d1", 0), ("q3", "7", 1)]
BEIR = (("_id", "title", "text"), ("_id", "text"), ("query-id", "corpus-id", "score"))
OURS = (("id", "title", "text"), ("id", "text"), ("query", "document", "grade"))


def write(path, names, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), path)
        return
    lines = [json.dumps(dict(zip(names, row))) for row in rows]
    if ".tsv" in path.name:
        lines = ["\t".join(map(str, row)) for row in ([names] if names else []) + rows]
    text = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def written(folder, names=BEIR, ending=".jsonl", judged=".tsv", split="test", heading=True):
    write(folder / f"corpus{ending}", names[0], CORPUS)
    write(folder / f"queries{ending}", names[1], QUERIES)
    write(folder / "qrels" / f"{split}{judged}", names[2] if heading else (), JUDGED)
    return folder


def figures(task, model):
    return evaluate(model, retrieval=[task]).scores["retrieval"].to_json()


@pytest.mark.parametrize(
    "layout",
    [
        {"ending": ".jsonl.gz", "judged": ".tsv.gz"},
        {"heading": False},
        {"judged": ".jsonl"},
        {"names": OURS},
        {"names": OURS, "ending": ".parquet", "judged": ".parquet"},
        {"ending": ".parquet", "judged": ".parquet"},
    ],
    ids=str,
)
def test_every_layout_is_the_same_set(tmp_path, layout, model):
    plain, other = read_task(written(tmp_path / "a" / "set")), read_task(written(tmp_path / "b" / "set", **layout))
    assert plain.queries == ["red cars", "rain", "cold winds"]
    assert plain.documents == ["Cars red and blue", "the rain", "Snow", "cold winds"]
    assert plain.grades == [{0: 2, 2: 1}, {1: 1, 0: 0}, {2: 1}]
    assert (other.queries, other.documents, other.grades) == (plain.queries, plain.documents, plain.grades)
    assert figures(other, model) == figures(plain, model)


def test_a_query_that_is_a_document_is_left_out_by_id_and_text(tmp_path, model):
    task = read_task(written(tmp_path))
    assert task.itself == [-1, -1, 3]
    assert figures(task, model)["score"] < 100
    lines = [{"_id": "d1", "text": "one"}, {"_id": "q3", "title": None, "text": "two"}, {"_id": 7, "title": "Three"}]
    tiny.write_table(tmp_path / "corpus.jsonl", lines)
    task = read_task(tmp_path)
    assert task.documents == ["one", "two", "Three"]  # titles may come late and be null
    assert task.itself == [-1, -1, -1]  # both are merely called q3


def test_what_does_not_fit_together_is_told(tmp_path, model):
    written(tmp_path)
    write(tmp_path / "corpus.jsonl", BEIR[0], [("d1", "", "an older text"), *CORPUS])
    rows = [*JUDGED, ("q1", "gone", 1), ("q2", "gone", 1), ("lost", "d1", 1)]
    write(tmp_path / "qrels" / "test.tsv", BEIR[2], rows)
    score = evaluate(model, retrieval=tmp_path).scores["retrieval"]
    assert score.n == 3
    assert score.warnings == (
        "retrieval: document with an id that a later one has (1)",
        "retrieval: judged document that is not there (1)",
        "retrieval: judged query without text, left out (1)",
    )
    task = read_task(tmp_path)
    assert len(task.documents) == len(CORPUS)
    assert task.grades[0] == {0: 2, 2: 1, 4: 1}


def test_several_sets_go_by_the_names_of_their_folders(tmp_path, model):
    places = [written(tmp_path / name) for name in ("one", "two")]
    assert [task.name for task in read_tasks(places)] == ["retrieval-one", "retrieval-two"]
    result = evaluate(model, retrieval=places)
    titles = [f"retrieval-{name}: nDCG@10 on {name}, test" for name in ("one", "two")]
    assert [score.title for score in result.scores.values()] == titles
    with pytest.raises(SettingsError, match="have one name"):
        read_tasks([tmp_path / "one", written(tmp_path / "more" / "one")])
    (tmp_path / "retrieval.csv").write_text("query,text\na,b\nc,d\n")
    with pytest.raises(SettingsError, match="would go by the name retrieval"):
        evaluate(model, retrieval=places[0], relevance=tmp_path / "retrieval.csv")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("corpus.jsonl", "", "corpus.jsonl is empty, or has no column _id or id"),
        ("corpus.jsonl", '{"_id": "d1"}\n', "corpus.jsonl is empty, or has no column text"),
        ("corpus.jsonl", '{"_id": "d1", "text": 5}\n', "corpus.jsonl, row 1: its text is no text"),
        ("corpus.jsonl", '{"_id": "d1", "text": "a"}\n{"text": "b"}\n', "corpus.jsonl, row 2: _id is empty"),
        ("corpus.jsonl", '{"_id": "d1", "text": "a"}\n{"_id', "corpus.jsonl, line 2: not a JSON object"),
        ("corpus.jsonl", '{"_id": "d1", "text": "a"}\n', "1 document to search in; at least two are needed"),
        ("corpus.parquet", "PAR1 and nothing", "corpus.parquet cannot be read as parquet; fetch it again"),
        ("qrels/test.tsv", "q1\td1\tmuch\nq1\td1\tmany\n", "the grade 'many' of d1 for q1 is no number"),
        ("qrels/test.tsv", "q1\td1\n", "line 1: expected query-id, corpus-id, score, separated by tabs"),
        ("qrels/test.tsv", "q1\t5\t1\nz\td1\t1\n", "judges no document for a query that are both there"),
        ("qrels/test.tsv", "q1\td1\t0\n", "no query has an answer"),
        ("qrels/test.tsv", "", "test.tsv is empty, or has no column query-id or query or qid"),
    ],
)
def test_a_damaged_set_is_one_line(tmp_path, file, content, message):
    written(tmp_path / "set")
    (tmp_path / "set" / "corpus.jsonl").unlink() if file == "corpus.parquet" else None
    (tmp_path / "set" / file).write_text(content)
    with pytest.raises(SelfsentError, match=message) as caught:
        read_task(tmp_path / "set")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_in_a_whole_parquet_file(tmp_path):
    written(tmp_path, ending=".parquet")
    broken = pa.array([b"a\xff", b"b"]).cast(pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 2, broken.buffers())
    pq.write_table(pa.table({"id": ["d1", "d10"], "text": texts}), tmp_path / "corpus.parquet")
    with pytest.raises(DataError, match=r"corpus.parquet cannot be read"):
        read_task(tmp_path)


def test_what_is_not_there_is_named(tmp_path):
    written(tmp_path / "set")
    written(tmp_path / "set", split="dev")
    with pytest.raises(DataError, match=r"set has no judgements qrels/train; there are dev, test$"):
        read_task(tmp_path / "set", split="train")
    with pytest.raises(DataError, match=r"nothing: no such folder$"):
        read_task(tmp_path / "nothing")
    with pytest.raises(DataError, match="org/nothing: no such folder, and the hub cannot be reached and its cache"):
        read_task("org/nothing")
    assert read_task("set", split="dev", mirror=tmp_path).of == "set, dev"  # a mirror comes before the hub
    (tmp_path / "set" / "queries.jsonl").unlink()
    with pytest.raises(DataError, match=r"set has no queries.jsonl, nor queries.parquet"):
        read_task(tmp_path / "set")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The library `datasets` itself, which finds its data sets in a folder in the place of the hub."""
    import datasets

    real = datasets.load_dataset

    def load(name, config=None, split=None):
        return real(str(tmp_path / "hub" / name), config, split=split, cache_dir=str(tmp_path / "cache"))

    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    monkeypatch.setattr("datasets.load_dataset", load)
    return tmp_path / "hub"


def repository(folder, configs):
    """A data set as the hub has it: config -> split -> (names, rows)."""
    about = ["---", "configs:"]
    for config, splits in configs.items():
        about += [f"- config_name: {config}", "  data_files:"]
        for split, (names, rows) in splits.items():
            write(folder / config / f"{split}.parquet", names, rows)
            about += [f"  - split: {split}", f"    path: {config}/{split}.parquet"]
    (folder / "README.md").write_text("\n".join([*about, "---", ""]))


NUMBERED = [(query[1:], document, float(grade)) for query, document, grade in JUDGED]


@pytest.mark.parametrize("kind", ["beir", "mteb", "mteb of now", "a part"])
def test_sets_of_the_hub_as_beir_and_mteb_have_them(hub, tmp_path, kind, model):
    part = "de-" if kind == "a part" else ""
    texts = {
        f"{part}corpus": {"corpus": (BEIR[0], CORPUS)},
        f"{part}queries": {"queries": (BEIR[1], [(query[1:], text) for query, text in QUERIES])},
    }
    judged = {"train": (BEIR[2], [("4", "d1", 1)]), "test": (BEIR[2], NUMBERED)}
    if kind == "mteb of now":
        queries = [(query[1:], text) for query, text in QUERIES]
        splits = {"dev": (OURS[0], CORPUS[:2]), "test": (OURS[0], CORPUS)}
        texts = {"corpus": splits, "queries": {"test": (OURS[1], queries)}}
    own = {"beir": None, "mteb": "default"}.get(kind, f"{part}qrels")
    repository(hub / "org" / "set", texts | ({own: judged} if own else {}))
    if kind == "beir":
        repository(hub / "org" / "set-qrels", {"default": judged})
    task = read_task("org/set:de" if part else "org/set")
    assert task.documents == ["Cars red and blue", "the rain", "Snow", "cold winds"]
    assert task.grades == [{0: 2, 2: 1}, {1: 1, 0: 0}, {2: 1}]
    with pytest.raises(DataError, match=r"has no judgements 'dev'; there are train, test$"):
        read_task("org/set:de" if part else "org/set", split="dev")
