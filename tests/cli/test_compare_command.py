import json
import shutil

import numpy as np
import pytest

import selfsent as package
import tiny
from selfsent import api
from selfsent.evaluation.datasets.leaks import trained_by
from selfsent.evaluation.dev import scored
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.models.loading import load_encoder

METHODS = "simcse, whitening, mlm --learning-rate 1e-3 --steps 2"


@pytest.fixture(scope="module")
def compared(base, documents, tmp_path_factory, cache):
    """A comparison that is done."""
    return compare_in(tmp_path_factory.mktemp("compared") / "out", documents, base)


def compare_in(output, documents, base, **options):
    methods = {"simcse": {}, "whitening": {}, "slow mlm": {"method": "mlm", "steps": 2}}
    return package.compare(documents, methods, base, output, steps=3, batch_size=8, max_length=32, **options)


@pytest.fixture
def compare(selfsent, base, documents, tmp_path):
    """Run `selfsent compare` on the tiny base, a few steps, into tmp_path/out."""

    def run(*arguments, corpus=documents, methods=METHODS):
        common = ("--base", base, "--output", tmp_path / "out", "--batch-size", 8, "--max-length", 32, "--steps", 3)
        return selfsent("compare", corpus, "--methods", methods, *common, *arguments)

    return run


def test_the_best_encoder_is_chosen_and_scored_on_other_documents(compare, tmp_path):
    done = compare()
    assert done.status == 0, done.err
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    names = ["simcse", "whitening", "mlm --learning-rate 1e-3 --steps 2"]
    assert sorted(each["name"] for each in found["candidates"]) == sorted(names)
    dev = [each["dev"]["score"] for each in found["candidates"]]
    assert dev == sorted(dev, reverse=True)
    assert {each["name"]: each["steps"] for each in found["candidates"]}[names[2]] == 2
    assert all(name in done.out for name in ("untrained", "TF-IDF", "BM25", "[", names[2]))
    assert found["headline"] in done.out.replace("\n", " ")
    best = found["candidates"][0]
    if best["dev"]["score"] > found["bases"]["untrained"]["score"]:
        assert found["chosen"] == found["best"] == best["name"]
        assert trained_by(tmp_path / "out" / "model") == (best["name"].split()[0],)
        assert (tmp_path / "out" / "model" / "modules.json").is_file()
        assert best["test"]["trained"]["signature"] != best["dev"]["signature"]
    else:
        assert (found["chosen"], found["best"]) == (None, "untrained")
    assert found["tests"].keys() == {found["best"], "untrained", "TF-IDF", "BM25"}
    assert all("best_minus_it" in one for name, one in found["tests"].items() if name != found["best"])
    words = found["baselines"]["BM25"]
    assert words["low"] < words["score"] < words["high"]
    assert found["bases"]["untrained"]["bm25"] == words["score"]


def test_without_documents_the_judges_of_single_sentences_choose(compare, tmp_path):
    (tmp_path / "single.csv").write_text("text\n" + "\n".join(map(json.dumps, tiny.make_sentences(300))) + "\n")
    done = compare(corpus=tmp_path / "single.csv", methods="whitening")
    assert done.status == 0, done.err
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert found["dev"] == "judges"
    assert found["bases"]["untrained"].keys() >= {"crops", "robust"} - {"context"}
    assert "a hundred pairs from selfsent label choose better" in done.err


def test_scores_are_those_of_the_saved_models_on_documents_apart(compared, documents, base):
    corpus = package.read_corpus(documents)
    hold_out = HoldOut.of(corpus, dev=True, notice=lambda line: None)
    parts = [set(corpus.documents[rows]) for rows in (hold_out.train, hold_out.dev, hold_out.test)]
    assert len(set.union(*parts)) == sum(map(len, parts))
    task = ContextTask(corpus, hold_out.dev)
    for each in compared.candidates:
        again = task.score(scored(load_encoder(each.run.directory / "model"), each.name))
        assert each.score.score == pytest.approx(again.score)
        untrained = task.score(scored(load_encoder(base), "base"))
        assert each.gain.difference == pytest.approx(again.score - untrained.score)
        assert each.gain.p == pytest.approx(again.minus(untrained).p)
        assert each.run.record["asked"]["corpus"]["sentences"] == len(hold_out.train)
    assert {each.run.directory.name for each in compared.candidates} == {"simcse", "whitening", "slow-mlm"}


def test_going_on_trains_only_what_is_new(compare, tmp_path):
    assert compare(methods="simcse").status == 0
    weights = tmp_path / "out" / "methods" / "simcse" / "model" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    assert "give --resume" in compare(methods="simcse, mlm").complaint
    assert compare("--resume", methods="mlm").status == 0
    assert weights.stat().st_mtime_ns == before
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert {each["name"] for each in found["candidates"]} == {"simcse", "mlm"}
    assert "batch_size was 8, now 16".replace("_", " ") in compare("--resume", "--batch-size", 16).late_complaint


def test_a_method_that_goes_wrong_does_not_stop_the_others(compare, tmp_path):
    done = compare(methods="mlm --learning-rate 1e30, simcse")
    assert done.status == 0, done.err
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert list(found["failures"]) == ["mlm --learning-rate 1e30"]
    assert "mlm --learning-rate 1e30 failed: " in done.out
    failed = compare("--overwrite", methods="mlm --learning-rate 1e30")
    assert failed.status == 1
    assert "no method went well; mlm" in failed.err


def test_a_method_the_base_is_not_made_for_does_not_stop_the_others(selfsent, base_of, documents, tmp_path):
    still = base_of("bert", initializer_range=0.5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    common = ("--base", still, "--output", tmp_path / "out", "--batch-size", 8, "--max-length", 32, "--steps", 2)
    done = selfsent("compare", documents, "--methods", "simcse, mlm", *common)
    assert done.status == 0, done.err
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert list(found["failures"]) == ["simcse"]
    assert "dropout" in found["failures"]["simcse"]
    assert [each["name"] for each in found["candidates"]] == ["mlm"]


def test_another_base_is_not_taken_for_the_same(compared, documents, base_of):
    other = base_of("bert", initializer_range=0.4)
    with pytest.raises(package.errors.RunError, match="base digest was"):
        compare_in(compared.directory, documents, other, resume=True)


def test_the_page_shows_what_was_found(compared, base):
    page = (compared.directory / "report.html").read_text()
    assert all(f"{each.score.score:.2f}" in page and each.name in page for each in compared.candidates)
    assert "simcse, pooling cls, batch size 8, learning rate" in page
    assert page.count("<polyline") == 2  # whitening takes no steps
    assert str(base) in page


def test_what_is_chosen_without_labels_from_a_strong_base_is_marked(base, documents, tmp_path, monkeypatch):
    monkeypatch.setattr("selfsent.comparison.selection.Selection.chosen", property(lambda found: found.candidates[0]))
    asked = []
    monkeypatch.setattr("selfsent.comparison.run.is_strong", lambda directory: asked.append(directory) or True)
    assert package.compare(documents, ["whitening"], base, tmp_path / "out", quiet=True).was_strong
    assert asked == [base]


@pytest.fixture(scope="module")
def thrice(base, documents, tmp_path_factory, cache):
    """A comparison over three seeds, of which two came later."""
    output = tmp_path_factory.mktemp("thrice") / "out"
    common = {"steps": 3, "batch_size": 8, "max_length": 32, "learning_rate": 1e-3}
    package.compare(documents, ["mlm", "whitening"], base, output, **common)
    first = (output / "methods" / "mlm" / "model" / "model.safetensors").stat().st_mtime_ns
    found = package.compare(documents, base=base, output=output, seeds=3, resume=True, **common)
    assert {each.name for each in found.candidates} == {"mlm", "whitening"}
    assert (output / "methods" / "mlm" / "model" / "model.safetensors").stat().st_mtime_ns == first
    return found


def test_over_seeds_the_mean_counts_and_the_best_run_is_the_model(thrice, documents, base):
    mlm = next(each for each in thrice.candidates if each.name == "mlm")
    places = [str(run.directory.relative_to(thrice.directory)) for run in mlm.runs]
    assert places == ["methods/mlm", "methods/mlm/seeds/1", "methods/mlm/seeds/2"]
    assert [run.record["asked"]["settings"]["seed"] for run in mlm.runs] == [0, 1, 2]
    corpus = package.read_corpus(documents)
    hold_out = HoldOut.of(corpus, dev=True, notice=lambda line: None)
    task = ContextTask(corpus, hold_out.dev)
    scores = [task.score(scored(load_encoder(run.directory / "model"), "x")).score for run in mlm.runs]
    assert len(set(scores)) == 3
    assert mlm.score.score == pytest.approx(np.mean(scores))
    assert mlm.deviation == pytest.approx(np.std(scores, ddof=1))
    assert mlm.run is mlm.runs[int(np.argmax(scores))]
    plain = json.loads((thrice.directory / "comparison.json").read_text())
    of_mlm = next(each for each in plain["candidates"] if each["name"] == "mlm")
    assert [of_mlm["seeds"][str(seed)]["dev_score"] for seed in range(3)] == pytest.approx(scores)
    assert of_mlm["directory"] == places[int(np.argmax(scores))]
    assert f"± {mlm.deviation:.2f}" in (thrice.directory / "report.html").read_text()
    if thrice.chosen is mlm:
        written = (thrice.directory / "model" / "model.safetensors").read_bytes()
        assert written == (mlm.run.directory / "model" / "model.safetensors").read_bytes()


def test_what_takes_no_steps_is_done_once(thrice):
    whitening = next(each for each in thrice.candidates if each.name == "whitening")
    assert (len(whitening.runs), whitening.deviation) == (1, None)


def test_a_seed_that_goes_wrong_is_not_in_the_mean(documents, base, tmp_path, monkeypatch):
    train, tried = api.train, []

    def fragile(*arguments, seed, method, **named):
        tried.append((method, seed))
        if (method, seed) == ("mlm", 4):
            raise package.errors.TrainingError("the space collapsed", "no checkpoint")
        if method == "simcse":
            raise package.errors.SettingsError("this base has no dropout")
        return train(*arguments, seed=seed, method=method, **named)

    monkeypatch.setattr(api, "train", fragile)
    common = {"steps": 2, "batch_size": 8, "max_length": 32, "seed": 3}
    found = package.compare(documents, ["mlm", "simcse"], base, tmp_path / "out", seeds=3, **common)
    assert tried == [("mlm", 3), ("simcse", 3), ("mlm", 4), ("mlm", 5)]
    assert found.failures == {"mlm, seed 4": "the space collapsed", "simcse": "this base has no dropout"}
    (only,) = found.candidates
    assert [run.record["asked"]["settings"]["seed"] for run in only.runs] == [3, 5]
    assert any(str(cell).endswith("(2 of 3)") for cell in found.table().columns[1].cells)
    assert "\nsimcse failed: this base has no dropout\n" in str(found)


@pytest.mark.full
def test_seeds_from_the_command_line(compare, tmp_path):
    assert "--seeds is 0; it must be at least 1" in compare("--seeds", 0).complaint
    assert not (tmp_path / "out").exists()
    done = compare("--seeds", 2, methods="simcse")
    assert done.status == 0, done.err
    assert "±" in done.out
    assert "2 of 2: simcse, seed 1" in done.err
    assert "kept aside to score by: " in done.err
    assert "kept aside to score by: " in (tmp_path / "out" / "report.html").read_text()
    again = compare("--resume", methods="simcse")  # seeds that are there stay
    assert again.status == 0, again.err
    assert "simcse, seed 1: " in again.err
    assert "of 2: simcse" not in again.err  # nothing is said of what is done but its score


def test_a_preset_trains_as_long_as_the_others(documents, base, tmp_path):
    ours = {"ct": {"preset": "sentence-transformers", "batch_size": 16}}
    found = package.compare(documents, ours, base, tmp_path / "out", steps=2, batch_size=8, max_length=32)
    (only,) = found.candidates
    assert (only.run.record["steps"], only.run.record["asked"]["settings"]["batch_size"]) == (2, 16)
    with pytest.raises(package.errors.SettingsError, match="ct: base is the same for all methods"):
        package.compare(documents, {"ct": {"base": "other"}}, base, tmp_path / "out2")


@pytest.mark.parametrize(
    ("methods", "complaint"),
    [
        ("simces", "there is no method 'simces'"),
        ("simcse,,mlm", "a comma with nothing beside it"),
        ("simcse, simcse", "names 'simcse' twice"),
        ("simcse --momentum 0.9", "--methods simcse: unrecognised argument --momentum"),
        ("simcse --batch-size many", "argument --batch-size: invalid int value"),
        ("mlm, simcse --learning-rate 0", "simcse --learning-rate 0: --learning-rate is 0.0; it must be above 0.0"),
        ("simcse 'x", "No closing quotation"),
        ("cosine", "2 text columns"),
        ("simcse --no-mlp, simcse  --no-mlp", "names 'simcse --no-mlp' twice"),
        ("cross-encoder", "makes scores of pairs"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(methods, complaint, compare, tmp_path):
    assert complaint in compare(methods=methods).late_complaint
    assert not (tmp_path / "out").exists()


def test_a_corpus_without_documents_can_be_judged_by_a_task_alone(compare, sentences, tmp_path):
    refused = compare(corpus=sentences).late_complaint
    assert "no documents" in refused or "too few documents" in refused
    assert not (tmp_path / "out").exists()
    assert "stsb-dve" in compare("--dev", "stsb-dve", corpus=sentences).complaint


def test_two_methods_do_not_lie_in_one_place(documents, base, tmp_path):
    methods = {"a b": {"method": "mlm"}, "a-b": {"method": "simcse"}}
    with pytest.raises(package.errors.SettingsError, match="methods/a-b"):
        package.compare(documents, methods, base, tmp_path / "out")
    with pytest.raises(package.errors.SettingsError, match="no method to compare"):
        package.compare(documents, [], base, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_settings_for_a_method_that_is_there_are_refused_before_anything_is_written(documents, base, tmp_path):
    def go(name, own, **options):
        common = {"steps": 2, "batch_size": 8, "max_length": 32}
        return package.compare(documents, {name: own}, base, tmp_path / "out", **common, **options)

    go("mlm", {})
    before = (tmp_path / "out" / "run.json").read_bytes()
    with pytest.raises(package.errors.RunError, match="mlm: learning rate was not given, now"):
        go("mlm", {"learning_rate": 1e-3}, resume=True)
    assert (tmp_path / "out" / "run.json").read_bytes() == before
    with pytest.raises(package.errors.SettingsError, match="untrained is what the base is called"):
        go("untrained", {"method": "mlm"}, resume=True)


def test_comparisons_are_no_runs_that_differ_in_their_seed(selfsent, compared, tmp_path):
    copy = shutil.copytree(compared.directory, tmp_path / "copy")
    record = json.loads((copy / "run.json").read_text())
    record["asked"]["settings"]["seed"] = 7
    (copy / "run.json").write_text(json.dumps(record))
    (tmp_path / "mine.tsv").write_text("a b\ta\t1\nc d\td\t2\ne\tf\t3\n")
    both = ("evaluate", compared.directory, copy, "--seeds", "--pairs", tmp_path / "mine.tsv")
    assert "no two of these models are runs that differ" in selfsent(*both).complaint


def test_without_documents_the_usual_methods_are_those_that_need_none(sentences, base, monkeypatch, tmp_path):
    from selfsent import comparison as selection
    from selfsent.evaluation.results import measure
    from selfsent.evaluation.stats.metrics import mean

    score = measure("made up", mean(np.arange(8.0)), 8, signature="made up")
    monkeypatch.setattr(selection.run, "dev_task", lambda *given: lambda model: score)
    monkeypatch.setattr(selection.trials, "CANDIDATES", ("neighbours", "zscore"))
    said = []
    found = selection.compare(
        sentences, None, base, tmp_path / "out", dev="stsb-dev", progress=tiny.heard(notice=said.append)
    )
    names = [each.name for each in found.candidates]
    assert sorted(names) == ["simcse --pooling mean --no-mlp --crop-words 0.5", "zscore"]  # as train would by itself
    assert "left out without documents: neighbours" in said
