"""`compare` with several bases."""

from pathlib import Path

import pytest

import selfsent as package
import tiny


@pytest.fixture(scope="module")
def several(base, base_of, documents, tmp_path_factory, cache):
    """A comparison of two bases that can be trained, of which one is a table, and of a function; and what was said."""
    output, said = tmp_path_factory.mktemp("several"), []
    (output / "functions.py").write_text(
        "import numpy as np\ndef lengths():\n    return lambda texts: np.array([[len(t), 1.0] for t in texts])\n"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(output)
        found = package.compare(
            documents, {"mlm": {}, "zscore": {}}, [base, "bundled", "functions:lengths"], output / "out", steps=2,
            batch_size=8, max_length=32, hold_out=100, progress=tiny.heard(notice=said.append),
        )  # fmt: skip
    return found, said


def test_each_base_is_scored_as_it_is_and_trained_by_what_can_train_it(several, base):
    found, said = several
    assert set(found.bases) == {f"untrained {base.name}", "untrained bundled", "functions:lengths"}
    names = {each.name: each.start for each in found.candidates}
    assert names == {
        f"mlm from {base.name}": f"untrained {base.name}",
        f"zscore from {base.name}": f"untrained {base.name}",
        "zscore from bundled": "untrained bundled",
    }
    assert any(line.startswith("mlm from bundled is left out: mlm needs a transformer") for line in said)
    assert any(line.startswith("functions:lengths is scored as it is, and not trained") for line in said)
    for each in found.candidates:
        assert each.gain.difference == pytest.approx(each.score.score - found.bases[each.start].score)
        assert Path(each.run.record["asked"]["base"]).name in (base.name, "bundled")
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
        ("bundled,tfidf", "leave tfidf out of --bases: what counts words cannot be a base"),
        ("bundled,./nowhere", "there is no directory ./nowhere"),
        ("bundled,glove:nowhere.txt", "nowhere.txt cannot be read"),
        ("./functions:lengths", "there is no directory"),
    ],
)
def test_bases_that_are_wrong_are_refused_before_anything_runs(bases, complaint, selfsent, documents, tmp_path):
    done = selfsent("compare", documents, "--bases", bases, "--methods", "zscore", "--output", tmp_path / "out")
    assert complaint in done.late_complaint
    assert not (tmp_path / "out").exists()
