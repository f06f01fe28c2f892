import pytest

from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import DataSet, Store, checked, fingerprint
from selfsent.evaluation.suites import TASKS

TOY = DataSet("toy", "org/toy", 2)
PAIRS = {"sentence1": ["a b", "c"], "sentence2": ["a", "d"], "score": [4.0, 1.0]}


def test_mirror_is_read_once(write, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_DATA", str(write("org/toy/test.parquet", **PAIRS)))
    store = Store()
    rows = store.load(TOY)
    assert rows["sentence1"] == ["a b", "c"]
    assert (len(rows), rows.warnings) == (2, ())
    assert "subset" not in rows
    (tmp_path / "org/toy/test.parquet").unlink()
    assert store.load(TOY) is rows


def test_config_is_a_folder_and_columns_can_be_renamed(write):
    toy = DataSet("toy-de", "org/toy", 1, config="de", split="dev", columns={"sentence1": "eins"})
    assert Store(write("org/toy/de/dev.parquet", eins=["x"])).load(toy)["sentence1"] == ["x"]


def test_what_is_not_as_published_is_a_warning():
    assert checked(DataSet("toy", "", 3, known="000000"), PAIRS).warnings == ("toy has 2 rows here, 3 as published",)
    (warning,) = checked(DataSet("toy", "", 2, known="000000"), PAIRS).warnings
    assert warning.startswith("toy has content ")
    assert "known copies have 000000" in warning


def test_rows_without_a_score_are_dropped():
    for score, text in (([float("nan"), 1.0], "c"), ([2.0, None], "a b")):
        assert checked(TOY, {**PAIRS, "score": score})["sentence1"] == [text]


def test_publisher_files_are_read_when_there_is_no_parquet(tmp_path):
    toy = DataSet(
        "toy", "org/toy", 2, hub=False, reader=lambda path: {"text": path.read_text().split()}, files=("toy.txt",)
    )
    missing = r"toy is absent: .* does not hold org/toy/test.parquet, nor toy.txt, and no hub has it"
    with pytest.raises(DataError, match=missing):
        Store(tmp_path).load(toy)
    assert not toy.is_in(tmp_path)
    (tmp_path / "toy.txt").write_text("x y")
    assert Store(tmp_path).load(toy)["text"] == ["x", "y"]
    assert toy.is_in(tmp_path)


def test_what_cannot_be_read_is_one_line(write, tmp_path, monkeypatch):
    with pytest.raises(
        DataError, match=r"toy is absent: .* does not hold org/toy/test.parquet, and the hub "
    ) as caught:
        Store(tmp_path).load(TOY)
    assert "\n" not in str(caught.value)
    mirror = write("org/toy/test.parquet", sentence1=["a"], other=["b"])
    with pytest.raises(DataError, match="lacks the column sentence2; it has sentence1, other"):
        Store(mirror).load(TOY)
    (tmp_path / "org/toy/test.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        Store(tmp_path).load(TOY)
    with pytest.raises(DataError, match="is not a folder"):
        Store(tmp_path / "nowhere")
    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    with pytest.raises(DataError, match=r"data.? or SELFSENT_DATA"):
        Store().load(TOY)


def test_fingerprint_depends_on_every_text_and_not_on_subset():
    base = fingerprint(PAIRS)
    assert base == fingerprint({**PAIRS, "subset": ["x", "y"]}) == fingerprint(dict(reversed(PAIRS.items())))
    assert base != fingerprint({**PAIRS, "score": [4.0, 1.5]})
    assert base != fingerprint({**PAIRS, "sentence1": ["a", "b c"]})
    assert len(base) == 6


@pytest.mark.parametrize("name", ["sts12", "stsb", "stsb-dev", "sts17-en-ar", "cr", "mrpc", "twitterpara"])
def test_the_mirror_holds_known_copies(mirror, name):
    for dataset in TASKS[name].datasets:
        assert dataset.known
        assert Store(mirror).load(dataset).warnings == ()


def test_the_thousand_pairs_of_tatoeba_are_there(mirror):
    for language in ("ar", "de", "es", "fr", "tr"):
        rows = Store(mirror).load(TASKS[f"tatoeba-{language}"].datasets[0])
        assert len(rows) == len(set(rows["english"])) == len(set(rows["other"])) == 1000
