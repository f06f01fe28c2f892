import pyarrow.parquet as pq
import pytest

MAKER = ("--with", "mlm", "--model")


@pytest.fixture
def augment(selfsent, sentences, base, tmp_path):
    """Run `selfsent augment` on the 120 sentences with the tiny base."""

    def run(*arguments, corpus=sentences, output=tmp_path / "views.parquet", maker=(*MAKER, base)):
        return selfsent("augment", corpus, *maker, "--output", output, *arguments)

    return run


def test_views_figures_and_a_sample(augment, base, tmp_path):
    found = augment().ok()
    assert "120 sentences" in found.err
    assert f"120 pairs of views in {tmp_path}/views.parquet (" in found.err
    assert found.out.count("    original  ") == found.out.count(f"mlm:model={base}  ") == 5
    assert f"mlm:model={base}: 0.0% unchanged\n" in found.out
    table = pq.read_table(tmp_path / "views.parquet")
    assert table.column_names == ["text", "view1", "view2", "maker1", "maker2"]
    assert len(table) == 120
    assert augment().complaint.endswith("views.parquet exists already: give --overwrite, or another --output")
    assert augment("--overwrite", "--seed", 1).status == 0
    assert pq.read_table(tmp_path / "views.parquet") != table


@pytest.mark.parametrize(
    ("maker", "arguments", "said"),
    [
        (("--with", "synonyms"), (), "there is no augmenter 'synonyms'; did you mean 'synonym'?"),
        (("--with", "mlm"), ("--ratio", 0), "--ratio is 0.0; it must be above 0"),
        (("--with", "mlm"), ("--model", "./none"), "there is no directory ./none"),
        (("--with", "mlm"), ("--output", "views.csv"), "views.csv must end in .parquet"),
        ((), (), "the following arguments are required: --with"),
    ],
)
def test_bad_input(maker, arguments, said, augment, tmp_path):
    assert said in augment(*arguments, corpus="-", maker=maker).complaint
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_behind_with(selfsent, sentences, tmp_path):
    found = selfsent("augment", "--with", "synonym", sentences, "--output", tmp_path / "views.parquet")
    assert "(a CORPUS goes in front of --with)" in found.complaint


def test_training_on_views(train, base, selfsent, tmp_path):
    maker = f"mlm:model={base}"
    train("--method", "bootstrap", "--augmentations", f"{maker},{maker}").ok()
    assert f"views by {maker}, {maker}" in (tmp_path / "run" / "run.json").read_text()
    for given, method in (((), "neighbours"), (("--method", "tsdae"), "tsdae")):
        refused = train(*given, "--views", "synonym", "--overwrite").complaint
        assert f"--augmentations makes two views, and {method} reads one: give --method bootstrap" in refused
    refused = train("--method", "simcse", "--views", "sinonym", "--overwrite").complaint
    assert "there is no augmenter 'sinonym'" in refused
