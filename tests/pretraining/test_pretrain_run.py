import itertools
import json
import re
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch._dynamo.testing import CompileCounterWithBackend
from transformers import AutoModelForMaskedLM, AutoTokenizer

import selfsent
import tiny
from naive import cooccurrence as naive
from selfsent.errors import CorpusError, RunError, SettingsError
from selfsent.models.loading import load_encoder
from selfsent.pretraining.blocks import Blocks
from selfsent.pretraining.cooccurrence import count_pairs, factors, positive_information
from selfsent.pretraining.learner import PretrainingLearner
from selfsent.pretraining.options import DEFAULTS, Options
from selfsent.pretraining.pretrain import pretrain

TINY = {
    "layers": 1,
    "hidden_size": 32,
    "heads": 2,
    "feed_forward": 32,
    "vocabulary_size": 200,
    "max_length": 24,
    "batch_size": 4,
    "learning_rate": 1e-3,
}
WITH_TOKENIZER = {name: value for name, value in TINY.items() if name != "vocabulary_size"}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Sentences with some order in them: who does what, where."""
    generator = np.random.default_rng(0)
    who, what, where = (
        ["the cat", "a dog", "my aunt", "the old man", "one child", "their teacher"],
        ["sleeps", "reads", "sings", "waits", "runs", "paints"],
        ["in the garden", "near the river", "at home", "on the roof", "by the sea", "under a tree"],
    )
    lines = []
    for number in range(600):
        a, b, c = (generator.choice(part) for part in (who, what, where))
        lines.append(f"{a} {b} {c} number {number}." + ("\n" if number % 6 == 5 else ""))
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def run(text, tmp_path_factory):
    """A run of twelve steps."""
    return pretrain(text, tmp_path_factory.mktemp("run") / "whole", steps=12, **TINY)


def weights(run):
    return load_file(run.directory / "model" / "model.safetensors")


def test_a_run_cut_into_legs_ends_with_the_same_weights(run, text, tmp_path):
    settings = {**WITH_TOKENIZER, "tokenizer": run.directory / "model", "half": False}
    whole = pretrain(text, tmp_path / "whole", steps=6, **settings)
    legs = pretrain(text, tmp_path / "legs", steps=6, leg=1e-9, **settings)
    assert not legs.finished
    assert not (tmp_path / "legs" / "model").exists()
    times = 1
    while not legs.finished:
        legs = pretrain(text, tmp_path / "legs", steps=6, leg=1e-9, resume=True, **settings)
        times += 1
    assert times > 3
    cut, wanted = weights(legs), weights(whole)
    assert cut.keys() == wanted.keys()
    assert [name for name in wanted if not torch.equal(cut[name], wanted[name])] == []


def test_by_the_clock_the_legs_add_up(text, tmp_path, monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: 0.002 * next(ticks))  # a step takes a few looks at the clock
    first = pretrain(text, tmp_path / "run", budget=0.1, leg=1e-9, **TINY)
    second = first
    while not second.finished:
        second = pretrain(text, tmp_path / "run", budget=0.1, leg=1e-9, resume=True, **TINY)
    assert second.record["seconds"] >= 0.1
    rates = [json.loads(line)["rate"] for line in (tmp_path / "run" / "metrics.jsonl").open() if "rate" in line]
    assert rates[-1] < 0.3 * TINY["learning_rate"]


def test_the_model_loads_everywhere_in_half_precision(run):
    directory = run.directory / "model"
    assert {tensor.dtype for tensor in weights(run).values()} == {torch.float16}
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(directory), AutoTokenizer.from_pretrained(directory)
    assert model.config.hidden_dropout_prob == 0.1
    assert tokenizer.tokenize("The CAT sleeps") == tokenizer.tokenize("the cat sleeps")
    assert "[UNK]" not in tokenizer.tokenize("my aunt paints under a tree")
    assert load_encoder(directory).language_model_head is not None
    tuned = selfsent.train(
        ["one sentence", "another one", "a third"], "simcse", directory, run.directory / "t", steps=1
    )
    assert tuned.model.encode(["the cat"]).shape == (1, 32)


def test_counts_predict_before_the_first_step(text, tmp_path):
    losses = {}
    for start in ("random", "counts"):
        settings = {**TINY, "learning_rate": 1e-12, "hidden_size": 128, "heads": 4}
        made = pretrain(text, tmp_path / start, steps=1, start=start, half=False, **settings)
        losses[start] = made.record["result"]["held_out_loss"]
        vocabulary = len(AutoTokenizer.from_pretrained(made.directory / "model"))
    assert abs(losses["random"] - np.log(vocabulary)) < 0.3
    assert losses["counts"] < losses["random"] - 0.1


class Table:
    """Tokens of given sentences, as a table holds them."""

    def __init__(self, sentences):
        self.offsets = np.cumsum([0, *map(len, sentences)])
        self.ids = np.concatenate([np.asarray(sentence, np.int64) for sentence in sentences])
        self.word_starts = np.ones(len(self.ids), bool)

    def lengths(self, rows):
        return self.offsets[rows + 1] - self.offsets[rows]

    def __getitem__(self, rows):
        from selfsent.data.views.tokens import Tokens

        index = np.concatenate([np.arange(self.offsets[row], self.offsets[row + 1]) for row in rows])
        return Tokens(self.ids[index], self.lengths(rows), self.word_starts[index], rows)


@pytest.mark.parametrize("dense", [True, False])
def test_counts_and_information_equal_the_loops(monkeypatch, dense):
    if not dense:
        monkeypatch.setattr("selfsent.pretraining.cooccurrence._DENSE", 0)
    generator = np.random.default_rng(1)
    sentences = [generator.integers(0, 12, size).tolist() for size in (1, 3, 7, 9, 2, 8)]
    wanted = naive.count_pairs(sentences, 12, 3)
    counts = count_pairs(Table(sentences), np.arange(len(sentences)), 12, window=3)
    plain = counts if dense else counts.toarray()
    np.testing.assert_allclose(plain, wanted, rtol=1e-6)
    information = positive_information(counts)
    plain = information if dense else information.toarray()
    np.testing.assert_allclose(plain, naive.positive_information(wanted), atol=1e-5)


def test_factors_are_the_leading_singular_vectors():
    matrix = np.random.default_rng(2).normal(size=(30, 30)).astype(np.float32)
    left, values, _ = np.linalg.svd(matrix)
    vectors, found = factors(matrix, 5, iterations=8)
    np.testing.assert_allclose(found, values[:5], rtol=1e-2)
    assert np.abs((vectors * left[:, :5]).sum(0)) == pytest.approx(np.ones(5), abs=0.05)


def test_blocks_are_the_text_cut_into_equal_parts():
    sentences = [[10, 11], [], [12, 13, 14], [15]]
    blocks = Blocks(Table(sentences), np.arange(4), 3, separator=1)
    stream = [10, 11, 1, 12, 13, 14, 1, 15, 1]
    assert len(blocks) == 3
    assert blocks[np.arange(3)].ids.tolist() == stream
    assert blocks[np.array([2, 0])].ids.tolist() == [1, 15, 1, 10, 11, 1]


def test_embedding_tables_learn_at_their_own_rate(run):
    encoder = load_encoder(run.directory / "model", "mean", dropout=0.0)
    groups = PretrainingLearner(encoder, 0.2, 0.05).parameter_groups(DEFAULTS)
    slow = next(group for group in groups if group.get("lr") == pytest.approx(0.05 * DEFAULTS.learning_rate))
    tables = [parameter for parameter in encoder.transformer.embeddings.parameters() if parameter.ndim > 1]
    assert {id(parameter) for parameter in slow["params"]} == {id(table) for table in tables}
    everything = [id(parameter) for group in groups for parameter in group["params"]]
    assert len(everything) == len(set(everything))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vocabulary_size": 40}, "--vocabulary-size is 40"),
        ({"heads": 3}, "--heads 3"),
        ({"max_length": 600}, "--max-length is 600"),
        ({"no_such": 1}, "no option 'no_such'"),
    ],
)
def test_what_cannot_be_is_refused(text, tmp_path, changes, said):
    with pytest.raises(SettingsError, match=said):
        pretrain(text, tmp_path / "run", steps=1, **{**TINY, **changes})


def test_too_little_text(tmp_path):
    with pytest.raises(CorpusError):
        pretrain(["one short line", "and another short line"], tmp_path / "run", steps=1, **TINY)


def test_the_share_of_the_peak_is_arithmetic_over_what_matrix_products_reach(text, tmp_path, monkeypatch):
    shares = []
    monkeypatch.setattr("selfsent.training.operations.matrix_rate", lambda device, kind: 1e9)

    def remember(loop, share):
        loop.facts = {"held_out_loss": 0.0, "bits_per_character": 0.0, "tokens": loop.tokens_seen}
        speed = loop.tokens_seen / loop.seconds
        shares.append((loop.arithmetic.share_of_peak(speed), speed))

    monkeypatch.setattr("selfsent.pretraining.loop.PretrainingLoop._evaluate", remember)
    made = pretrain(text, tmp_path / "run", steps=1, **TINY)
    encoder = load_encoder(made.directory / "model")
    layers = sum(parameter.numel() for parameter in encoder.transformer.encoder.parameters())
    output = 32 * len(encoder.tokenizer)
    share, tokens_a_second = shares[-1]
    assert share == pytest.approx(6 * (layers + 0.2 * output) * tokens_a_second / 1e9, rel=1e-6)


def test_a_run_that_cannot_begin_leaves_nothing(text, tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(SettingsError, match="--vocabulary-size is 40"):
        pretrain(text, tmp_path / "run", steps=1, **{**TINY, "vocabulary_size": 40})
    assert list(tmp_path.iterdir()) == []


def test_what_a_copy_lost_is_named(text, tmp_path):
    settings = {**TINY, "steps": 3, "leg": 1e-9, "start": "random"}
    pretrain(text, tmp_path / "run", **settings)
    (tmp_path / "run" / "prepared" / "rows" / "held.npy").unlink()
    with pytest.raises(RunError, match="prepared is damaged"):
        pretrain(text, tmp_path / "run", resume=True, **settings)
    assert (tmp_path / "run" / "checkpoints" / "step-00000001").is_dir()


@pytest.mark.parametrize("name", ["rows/train.npy", "start/model.safetensors", "prepared.json"])
def test_what_a_disk_damaged_is_named(text, tmp_path, name):
    settings = {**TINY, "steps": 3, "leg": 1e-9, "start": "random"}
    pretrain(text, tmp_path / "run", **settings)
    file = tmp_path / "run" / "prepared" / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(RunError, match="prepared is damaged"):
        pretrain(text, tmp_path / "run", resume=True, **settings)


def test_a_prompt_without_a_blank_is_refused(text, tmp_path):
    with pytest.raises(SettingsError, match="one \\[MASK\\]"):
        pretrain(text, tmp_path / "run", prompts=["nothing to fill in"], **TINY)


def compiled_by(monkeypatch, backend):
    """Let torch.compile use a backend that needs no C++ compiler, and insist on one graph."""
    compiler = torch.compile
    torch.compiler.reset()
    monkeypatch.setattr(
        torch, "compile", lambda call, **options: compiler(call, **options, backend=backend, fullgraph=True)
    )


def test_a_compiled_run_is_one_graph_and_equals_the_plain_one(run, text, tmp_path, monkeypatch):
    graphs = CompileCounterWithBackend("aot_eager")
    compiled_by(monkeypatch, graphs)
    monkeypatch.setattr("selfsent.training.precision.computes_bfloat16", lambda device: False)  # exact
    settings = {**WITH_TOKENIZER, "steps": 3, "tokenizer": run.directory / "model", "half": False}
    plain = weights(pretrain(text, tmp_path / "plain", **settings))
    assert graphs.frame_count == 0
    compiled = weights(pretrain(text, tmp_path / "compiled", compile="on", **settings))
    assert graphs.frame_count == 1
    for name, tensor in plain.items():
        torch.testing.assert_close(compiled[name], tensor, atol=1e-5, rtol=1e-4, msg=name)


def test_without_a_compiler_a_run_says_so_once_and_goes_on(run, text, tmp_path, monkeypatch):
    def missing(graph, inputs):
        raise RuntimeError("there is no compiler\nand here is a long story")

    compiled_by(monkeypatch, missing)
    said = []
    settings = {**WITH_TOKENIZER, "steps": 2, "tokenizer": run.directory / "model", "compile": "on"}
    assert pretrain(text, tmp_path / "run", progress=tiny.heard(notice=said.append), **settings).finished
    assert any(re.match(r"100% done: .* a second, \d+% of peak; held out: loss \d", line) for line in said)
    (line,) = [line for line in said if "torch.compile" in line]
    assert "no compiler" in line
    assert "\n" not in line


def test_auto_compiles_on_cuda_only():
    assert Options().compiles("cuda:0")
    assert not Options().compiles("cpu")
    assert not Options(compile="off").compiles("cuda:0")
    assert Options(compile="on").compiles("cpu")
