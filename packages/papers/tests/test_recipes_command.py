import json

import pytest

import tiny


@pytest.fixture
def pairs(tmp_path):
    """Three scored pairs of sentences as STSb has them."""
    tiny.write_parquet(
        tmp_path / "mteb" / "stsbenchmark-sts" / "test.parquet",
        sentence1=["a red car", "the tea is hot", "one two"],
        sentence2=["a red car", "a cold day", "one"],
        score=[5.0, 0.0, 3.0],
    )


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
    assert plain["repeats"] == ["TSDAE figure 4", "TSDAE figure 7"]


@pytest.mark.usefixtures("pairs")
def test_an_encoder_that_needs_no_training_is_scored_as_it_is(selfsent, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "encoder: tfidf\nevaluate: stsb\npublished: [{paper: IS-BERT, table: 4, method: SBERT-STSb}]\n"
    )
    done = selfsent("train", tmp_path / "mine.yaml", "--output", tmp_path / "run", "--data", tmp_path)
    assert done.status == 0, done.err
    assert "SBERT-STSb" in done.out
    assert "+15.33" in done.out
    assert "The model is in" not in done.out
    (row,) = json.loads(selfsent("recipes", "beside", tmp_path / "run", "--json").out)
    assert row["ours"] == pytest.approx(100.0)
    (tmp_path / "mine.yaml").write_text("encoder: tfidf\nevaluate: stsb\npublished: [{paper: BSL, table: 77}]\n")
    asked = selfsent("train", tmp_path / "mine.yaml", "--output", tmp_path / "run", "--overwrite").complaint
    assert "mine.yaml line 3: there is no published number with paper BSL, table 77" in asked
    assert (tmp_path / "run" / "evaluation.json").is_file()


@pytest.mark.usefixtures("pairs")
def test_the_papers_rows_are_below_a_suites_scores_and_in_its_json(selfsent, tmp_path, monkeypatch):
    monkeypatch.setattr("selfsent.evaluation.datasets.hub.hub_reachable", lambda: False)
    given = ("evaluate", "tfidf", "--suite", "sts", "--data", tmp_path, "--published")
    plain = json.loads(selfsent(*given, "--json", "-").out)
    rows = [row for row in plain["published"] if row["method"] == "BSL-BERT" and row["table"] == "1"]
    assert rows[0]["values"]["average"] == 72.03
    assert "BSL-BERT" in selfsent(*given).out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("recipes", "beside"), "needs the directories of runs"),
        (("recipes", "beside", ".", "--data", "."), "leave --data out"),
        (("recipes", "beside", ".", "--plot", "x.svg"), "--pairs and --plot go with words"),
        (("recipes", "beside", "."), "holds no finished run of a recipe"),
        (("recipes", "show"), "show needs the names of recipes"),
        (("recipes", "show", "tsdae_words", "--json"), "leave --json and --data out"),
        (("recipes", "no_such"), "there is no recipe 'no_such'"),
        (
            ("train", "tsdae_word", "--output", "run"),
            "there is no file and no recipe 'tsdae_word'; did you mean 'tsdae_words'?",
        ),
        (("evaluate", "bundled", "--task", "stsb", "--published"), "--published: published rows belong to a suite"),
        (("evaluate", "bundled", "--suite", "stsb-cross", "--published"), "--published: no table of the papers"),
    ],
)
def test_what_the_commands_refuse(given, said, selfsent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in selfsent(*given).complaint
