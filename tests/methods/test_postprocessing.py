import math

import numpy as np
import pytest
import torch

import tiny
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.methods import postprocessing
from selfsent.methods.postprocessing import Whitening, whitening_map
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.settings import Settings

SENTENCES, FEW = tiny.make_sentences(300, seed=4), tiny.make_sentences(40, seed=5)
SMALL = {"levels": 2, "depth": 2, "width": 4}


@pytest.fixture
def fitted(learner_of):
    """A learner of a method that fits, prepared on the sentences a few at a time, and the encoder it started from."""

    def of(method, architecture="bert", sentences=SENTENCES, **options):
        learner = learner_of(method, architecture, **options)
        before = encode(learner.model, sentences)
        views = learner.options.views()
        batches = tiny.make_batches(learner, views, Settings(max_length=tiny.LONGEST), sentences)
        batches.chunk_size, batches.chunk_tokens = 70, 200
        learner.prepare(batches.single_pass())
        return learner, before

    return of


def moments_of(*batches):
    """The moments of vectors, as of an encoder that makes them."""

    class Identity(torch.nn.Module):
        embedding_size, device, forward = batches[0].shape[1], "cpu", lambda self, vectors: vectors

    return postprocessing.moments_of(Identity(), [[batch] for batch in batches])


def covariance(vectors):
    return np.cov(vectors.astype(np.float64).T, bias=True)


@pytest.mark.parametrize("name", ["bert", "mpnet", "gpt2"])
def test_the_fitting_set_has_the_identity_as_covariance(name, fitted):
    learner, _ = fitted("whitening", name)
    vectors = encode(learner.model, SENTENCES)
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(covariance(vectors), np.eye(vectors.shape[1]), atol=5e-3)


def test_principal_directions_come_first(fitted):
    all_of_them = encode(fitted("whitening")[0].model, SENTENCES)
    learner, before = fitted("whitening", dimensions=5)
    vectors = encode(learner.model, SENTENCES)
    assert learner.model.embedding_size == 5
    np.testing.assert_allclose(vectors, all_of_them[:, :5], atol=1e-3)
    # What the first direction explains is the largest eigenvalue, by an independent decomposition.
    centred = before.astype(np.float64) - before.mean(axis=0)
    _, singular, right = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ right.T / singular * np.sqrt(len(centred))
    cosine = abs((vectors * expected[:, :5]).mean(axis=0))
    np.testing.assert_allclose(cosine, 1, atol=1e-3)


def test_zscore_is_the_zscore(fitted):
    learner, before = fitted("zscore")
    expected = (before - before.mean(axis=0)) / before.std(axis=0)
    np.testing.assert_allclose(encode(learner.model, SENTENCES), expected, atol=2e-4)


def test_few_sentences_leave_few_directions(fitted, caplog):
    learner, _ = fitted("whitening", sentences=SENTENCES[:10])
    assert learner.model.embedding_size == 9
    assert "vary in 9 of 32 directions" in caplog.text
    np.testing.assert_allclose(covariance(encode(learner.model, SENTENCES[:10])), np.eye(9), atol=5e-3)
    with pytest.raises(SettingsError, match="10 sentences vary in 9 of 32 directions, not in 10: lower `dimensions`"):
        fitted("whitening", sentences=SENTENCES[:10], dimensions=10)
    assert fitted("whitening", sentences=SENTENCES[:10], ridge=0.1)[0].model.embedding_size == tiny.SIZE


def test_the_ridge_is_a_share_of_the_mean_eigenvalue():
    moments = moments_of(torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))  # variances 4.5 and 0.5
    weight, bias = whitening_map(moments, Whitening(ridge=0.2))
    torch.testing.assert_close(weight.abs(), torch.diag(torch.tensor([5.0, 1.0]).rsqrt()).double())
    assert not bias.any()


def test_moments_are_exact_where_sums_of_squares_cancel():
    vectors = 1e4 + torch.randn(1000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moments = moments_of(*vectors.split(37))
    assert moments.number == 1000
    torch.testing.assert_close(moments.mean, vectors.mean(0))
    torch.testing.assert_close(moments.covariance, torch.cov(vectors.T, correction=0), rtol=1e-10, atol=1e-12)


def test_vectors_that_are_all_the_same_are_refused(fitted):
    for method in ("whitening", "zscore"):
        with pytest.raises(SettingsError, match=r"`(dimensions|base)`"):
            fitted(method, sentences=[SENTENCES[0]] * 3)


@pytest.mark.parametrize("method", ["whitening", "zscore"])
def test_it_loads_without_selfsent_and_again_with_it(method, fitted, tmp_path):

    learner, _ = fitted(method)
    learner.model.save(tmp_path / "model")
    vectors = encode(learner.model, SENTENCES[:20])
    plain = tiny.peer(tmp_path / "model")
    assert {type(module).__module__.partition(".")[0] for module in plain} == {"sentence_transformers"}
    np.testing.assert_allclose(plain.encode(SENTENCES[:20]), vectors, atol=1e-4)
    np.testing.assert_allclose(encode(load_encoder(tmp_path / "model"), SENTENCES[:20]), vectors, atol=1e-6)


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_strength_is_the_power_of_the_deviations(strength, fitted):
    learner, before = fitted("whitening", strength=strength)
    vectors = encode(learner.model, SENTENCES)
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-3)
    variances = np.linalg.eigvalsh(covariance(before))[::-1]  # largest first, as the directions come
    found, expected = np.diag(covariance(vectors))[:5], (variances ** (1 - strength))[:5]
    np.testing.assert_allclose(found, expected, rtol=0.02)


def test_some_of_the_sentences_are_the_same_on_any_number_of_processes(learner_of, monkeypatch):
    learner = learner_of("whitening")
    views = learner.options.views()
    batches = tiny.make_batches(learner, views, Settings(max_length=tiny.LONGEST), SENTENCES)
    batches.chunk_size = 30

    def of(rank, processes):
        monkeypatch.setattr("selfsent.data.batches.rank", lambda: rank)
        monkeypatch.setattr("selfsent.data.batches.world_size", lambda: processes)
        return [text for [view] in batches.single_pass(most=70) for text in view.texts.tolist()]

    alone = of(0, 1)
    assert len(set(alone)) == 70
    assert sorted([*of(0, 2), *of(1, 2)]) == sorted(alone)
    assert len(of(0, 2)) == 40  # chunks of 30, in turn: the first and the third
    heard = []
    batches.on_read = heard.append
    for processes in (1, 2):
        heard.clear()
        of(0, processes)
        assert sum(heard) == len(SENTENCES)  # so that a bar ends


def batches_of(learner, **settings):
    views = learner.options.views()
    return tiny.make_batches(learner, views, Settings(batch_size=8, **settings), FEW)


def test_it_begins_as_the_zscore_of_the_first_sentences(learner_of, base_of):
    learner = learner_of("flow", **SMALL)
    before = encode(load_encoder(base_of("bert"), "mean"), FEW)
    batches = batches_of(learner)
    learner.prepare(batches.single_pass())
    scores = (before - before.mean(0)) / before.std(0)
    found = encode(learner.model, FEW)
    distances = np.abs(found[:, :, None] - scores[:, None, :]).max(0)
    assert sorted(distances.argmin(1)) == list(range(tiny.SIZE))
    assert distances.min(1).max() < 1e-2


def test_loss_is_in_bits_per_dimension(learner_of, base_of):
    learner = learner_of("flow", **SMALL)
    views, _ = next(batches_of(learner).micro_batches(0))
    loss = learner(views)
    vectors = learner.features(views[0])
    expected = (0.5 * vectors.square().sum(1) + 0.5 * tiny.SIZE * math.log(2 * math.pi)) / tiny.SIZE / math.log(2)
    torch.testing.assert_close(loss.total, expected.sum())
    assert loss.count == 8


def test_only_the_flow_is_trained_and_sees_no_dropout(learner_of):
    learner = learner_of("flow", dropout=0.3, **SMALL)
    views, _ = next(batches_of(learner).micro_batches(0))
    assert torch.equal(learner.features(views[0]), learner.features(views[0]))
    trained = {name for name, parameter in learner.named_parameters() if parameter.requires_grad}
    assert trained == {f"model.sentence_transformer.2.{name}" for name, _ in learner.flow.named_parameters()}
    groups = learner.parameter_groups(Settings(weight_decay=0.1))
    assert sum(len(group["params"]) for group in groups) == len(trained)
    noisy = learner_of("flow", dropout=0.3, noisy=True, **SMALL)
    assert not torch.equal(noisy.features(views[0]), noisy.features(views[0]))
    assert not noisy.options.views()[0].precomputed


@pytest.mark.parametrize(("layers", "places"), [("first+last", (1, -1)), ("embeddings+last", (0, -1)), ("last", (-1,))])
@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_layers_are_what_they_are_called(name, layers, places, base_of, encoder_of, tmp_path):
    from transformers import AutoModel

    model = encoder_of(name)
    model.average_layers(layers)
    plain = AutoModel.from_pretrained(base_of(name)).eval()
    found = encode(model, FEW[:6])
    for sentence, vector in zip(FEW, found, strict=False):
        states = plain(**model.tokenizer(sentence, return_tensors="pt"), output_hidden_states=True).hidden_states
        expected = torch.stack([states[place] for place in places]).mean(0)[0].mean(0)
        np.testing.assert_allclose(vector, expected.detach(), atol=1e-5)
    model.save(tmp_path / "model")
    loaded = tiny.peer(tmp_path / "model")
    np.testing.assert_allclose(loaded.encode(FEW[:6]), found, atol=1e-5)
    again = load_encoder(tmp_path / "model")
    np.testing.assert_allclose(encode(again, FEW[:6]), found, atol=1e-6)
    if layers != "last":
        with pytest.raises(BaseEncoderError, match="layers="):
            again.average_layers(layers)


def test_it_is_saved_with_the_model(learner_of, tmp_path):

    learner = learner_of("flow", layers="first+last", **SMALL)
    learner.prepare(batches_of(learner).single_pass())
    learner.model.save(tmp_path / "model")
    vectors = encode(learner.model, FEW)
    np.testing.assert_allclose(encode(load_encoder(tmp_path / "model"), FEW), vectors, atol=1e-5)
    with pytest.raises(ValueError, match=r"selfsent\.models\.heads\.flow\.Flow"):
        tiny.peer(tmp_path / "model")
    trusted = tiny.peer(tmp_path / "model", trust_remote_code=True)
    np.testing.assert_allclose(trusted.encode(FEW), vectors, atol=1e-5)


def test_a_dimension_that_does_not_vary_does_no_harm():
    """As all-MiniLM-L6-v2 has one: each of nine norms would multiply it, and its gradient, by a million."""
    from selfsent.models.heads.flow import Flow

    torch.manual_seed(0)
    vectors = torch.randn(256, 16)
    vectors[:, 3] = 1e-33 * torch.randn(256)
    vectors[:, 12] = 0.25
    flow = Flow(16)
    flow.start(vectors)
    loss = -flow.log_likelihood(vectors + 1e-7).mean()
    loss.backward()
    assert loss.abs() < 1e3
    assert all(parameter.grad.abs().max() < 1e4 for parameter in flow.parameters())
