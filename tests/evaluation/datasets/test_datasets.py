import pytest

from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import DataSet, Store, checked, fingerprint

TOY = DataSet("toy", "org/toy", 2)
PAIRS = {"sentence1": ["a b", "c"], "sentence2": ["a", "d"], "score": [4.0, 1.0]}


def test_mirror_is_read_and_counts_agree(write):
    rows = Store(write("org/toy/test.parquet", **PAIRS)).load(TOY)
    assert rows["sentence1"] == ["a b", "c"]
    assert (len(rows), rows.warnings) == (2, ())
    assert "subset" not in rows


def test_environment_names_the_mirror(write, monkeypatch):
    monkeypatch.setenv("SELFSENT_DATA", str(write("org/toy/test.parquet", **PAIRS)))
    assert len(Store().load(TOY)) == 2


def test_config_is_a_folder_and_columns_can_be_renamed(write):
    toy = DataSet("toy-de", "org/toy", 1, config="de", split="dev", columns={"sentence1": "eins"})
    assert Store(write("org/toy/de/dev.parquet", eins=["x"])).load(toy)["sentence1"] == ["x"]


def test_wrong_row_count_is_a_warning_that_names_the_set(write):
    mirror = write("org/toy/test.parquet", **{name: values[:1] for name, values in PAIRS.items()})
    assert Store(mirror).load(TOY).warnings == ("toy has 1 rows here, 2 as published",)


def test_unknown_content_is_a_warning(write):
    toy = DataSet("toy", "org/toy", 2, hashes=("000000",))
    (warning,) = Store(write("org/toy/test.parquet", **PAIRS)).load(toy).warnings
    assert "toy has content" in warning
    assert "000000" in warning


def test_content_is_not_compared_where_rows_are_missing(write):
    toy = DataSet("toy", "org/toy", 3, hashes=("000000",))
    assert Store(write("org/toy/test.parquet", **PAIRS)).load(toy).warnings == ("toy has 2 rows here, 3 as published",)


def test_rows_without_a_score_are_dropped():
    rows = checked(TOY, {**PAIRS, "score": [float("nan"), 1.0]})
    assert rows["sentence1"] == ["c"]
    assert checked(TOY, {**PAIRS, "score": [2.0, None]})["sentence1"] == ["a b"]


def test_publisher_files_are_read_when_there_is_no_parquet(write, tmp_path):
    def publisher(root):
        return {"text": (root / "toy.txt").read_text().split()} if (root / "toy.txt").exists() else None

    toy = DataSet("toy", "org/toy", 2, publisher=publisher, hub=False)
    with pytest.raises(DataError, match="toy is absent"):
        Store(tmp_path).load(toy)
    (tmp_path / "toy.txt").write_text("x y")
    assert Store(tmp_path).load(toy)["text"] == ["x", "y"]


@pytest.mark.parametrize("hub", [True, False])
def test_absent_set_says_what_is_missing_and_where_it_belongs(tmp_path, hub):
    with pytest.raises(DataError, match=r"toy is absent: .* does not hold org/toy/test.parquet") as caught:
        Store(tmp_path).load(DataSet("toy", "org/toy", 2, hub=hub))
    assert "\n" not in str(caught.value)


def test_no_mirror_says_how_to_give_one(monkeypatch):
    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    with pytest.raises(DataError, match="--data or SELFSENT_DATA"):
        Store().load(TOY)


def test_missing_column_lists_the_columns(write):
    mirror = write("org/toy/test.parquet", sentence1=["a"], other=["b"])
    with pytest.raises(DataError, match="lacks the column sentence2; it has sentence1, other"):
        Store(mirror).load(TOY)


def test_broken_file_and_missing_folder_are_one_line(tmp_path):
    (tmp_path / "org/toy").mkdir(parents=True)
    (tmp_path / "org/toy/test.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        Store(tmp_path).load(TOY)
    with pytest.raises(DataError, match="is not a folder"):
        Store(tmp_path / "nowhere")


def test_fingerprint_depends_on_every_text_and_not_on_subset():
    base = fingerprint(PAIRS)
    assert base == fingerprint({**PAIRS, "subset": ["x", "y"]}) == fingerprint(dict(reversed(PAIRS.items())))
    assert base != fingerprint({**PAIRS, "score": [4.0, 1.5]})
    assert base != fingerprint({**PAIRS, "sentence1": ["a", "b c"]})
    assert len(base) == 6


def test_each_set_is_read_once(write, tmp_path):
    store = Store(write("org/toy/test.parquet", **PAIRS))
    first = store.load(TOY)
    (tmp_path / "org/toy/test.parquet").unlink()
    assert store.load(TOY) is first


@pytest.mark.parametrize("name", ["sts12", "stsb", "stsb-dev", "sts17-en-ar", "cr", "mrpc-test", "twitterpara"])
def test_the_mirror_holds_known_copies(mirror, name):
    from selfsent.evaluation.tasks import sts, transfer, useb

    every = (*sts.STS, sts.STSB_DEV, *sts.STS17, *(p for t in transfer.TRANSFER for p in t.parts), useb.TWITTERPARA)
    (dataset,) = (each for each in every if each.name == name)
    assert dataset.hashes
    assert Store(mirror).load(dataset).warnings == ()
