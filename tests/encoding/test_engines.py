"""The same rows from every engine as from one plain process."""

import os
import random
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfsent
import tiny
from selfsent import encoding
from selfsent.encoding import BatchBands, BatchEncoder, BatchGroups, BatchStems, BatchTerms, TermCounts, count_terms
from selfsent.encoding.copies import deduplicate
from selfsent.errors import CorpusError, DataError, OutputError, SettingsError
from selfsent.index import Index, write_index
from selfsent.lexical import WordCounts
from selfsent.models.opening import open_encoder
from selfsent.search import dedup, near
from selfsent.search.comparing import DedupLimits

ENGINES = ["local", "daft", "dask", "ray", "spark"]
BANDS = DedupLimits(exact=10)


@pytest.fixture(scope="session")
def engine_of():
    """An engine by its name; those that start processes are started once."""
    started = {}

    def make(name):
        if name not in started:
            started[name] = START.get(name, getattr(encoding, name))()
        return started[name]

    yield make
    if "ray" in started:
        import ray

        ray.shutdown()
    if "spark" in started:
        from pyspark.sql import SparkSession

        SparkSession.builder.getOrCreate().stop()


def start_spark():
    pytest.importorskip("pyspark", reason="Spark is not installed (and needs Java 17)")
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 2)
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    return encoding.spark(builder.getOrCreate())


def start_ray():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init("local", num_cpus=2, object_store_memory=200 << 20, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    return encoding.ray()


def start(name):
    pytest.importorskip(name, reason=f"{name.title()} is not installed")
    return getattr(encoding, name)()


START = {"spark": start_spark, "ray": start_ray, "dask": partial(start, "dask"), "daft": partial(start, "daft")}
ENGINE = pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=[pytest.mark.full] * (name in ("ray", "spark"))) for name in ENGINES]
)


def texts_of(count, seed=0):
    """Texts of words, a third of which are copies of an earlier one, most with another word."""
    draw, texts = random.Random(seed), ["", "it rains", "It  rains!"]
    words = [f"word{number}" for number in range(2000)]
    while len(texts) < count:
        if draw.random() < 0.3:
            found = draw.choice(texts).split() or ["snow"]
            if draw.random() < 0.7:
                found[draw.randrange(len(found))] = draw.choice(words)
        else:
            found = draw.choices(words, k=draw.randint(3, 14))
        texts.append(" ".join(found))
    return texts


def write_rows(folder, texts, ids):
    """Two files of Parquet."""
    folder.mkdir()
    middle = len(texts) // 3
    for name, part in (("a", slice(0, middle)), ("b", slice(middle, None))):
        rows = {"id": ids[part], "text": texts[part], "team": ["sales"] * len(texts[part])}
        pq.write_table(pa.table(rows), folder / f"{name}.parquet")
    return str(folder)


def of_one_machine(source, **how):
    """The families that one machine finds among candidates from bands, as many machines do, of few texts too."""
    return dedup.deduplicate(selfsent.read_corpus(source, metadata_columns=("id",)), **how, limits=BANDS)


@ENGINE
def test_families_are_those_of_one_machine(engine, engine_of, tmp_path):
    texts = texts_of(700)
    ids = [f"T-{number:04}" for number in range(len(texts))]
    source = write_rows(tmp_path / "rows", texts, ids)
    found = deduplicate(engine_of(engine), source, str(tmp_path / "out"))
    expected = of_one_machine(source)
    assert len(expected.families) > 50
    families = pq.read_table(tmp_path / "out" / "families").to_pylist()
    scores = {(row["id"], row["kept"]): row["score"] for row in families}
    others = ((each.kept, *pair) for each in expected.families for pair in zip(each.others, each.scores, strict=True))
    assert scores == pytest.approx({(ids[other], ids[kept]): score for kept, other, score in others}, abs=1e-5)
    assert len(scores) == len(families)
    unique = pq.read_table(tmp_path / "out" / "unique")
    assert sorted(unique["id"].to_pylist()) == [ids[row] for row in expected.kept]
    assert unique.schema.names == ["id", "text", "team"]
    assert dict(zip(*unique.select(["id", "text"]).to_pydict().values(), strict=True)).items() <= {*zip(ids, texts)}
    assert (found.rows, found.kept) == (len(texts), len(unique))
    assert found.copies + found.near == len(families)
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["families", "unique"]


@ENGINE
def test_vectors_stems_terms_and_groups_are_those_of_one_process(engine, engine_of, tmp_path):
    texts = [text.replace("word1", "printers ") for text in texts_of(60)]
    source = write_rows(tmp_path / "rows", texts, [*range(len(texts))])
    run, encode = engine_of(engine), BatchEncoder("bundled")
    counts = count_terms(run, source, str(tmp_path / "counts.parquet"), language="english")
    assert counts.texts == len(texts) - 1
    groups = groups_file(tmp_path, texts)
    steps = [encode, BatchStems(language="english"), BatchTerms(counts), BatchGroups(groups, encode)]
    for number, step in enumerate(steps):
        output = tmp_path / f"out{number}"
        run(source, step, str(output))
        made = pq.read_table(output).sort_by("id")
        assert made["id"].to_pylist() == [*range(len(texts))]
        assert made.schema.names == ["id", "text", "team", step.output]
        expected = step({"text": np.array(texts, object)})[step.output]
        for one, other in zip(made[step.output].to_pylist(), expected, strict=True):
            same_value(one, other)


def same_value(one, other):
    if isinstance(one, dict):
        for name, value in one.items():
            same_value(value, other[name])
    elif isinstance(one, list) and all(isinstance(each, str) for each in one):
        assert one == list(other)
    else:
        np.testing.assert_allclose(one, other, atol=1e-6)


def groups_file(folder, texts):
    path = folder / "groups.csv"
    lines = [f"{text},{number % 2}" for number, text in enumerate(dict.fromkeys(texts[3:30]))]
    path.write_text("text,cluster\n" + "\n".join(lines) + "\n")
    return str(path)


@pytest.mark.full
def test_a_pandas_udf_of_spark(engine_of, tmp_path):
    engine_of("spark")
    from pyspark.sql import SparkSession

    texts = texts_of(20)
    rows = SparkSession.builder.getOrCreate().createDataFrame([*enumerate(texts)], "id long, text string")
    for step in (BatchEncoder("bundled"), BatchTerms(TermCounts(5, 20, np.array([]), np.array([])))):
        found = rows.withColumn("made", encoding.spark_udf(step)("text")).orderBy("id").collect()
        for row, value in zip(found, step({"text": texts})[step.output], strict=True):
            made = row["made"].asDict() if hasattr(row["made"], "asDict") else row["made"]
            same_value(made, value)


def test_an_expression_of_daft():
    daft = pytest.importorskip("daft", reason="Daft is not installed")
    texts = texts_of(20)
    rows = daft.from_pydict({"id": [*range(20)], "text": texts})
    for step in (BatchEncoder("bundled"), BatchTerms(TermCounts(5, 20, np.array([]), np.array([])))):
        found = rows.with_column("made", encoding.daft_udf(step)(daft.col("text"))).sort("id").to_pydict()["made"]
        for one, other in zip(found, step({"text": texts})[step.output], strict=True):
            same_value(one, other)


def test_terms_are_those_of_an_index(tmp_path):
    texts = [*dict.fromkeys(text for text in texts_of(200)[3:]), "word12 after word12 and word12"]
    source = write_rows(tmp_path / "rows", texts, [*range(len(texts))])
    corpus = selfsent.read_corpus(source)
    write_index(open_encoder("bundled"), corpus, tmp_path / "index", "bundled", "print", language="english")
    index = Index(tmp_path / "index")
    counts = count_terms(encoding.local(), source, str(tmp_path / "counts.parquet"), language="english")
    assert counts.stats.mean_length == pytest.approx(index.mean_length)
    made, places = BatchTerms(counts)({"text": texts})["terms"], {text: place for place, text in enumerate(texts)}
    for row in (row for rows in index.scan() for row in rows):
        found = made[places[row.text]]
        assert dict(zip(found["numbers"].tolist(), found["weights"].tolist(), strict=True)) == pytest.approx(row.terms)
    for query in ("it rains in word12 and word12", "none of these"):
        expected = index.query_weights(query)
        assert counts.query_weights(query) == pytest.approx(expected)
        assert TermCounts.read(str(tmp_path / "counts.parquet")).query_weights(query) == pytest.approx(expected)


def test_counts_of_terms_are_refused_after_an_update(tmp_path, monkeypatch):
    path = str(tmp_path / "counts.parquet")
    TermCounts(5, 20, np.array([7]), np.array([2]), "english").write(path)
    assert TermCounts.read(path).texts == 5
    monkeypatch.setattr("selfsent.lexical.analyzer._RULES", 0)
    with pytest.raises(DataError, match=r"count the terms of .*counts.parquet again"):
        TermCounts.read(path)


def test_groups_are_those_of_the_command(tmp_path, monkeypatch):
    from selfsent.cli import main

    texts = [*dict.fromkeys(text for text in texts_of(120)[3:])]
    groups = groups_file(tmp_path, texts)
    rows = "\n".join(f"{number},{text}" for number, text in enumerate([*texts, "Thank you!"]))
    (tmp_path / "new.csv").write_text("id,text\n" + rows + "\n")
    monkeypatch.chdir(tmp_path)
    command = ["cluster", "bundled", "new.csv", "--text-column", "text", "--id-column", "id", "--to", groups]
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--output", "o.jsonl"])
    expected = {row["text"]: row["cluster"] for row in tiny.rows_of(tmp_path / "o.jsonl")}
    step = BatchGroups(groups, BatchEncoder("bundled"))
    given = {"text": [*texts, "Thank you!", ""]}
    found = [row["cluster"] for row in step(given)["group"]]
    assert found == [*(expected[text] for text in [*texts, "Thank you!"]), -1]
    assert {*found} == {-1, 0, 1}
    vectors = BatchEncoder("bundled")(given)
    again = BatchGroups(groups, BatchEncoder("bundled"), vector_column="embedding")
    assert [row["cluster"] for row in again(vectors)["group"]] == found


def test_bands_are_those_of_dedup_with_the_number_of_the_band():
    texts = texts_of(50)
    counts = WordCounts(near.near_words)
    counts.add(texts)
    keys, bands = near.signatures(texts, counts), BatchBands(counts)({"text": texts})["bands"]
    assert [len(each) for each in bands] == [0, *[40] * 49]
    flat = np.concatenate([*bands])
    assert len({*flat.tolist()}) == len({(band, key) for row in keys for band, key in enumerate(row) if key})


def test_one_process_holds_a_batch_and_not_the_groups_of_rows_of_the_files(tmp_path):
    """A dataset read groups of four files ahead: 830 MB of ten million rows in sixteen files."""
    (tmp_path / "rows").mkdir()
    texts = np.random.default_rng(0).bytes(10_000_000).hex("|", 25).split("|")
    table = pa.table({"id": np.arange(400_000), "text": texts})
    for number in range(2):
        pq.write_table(table, tmp_path / "rows" / f"{number}.parquet")
    start, held = pa.total_allocated_bytes(), []

    class Watching(BatchStems):
        def array(self, *columns):
            held.append(pa.total_allocated_bytes() - start)
            return pa.array([[]] * len(columns[0]), self.type)

    encoding.local()(str(tmp_path / "rows"), Watching(), str(tmp_path / "out"))
    assert max(held) < 10 << 20 < table.nbytes
    assert pq.read_table(tmp_path / "out")["id"].to_pylist() == [*range(400_000)] * 2


def test_a_file_without_a_column_has_missing_values_there(tmp_path):
    (tmp_path / "rows").mkdir()
    pq.write_table(pa.table({"id": [1], "text": ["rain"]}), tmp_path / "rows" / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([2], pa.int32())}), tmp_path / "rows" / "b.parquet")
    encoding.local()(str(tmp_path / "rows"), BatchStems(language="english"), str(tmp_path / "out"))
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert rows == [{"id": 1, "text": "rain", "stems": ["rain"]}, {"id": 2, "text": None, "stems": []}]


def test_a_job_that_stopped_goes_on(tmp_path):
    source = write_rows(tmp_path / "rows", texts_of(80), [*range(80)])
    run, done = encoding.local(), []

    def failing(sources, step, output, by=None):
        done.append(type(step).__name__)
        if done.count("Close") == 1 and done[-1] == "Close":
            raise RuntimeError("the cluster is gone")
        run(sources, step, output, by)

    with pytest.raises(RuntimeError):
        deduplicate(failing, source, str(tmp_path / "out"))
    first, again = len(done), deduplicate(failing, source, str(tmp_path / "out"))
    assert done[first:] == ["Close", "Families", "Unique"]
    assert again == deduplicate(run, source, str(tmp_path / "other"))
    with pytest.raises(OutputError, match="exists: name another"):
        deduplicate(run, source, str(tmp_path / "out"))


def test_a_job_that_stopped_begins_again_with_other_options(tmp_path):
    source, done = write_rows(tmp_path / "rows", texts_of(80), [*range(80)]), []

    def stopping(sources, step, output, by=None):
        done.append(type(step).__name__)
        if done == ["Read", "Distinct"]:
            raise RuntimeError("the cluster is gone")
        encoding.local()(sources, step, output, by)

    with pytest.raises(RuntimeError):
        deduplicate(stopping, source, str(tmp_path / "out"))
    deduplicate(stopping, source, str(tmp_path / "out"), threshold=0.9)
    assert done[2] == "Read"


def test_a_guard_keeps_copies_apart_as_on_one_machine(tmp_path):
    texts = [f"Printer {number} on the second floor does not answer at all today" for number in (42, 42, 43)]
    texts = [*texts, "Printer 42 on the second floor does not answer at all today, sadly", *texts_of(30)]
    source = write_rows(tmp_path / "rows", texts, [*range(len(texts))])
    for guard in ([], ["numbers"], ["order"]):
        kept = deduplicate(encoding.local(), source, str(tmp_path / f"out{guard}"), guard=guard).kept
        assert kept == len(of_one_machine(source, guard=guard).kept), guard
    numbers, free = (
        pq.read_table(tmp_path / f"out{guard}" / "unique")["id"].to_pylist() for guard in (["numbers"], [])
    )
    assert 2 in numbers
    assert 2 not in free


def test_what_cannot_be_is_told_in_a_line(tmp_path):
    source, run = write_rows(tmp_path / "rows", ["a b", "b c", "c d"], [1, 2, 1]), encoding.local()
    with pytest.raises(CorpusError, match="ids of a part occur twice, such as 1"):
        deduplicate(run, source, str(tmp_path / "out"))
    for options, said in (
        ({"text_column": "body"}, "has no column 'body'; it has 'id', 'text', 'team'"),
        ({"text_column": "id"}, "names both the texts and the ids"),
        ({"text_column": "team", "id_column": "gone"}, "has no column 'gone'"),
        ({"threshold": 2}, "threshold is 2"),
        ({"guard": ["number"]}, "guard is 'number'"),
    ):
        with pytest.raises((CorpusError, SettingsError), match=said):
            deduplicate(run, source, str(tmp_path / "other"), **options)
    for step, said in (
        (BatchEncoder("bundled", "body"), "has no column 'body'"),
        (BatchEncoder("bundled", "text", "team"), "has a column 'team' already"),
    ):
        with pytest.raises((CorpusError, SettingsError), match=said):
            run(source, step, str(tmp_path / "other"))
        assert not (tmp_path / "other").exists()
    with pytest.raises(OutputError, match="exists: name another folder"):
        run(source, BatchEncoder("bundled"), source)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match="has no Parquet file"):
        deduplicate(run, str(tmp_path / "empty"), str(tmp_path / "other"))


def test_names_are_no_guard_of_a_table_whose_texts_lie_apart(tmp_path):
    with pytest.raises(SettingsError, match="guard=names needs all texts in one place"):
        deduplicate(encoding.local(), "tickets", str(tmp_path / "clean"), guard=["names"])


def test_an_engine_that_is_not_installed_is_named(monkeypatch):
    from importlib import import_module

    def without(name):
        if name.startswith("ray"):
            raise ImportError(name="ray")
        return import_module(name)

    monkeypatch.setattr("selfsent.encoding.engines.import_module", without)
    with pytest.raises(SettingsError, match=r"ray is not installed: python -m pip install 'ray\[data\]'"):
        encoding.ray()
