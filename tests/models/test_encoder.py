"""Encoders of all architectures: the vectors of sentence-transformers, saving and loading."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

import tiny
from selfsent.errors import BaseEncoderError
from selfsent.models.encoding import encode
from selfsent.models.heads.options import POOLINGS
from selfsent.models.loading import load_encoder

SENTENCES = [*tiny.make_sentences(30, seed=1), " ".join(tiny.make_sentences(20, seed=2)), "ba", ""]
# Their attention adds biases of its own and cannot be replaced; bart counts positions itself.
PADDED = ("deberta-v2", "mpnet", *tiny.ENCODER_DECODER)


def assert_same(a, b, tolerance=2e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=tolerance, rtol=1e-5)


@pytest.mark.parametrize("name", tiny.ARCHITECTURES)
def test_vectors_are_those_of_sentence_transformers(name, base_of, tmp_path):
    sentences = [s for s in SENTENCES if s] if name in tiny.CAUSAL else SENTENCES
    directory = base_of(name)
    if name == "bart":  # of the whole checkpoint it reads the decoder's states
        load_encoder(directory).save(directory := tmp_path / "half")
    reference = tiny.peer(directory)
    for pooling in POOLINGS:
        model = load_encoder(base_of(name), pooling)
        assert model.states.runs_packed == (name not in PADDED)
        assert model.pooling == pooling
        reference[1] = Pooling(tiny.SIZE, pooling)
        vectors = encode(model, sentences)
        assert_same(vectors, reference.encode(sentences, batch_size=7))
        assert vectors.std(axis=0).max() > 0.01, "all sentences have one vector, so the test shows nothing"


@pytest.mark.parametrize("name", tiny.ARCHITECTURES)
@torch.no_grad()
def test_packed_states_are_padded_states_and_dropout_can_be_set(name, encoder_of):
    model, noisy = encoder_of(name).train(), encoder_of(name, dropout=0.25).train()
    batch = tiny.pack([ids for ids in tiny.encode(model.tokenizer, SENTENCES) if ids])
    assert_same(model.states(batch), model.states.by_blocks(batch), 5e-6)
    assert (model.dropout_rate, noisy.dropout_rate) == (0.0, 0.25)
    assert torch.equal(model(batch), model(batch))
    assert not torch.allclose(noisy(batch), noisy(batch), atol=1e-4)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", ["gpt2", "qwen3"])
def test_a_sentence_without_tokens_is_zeros(name, pooling, encoder_of):
    model = encoder_of(name, pooling)
    vectors = encode(model, ["", "ba du"])
    assert not vectors[0].any()
    assert_same(vectors[1:], encode(model, ["ba du"]))
    assert not encode(model, ["", ""]).any()


@pytest.mark.parametrize("name", ["bert", "albert", "modernbert", "mpnet"])
def test_a_saved_model_comes_back_with_its_language_model_head(name, encoder_of, tmp_path):
    model = encoder_of(name, "cls")
    with torch.no_grad():
        for parameter in model.language_model_head.parameters():
            parameter += 0.01
    model.save(tmp_path / "model")
    again = load_encoder(tmp_path / "model").eval()
    assert again.pooling == "cls"
    assert_same(encode(again, SENTENCES), encode(model, SENTENCES))
    for one in (model, again):
        assert one.language_model_head.output.weight is one.transformer.get_input_embeddings().weight
    states = torch.randn(5, tiny.SIZE)
    for part in (lambda head: head(states), lambda head: head.output(head(states))):
        torch.testing.assert_close(part(again.language_model_head), part(model.language_model_head))
    text = "".join(path.read_text() for path in (tmp_path / "model").rglob("*.json") if "tokenizer" not in path.name)
    assert "selfsent" not in text


@pytest.mark.parametrize("name", tiny.ENCODER_DECODER)
@torch.no_grad()
def test_of_an_encoder_decoder_the_encoder_is_kept(name, base_of, encoder_of, tmp_path):
    from safetensors import safe_open
    from transformers import AutoModelForSeq2SeqLM

    encoder = AutoModelForSeq2SeqLM.from_pretrained(base_of(name)).get_encoder().eval()
    model = encoder_of(name)
    ids = tiny.encode(model.tokenizer, SENTENCES[:3])
    for one in ids:
        expected = encoder(input_ids=torch.tensor([one])).last_hidden_state[0]
        assert_same(model.states(tiny.pack([one])), expected, 1e-5)
    model.save(tmp_path / "half")
    again = load_encoder(tmp_path / "half").eval()
    assert_same(again(tiny.pack(ids)), model(tiny.pack(ids)))
    with safe_open(tmp_path / "half" / "model.safetensors", "pt") as tensors:
        assert not [key for key in tensors.keys() if "decoder" in key and ("layers" in key or "block" in key)]  # noqa: SIM118
    with pytest.raises(BaseEncoderError, match=r"no masked language model|predicts words by its decoder"):
        again.require_head("mlm")


def test_modules_behind_the_pooling_are_kept(base_of, tmp_path):
    modules = [Transformer(str(base_of("bert"))), Pooling(tiny.SIZE, "max"), Dense(tiny.SIZE, 12), Normalize()]
    reference = SentenceTransformer(modules=modules, device="cpu")
    reference.max_seq_length = 20
    reference.save(str(tmp_path / "dense"), create_model_card=False)
    model = load_encoder(tmp_path / "dense")
    assert (model.pooling, model.hidden_size, model.embedding_size) == ("max", tiny.SIZE, 12)
    assert_same(encode(model, SENTENCES), reference.encode(SENTENCES))
    assert load_encoder(tmp_path / "dense", "mean").embedding_size == 12


def without(name):
    return lambda directory: (directory / name).unlink()


def with_pickled_weights(directory):
    (directory / "model.safetensors").unlink()
    torch.save({}, directory / "pytorch_model.bin")


def with_cut_weights(directory):
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def with_configuration(**change):
    def spoil(directory):
        tiny.change_json(directory / "config.json", **change)
        (directory / "code.py").write_text("raise SystemExit('code of a model was run')")

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        without("model.safetensors"),
        without("config.json"),
        with_pickled_weights,
        with_cut_weights,
        with_configuration(model_type="strange", auto_map={"AutoConfig": "code.Config", "AutoModel": "code.Model"}),
        *(with_configuration(**change) for change in ({"hidden_size": "many"}, {"vocab_size": -1}, {"model_type": 7})),
    ],
)
def test_a_spoilt_base_is_refused_in_one_line(spoil, base_of, tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a question that waits for an answer"))
    directory = shutil.copytree(base_of("bert"), tmp_path / "base")
    spoil(directory)
    with pytest.raises(BaseEncoderError) as caught:
        load_encoder(directory)
    assert "\n" not in str(caught.value)
    assert str(directory) in str(caught.value)


def test_an_unknown_pooling_is_refused(base_of, tmp_path):
    tiny.save_modules(tmp_path / "odd", Transformer(str(base_of("bert"))), Pooling(tiny.SIZE, "weightedmean"))
    with pytest.raises(BaseEncoderError, match="weightedmean"):
        load_encoder(tmp_path / "odd")
    assert load_encoder(tmp_path / "odd", "mean").pooling == "mean"


def test_what_the_files_lack_is_the_same_in_every_process():
    poolers = []
    for seed in range(2):
        torch.manual_seed(seed)
        encoder = load_encoder("bundled-raw")
        poolers.append(encoder.transformer.pooler.dense.weight)
        assert torch.equal(torch.rand(2), torch.rand(2, generator=torch.Generator().manual_seed(seed)))
    assert torch.equal(*poolers)
    assert encoder.language_model_head is not None


def test_a_base_without_a_token_to_pad_with_makes_a_model_that_pads(base_of, tmp_path):
    shutil.copytree(base_of("gpt2"), tmp_path / "base")
    for file in (tmp_path / "base").glob("*token*.json"):
        if file.name != "tokenizer.json":
            about = json.loads(file.read_text())
            file.write_text(json.dumps({k: v for k, v in about.items() if k != "pad_token"} | {"eos_token": "</s>"}))
    model = load_encoder(tmp_path / "base", "mean")
    assert model.tokenizer.pad_token == "</s>"
    model.save(tmp_path / "saved")
    texts = [text for text in SENTENCES if text]
    reference = tiny.peer(tmp_path / "saved")
    assert_same(encode(model, texts), reference.encode(texts))


@pytest.mark.parametrize("name", ["roberta", "t5"])
def test_what_the_files_do_not_say_of_lengths_is_known(name, base_of, tmp_path):
    shutil.copytree(base_of(name), tmp_path / "base")
    for file in ("config.json", "tokenizer_config.json"):
        about = json.loads((tmp_path / "base" / file).read_text())
        for key in ("model_max_length", *(["max_position_embeddings"] if name == "t5" else [])):
            about.pop(key, None)
        (tmp_path / "base" / file).write_text(json.dumps(about))
    model = load_encoder(tmp_path / "base", "mean")
    limit = 1 << 20
    if name == "roberta":
        limit = model.transformer.embeddings.position_embeddings.num_embeddings - model.states.position_offset
    assert model.tokenizer.model_max_length == limit
    assert encode(model, ["ba " * 400, "de"]).shape == (2, tiny.SIZE)


def test_the_head_of_a_discriminator_is_no_head_for_words(tmp_path):
    from transformers import ElectraForPreTraining

    config, tokenizer = tiny.make_config("electra")
    ElectraForPreTraining(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_encoder(tmp_path).language_model_head is None


@pytest.mark.full
def test_a_small_decoder_runs_in_a_fresh_process(base_of):
    code = (
        "import sys; from selfsent.models.loading import load_encoder; from selfsent.models.packing import pack;"
        " from selfsent.methods import get_method; model = load_encoder(sys.argv[1]); method = get_method('tsdae');"
        " batch = pack(model, ['ba de', 'ko']); print(method.learner(model, method.options())([batch, batch]).count)"
    )
    command = [sys.executable, "-c", code, str(base_of("mpnet"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
