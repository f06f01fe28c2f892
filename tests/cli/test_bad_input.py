import subprocess
import sys

import pytest


@pytest.fixture
def nothing_written(tmp_path):
    """Afterwards, only what the test made is there."""
    yield
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "tsdea"), "there is no method 'tsdea'; did you mean 'tsdae'?"),
        (("--lerning-rate", "1"), "unrecognised argument --lerning-rate; did you mean '--learning-rate'?"),
        (("--over",), "unrecognised argument --over"),
        (("--temperature", "0.1"), "unrecognised argument --temperature"),
        (("--method", "simcse", "--temperature", "0"), "--temperature is 0.0; it must be above 0.0"),
        (("--method", "simcse", "--temperature", "warm"), "argument --temperature: invalid float value: 'warm'"),
        (("--method", "tsdae", "--settings", "papers"), "tsdae has no settings 'papers'; it has published"),
        (("--budget", "soon"), "'soon' is not a duration: write 90s, 5m or 1h30m"),
        (("--steps", "0"), "--steps is 0; it must be at least 1"),
        (("--steps", "5", "--epochs", "1"), "--steps and --epochs both say how long to train"),
        (("--learning-rate", "nan"), "--learning-rate is nan; it must be a finite number"),
        (("--dropout", "1"), "--dropout is 1.0; it must be at most 0.99"),
        (("--schedule", "wild"), "argument --schedule: invalid choice: 'wild'"),
        (("--keep", "1"), "--keep is 1; it must be at least 2"),
        (("--keep-best",), "--keep-best needs --dev to say what to score"),
        (("--dev", "stsx"), "there is no task 'stsx' to score on; did you mean 'stsb'?"),
        (("--dev", "context", "--dev-every", "-1"), "--dev-every is -1; it must be at least 1"),
        (("--resume", "--overwrite"), "--resume and --overwrite contradict each other"),
        (
            ("--method", "simcse", "--accumulate", "2"),
            "simcse compares the sentences of a batch, and --accumulate cuts it: give --mini-batch-size",
        ),
        (("--batch-size", "4", "--accumulate", "5"), "--accumulate 5 cannot exceed --batch-size 4"),
    ],
)
def test_one_line_before_anything_is_read(arguments, said, selfsent, tmp_path):
    common = ("--base", "bundled-raw", "--output", tmp_path / "run")
    assert said in selfsent("train", "-", *common, *arguments).complaint


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize(
    ("name", "content", "arguments", "said"),
    [
        ("absent.txt", None, (), "absent.txt: no such file"),
        ("one.txt", "the only sentence\n", (), "only one distinct sentence: at least two are needed"),
        ("empty.txt", "", (), "no text in it"),
        ("bad.txt", b"fine\nnot \xff utf-8\n", (), "bad.txt"),
        ("two.csv", "body,id\na b c,1\nd e f,2\n", (), "body"),
        ("two.csv", "text,id\na b c,1\nd e f,2\n", ("--document-column", "ticket"), "ticket"),
    ],
)
def test_a_corpus_that_holds_nothing_to_learn_from(name, content, arguments, said, selfsent, base, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    common = ("--base", base, "--output", tmp_path / "run", "--steps", 1)
    complaint = selfsent("train", tmp_path / name, *common, *arguments).complaint
    assert said in complaint
    assert name in complaint


@pytest.mark.usefixtures("nothing_written")
def test_absent_data_is_found_out_before_training(train, tmp_path, monkeypatch):
    monkeypatch.setattr("selfsent.evaluation.datasets.hub.hub_reachable", lambda: False)
    (tmp_path / "mirror").mkdir()
    complaint = train("--dev", "stsb-dev", "--data", tmp_path / "mirror").late_complaint
    assert "stsb-dev is absent" in complaint
    assert "is not a folder" in train("--dev", "stsb-dev", "--data", tmp_path / "nowhere").late_complaint


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("trian",), "invalid choice: 'trian'"),
        (("train",), "the following arguments are required"),
        (("encode", "bundled-raw", "x.txt", "--output", "x.csv"), "must end in .npy or .parquet"),
        (("encode", "bundled-raw", "no-such.txt", "--output", "x.npy"), "no-such.txt: no such file"),
        (("search", "bundled-raw", "no-such.txt", " "), "the query is empty"),
        (("search", "bundled-raw", "no-such.txt", "query", "--top", "0"), "--top is 0; it must be at least 1"),
        (
            ("search", "bundled-raw", "no-such.txt", "query", "--candidates", "9"),
            "--candidates goes with --rerank",
        ),
        (
            ("search", "bundled", "no-such.txt", "query", "--rerank", "bm25"),
            "bm25 cannot rerank: give a",
        ),
        (("search", "bundled", "no-such.txt", "query", "--rerank", "./none"), "there is no directory ./none"),
        (("evaluate", "bundled+rerank:./none", "--task", "stsb"), "there is no directory ./none"),
        (("pairs", "bundled-raw", "CORPUS", "--top", "0"), "--top is 0"),
        (("pairs", "bundled-raw", "CORPUS", "--threshold", "1.5"), "--threshold is 1.5"),
        (("pairs", "bundled-raw", "CORPUS", "--word-weight", "-1"), "--lexical-weight is -1"),
        (("pairs", "bundled-raw", "CORPUS", "--language", "engish"), "did you mean 'english'?"),
        (("pairs", "bundled-raw", "CORPUS", "--output", "pairs.txt"), "must end in .csv"),
        (("cluster", "bundled-raw", "CORPUS", "--clusters", "1"), "--clusters is 1; it must be at least 2"),
        (("cluster", "bundled-raw", "CORPUS", "--seed", "-1"), "--seed is -1"),
        (("evaluate", "bundled-raw"), "nothing to score: give --task, --suite or --documents"),
        (("evaluate", "bundled-raw", "--task", "stsx"), "there is no task 'stsx'"),
        (("evaluate", "./no-such-model", "--task", "stsb"), "there is no directory ./no-such-model"),
        (("methods", "tsdea"), "there is no method 'tsdea'; did you mean 'tsdae'?"),
        (
            ("encode", "bundled-raw", "x.txt", "--output", "x.npy", "--fsat"),
            "--fsat; did you mean '--fast'? (see selfsent e",
        ),
        (("train", "x.txt", "--output", "run", "--tempreture", "2"), "unrecognised argument --tempreture (see"),
        (
            ("train", "x.txt", "--output", "run", "--method", "mlm", "--temperature", "1"),
            "it is an option of simcse, infomax, ntxent (see selfsent train --help, selfsent methods mlm)",
        ),
    ],
)
def test_every_command_complains_in_one_line(arguments, said, selfsent, sentences, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in selfsent(*({"CORPUS": sentences}.get(word, word) for word in arguments)).complaint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, b"caf\xe9 au lait\nanother line\n", b"only one sentence\n"])
def test_a_bad_corpus_is_refused_before_anything_slow_is_imported(tmp_path, content):
    path = tmp_path / "corpus.txt"
    if content is not None:
        path.write_bytes(content)
    code = (
        "import sys; from selfsent.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: assert 'torch' not in sys.modules"
    )
    command = [sys.executable, "-c", code, "train", str(path), "--output", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"selfsent: {path}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
