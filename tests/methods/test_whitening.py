import numpy as np
import pytest
import torch

import tiny
from selfsent.errors import SettingsError
from selfsent.methods.whitening import Moments, Whitening, at_the_end, whitening_map
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.settings import Settings

SENTENCES = tiny.make_sentences(300, seed=4)


@pytest.fixture
def fitted(learner_of, monkeypatch):
    """A learner of a method that fits, prepared on the sentences a few at a time, and the encoder it started from."""
    monkeypatch.setattr("selfsent.data.batches._CHUNK", 70)
    monkeypatch.setattr("selfsent.data.batches._TOKENS", 200)

    def of(method, architecture="bert", sentences=SENTENCES, **options):
        learner = learner_of(method, architecture, **options)
        before = encode(learner.model, sentences)
        views = learner.options.views()
        batches = tiny.make_batches(learner, views, Settings(max_length=tiny.LONGEST), sentences)
        learner.prepare(batches.single_pass())
        return learner, before

    return of


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
    with pytest.raises(SettingsError, match="10 sentences vary in 9 of 32 directions, not in 10: lower --dimensions"):
        fitted("whitening", sentences=SENTENCES[:10], dimensions=10)
    assert fitted("whitening", sentences=SENTENCES[:10], ridge=0.1)[0].model.embedding_size == tiny.SIZE


def test_the_ridge_is_a_share_of_the_mean_eigenvalue():
    moments = Moments(2)
    moments.add(torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))  # variances 4.5 and 0.5
    weight, bias = whitening_map(moments, Whitening(ridge=0.2))
    torch.testing.assert_close(weight.abs(), torch.diag(torch.tensor([5.0, 1.0]).rsqrt()).double())
    assert not bias.any()


def test_moments_are_exact_where_sums_of_squares_cancel():
    vectors = 1e4 + torch.randn(1000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moments = Moments(3)
    for part in vectors.split(37):
        moments.add(part)
    moments = moments.over_processes()
    assert moments.count == 1000
    torch.testing.assert_close(moments.mean, vectors.mean(0))
    torch.testing.assert_close(moments.covariance, torch.cov(vectors.T, correction=0), rtol=1e-10, atol=1e-12)


def test_vectors_that_are_all_the_same_are_refused(fitted):
    for method in ("whitening", "zscore"):
        with pytest.raises(SettingsError, match="--"):
            fitted(method, sentences=[SENTENCES[0]] * 3)


@pytest.mark.parametrize("method", ["whitening", "zscore"])
def test_it_loads_without_selfsent_and_again_with_it(method, fitted, tmp_path):
    from sentence_transformers import SentenceTransformer

    learner, _ = fitted(method)
    learner.model.save(tmp_path / "model")
    vectors = encode(learner.model, SENTENCES[:20])
    plain = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)
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


def test_in_part_no_direction_is_lost_at_the_end():
    moments = Moments(3)
    moments.add(torch.tensor([[3.0, 0.0, 1.0], [-3.0, 0.0, 1.0]]))  # variances 9, 0 and 0
    weight, _ = whitening_map(moments, at_the_end(0.5))
    assert weight.shape == (3, 3)
    scale = torch.tensor([9.3, 0.3, 0.3]).double() ** -0.25  # a ridge of a tenth of the mean
    torch.testing.assert_close(torch.linalg.svdvals(weight), scale.sort(descending=True).values, rtol=1e-5, atol=0)
    assert whitening_map(moments, at_the_end(1.0))[0].shape == (1, 3)


def test_some_of_the_sentences_are_the_same_on_any_number_of_processes(learner_of, monkeypatch):
    monkeypatch.setattr("selfsent.data.batches._CHUNK", 30)
    learner = learner_of("whitening")
    views = learner.options.views()
    batches = tiny.make_batches(learner, views, Settings(max_length=tiny.LONGEST), SENTENCES)

    def of(rank, processes):
        return [row for rows in batches._parts(rank, processes, 70) for row in rows]

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
