import json

import pytest


@pytest.fixture
def recipe(base, sentences, tmp_path):
    def write(*lines):
        stage = f"  only: {{corpus: {sentences}, method: mlm, steps: 1, batch_size: 8, max_length: 32}}"
        (tmp_path / "recipe.yaml").write_text("\n".join([f"base: {base}", "stages:", stage, *lines]) + "\n")
        return tmp_path / "recipe.yaml"

    return write


def test_a_recipe_is_run_with_seeds(recipe, selfsent, tmp_path):
    file = recipe("note: a stand-in")
    done = selfsent("train", file, "--output", tmp_path / "run", "--seed", 4).ok()
    assert "a stand-in" in done.err
    assert f"The model is in {tmp_path / 'run' / 'model'}" in done.out
    record = json.loads((tmp_path / "run" / "stages" / "only" / "run.json").read_text())
    assert record["config"]["settings"]["seed"] == 4
    assert "already holds a run" in selfsent("train", file, "--output", tmp_path / "run").complaint


def test_seeds_of_a_recipe_are_summarised_and_are_of_one_run(recipe, selfsent, train, tmp_path):
    file, run = recipe(), tmp_path / "run"
    two = ("train", file, "--output", run, "--seeds", 2, "--seed", 5)
    done = selfsent(*two).ok()
    assert "Nothing was scored" in done.out
    assert f"The runs are in {run / 'seeds'}" in done.out
    for seed in (5, 6):
        record = json.loads((run / "seeds" / str(seed) / "stages" / "only" / "run.json").read_text())
        assert (record["status"], record["config"]["settings"]["seed"]) == ("finished", seed)
    before = (run / "seeds.json").read_text()
    for wrong, complaint in (
        (("--base", tmp_path / "none", "--overwrite"), "none"),
        (("--seed", 6, "--resume"), "seeds was"),
        ((), "already holds a run"),
    ):
        assert complaint in selfsent(*two, *wrong).late_complaint
        assert (run / "seeds.json").read_text() == before
    assert selfsent(*two, "--resume").status == 0
    assert "--seeds is for recipes" in train("--seeds", 2).complaint


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("--method", "mlm"), "--method belongs in the recipe"),
        (("--variant", "x"), "there is no variant 'x': this recipe has none"),
        (("--base", "/no/such"), "no/such"),
        (("--seeds", "1"), "--seeds is 1; a standard deviation needs 2 or more"),
        (("another.yaml",), "one recipe, not another.yaml too"),
        (("--temperature=1",), "--temperature=1 belongs in the recipe"),
    ],
)
def test_what_does_not_go_with_a_recipe_is_refused(given, complaint, recipe, selfsent, tmp_path):
    asked = selfsent("train", recipe(), "--output", tmp_path / "run", *given)
    assert complaint in asked.complaint
    assert not (tmp_path / "run").exists()


def test_a_recipe_is_not_thrown_away_before_it_is_read(recipe, selfsent, tmp_path):
    run = tmp_path / "run"
    done = selfsent("train", recipe(), "--output", run)
    assert (done.status, done.out.split()) == (0, ["The", "model", "is", "in", str(run / "model")]), done.err
    for seeds in ((), ("--seeds", 2)):
        asked = selfsent("train", run / "recipe.yaml", "--output", run, "--overwrite", *seeds)
        assert "--overwrite would throw away" in asked.late_complaint
        assert (run / "recipe.yaml").is_file()
        assert (run / "model").is_dir()
