import json

import pytest


def test_all_recipes_are_listed_with_what_they_need(selfsent, tmp_path):
    done = selfsent("recipes", "--data", tmp_path)
    assert done.status == 0, done.err
    assert "is_bert_nli: IS-BERT-NLI" in done.out
    assert "repeats: BSL 1, IS-BERT 1" in done.out
    assert "missing: sickr-test" in done.out


def test_of_one_recipe_its_variants_and_where_the_data_is(selfsent, tmp_path):
    done = selfsent("recipes", "tsdae_supervised", "--data", tmp_path)
    assert done.status == 0, done.err
    assert "twitterpara" in done.out
    said = " ".join(done.out.split())
    assert "Not here: askubuntu: its authors publish it at github.com/UKPLab/useb" in said


def test_a_recipe_is_printed_as_it_is(selfsent, tmp_path):
    done = selfsent("recipes", "show", "tsdae_words")
    (tmp_path / "mine.yaml").write_text(done.out)
    own = selfsent("recipes", tmp_path / "mine.yaml", "--json", "--data", tmp_path)
    (plain,) = json.loads(own.out)
    assert plain["repeats"] == ["TSDAE figure 4"]


def test_an_encoder_that_needs_no_training_is_scored_as_it_is(selfsent, tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"sentence1": ["a red car", "the tea is hot", "one two"], "sentence2": ["a red car", "a cold day", "one"]}
    (tmp_path / "mteb" / "stsbenchmark-sts").mkdir(parents=True)
    pq.write_table(pa.table(rows | {"score": [5.0, 0.0, 3.0]}), tmp_path / "mteb" / "stsbenchmark-sts" / "test.parquet")
    (tmp_path / "mine.yaml").write_text(
        "encoder: tfidf\nevaluate: stsb\npublished: [{paper: IS-BERT, table: 4, method: SBERT-STSb}]\n"
    )
    done = selfsent("train", tmp_path / "mine.yaml", "--output", tmp_path / "run", "--data", tmp_path)
    assert done.status == 0, done.err
    assert "SBERT-STSb" in done.out
    assert "+15.33" in done.out
    assert "The model is in" not in done.out
    (row,) = json.loads((tmp_path / "run" / "beside.json").read_text())
    assert row["ours"] == pytest.approx(100.0)
    assert json.loads(selfsent("recipes", "beside", tmp_path / "run", "--json").out) == [row]


def test_runs_are_put_beside_the_papers_rows(selfsent, tmp_path):
    assert "needs the directories of runs" in selfsent("recipes", "beside").complaint
    assert "leave --data out" in selfsent("recipes", "beside", tmp_path, "--data", tmp_path).complaint
    done = selfsent("recipes", "beside", tmp_path)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "holds no finished run of a recipe" in done.err
    recipe = selfsent("recipes", "show", "tsdae_baselines").out
    (tmp_path / "bm25").mkdir()
    (tmp_path / "bm25" / "recipe.yaml").write_text(recipe)
    (tmp_path / "bm25" / "run.json").write_text(json.dumps({"status": "finished", "asked": {"variant": "BM25"}}))
    scores = {task: {"score": 70.0 + place} for place, task in enumerate(("twitterpara", "askubuntu"))}
    (tmp_path / "bm25" / "evaluation.json").write_text(json.dumps({"scores": scores}))
    told = selfsent("recipes", "beside", tmp_path / "bm25")
    assert told.status == 0
    assert "TSDAE table 2: BM25" in told.out
    assert "TwitterPara" in told.out
    plain = json.loads(selfsent("recipes", "beside", tmp_path / "bm25", "--json").out)
    assert sorted(row["ours"] for row in plain) == [70.0, 71.0]
