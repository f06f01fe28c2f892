import json

import pytest

from selfsent.errors import BaseEncoderError
from selfsent.models.bases import resolve


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"stopped": "the loss is not finite at step 6"}, "the loss is not finite at step 6; leave it out"),
        ({"status": "running"}, "go on with it by --resume"),
        ([], "go on with it by --resume"),
    ],
)
def test_a_run_without_a_model_says_why(record, complaint, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(BaseEncoderError, match=f"is a run without a model: {complaint}"):
        resolve(tmp_path)


def test_runs_over_seeds_are_named_one_by_one(tmp_path):
    (tmp_path / "seeds" / "0").mkdir(parents=True)
    (tmp_path / "seeds" / "0" / "run.json").write_text("{}")
    with pytest.raises(BaseEncoderError, match=r"holds a run of each seed: give one or all of .*/seeds/\*$"):
        resolve(tmp_path)
