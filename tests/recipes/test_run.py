import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from stage_texts import FOLDED, STAGES

import tiny
from selfsent import train_stages
from selfsent.errors import (
    BaseEncoderError,
    CorpusError,
    DataError,
    RunError,
    SelfsentError,
    SettingsError,
    TrainingError,
)
from selfsent.recipes import read_recipe, seeds as seeds_of_recipes, train_seeds
from selfsent.recipes.needs import needs_of

AS_ENCODER = """\
base: {base}
all: {{batch_size: 8, max_length: 32}}
stages:
  classes:
    corpus: {{source: {mirror}/pairs.jsonl, text_columns: [sentence1, sentence2], label_column: label}}
    method: cross-encoder
    loss: softmax
    steps: 1
    evaluate: {{tasks: ukp-aspect, pooling: cls}}
"""
LABELLED = """\
base: {base}
all: {{batch_size: 8, max_length: 32, steps: 1}}
stages:
  words: {{corpus: {corpus}, method: mlm, evaluate: sts12}}
  scores:
    corpus: {{source: "mteb/stsbenchmark-sts::train", text_columns: [sentence1, sentence2], score_column: score}}
    method: cosine
evaluate: sts
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("white: {{corpus: {corpus}", "white: {{corpus: {corpus}x", "sentences.txtx: no such file"),
        ("steps: 3", "steps: 3, dev: ukp-aspect", "ukp-aspect is absent"),
        ("method: whitening, ridge: 0.1", "method: cosine", "line 6: stage white: cosine needs a score for each row"),
        ("method: whitening, ridge: 0.1", "method: mnrl", "line 6: stage white: mnrl needs 2 text columns"),
        ("method: whitening, ridge: 0.1", "method: neighbours", "stage white: neighbours reads the neighbours"),
    ],
)
def test_nothing_is_written_when_a_later_stage_cannot_be(old, new, said, recipe, tmp_path):
    assert old in STAGES
    with pytest.raises(SelfsentError, match=said):
        train_stages(recipe(STAGES.replace(old, new)), tmp_path / "run", data=tmp_path)
    assert not (tmp_path / "run").exists()


def test_an_encoder_that_is_only_scored_has_no_seeds(recipe, tmp_path):
    file = recipe("encoder: {base}\nevaluate: ukp-aspect\n")
    for train in (lambda: train_stages(file, tmp_path / "run", seed=1), lambda: train_seeds(file, 2, tmp_path / "run")):
        with pytest.raises(SettingsError, match="line 1: encoder is scored as it is: nothing is trained"):
            train()
    assert not (tmp_path / "run").exists()


def test_folds_are_trained_one_by_one_from_the_stages_before(recipe, mirror, tmp_path):
    said = []
    done = train_stages(recipe(FOLDED), tmp_path / "run", data=mirror, progress=tiny.heard(notice=said.append))
    assert set(done.figures) == {"cross-topic: ukp-aspect"}
    assert "warning: ukp-aspect has 40 rows here, 3595 as published" in said
    assert [path.name for path in sorted((tmp_path / "run" / "folds").iterdir())] == ["01", "02"]
    lines = (tmp_path / "run" / "folds" / "01" / "train.jsonl").read_text().splitlines()
    assert len(lines) == 20
    record = json.loads((tmp_path / "run" / "folds" / "02" / "stages" / "scores" / "run.json").read_text())
    assert record["config"]["base"] == str(tmp_path / "run" / "stages" / "words" / "model")
    scores = json.loads((tmp_path / "run" / "evaluation.json").read_text())["scores"]
    assert "spearman tea" in scores["ukp-aspect"]
    with pytest.raises(RunError, match="holds no model"):
        _ = done.model


def test_scores_that_are_no_test_are_marked_alone_and_over_seeds(recipe, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    one, other = tiny.make_sentences(40, seed=6), tiny.make_sentences(40, seed=7)
    rows = {"sentence1": one, "sentence2": other, "score": [float(number % 5) for number in range(40)]}
    for name in ("sts12-sts", "stsbenchmark-sts"):
        (tmp_path / "mirror" / "mteb" / name).mkdir(parents=True)
        for split in ("train", "test"):
            pq.write_table(pa.table(rows), tmp_path / "mirror" / "mteb" / name / f"{split}.parquet")
    file, mirror = recipe(LABELLED), tmp_path / "mirror"
    done = train_stages(file, tmp_path / "run", data=mirror)
    assert done.leaked == ["scores: sts12", "scores: average"]
    assert set(done.figures) == {"words: sts12", "scores: sts12", "scores: stsb", "scores: average"}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["leaked"] == done.leaked
    shown = list(map(str, done.table().columns[-1].cells))
    assert [cell.endswith("†") for cell in shown] == [False, True, False, True]
    assert done.table().caption.startswith("† trained on STSb")
    assert "† trained on STSb, which holds" in str(done)

    for resume in (False, True):
        seeds = train_seeds(file, 2, tmp_path / "seeds", resume=resume, data=mirror)
        assert list(seeds.leaked) == seeds.to_json()["leaked"] == done.leaked
        assert [cell.endswith("†") for cell in map(str, seeds.table().columns[1].cells)] == [False, True, False, True]
        assert seeds.table().caption.startswith("† trained on STSb")
        assert "† trained on STSb, which holds" in str(seeds)


def test_what_stands_in_is_kept_with_the_scores(recipe, mirror, tmp_path):
    stood = FOLDED.replace("data: ukp-aspect", "data: afs, stand_in: ukp-aspect")
    done = train_stages(recipe(stood), tmp_path / "run", data=mirror)
    (short,) = done.stand_ins
    assert short == "ukp-aspect stands in for afs: no reproduction"
    assert json.loads((tmp_path / "run" / "run.json").read_text())["stand_ins"] == [short]


@pytest.fixture
def seeded(recipe, mirror, tmp_path, monkeypatch):
    """`train_seeds` with a function of the seed in place of training."""

    def seeded(count, place, scores_of, **given):
        def train(file, output, *, seed, **how):
            figures = scores_of(seed)
            Path(output).mkdir(parents=True)
            return SimpleNamespace(figures=figures, leaked=[])

        monkeypatch.setattr(seeds_of_recipes, "train_stages", train)
        return train_seeds(recipe(STAGES), count, tmp_path / place, data=mirror, **given)

    return seeded


def test_seeds_are_kept_summarised_and_not_run_again(seeded, tmp_path):
    asked = []

    def scores_of(seed):
        asked.append(seed)
        if seed == 1:
            raise TrainingError("the loss is not finite", "go on with --resume")
        return {"loss": float(seed), "dev": 10.0 + seed, **({"context": 1.0} if seed else {})}

    lines = []
    seeds = seeded(3, "run", scores_of, progress=tiny.heard(notice=lines.append))
    assert lines == ["seed 0", "seed 1", "seed 1 failed: the loss is not finite", "seed 2"]
    assert set(seeds.summary) == {"loss", "dev"}
    assert (seeds.summary["dev"].mean, seeds.summary["dev"].deviation) == (11.0, pytest.approx(2**0.5))
    assert (seeds.leaked, seeds.table().caption) == ((), "")
    assert seeds.failures == {1: "the loss is not finite"}
    assert seeds.complaints[0].startswith("1 of 3 seeds failed")
    assert seeds.complaints[1:] == ["seed 1 failed: the loss is not finite"]
    assert asked == [0, 1, 2]
    again = seeded(3, "run", scores_of, resume=True)
    assert asked == [0, 1, 2]
    assert again.to_json() == seeds.to_json() == json.loads((tmp_path / "run" / "seeds.json").read_text())
    with pytest.raises(RunError, match="seeds was"):
        seeded(2, "run", scores_of, resume=True, seed=7)
    with pytest.raises(TrainingError, match=r"all 2 seeds failed; the first one: no; give `overwrite`"):
        seeded(2, "bad", lambda seed: (_ for _ in ()).throw(TrainingError("no")))


def test_a_fault_of_the_user_leaves_no_seeds_behind(seeded, tmp_path):
    def scores_of(seed):
        raise RunError("no")

    with pytest.raises(RunError):
        seeded(2, "run", scores_of)
    assert not (tmp_path / "run").exists()
    with pytest.raises(SelfsentError, match="2 or more"):
        seeded(1, "run", scores_of)


def test_the_transformer_of_a_cross_encoder_is_scored_as_an_encoder(recipe, mirror, tmp_path):
    rows = [{"sentence1": a, "sentence2": a, "label": "same"} for a in tiny.make_sentences(20)]
    rows += [{"sentence1": row["sentence1"], "sentence2": "alpha", "label": "other"} for row in rows]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = recipe(AS_ENCODER.replace("{mirror}", str(tmp_path)))
    run = train_stages(path, tmp_path / "run", data=mirror)
    signature = run.stages[0].evaluation["scores"]["ukp-aspect"]["signature"]
    assert "|cos|" in signature
    assert "|pool:cls|" in signature


def test_of_an_encoder_that_is_not_here_is_said_where_it_is_published(recipe, mirror, tmp_path):
    file = recipe("encoder: glove:glove.840B.300d.txt\nevaluate: ukp-aspect\n")
    with pytest.raises(DataError, match=r"cannot be read: .*; its authors publish it at nlp.stanford.edu"):
        train_stages(file, tmp_path / "run", data=mirror)
    with pytest.raises(BaseEncoderError, match=r"has the file use\.py"):
        train_stages(recipe("encoder: use:load\nevaluate: ukp-aspect\n"), tmp_path / "run", data=mirror)


def test_a_corpus_that_no_hub_has_is_missed_before_anything_runs(recipe, mirror, tmp_path):
    first = "base: {base}\nstages:\n  one: {{corpus: '{corpus}', method: mlm, steps: 1}}\n"
    file = recipe(first + "  two: {{corpus: SentEval/TREC, method: mlm, steps: 1}}\n")
    with pytest.raises(CorpusError, match=r"SentEval/TREC: no such file; its authors publish train_5500\.label"):
        train_stages(file, tmp_path / "run", data=mirror)
    assert not (tmp_path / "run").exists()


def test_words_are_added_to_an_encoder_whose_file_is_in_the_mirror(recipe, mirror, tmp_path):
    (tmp_path / "mirror" / "vectors.txt").write_text("ba 1 2\nde 2 1\nko 0 1\n")
    file = recipe("encoder: glove:vectors.txt+words\nevaluate: ukp-aspect\n")
    assert [need.here for need in needs_of(read_recipe(file), mirror)] == [True, True]
    (score,) = train_stages(file, tmp_path / "run", data=mirror).figures.values()
    assert score
