from pathlib import Path
from unittest.mock import Mock

import pytest

from selfsent.comparison.trials import Base, is_strong, known_bases, planned
from selfsent.errors import SettingsError
from selfsent.models.bases import resolve
from selfsent.models.loading import load_encoder
from selfsent.progress import Progress


def test_two_directories_of_one_name_keep_their_paths(base_of, tmp_path):
    places = [tmp_path / side / "model" for side in ("left", "right")]
    for place in (*places, tmp_path / "more" / "left"):
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(base_of("bert"))
    assert [base.label for base in known_bases(places)] == ["left", "right"]
    both = [places[0], tmp_path / "more" / "left"]
    assert [base.label for base in known_bases(both)] == [str(place) for place in both]


def test_a_single_base_needs_no_name():
    assert known_bases("bundled") == [Base("bundled")]
    assert (Base("bundled").untrained, Base("bundled").trained("mlm")) == ("untrained", "mlm")


def test_strong_is_a_transformer_that_others_trained_to_make_sentence_vectors(base_of, tmp_path):
    assert is_strong(resolve("bundled-encoder"))
    assert not is_strong(resolve("bundled-raw"))  # a language model
    assert not is_strong(resolve("bundled"))  # a table
    model = tmp_path / "run" / "model"
    load_encoder(base_of("bert"), "mean").save(model)
    assert is_strong(model)
    (tmp_path / "run" / "run.json").write_text('{"config": {"method": "tsdae"}}')
    assert not is_strong(model)  # selfsent's own: it may be weak yet


def test_names_that_differ_in_signs_alone_would_share_a_folder():
    methods = {name: {"method": "whitening"} for name in ("a b", "a/b")}
    with pytest.raises(SettingsError, match="two methods would be in methods/a-b: give them names that differ in"):
        planned(methods, [Base("bundled")], False, Path("out"), print)
    (trial,) = planned({"a b": methods["a b"]}, [Base("bundled")], False, Path("out"), print)
    assert trial.path == Path("out/methods/a-b")


def test_a_default_method_that_cannot_train_the_base_is_left_out_with_a_line(base_of):
    told, methods, bases = (
        Progress(),
        {name: {"method": name} for name in ("simcse", "tsdae")},
        [Base(base_of("albert"))],
    )
    told.notice = Mock()
    (trial,) = planned(methods, bases, True, Path("out"), told)
    assert trial.method == "tsdae"
    ((line,), _) = told.notice.call_args
    assert line.startswith("simcse is left out: the two views of a sentence would be identical")
    for given, default in ((methods, False), ({"simcse": methods["simcse"]}, True)):
        with pytest.raises(SettingsError, match="simcse: the two views"):
            planned(given, bases, default, Path("out"), told)
    assert told.notice.call_count == 1
