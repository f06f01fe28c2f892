"""The loss of a method over the beginnings of its vectors, beside one that cuts and encodes for every size."""

import pytest
import torch
from torch.nn import functional as F

import selfsent
import tiny
from naive import matryoshka
from selfsent.data.packed import concatenate
from selfsent.errors import SettingsError
from selfsent.methods import METHODS, get_method
from selfsent.methods.matryoshka import all_sizes, of_sizes
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.models.packing import pack
from selfsent.training.plan import Plan

SENTENCES = tiny.make_sentences(12, seed=2, words=(2, 7))
SIZES = (tiny.SIZE, 16, 4)
COMPARE = {
    "cosine": lambda u, v, y: (F.cosine_similarity(u, v) - y / 5).square().sum(),
    "triplet": lambda a, p, n: F.triplet_margin_loss(a, p, n, 1.0, reduction="sum"),
    "mnrl": lambda a, p: F.cross_entropy(20 * F.normalize(a) @ F.normalize(p).T, torch.arange(len(a)), reduction="sum"),
    "simcse": lambda a, p: F.cross_entropy(
        20 * F.normalize(a) @ F.normalize(p).T, torch.arange(len(a)), reduction="sum"
    ),
}
OPTIONS = {"simcse": {"mlp": False, "delete_words": 0.1}, "cosine": {"scale": 5.0}}


@pytest.fixture
def nested_of(encoder_of, base_of):
    def of(method, architecture="bert", **options):
        chosen = get_method(method)
        encoder = encoder_of(architecture, "mean", 0.0)
        encoder.sizes = SIZES
        if method == "distil":
            options = {"teacher": str(base_of(architecture, seed=5)), **options}
        torch.manual_seed(0)
        return of_sizes(chosen.learner)(encoder, chosen.options(**options)).train()

    return of


def grads(learner):
    found = {name: each.grad.clone() for name, each in learner.named_parameters() if each.grad is not None}
    learner.zero_grad()
    return found


@pytest.mark.parametrize("architecture", ["bert", tiny.STATIC])
@pytest.mark.parametrize("method", COMPARE)
@pytest.mark.parametrize("mini", [None, 3])
def test_loss_and_gradients_are_those_of_vectors_that_are_cut(nested_of, method, architecture, mini):
    learner = nested_of(method, architecture, **OPTIONS.get(method, {}))
    learner.model.mini_batch_size = mini
    columns = 3 if method == "triplet" else 2
    views = [pack(learner.model, SENTENCES[start::columns]) for start in range(columns)]
    labels = torch.linspace(0, 5, len(views[0])) if method == "cosine" else None
    value = learner(views, labels)
    value.total.backward()
    mine = grads(learner)
    extra = [] if labels is None else [labels]
    expected = matryoshka.loss(
        [lambda view=view: Encoder.forward(learner.model, view) if mini else learner.model(view) for view in views],
        SIZES,
        lambda vectors: COMPARE[method](*vectors, *extra),
    )
    expected.backward()
    theirs = grads(learner)
    assert value.count == len(views[0])
    assert value.total.item() == pytest.approx(expected.item(), rel=1e-5)
    assert mine.keys() == theirs.keys()
    largest = max(each.abs().max() for each in theirs.values())
    for name, gradient in mine.items():
        assert (gradient - theirs[name]).abs().max() < 2e-5 * largest, name


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.learner.nests])
def test_every_encoder_runs_once_and_has_its_own_pass_again(nested_of, method, monkeypatch):
    calls = []
    inner = Encoder.pool

    def counted(self, *inputs):
        calls.append(self)
        return inner(self, *inputs)

    learner = nested_of(method, **({"keep_base": 1.0} if method in ("mnrl", "neighbours") else OPTIONS.get(method, {})))
    views = [pack(learner.model, SENTENCES[start::3]) for start in range(max(2, len(learner.options.views())))]
    if learner.teachers:
        views = views[:1]
        views[0].vectors = learner.features(views[0])
    labels = None if learner.options.labels() is None else torch.ones(4)
    if getattr(learner.options, "teacher", "") == "search":
        labels = torch.ones(4, 1 + learner.options.mined)
    monkeypatch.setattr(Encoder, "pool", counted)
    first = learner(views, labels).total.item()
    assert len(calls) == len(set(map(id, calls)))
    assert all("forward" not in vars(part) for part in (*learner.modules(), *learner.fixed))
    assert first == pytest.approx(learner(views, labels).total.item(), rel=1e-6)


def test_the_sum_begins_with_the_loss_of_the_whole(nested_of):
    learner = nested_of("simcse", **OPTIONS["simcse"])
    views = [pack(learner.model, SENTENCES)] * 2
    whole = super(type(learner).__mro__[1], learner).forward(views).total.item()
    learner.model.sizes = SIZES[:1]
    assert learner(views).total.item() == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("tsdae", {}, "is for methods whose loss compares vectors: "),
        ("mnrl", {"whiten": 0.5}, "leave out `matryoshka` or `whiten`"),
        ("mnrl", {"matryoshka": "8,many"}, "must be sizes"),
        ("mnrl", {"matryoshka": [0]}, "must be sizes"),
    ],
)
def test_what_cannot_be_is_told(method, given, message):
    with pytest.raises(SettingsError, match=message):
        Plan.resolve(get_method(method), "bundled-raw", **{"matryoshka": (8,), **given})


def test_sizes_are_sorted_and_the_whole_is_among_them():
    assert all_sizes((4, 16, 4), 32) == (32, 16, 4)
    assert all_sizes((), 32) == ()
    with pytest.raises(SettingsError, match="matryoshka=64 is too large"):
        all_sizes((64,), 32)


@pytest.mark.parametrize("architecture", ["bert", tiny.STATIC])
def test_a_model_says_its_sizes_and_a_cut_is_the_beginning(base_of, tmp_path, architecture):
    base, output = str(base_of(architecture)), tmp_path / "run"
    pairs = [dict(zip(("a", "b"), pair, strict=True)) for pair in zip(SENTENCES[::2], SENTENCES[1::2], strict=True)]
    run = selfsent.train(
        selfsent.read_corpus(pairs, text_columns=["a", "b"]), "mnrl", base, output, matryoshka="16,4", steps=2,
        batch_size=4, hold_out=0, quiet=True,
    )  # fmt: skip
    assert run.record["config"]["sizes"] == [16, 4]
    model = load_encoder(run.directory / "model")
    assert model.sizes == SIZES
    whole = encode(model, SENTENCES)
    model.cut(16)
    assert encode(model, SENTENCES) == pytest.approx(whole[:, :16], abs=1e-6)
    peer = run.model.encode(SENTENCES, truncate_dim=16, show_progress_bar=False)
    assert peer == pytest.approx(whole[:, :16], abs=1e-5)
    again = selfsent.train(SENTENCES, "whitening", output, tmp_path / "second", hold_out=0, quiet=True)
    assert load_encoder(again.directory / "model").sizes == ()


def test_layers_above_the_encoder_read_a_beginning(nested_of):
    learner = nested_of("simcse", delete_words=0.1)  # with a dense layer of the whole width
    batch = pack(learner.model, SENTENCES)
    u, v = learner.model(concatenate([batch, batch])).chunk(2)
    learner([batch, batch]).total.backward()
    assert learner.mlp[0].weight.grad.abs().sum() > 0
    assert u.shape == v.shape == (len(SENTENCES), tiny.SIZE)


def test_every_size_has_a_score(base_of, tmp_path):
    lines = tiny.make_sentences(500, seed=1)
    path = tmp_path / "documents.txt"
    path.write_text("".join(f"{a}\n{b}\n\n" for a, b in zip(lines[::2], lines[1::2], strict=True)))
    run = selfsent.train(
        path, "neighbours", str(base_of(tiny.STATIC)), tmp_path / "run", matryoshka=[16, 4], steps=2, quiet=True,
    )  # fmt: skip
    assert set(run.scores["sizes"]) == {"16", "4"}
    assert run.record["config"]["whiten"] == 0
    model = load_encoder(run.directory / "model")
    model.cut(4)
    assert model.embedding_size == 4
    assert "trained, the first 16 numbers" in str(run)
    assert "The first 16, 4 numbers of a vector are a vector" in (run.directory / "model" / "README.md").read_text()
