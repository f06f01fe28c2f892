import json
import shutil

import numpy as np
import pytest
import torch
from safetensors import safe_open

import tiny
from selfsent import train
from selfsent.data.corpus import read_corpus
from selfsent.errors import BaseEncoderError, HubFallbackWarning, SettingsError
from selfsent.models.bases import known_elsewhere, weights_digest
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.models.lora import ALPHA, halve, merge, put_lora, restore_frozen
from selfsent.models.packing import pack
from slices import some

SENTENCES = tiny.make_sentences(60)


def adapted(base, rank=4, **options):
    """An encoder with an adapter that changes it."""
    model = load_encoder(base, "mean", **options)
    put_lora(model, rank, str(base))
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return model.eval()


def test_an_adapter_is_the_sum_of_its_equation(base_of):
    base = base_of("bert")
    model, plain = adapted(base), load_encoder(base)
    layers = dict(model.transformer.named_modules())
    a, b = (layers[f"encoder.layer.1.attention.self.query.lora_{name}.default"].weight for name in "AB")
    merge(model)
    now, before = (each.transformer.encoder.layer[1].attention.self.query.weight for each in (model, plain))
    assert a.shape == (4, tiny.SIZE)
    torch.testing.assert_close(now, before + ALPHA / 4 * b @ a)


@pytest.mark.parametrize("architecture", some(tiny.ARCHITECTURES, soon=["bert", "modernbert", "qwen3", "gte", "bart"]))
def test_merged_saved_and_read_by_plain_sentence_transformers(architecture, base_of, tmp_path):

    base = base_of(architecture)
    model = adapted(base)
    vectors = encode(model, SENTENCES)
    assert np.abs(vectors - encode(load_encoder(base, "mean"), SENTENCES)).max() > 1e-2
    model.save(tmp_path / "adapter")
    names = {path.name for path in (tmp_path / "adapter").iterdir()}
    assert "adapter_model.safetensors" in names
    assert not names & {"model.safetensors", "config.json"}
    merge(model)
    assert not model.adapted
    model.save(tmp_path / "merged")
    for folder in ("adapter", "merged"):
        for found in (
            encode(load_encoder(tmp_path / folder), SENTENCES),
            tiny.peer(tmp_path / folder).encode(SENTENCES),
        ):
            np.testing.assert_allclose(found, vectors, atol=2e-5, err_msg=folder)
    kept = load_encoder(tmp_path / "adapter", keep_adapter=True)
    assert kept.adapted
    np.testing.assert_allclose(encode(kept, SENTENCES), vectors, atol=2e-5)
    assert all(weight.requires_grad for weight in load_encoder(tmp_path / "adapter").words.parameters())


def test_an_adapter_that_transformers_alone_wrote_is_read(base_of, tmp_path):
    model = adapted(base_of("bert"))
    model.sentence_transformer[0].model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    np.testing.assert_allclose(encode(load_encoder(tmp_path), SENTENCES), encode(model, SENTENCES), atol=2e-5)


def peer_vectors(folder):

    return tiny.peer(folder).encode(SENTENCES)


@pytest.mark.parametrize(
    ("by", "given"),
    [
        ("selfsent", {"method": "simcse", "steps": 2}),
        ("selfsent", {"method": "simcse", "steps": 2, "lora": 8}),
        ("selfsent", {"method": "simcse", "steps": 2, "lora": 4, "keep_adapter": True}),
        ("selfsent", {"method": "whitening"}),
        ("selfsent", {"method": "neighbours"}),
        ("sentence-transformers", {"method": "simcse", "steps": 2}),
        ("sentence-transformers", {"method": "whitening"}),
    ],
)
def test_a_run_that_starts_from_an_adapter_saves_an_ordinary_model(by, given, base_of, tmp_path):
    """Loading an adapter leaves its names in the model, which saving gives to all weights."""
    from sentence_transformers import SentenceTransformer

    if by == "selfsent":
        adapted(base_of("bert")).save(tmp_path / "adapter")
    else:
        from peft import LoraConfig

        peer = SentenceTransformer(str(load_and_save(base_of("bert"), tmp_path / "peer")), device="cpu")
        peer.add_adapter(LoraConfig(r=4, target_modules=["query", "value"], init_lora_weights=False))
        peer.save(str(tmp_path / "adapter"))
    texts = [f"{one}. {other}.".title() for one, other in zip(SENTENCES, reversed(SENTENCES), strict=True)]
    documents = {"split_sentences": True} if given["method"] == "neighbours" else {}
    slow = {"learning_rate": 1e-6} if "steps" in given else {}
    corpus = read_corpus(texts, **documents)
    train(corpus, base=str(tmp_path / "adapter"), output=tmp_path / "run", quiet=True, **slow, **given)
    found, before = peer_vectors(tmp_path / "run/model"), peer_vectors(tmp_path / "adapter")
    np.testing.assert_allclose(encode(load_encoder(tmp_path / "run"), SENTENCES), found, rtol=1e-3, atol=1e-4)
    if slow:  # nearly what it began with, which random weights are not
        np.testing.assert_allclose(found, before, atol=1e-2)
    if not given.get("keep_adapter"):
        with safe_open(str(tmp_path / "run/model/model.safetensors"), framework="pt") as weights:
            assert not [name for name in set(weights.keys()) if "base_model" in name or "base_layer" in name]


def load_and_save(base, folder):
    load_encoder(base, "mean").save(folder)
    return folder


def of_peft(base, folder, **options):
    """An adapter that peft wrote, and the token states of its model, averaged."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModel, AutoTokenizer

    torch.manual_seed(0)
    given = {"r": 4, "lora_alpha": 8, "target_modules": ["query", "value"], **options}
    model = get_peft_model(AutoModel.from_pretrained(base), LoraConfig(**given)).eval()
    for weight in model.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.1)
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.save_pretrained(folder)
    inputs = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    mask = inputs["attention_mask"][..., None]
    with torch.no_grad():
        return ((model(**inputs).last_hidden_state * mask).sum(1) / mask.sum(1)).numpy()


@pytest.mark.parametrize(
    "options",
    [
        {"rank_pattern": {"query": 2}, "alpha_pattern": {"query": 3}},
        {"use_rslora": True},
        {"init_lora_weights": "pissa"},
        {"bias": "lora_only"},
        {"lora_bias": True},
        {"target_modules": ["word_embeddings", "query"]},
    ],
    ids=["rank pattern", "rslora", "pissa", "bias", "bias of B", "embeddings"],
)
def test_an_adapter_of_peft_computes_what_peft_computes(options, base_of, tmp_path):
    expected = of_peft(base_of("bert"), tmp_path / "adapter", **options)
    merged = load_encoder(tmp_path / "adapter", "mean")
    np.testing.assert_allclose(encode(merged, SENTENCES), expected, atol=2e-5)
    merged.save(tmp_path / "merged")
    np.testing.assert_allclose(peer_vectors(tmp_path / "merged"), expected, atol=2e-5)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"alora_invocation_tokens": [7, 8]}, "alora_invocation_tokens"),
        ({"layer_replication": [[0, 1], [0, 2]]}, "layer_replication"),
        ({"trainable_token_indices": [5, 6]}, "trainable_token_indices"),
        ({"use_qalora": True, "qalora_group_size": 16}, "use_qalora"),
    ],
)
def test_another_sum_than_that_of_plain_lora_is_refused(options, name, base_of, tmp_path):
    of_peft(base_of("bert"), tmp_path, **options)
    with pytest.raises(BaseEncoderError, match=rf"other than plain LoRA \({name}\): merge it with peft"):
        load_encoder(tmp_path)


def test_what_the_merge_does_not_compute_is_found_out_by_itself(base_of, tmp_path, monkeypatch):
    from selfsent.models import bases

    of_peft(base_of("bert"), tmp_path, layer_replication=[[0, 1], [0, 2]])
    monkeypatch.setattr(bases, "_PLAIN_LORA", {*bases._PLAIN_LORA, "layer_replication"})
    with pytest.raises(BaseEncoderError, match="computes something else than plain LoRA"):
        load_encoder(tmp_path)


def test_twins_share_the_frozen_weights(base_of):
    model = adapted(base_of("bert"))
    twin = model.twin()
    same = {name: one is other for (name, one), other in zip(model.named_parameters(), twin.parameters())}
    assert all(shared == ("lora_" not in name) for name, shared in same.items() if ".model." in name)
    assert not all(same.values())


def test_in_bfloat16_it_computes_as_under_autocast_and_comes_back(base_of):
    """Where a checkpoint was written in bfloat16; elsewhere the word embeddings are rounded, too."""
    base = base_of("bert")
    model, exact = adapted(base), adapted(base)
    for each in (model, exact):
        with torch.no_grad():
            each.words.weight.copy_(each.words.weight.bfloat16())
    batch = pack(model, SENTENCES)
    halve(model)
    halved = {name for name, weight in model.named_parameters() if weight.dtype == torch.bfloat16}
    assert not any("lora_" in name for name in halved)
    assert sum("base_layer.weight" in name for name in halved) == 12
    with torch.autocast("cpu", torch.bfloat16):
        expected, found = exact(batch), model(batch)
    assert torch.equal(found, expected)
    assert torch.equal(model(batch).float(), found.float())  # without autocast around it, too
    for loss in (expected.square().sum(), found.square().sum()):
        loss.backward()
    for (name, mine), theirs in zip(model.named_parameters(), exact.parameters()):
        if mine.requires_grad and "pooler" not in name:
            torch.testing.assert_close(mine.grad, theirs.grad, msg=name)
    restore_frozen(model, exact)
    assert all(map(torch.equal, model.state_dict().values(), exact.state_dict().values()))
    assert torch.equal(model(batch), exact(batch))


def run(base, output, **options):
    usual = {"method": "simcse", "delete_words": 0.3, "steps": 2, "batch_size": 8, "pooling": "mean"}
    train(SENTENCES, base=str(base), output=output, **{"lora": 4, "learning_rate": 0.01, **usual, **options})
    return load_encoder(output)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_runs_saved_merged_and_by_themselves_are_the_same(precision, base_of, tmp_path):
    base = base_of("bert")
    merged = run(base, tmp_path / "merged", precision=precision)
    kept = run(base, tmp_path / "kept", precision=precision, keep_adapter=True)
    np.testing.assert_allclose(encode(kept, SENTENCES), encode(merged, SENTENCES), atol=2e-5)
    # Weights that no adapter belongs to, and the sum with float32 weights, are those of the base.
    plain = load_encoder(base)
    assert torch.equal(merged.words.weight, plain.words.weight)
    now, before = (each.transformer.encoder.layer[0].output.dense.weight for each in (merged, plain))
    assert torch.linalg.matrix_rank(now - before, atol=1e-5) == 4


def test_a_kept_adapter_is_trained_on_by_itself_or_merged_first(base_of, tmp_path):
    base = base_of("bert")
    run(base, tmp_path / "first", keep_adapter=True)
    run(tmp_path / "first", tmp_path / "on", keep_adapter=True)
    about = json.loads((tmp_path / "on/model/adapter_config.json").read_text())
    assert (about["r"], about["base_model_name_or_path"]) == (4, str(base))
    whole = adapted(tmp_path / "first/model", keep_adapter=True).sentence_transformer[0].model
    assert all(weight.requires_grad == ("lora_" in name) for name, weight in whole.named_parameters())
    with pytest.raises(SettingsError, match="has rank 4: give lora=4"):
        run(tmp_path / "first", tmp_path / "other", lora=8, keep_adapter=True)
    assert not (tmp_path / "other").exists()
    run(tmp_path / "first", tmp_path / "whole", lora=8)
    assert not (tmp_path / "whole/model/adapter_config.json").exists()
    run(tmp_path / "first", tmp_path / "all", lora=None)
    assert weights_digest(tmp_path / "first/model") != weights_digest(tmp_path / "on/model")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"lora": None, "keep_adapter": True}, "keep_adapter is for training with lora"),
        ({"method": "whitening"}, "whitening trains no transformer"),
        ({"method": "flow", "pooling": None}, "flow trains no transformer"),
        ({"base": "bundled"}, "lora is for transformers"),
        ({"method": "tsdae", "scratch": True}, "LoRA leaves the weights as they are"),
        ({"warranty": 0.3, "keep_adapter": True}, "leave out keep_adapter"),
        ({"lora": 0}, "lora"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options, why, base_of, tmp_path):
    method = {"delete_words": 0.3} if options.get("method", "simcse") == "simcse" else {}
    usual = {"base": str(base_of("bert")), "method": "simcse", "lora": 4, "steps": 2, "output": tmp_path / "run"}
    with pytest.raises((SettingsError, BaseEncoderError), match=why) as caught:
        train(SENTENCES, **{**usual, **method, **options})
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"peft_type": "IA3"}, r"an adapter other than plain LoRA \(IA3\)"),
        ({"megatron_config": {"a": 1}}, r"an adapter other than plain LoRA \(megatron_config\)"),
        ({"modules_to_save": ["pooler"]}, r"an adapter other than plain LoRA \(modules_to_save\)"),
        ({"arrow_config": {"top_k": 3}}, r"an adapter other than plain LoRA \(arrow_config\)"),
        ({"of_a_later_peft": True}, r"an adapter other than plain LoRA \(of_a_later_peft\)"),
        ({"base_model_name_or_path": None}, "does not name its base"),
        ({"base_model_name_or_path": "./not-here"}, "no directory"),
    ],
)
def test_an_adapter_of_another_kind_is_refused(changes, why, base_of, tmp_path):
    adapted(base_of("bert")).save(tmp_path / "adapter")
    tiny.change_json(tmp_path / "adapter/adapter_config.json", **changes)
    with pytest.raises(BaseEncoderError, match=why):
        load_encoder(tmp_path / "adapter")


def test_an_adapter_in_a_pickle_or_damaged_is_refused(base_of, tmp_path):
    run(base_of("bert"), tmp_path / "run", keep_adapter=True)
    path = tmp_path / "run/model/adapter_model.safetensors"
    shutil.copytree(tmp_path / "run/model", tmp_path / "pickled")
    (tmp_path / "pickled/adapter_model.safetensors").rename(tmp_path / "pickled/adapter_model.bin")
    for beside in (None, "model.safetensors", "config.json"):
        if beside:
            shutil.copy(base_of("bert") / beside, tmp_path / "pickled")
        with pytest.raises(BaseEncoderError, match="is a pickle"):
            load_encoder(tmp_path / "pickled")
    tiny.flip_bit(path, -5)
    with pytest.raises(BaseEncoderError, match="is damaged"):
        load_encoder(tmp_path / "run")


def test_without_peft_it_says_what_to_install(base_of, tmp_path, monkeypatch):
    adapted(base_of("bert")).save(tmp_path / "adapter")
    monkeypatch.setattr("selfsent.models.lora.find_spec", lambda name: None)
    for base, options in ((base_of("bert"), {}), (tmp_path / "adapter", {"lora": None})):
        with pytest.raises(SettingsError, match=r'-c constraints.txt -e "\.\[lora\]"'):
            run(base, tmp_path / "run", **options)


def test_a_peft_that_is_too_old_for_transformers_is_told(base_of, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.integrations.peft.MIN_PEFT_VERSION", "99.0")
    with pytest.raises(SettingsError, match=r"wants peft 99\.0 or newer, here is \d"):
        run(base_of("bert"), tmp_path / "run")


def test_an_adapter_names_a_hub_id_or_an_absolute_path(base_of, monkeypatch):
    base = base_of("bert")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **how: str(base))
    with pytest.warns(HubFallbackWarning):
        assert known_elsewhere("someone/adapted-bert") == "someone/adapted-bert"
    assert known_elsewhere(str(base)) == str(base)
    monkeypatch.chdir(base.parent)
    assert known_elsewhere(base.name) == str(base)
    assert known_elsewhere("bundled-raw").endswith("raw")
