"""Runs of recipes that were stopped, and go on."""

import json

import pytest
from stage_texts import FOLDED, STAGES

import tiny
from selfsent import train_stages
from selfsent.errors import RunError, TrainingError
from selfsent.models.loading import load_encoder
from selfsent.training.loop import Loop


def weights(directory):
    return {file.relative_to(directory): file.read_bytes() for file in directory.rglob("*.safetensors")}


def test_stages_go_on_from_each_other_and_resume_to_the_same_weights(recipe, mirror, tmp_path, monkeypatch):
    file = recipe(STAGES)
    whole = train_stages(file, tmp_path / "whole", data=mirror)
    assert set(whole.figures) == {"white: ukp-aspect"}
    model = load_encoder(tmp_path / "whole" / "model")
    assert (model.pooling, len(model.token_modules), model.embedding_size) == ("max", 2, 12)
    assert model.language_model_head is not None
    for stage, base in (("pairs", "words"), ("white", "pairs")):
        record = json.loads((tmp_path / "whole" / "stages" / stage / "run.json").read_text())
        assert record["config"]["base"].endswith(f"stages/{base}/model")
    advance = Loop.advance

    def interrupted(loop, step):
        if step == 2:
            raise KeyboardInterrupt
        return advance(loop, step)

    monkeypatch.setattr(Loop, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_stages(file, tmp_path / "cut", data=mirror)
    monkeypatch.setattr(Loop, "advance", advance)
    with pytest.raises(RunError, match="already holds a run"):
        train_stages(file, tmp_path / "cut", data=mirror)
    lines = []
    train_stages(file, tmp_path / "cut", data=mirror, resume=True, progress=tiny.heard(notice=lines.append))
    assert "stage words is finished already" in lines
    assert "resumed at step 2 of 3" in lines
    assert weights(tmp_path / "cut" / "model") == weights(tmp_path / "whole" / "model")
    recipe(STAGES.replace("steps: 2", "steps: 5"))
    with pytest.raises(RunError, match="stages words steps was 2, now 5"):
        train_stages(file, tmp_path / "cut", data=mirror, resume=True)


def test_a_stage_that_was_stopped_goes_on_at_a_lower_rate(recipe, mirror, tmp_path):
    short = STAGES.replace("steps: 3, head: ngram-cnn, filters: 4", "steps: 3{rate}")
    hot, cool = (short.replace("{rate}", f", learning_rate: {rate}") for rate in ("1e30", "1e-5"))
    file = recipe(hot)
    with pytest.raises(TrainingError, match=r"not finite at step \d: give stage pairs of .*recipe.yaml") as caught:
        train_stages(file, tmp_path / "run", data=mirror)
    assert str(caught.value).endswith("a lower learning_rate, and go on with `resume`")
    reason = caught.value.reason
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["stopped"], record["stopped_in"]) == (reason, "pairs")
    recipe(cool.replace("method: mlm,", "method: mlm, learning_rate: 1e-6,"))
    with pytest.raises(RunError, match="stages words learning rate was not given, now 1e-06"):
        train_stages(file, tmp_path / "run", data=mirror, resume=True)
    recipe(cool)
    train_stages(file, tmp_path / "run", data=mirror, resume=True)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["status"], record["stopped"]) == ("finished", None)
    change = {"change": "stages pairs learning rate was 1e+30, now 1e-05", "because": reason}
    assert record["changes"] == [change]
    recipe(hot)
    with pytest.raises(RunError, match="learning rate was 1e-05, now"):
        train_stages(file, tmp_path / "run", data=mirror, resume=True)


def test_folds_that_were_stopped_begin_again(recipe, mirror, tmp_path):
    hot = FOLDED.replace("method: cosine, steps: 1", "method: cosine, steps: 3, learning_rate: 1e30")
    with pytest.raises(TrainingError, match=r"give stage scores of .* a lower learning_rate, and start again with"):
        train_stages(recipe(hot), tmp_path / "run", data=mirror)
    file = recipe(hot.replace("1e30", "1e-5"))
    with pytest.raises(RunError, match="stages scores learning rate was"):
        train_stages(file, tmp_path / "run", data=mirror, resume=True)
    train_stages(file, tmp_path / "run", data=mirror, overwrite=True)


def test_folds_of_other_data_are_not_gone_on_with(recipe, mirror, tmp_path):
    import pyarrow.parquet as pq

    file, lines = recipe(FOLDED), []
    train_stages(file, tmp_path / "run", data=mirror)
    train_stages(file, tmp_path / "run", data=mirror, resume=True, progress=tiny.heard(notice=lines.append))
    assert "01, stage scores is finished already" in lines
    place = mirror / "argument-similarity" / "ukp_aspect" / "all.parquet"
    pq.write_table(pq.read_table(place).slice(4), place)
    with pytest.raises(RunError, match="read fold was"):
        train_stages(file, tmp_path / "run", data=mirror, resume=True)


def test_a_stage_that_was_not_begun_may_be_mended(recipe, mirror, tmp_path, monkeypatch):
    def stop(loop, step):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Loop, "advance", stop)
        with pytest.raises(KeyboardInterrupt):
            train_stages(recipe(STAGES), tmp_path / "run", data=mirror)
    mended = recipe(STAGES.replace("ridge: 0.1", "ridge: 0.2"))
    train_stages(mended, tmp_path / "run", data=mirror, resume=True)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["changes"] == [{"change": "stages white ridge was 0.1, now 0.2", "because": None}]
    with pytest.raises(RunError, match=r"ridge was 0\.2, now 0\.1"):
        train_stages(recipe(STAGES), tmp_path / "run", data=mirror, resume=True)


def test_what_was_absent_is_scored_when_it_is_here(recipe, mirror, tmp_path):
    file, lines = recipe(STAGES.replace("evaluate: ukp-aspect", "evaluate: [ukp-aspect, sickr-test]")), []
    train_stages(file, tmp_path / "run", data=mirror)
    place = mirror / "SentEval" / "SICK"
    place.mkdir(parents=True)
    rows = [f"{n}\t{a}\t{b}\t{n % 3}" for n, (a, b) in enumerate(zip(*[iter(tiny.make_sentences(40, 9))] * 2))]
    (place / "SICK_test_annotated.txt").write_text("\n".join(["pair_ID\tA\tB\tscore", *rows]))
    done = train_stages(file, tmp_path / "run", data=mirror, resume=True, progress=tiny.heard(notice=lines.append))
    assert "white: sickr-test" in done.figures
    assert any(line.startswith("warning: sickr-test has 20 rows here") for line in lines)
