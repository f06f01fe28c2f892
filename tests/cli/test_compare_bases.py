"""`compare` with several bases."""

from pathlib import Path

import pytest

import selfsent as package
import tiny


@pytest.fixture(scope="module")
def several(base, base_of, documents, tmp_path_factory, cache):
    """A comparison of two bases, of which one is a table; and what was said."""
    output, said = tmp_path_factory.mktemp("several"), []
    found = package.compare(
        documents, {"mlm": {}, "zscore": {}}, [base, "bundled"], output / "out", steps=2, batch_size=8, max_length=32,
        hold_out=100, progress=tiny.heard(notice=said.append),
    )  # fmt: skip
    return found, said


def test_each_base_is_scored_as_it_is_and_trained_by_what_can_train_it(several, base):
    found, said = several
    assert set(found.bases) == {f"untrained {base.name}", "untrained bundled"}
    names = {each.name: each.start for each in found.candidates}
    assert names == {
        f"mlm from {base.name}": f"untrained {base.name}",
        f"zscore from {base.name}": f"untrained {base.name}",
        "zscore from bundled": "untrained bundled",
    }
    assert any(line.startswith("mlm from bundled is left out: mlm needs a transformer") for line in said)
    for each in found.candidates:
        assert each.gain.difference == pytest.approx(each.score.score - found.bases[each.start].score)
        assert Path(each.run.record["config"]["base"]).name in (base.name, "bundled")
    assert {each.run.directory.name for each in found.candidates} == {
        f"mlm-from-{base.name}", f"zscore-from-{base.name}", "zscore-from-bundled"
    }  # fmt: skip
    assert found.best_base in found.tests
    assert {"TF-IDF", "BM25", found.best} <= found.tests.keys()


@pytest.mark.parametrize(
    ("bases", "complaint"),
    [
        ("bundled,bundled", "--bases names bundled twice"),
        ("bundled,", "--bases holds an empty name"),
        ("bundled,tfidf", "leave tfidf out of --bases: only what makes vectors and is loaded from a directory"),
        ("bundled,./nowhere", "there is no directory ./nowhere"),
        ("bundled,functions:lengths", "leave functions:lengths out of --bases"),
    ],
)
def test_bases_that_are_wrong_are_refused_before_anything_runs(bases, complaint, selfsent, documents, tmp_path):
    done = selfsent("compare", documents, "--bases", bases, "--methods", "zscore", "--output", tmp_path / "out")
    assert complaint in done.late_complaint
    assert not (tmp_path / "out").exists()
