import math

import numpy as np
import pytest
import torch

import tiny
from selfsent.errors import BaseEncoderError
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.settings import Settings

SENTENCES = tiny.make_sentences(40, seed=5)
SMALL = {"levels": 2, "depth": 2, "width": 4}


def batches_of(learner, **settings):
    views = learner.options.views()
    return tiny.make_batches(learner, views, Settings(batch_size=8, **settings), SENTENCES)


def test_it_begins_as_the_zscore_of_the_first_sentences(learner_of, base_of):
    learner = learner_of("flow", **SMALL)
    before = encode(load_encoder(base_of("bert"), "mean"), SENTENCES)
    batches = batches_of(learner)
    learner.prepare(batches.single_pass())
    scores = (before - before.mean(0)) / before.std(0)
    found = encode(learner.model, SENTENCES)
    distances = np.abs(found[:, :, None] - scores[:, None, :]).max(0)
    assert sorted(distances.argmin(1)) == list(range(tiny.SIZE))
    assert distances.min(1).max() < 1e-2


def test_every_sentence_is_encoded_once(learner_of, tmp_path):
    learner = learner_of("flow", **SMALL, dropout=0.1)
    batches = batches_of(learner)
    learner.eval()
    anew = [learner(views).total.item() for views, _ in (*batches.micro_batches(0), *batches.micro_batches(1))]
    batches.precompute(learner.features, tmp_path)
    assert not list(tmp_path.iterdir())
    learner.train()
    seen = []
    learner.model.transformer.register_forward_hook(lambda *_: seen.append(1))
    ready = [learner(views).total.item() for views, _ in (*batches.micro_batches(0), *batches.micro_batches(1))]
    assert ready == pytest.approx(anew, rel=1e-5)
    assert not seen


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
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel

    model = encoder_of(name)
    model.average_layers(layers)
    plain = AutoModel.from_pretrained(base_of(name)).eval()
    found = encode(model, SENTENCES[:6])
    for sentence, vector in zip(SENTENCES, found, strict=False):
        states = plain(**model.tokenizer(sentence, return_tensors="pt"), output_hidden_states=True).hidden_states
        expected = torch.stack([states[place] for place in places]).mean(0)[0].mean(0)
        np.testing.assert_allclose(vector, expected.detach(), atol=1e-5)
    model.save(tmp_path / "model")
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(loaded.encode(SENTENCES[:6]), found, atol=1e-5)
    again = load_encoder(tmp_path / "model")
    np.testing.assert_allclose(encode(again, SENTENCES[:6]), found, atol=1e-6)
    if layers != "last":
        with pytest.raises(BaseEncoderError, match="--layers"):
            again.average_layers(layers)


def test_it_is_saved_with_the_model(learner_of, tmp_path):
    from sentence_transformers import SentenceTransformer

    learner = learner_of("flow", layers="first+last", **SMALL)
    learner.prepare(batches_of(learner).single_pass())
    learner.model.save(tmp_path / "model")
    vectors = encode(learner.model, SENTENCES)
    np.testing.assert_allclose(encode(load_encoder(tmp_path / "model"), SENTENCES), vectors, atol=1e-5)
    with pytest.raises(ValueError, match=r"selfsent\.models\.heads\.flow\.Flow"):
        SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)
    trusted = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True, trust_remote_code=True)
    np.testing.assert_allclose(trusted.encode(SENTENCES), vectors, atol=1e-5)

    modules = tmp_path / "model" / "modules.json"  # as the first versions named it
    modules.write_text(modules.read_text().replace("selfsent.models.heads.flow", "selfsent.heads.flow"))
    np.testing.assert_allclose(encode(load_encoder(tmp_path / "model"), SENTENCES), vectors, atol=1e-5)


def test_a_dimension_that_does_not_vary_does_no_harm():
    """As all-MiniLM-L6-v2 has one: each of nine norms would multiply it, and its gradient, by a million."""
    from selfsent.models.heads.flow import Flow

    torch.manual_seed(0)
    vectors = torch.randn(256, 16)
    vectors[:, 3] = 1e-33 * torch.randn(256)
    vectors[:, 12] = 0.25
    flow = Flow(16)
    with torch.no_grad(), flow.starting():
        flow.transformed(vectors)
    loss = -flow.log_likelihood(vectors + 1e-7).mean()
    loss.backward()
    assert loss.abs() < 1e3
    assert all(parameter.grad.abs().max() < 1e4 for parameter in flow.parameters())
