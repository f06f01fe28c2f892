import pytest

from selfsent.comparison.trials import Base, is_strong, known_bases
from selfsent.errors import SettingsError
from selfsent.models.bases import resolve
from selfsent.models.loading import load_encoder


def test_a_base_has_a_short_name_that_no_other_has(tmp_path):
    (tmp_path / "words.txt").write_text("red 1 2\n")
    words = tmp_path / "words.txt"
    found = known_bases(["bundled", f"glove:{words}", f"nostop:{words}"], lambda line: None)
    assert [base.label for base in found] == ["bundled", "glove:words.txt", "nostop:words.txt"]
    assert [base.untrained for base in found] == ["untrained bundled", "glove:words.txt", "nostop:words.txt"]
    assert found[0].trained("mlm") == "mlm from bundled"
    assert found[0].digest
    assert found[1].digest == ""


def test_two_directories_of_one_name_keep_their_paths(base_of, tmp_path):
    places = [tmp_path / side / "model" for side in ("left", "right")]
    for place in (*places, tmp_path / "more" / "left"):
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(base_of("bert"))
    assert [base.label for base in known_bases(places, print)] == ["left", "right"]
    both = [places[0], tmp_path / "more" / "left"]
    assert [base.label for base in known_bases(both, print)] == [str(place) for place in both]


def test_a_single_base_needs_no_name():
    assert known_bases("bundled", print) == [Base("bundled")]
    assert (Base("bundled").untrained, Base("bundled").trained("mlm")) == ("untrained", "mlm")


def test_strong_is_a_transformer_that_others_trained_to_make_sentence_vectors(base_of, tmp_path):
    assert is_strong(resolve("bundled-encoder"))
    assert not is_strong(resolve("bundled-raw"))  # a language model
    assert not is_strong(resolve("bundled"))  # a table
    model = tmp_path / "run" / "model"
    load_encoder(base_of("bert"), "mean").save(model)
    assert is_strong(model)
    (tmp_path / "run" / "run.json").write_text('{"asked": {"method": "tsdae"}}')
    assert not is_strong(model)  # selfsent's own: it may be weak yet


def test_there_must_be_something_to_train(tmp_path):
    (tmp_path / "words.txt").write_text("red 1 2\n")
    both = [f"{kind}:{tmp_path / 'words.txt'}" for kind in ("glove", "nostop")]
    with pytest.raises(SettingsError, match="none of these bases can be trained: selfsent evaluate --documents"):
        known_bases(both, lambda line: None)
    with pytest.raises(SettingsError, match="leave bm25 out of `base`"):
        known_bases("bm25", print)
