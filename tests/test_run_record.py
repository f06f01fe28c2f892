"""Records of runs are read in today's names."""

import json

import pytest

from selfsent.methods.ranking import MNRL
from selfsent.run_record import read_record, upgraded
from selfsent.settings import Settings, with_current_names

OLD = {"asked": {"options": {"mined_by": "words", "at_most": 0.9}, "stages": {"a": {"at_most": 0.5}}}, "status": "done"}
NEW = {
    "config": {
        "options": {"retriever": "words", "max_relative_score": 0.9},
        "stages": {"a": {"max_relative_score": 0.5}},
    },
    "status": "done",
}


def test_an_old_record_has_todays_names(tmp_path):
    assert upgraded(OLD) == upgraded(NEW) == NEW
    (tmp_path / "run.json").write_text(json.dumps(OLD))
    assert read_record(tmp_path).config == NEW["config"]
    assert read_record(tmp_path / "none").config == upgraded({"config": 3}).config == {}


def test_the_old_name_is_read_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"record\['asked'\] is deprecated: use record\['config'\]"):
        assert upgraded(OLD)["asked"] == NEW["config"]
    with pytest.raises(KeyError):
        upgraded({})["asked"]


def test_old_names_of_options_are_taken():
    with pytest.warns(DeprecationWarning, match=r"MNRL\(at_most=\) is deprecated: use max_relative_score="):
        assert MNRL(mined=1, at_most=0.5) == MNRL(mined=1, max_relative_score=0.5)
    with pytest.warns(DeprecationWarning, match="use retriever="):
        assert with_current_names({"mined_by": "base", "mined": 1}, MNRL) == {"retriever": "base", "mined": 1}
    with pytest.warns(DeprecationWarning, match="use Settings.replace"):
        assert Settings().but(seed=3) == Settings(seed=3)


def test_an_old_warranty_has_todays_keys():
    old = {"warranty": {"share": 0.5, "guard": "STS-B dev", "most": 0.5, "tried": [{"share": 0.5, "loss": 0.1}]}}
    new = {"alpha": 0.5, "regression_check": "STS-B dev", "maximum_loss": 0.5}
    assert upgraded(old)["warranty"] == {**new, "candidates": [{"alpha": 0.5, "loss": 0.1}]}
    assert upgraded({"warranty": new})["warranty"] == {**new, "candidates": []}
