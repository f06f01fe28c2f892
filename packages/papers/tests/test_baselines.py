"""Baselines of the papers: their losses beside slow twins, the recurrent bases, and runs from the command line."""

import ast
import importlib
import warnings
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
import slow
import torch

import tiny
from forks import told_by
from selfsent.data.random import make_key, uniforms
from selfsent.data.views.noise import DeleteWords
from selfsent.data.views.positives import Documents
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import BaseEncoderError
from selfsent.methods import get_method
from selfsent.models import packing
from selfsent.models.bases import resolve
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.models.saved import is_sentence_encoder
from selfsent.training.plan import Plan
from selfsent_papers.recurrent import RecurrentConfig, RecurrentModel, begin_orthogonal
from selfsent_papers.sdae import LoseAndSwap, Neighbour

WHOLE = [[2, 20, 21, 22, 20, 3], [2, 23, 3], [2, 24, 25, 26, 3]]
"""Of the tiny tokenizer, 2 stands before a sentence and 3 behind it."""
DAMAGED = [[2, 21, 20, 3], [2, 23, 3], [2, 26, 24, 3]]
TEXTS = [*tiny.make_sentences(20, seed=9), "bidi  gafo!", "", "[MASK] bidi"]
WORDS = "the 1 2 3\ncat .5 .4 .3\n</s> 1 1 1\nsat 3 1 2\nCat 9 9 9\ncat 7 7 7\n"
KEY = make_key(0, 0, 1)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path_factory.getbasetemp() / "networks"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The directory of a tiny network of each kind."""
    folder, tokenizer = tmp_path_factory.mktemp("networks"), tiny.make_tokenizer()
    for kind in ("gru", "lstm", "bilstm"):
        torch.manual_seed(1)
        options = {"cell": kind.removeprefix("bi"), "bidirectional": kind == "bilstm"}
        RecurrentModel(
            RecurrentConfig(vocab_size=len(tokenizer), word_size=5, width=6, **options, pad_token_id=0)
        ).save_pretrained(folder / kind)
        tokenizer.save_pretrained(folder / kind)
    return folder


def test_methods_use_no_deprecated_name():
    def loaded():
        warnings.simplefilter("error", DeprecationWarning)
        points = entry_points(group="selfsent.methods")
        modules = [importlib.import_module(point.module) for point in points if point.module.startswith("selfsent_")]
        return [importlib.reload(module).__name__ for module in dict.fromkeys(modules)]

    assert len(told_by(loaded)) == 4


@pytest.fixture
def learner_of(saved, base_of):
    def of(method, base="gru", pooling=None, **options):
        torch.manual_seed(0)
        chosen = get_method(method)
        directory = saved / base if (saved / base).is_dir() else base_of(base)
        encoder = load_encoder(directory, pooling or (None if base == tiny.STATIC else chosen.pooling))
        return chosen.learner(encoder, chosen.options(**options)).eval()

    return of


def numbers(tensor):
    return tensor.detach().double().numpy()


def weights_of(network):
    return [numbers(part) for part in network.parameters()]


@pytest.mark.parametrize("kind", ["gru", "lstm", "bilstm"])
def test_vectors_are_those_of_loops_and_of_sentence_transformers(kind, saved):
    model = load_encoder(saved / kind, "max" if kind == "bilstm" else "lasttoken")
    words, weights = numbers(model.words.weight), weights_of(model.transformer.network)
    network = slow.gru if kind == "gru" else slow.lstm
    expected = []
    for text in TEXTS:
        inputs = [words[number] for number in model.tokenizer(text)["input_ids"]]
        if kind == "bilstm":
            expected.append(np.max(slow.both_ways(network, inputs, weights[:4], weights[4:]), axis=0))
        else:
            expected.append(network(inputs, *weights)[-1])
    found = encode(model, TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(model.sentence_transformer.encode(TEXTS, show_progress_bar=False), found, atol=1e-5)


def test_states_of_a_new_gru_are_turned_and_not_stretched():
    network = torch.nn.GRU(3, 5)
    begin_orthogonal(network)
    for block in network.weight_hh_l0.detach().split(5):
        torch.testing.assert_close(block @ block.T, torch.eye(5), atol=1e-5, rtol=0)


def test_a_network_by_name_is_made_once_and_is_always_the_same(monkeypatch, tmp_path):
    first = resolve("gru:4x3")
    written = {path: path.stat().st_mtime_ns for path in first.rglob("*")}
    before = {path.name: path.read_bytes() for path in first.rglob("*.safetensors")}
    assert resolve("gru:4x3") == resolve("gru:0004x3") == first
    assert {path: path.stat().st_mtime_ns for path in first.rglob("*")} == written
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    again = resolve("gru:4x3")
    assert again != first
    assert {path.name: path.read_bytes() for path in again.rglob("*.safetensors")} == before
    model = load_encoder("gru:4x3", "lasttoken")
    assert (model.embedding_size, model.words.embedding_dim) == (4, 3)
    assert not is_sentence_encoder(again)


@pytest.mark.parametrize("name", ["gru:0", "gru:4x0", "gru:4x3x2", "bilstm:2:nowhere.txt"])
def test_what_the_name_of_a_network_cannot_be(name):
    with pytest.raises(BaseEncoderError, match=name.split(":")[0]):
        resolve(name)


def test_words_of_a_file_get_their_vectors_and_keep_them(tmp_path):
    (tmp_path / "words.txt").write_text(WORDS)
    name = f"bilstm:2:{tmp_path / 'words.txt'}"
    model = load_encoder(name, "max")
    rows = {token: model.words.weight[number].tolist() for token, number in model.tokenizer.get_vocab().items()}
    mean = pytest.approx([21.5 / 6, 20.4 / 6, 22.3 / 6], abs=1e-5)
    assert rows["[PAD]"] == [0, 0, 0]
    assert (rows["[UNK]"], rows["<s>"], rows["</s>"]) == (mean, mean, [1, 1, 1])
    assert (rows["Cat"], rows["cat"]) == ([9, 9, 9], pytest.approx([0.5, 0.4, 0.3]))
    assert model.tokenizer.convert_ids_to_tokens(model.tokenizer("the Cat sat up")["input_ids"]) == [
        *("<s>", "the", "Cat", "sat", "[UNK]", "</s>")
    ]
    made = get_method("infersent").learner(model, get_method("infersent").options(classes=2, hidden=3))
    made([tiny.pack([[2, 4, 3]]), tiny.pack([[2, 5, 3]])], torch.tensor([1])).total.backward()
    assert model.words.weight.grad is None


def decoded(made, decoder, vector, sentence, reads):
    """The loss of a sentence by the learner's weights, word by word."""
    table, first = numbers(made.model.words.weight), None
    if reads == "both":
        first = np.tanh(numbers(decoder.begin.weight) @ vector + numbers(decoder.begin.bias))
    elif reads == "start":
        first = vector
    output = numbers(made.output.weight), numbers(made.output.bias)
    return slow.decoded(sentence, vector, table, weights_of(decoder.network), *output, first, reads != "start")


@pytest.mark.parametrize("reads", ["steps", "start", "both"])
@pytest.mark.parametrize("base", ["gru", "bert"])
def test_sdae_equals_loops_over_words(learner_of, reads, base):
    made = learner_of("sdae", base, reads=reads)
    (decoder,) = made.decoders
    if reads == "both":
        torch.nn.init.normal_(decoder.begin.weight, std=2.0)  # small numbers are nearly their own tanh
    loss = made([tiny.pack(DAMAGED), tiny.pack(WHOLE)])
    vectors = numbers(made.model(tiny.pack(DAMAGED)))
    expected = sum(decoded(made, decoder, *pair, reads) for pair in zip(vectors, WHOLE, strict=True))
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    assert loss.count == sum(len(sentence) - 1 for sentence in WHOLE)


@pytest.mark.parametrize("reads", ["steps", "start"])
def test_skip_thoughts_equals_loops_over_the_words_that_are_there(learner_of, reads):
    made = learner_of("skip-thoughts", reads=reads)
    before, behind = [WHOLE[0], [2, 30, 31, 3], [2, 32, 3]], [[2, 33, 34, 3], WHOLE[1], [2, 35, 36, 37, 3]]
    loss = made([tiny.pack(WHOLE), tiny.pack(before), tiny.pack(behind)])
    vectors = numbers(made.model(tiny.pack(WHOLE)))
    expected, count = 0.0, 0
    for decoder, sides in zip(made.decoders, (before, behind), strict=True):
        for vector, own, other in zip(vectors, WHOLE, sides, strict=True):
            if other != own:  # where a document ends, the sentence itself is given
                expected += decoded(made, decoder, vector, other, reads)
                count += len(other) - 1
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    assert loss.count == count == 12


def test_without_neighbours_all_gradients_are_zero(learner_of):
    made = learner_of("skip-thoughts")
    loss = made([tiny.pack(WHOLE)] * 3)
    loss.total.backward()
    assert (loss.total.item(), loss.count) == (0, 0)
    assert all(part.grad is not None and not part.grad.any() for part in made.parameters())


def test_infersent_equals_loops(learner_of):
    made = learner_of("infersent", "bilstm", classes=3, hidden=4)
    pair = [tiny.pack(WHOLE), tiny.pack(DAMAGED)]
    loss = made(pair, torch.tensor([2, 0, 1]))
    layers = [(numbers(layer.weight), numbers(layer.bias)) for layer in made.classifier]
    expected = slow.infersent(*(numbers(made.model(each)) for each in pair), [2, 0, 1], layers)
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    assert loss.count == 3
    assert len(layers) == 3


def test_fastsent_equals_loops_over_words(learner_of):
    made = learner_of("fastsent", tiny.STATIC)
    torch.nn.init.normal_(made.output.weight)
    sentences, beside = [[20, 21, 22, 20], [23], [24, 25]], [[30, 31], [20, 20, 32], [33]]
    loss = made([tiny.pack(sentences), tiny.pack(beside)])
    table, output = made.model.table.weight.tolist(), made.output.weight.tolist()
    total, count = slow.fastsent(sentences, beside, table, output)
    assert loss.count == count
    assert loss.total.item() == pytest.approx(total, rel=1e-4)


def test_special_tokens_are_not_predicted(learner_of):
    made = learner_of("fastsent", "bert", "mean")
    first = made.model.tokenizer.all_special_ids[0]
    assert made([tiny.pack([[first, 20, 21]]), tiny.pack([[first, 22, first]])]).count == 1


@pytest.mark.parametrize("swap", [0.3, 1.0])
def test_pairs_of_the_words_that_are_left_are_swapped(swap):
    template = Template((1,), (2,), 3, np.arange(200) >= 7)
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 20, 50)
    ids = rng.integers(7, 200, lengths.sum())
    batch = Tokens(ids, lengths, np.ones(len(ids), bool), np.arange(50))
    kept = DeleteWords(0.3)(batch, KEY, template)
    found = LoseAndSwap(0.3, swap)(batch, KEY, template)
    ends = np.cumsum(kept.lengths)
    for row, end, length in zip(kept.rows, ends, kept.lengths, strict=True):
        words = kept.ids[end - length : end].tolist()
        chances = uniforms(KEY, np.full(length, row), np.arange(length), 1).tolist()
        assert found.ids[end - length : end].tolist() == slow.swap_pairs(words, chances, swap)
    assert (found.ids != kept.ids).any()


@pytest.mark.parametrize("away", [1, -1, 2])
def test_a_neighbour_is_the_next_sentence_or_itself_at_the_ends(away):
    sizes = (5, 1, 8, 2, 3)
    documents, rows = Documents(np.repeat(np.arange(len(sizes)), sizes)), np.arange(sum(sizes))
    found, counts = Neighbour(away)(rows, KEY, documents)
    assert (counts == 1).all()
    begin = np.cumsum((0, *sizes))
    for number, size in enumerate(sizes):
        for place in range(size):
            wanted = place + away if 0 <= place + away < size else place
            assert found[begin[number] + place] == begin[number] + wanted


SENTENCES = [[20, 21, 22, 20, 20, 23], [24, 25, 26], [27, 28], [23]]
"""The longest first: packed batches hold them so, and random numbers are drawn in their order."""


@pytest.fixture
def bigrams(own_cache):
    def of(**options):
        torch.manual_seed(0)
        method = get_method("sent2vec-bigrams")
        made = method.learner(load_encoder("ngrams:6x50"), method.options(**options)).eval()
        for part in (made.output, made.model.transformer.words, made.model.transformer.pairs):
            torch.nn.init.normal_(part.weight)
        made.prepare([[tiny.pack(SENTENCES)]])
        return made

    return of


@pytest.mark.parametrize("drop", [0, 2, 4])
def test_sent2vec_with_bigrams_equals_loops_over_words(bigrams, drop):
    made = bigrams(negatives=3, threshold=1.0, drop=drop)
    batch = tiny.pack(SENTENCES)
    loss = made([batch])
    gone = made.dropped(batch).split([len(words) for words in SENTENCES])
    assert [int(each.sum()) for each in gone] == [min(drop, max(0, len(words) - 2)) for words in SENTENCES]
    drawn = torch.Generator().manual_seed(0)
    others = torch.multinomial(made.frequency.sqrt(), loss.count * 3, True, generator=drawn).view(-1, 3).tolist()
    parts = (made.model.transformer.words, made.model.transformer.pairs, made.output)
    weights = [numbers(part.weight) for part in parts]
    total, count = slow.sent2vec(SENTENCES, *weights, [each.tolist() for each in gone], others)
    assert loss.count == count == 11
    assert loss.total.item() == pytest.approx(total, rel=1e-4)


def test_vectors_are_means_of_words_and_bigrams(bigrams):
    model = bigrams().model
    tables = numbers(model.transformer.words.weight), numbers(model.transformer.pairs.weight)
    texts = ["the cat sat on the mat", "the cat", "cat"]
    expected = [slow.sentence_vector(model.tokenizer(text)["input_ids"], *tables) for text in texts]
    np.testing.assert_allclose(encode(model, texts), expected, atol=1e-5)
    np.testing.assert_allclose(model.sentence_transformer.encode(texts, show_progress_bar=False), expected, atol=1e-5)


def test_bigrams_need_a_base_that_has_them(base_of):
    for base in (base_of("bert"), base_of(tiny.STATIC)):
        method = get_method("sent2vec-bigrams")
        with pytest.raises(BaseEncoderError, match="choose a base such as ngrams:700"):
            method.learner(load_encoder(base), method.options())
    for name in ("ngrams:0", "ngrams:5x0"):
        with pytest.raises(BaseEncoderError, match="ngrams"):
            resolve(name)


LEARNERS = [get_method(name).learner for name in ("sdae", "skip-thoughts", "infersent", "fastsent", "sent2vec-bigrams")]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_every_learner_has_inputs_and_an_example_that_runs(learner):
    assert "| shape |" in learner.__doc__
    known = {"load_encoder": load_encoder, "pack": packing.pack, "torch": torch}
    tiny.run_example(learner, (3,), model=load_encoder("bundled-raw", "mean"), **known)


@pytest.mark.parametrize("method", ["sdae", "skip-thoughts", "infersent", "fastsent"])
def test_each_begins_with_its_base(method):
    made = Plan.resolve(get_method(method))
    assert made.base.partition(":")[0] == {"infersent": "bilstm", "fastsent": "bundled"}.get(method, "gru")
    assert made.pooling == {"infersent": "max", "fastsent": "mean"}.get(method, "lasttoken")


def test_one_is_trained_by_its_name_and_its_model_is_used(selfsent, tmp_path):
    lines = tiny.make_sentences(60)
    (tmp_path / "books.txt").write_text("\n\n".join("\n".join(lines[at : at + 6]) for at in range(0, 60, 6)))
    given = ("--base", "gru:8x4", "--steps", 3, "--batch-size", 8, "--output", tmp_path / "run")
    done = selfsent("train", tmp_path / "books.txt", "--method", "skip-thoughts", *given)
    assert done.status == 0, done.err
    found = selfsent("search", tmp_path / "run", tmp_path / "books.txt", lines[7], "--top", 1)
    assert lines[7] in found.out
    assert selfsent("methods", "skip-thoughts").out.startswith("skip-thoughts: Skip-Thoughts\n  Kiros")


def test_a_slow_twin_owes_nothing_to_the_fast_one():
    tree = ast.parse(Path(slow.__file__).read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert sorted(modules) == ["itertools", "math", "numpy"]
