import json
import subprocess
import sys

import numpy as np

import tiny

CONTROL = "an escape \x1b[31m and a bell \x07"


def record(run):
    return json.loads((run / "run.json").read_text())


def test_a_run_leaves_what_it_was_and_what_came_out(train, tmp_path, base, sentences):
    done = train("--method", "tsdae", "--checkpoint-every", 1, "--keep", 3, "--seed", 7)
    run = tmp_path / "run"
    assert done.status == 0, done.err
    saved, why = done.out.splitlines()
    assert saved == f"The model is in {run / 'model'}"
    assert why.startswith("It was not scored: each text is one sentence, and no column with titles is known")
    assert why.endswith("score with selfsent evaluate --pairs")  # a text file has no other columns
    assert done.err.startswith("120 sentences\n")
    assert "no label-free score: each text is one sentence" in done.err
    assert "step 4 of 4  loss " in done.err
    left = ["checkpoints", "metrics.jsonl", "model", "report.html", "run.json", "scores.json"]
    assert sorted(path.name for path in run.iterdir()) == left
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == [f"step-{n:08d}" for n in (1, 2, 3)]
    asked = record(run)["config"]
    assert asked["settings"]["seed"] == 7
    assert asked["settings"]["batch_size"] == 8
    assert asked["options"]["ratio"] == 0.6
    assert asked["options"]["tie"] is True
    assert asked["corpus"]["sentences"] == 120
    assert len(asked["corpus"]["fingerprint"]) == 32
    assert record(run)["status"] == "finished"
    assert record(run)["steps"] == 4
    metrics = tiny.rows_of(run / "metrics.jsonl")
    speeds = {"sentences_per_second", "tokens_per_second"}
    wanted = {"step", "loss", "norm", "rate", "mean_cosine", "effective_rank"} | speeds
    assert [entry["step"] for entry in metrics] == [1, 2, 3, 4]
    assert all(wanted <= entry.keys() for entry in metrics)


def test_options_of_the_method_may_stand_anywhere(selfsent, base, sentences, tmp_path):
    output = tmp_path / "run"
    given = ("train", "--ratio", 0.5, "--no-tie", sentences, "--base", base, "--output", output, "--steps", 1)
    done = selfsent(*given, "--method", "tsdae", "--batch-size", 500).ok()
    chosen = record(output)["config"]["options"]
    assert (chosen["ratio"], chosen["tie"]) == (0.5, False)
    assert "the corpus has 120 rows to train on: --batch-size 500 is cut to that" in done.err
    assert "--max-length 128 is cut to that" in done.err


def test_a_finished_run_keeps_no_checkpoints_and_says_what_a_resume_can_do(train, tmp_path):
    given = ("--method", "tsdae", "--checkpoint-every", 1)
    assert train(*given).status == 0
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert "is finished already: nothing is left to do" in train(*given, "--resume").err
    more = train(*given, "--resume", steps=("--steps", 8)).late_complaint
    assert "is finished, and nothing of it can be done otherwise: settings steps was 4, now 8" in more
    assert f"name {tmp_path / 'run' / 'model'} as --base" in more


def test_an_absurd_rate_stops_at_the_last_good_checkpoint(train, tmp_path):
    absurd = ("--learning-rate", 1e9, "--clip", 0, "--warmup", 0, "--schedule", "constant")
    done = train("--method", "mlm", *absurd, "--checkpoint-every", 1, steps=("--steps", 30))
    assert done.status == 1, done.err
    last = done.err.splitlines()[-1]
    assert last.startswith("selfsent: the ")
    assert "a lower --learning-rate" in last
    assert "checkpoint" in last
    assert "Traceback" not in done.err
    assert not (tmp_path / "run" / "model").exists()
    assert record(tmp_path / "run")["status"] == "running"
    left = sorted((tmp_path / "run" / "checkpoints").iterdir())
    assert (f"the last good checkpoint is {left[-1]};" if left else "there is no checkpoint yet") in last


def test_the_model_loads_without_selfsent_and_gives_the_same_vectors(model, tmp_path):
    texts = [*tiny.make_sentences(20, seed=5), "", "unknown: Łódź!", "ba " * 300]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    code = """
import json, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "selfsent":
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
import numpy as np
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
assert "selfsent" not in sys.modules
np.save(sys.argv[3], model.encode(json.load(open(sys.argv[2]))))
"""
    given = [str(model), str(tmp_path / "texts.json"), str(tmp_path / "vectors.npy")]
    subprocess.run([sys.executable, "-c", code, *given], check=True, capture_output=True)
    theirs = np.load(tmp_path / "vectors.npy")

    from selfsent.models.encoding import encode
    from selfsent.models.loading import load_encoder

    ours = encode(load_encoder(model), texts)
    cosines = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    assert cosines.min() >= 1 - 1e-6
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert ours.std(0).min() > 0.01


def test_hostile_text_is_shown_as_it_is(selfsent, base, tmp_path):
    name = "[bold]x|<b>`y`.txt"
    hostile = ["[bold red]not bold[/bold red] :smile: [/nope]", "<script>alert('x')</script> & more", CONTROL]
    (tmp_path / name).write_text("\n".join([*hostile, *tiny.make_sentences(30)]) + "\n")
    output = tmp_path / "[i]run[/i]"
    done = selfsent("train", tmp_path / name, "--base", base, "--output", output, "--steps", 1, "--batch-size", 4).ok()
    assert done.out.startswith(f"The model is in {output / 'model'}\n")
    card = (output / "model" / "README.md").read_text()
    assert not any(sign in card.split("```")[2] for sign in ("<", "[bold]", "`y`"))
    found = selfsent("search", output / "model", tmp_path / name, "what", "--top", 33).ok()
    assert hostile[0] in found.out
    assert hostile[1] in found.out
    assert not {"\x1b", "\x07"} & set(found.out + done.err)
    assert "<script>" in selfsent("search", output / "model", tmp_path / name, "[red]", "[/b]", "--top", 33).out
