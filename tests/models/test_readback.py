"""What is saved is read again, and held against the model in memory, before it has its final name."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn

import tiny
from selfsent import train
from selfsent.errors import OutputError
from selfsent.models.assemble import put_head
from selfsent.models.cross_encoder import CrossEncoder
from selfsent.models.heads.flow import Flow
from selfsent.models.heads.options import CnnPoolOptions, NgramOptions
from selfsent.models.loading import load_encoder
from selfsent.models.readback import check_saved
from selfsent.training.models import save_model
from slices import some

SENTENCES = tiny.make_sentences(40)


def plain(base_of):
    return load_encoder(base_of("bert"))


def kept(base_of):
    from selfsent.models.lora import put_lora

    model = load_encoder(base_of("bert"))
    put_lora(model, 4, str(base_of("bert")))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(weight, std=0.1)
    return model


def mapped(base_of):
    model = load_encoder(base_of("bert"))
    model.put_affine(torch.randn(8, tiny.SIZE), torch.randn(8))
    return model


def table(base_of):
    return load_encoder(base_of("static"))


def table_and_more(base_of):
    model = load_encoder(base_of("static"))
    model.sentence_transformer.append(Normalize())
    return model


def flow(base_of):
    model = load_encoder(base_of("bert"))
    model.sentence_transformer.append(Flow(tiny.SIZE))
    return model


def ngram_cnn(base_of):
    model = load_encoder(base_of("bert"))
    put_head(model, NgramOptions(filters=16))
    return model


def cnn_pool(base_of):
    model = load_encoder(base_of("bert"))
    put_head(model, CnnPoolOptions())
    return model


def crossing(base_of):
    return CrossEncoder(load_encoder(base_of("bert"), "cls"), 1, nn.Sigmoid())


WITH_LORA = pytest.mark.skipif(not tiny.has_lora(), reason="peft is missing, or too old for this transformers")
KINDS = [plain, mapped, table, table_and_more, crossing, flow, ngram_cnn, cnn_pool, pytest.param(kept, marks=WITH_LORA)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_weights_pass_and_others_do_not(kind, base_of, tmp_path):
    torch.manual_seed(3)
    model = kind(base_of)
    save_model(tmp_path / "model", model.save, model)
    assert not list(tmp_path.glob(".*"))

    def spoiled(folder):
        model.save(folder)
        for file in folder.rglob("*model.safetensors"):
            weights = load_file(file)
            largest = max(weights, key=lambda name: weights[name].ndim * 1_000_000 + weights[name].numel())
            weights[largest] = weights[largest].flip(0).contiguous()
            save_file(weights, file, metadata={"format": "pt"})

    with pytest.raises(OutputError, match=r"nothing was written: .*vectors that differ by") as told:
        save_model(tmp_path / "other", spoiled, model)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "other").exists()
    with pytest.raises(OutputError, match="nothing was written"):
        save_model(tmp_path / "model", spoiled, model)
    check_saved(model, tmp_path / "model")  # the one before is still there


@pytest.mark.parametrize("name", some([*tiny.ARCHITECTURES], soon=["qwen3", "bart", "t5", "mpnet"]))
def test_every_architecture_is_read_again(name, base_of, tmp_path):
    model = load_encoder(base_of(name), dropout=0.1).train()
    save_model(tmp_path / "model", model.save, model)
    assert model.sentence_transformer.training  # left as it was


def test_training_ends_without_a_model_where_what_is_saved_is_another(base_of, tmp_path, monkeypatch):
    from selfsent.models import encoder

    save = encoder.Encoder.save

    def with_prefix(model, directory):
        save(model, directory)
        file = directory / "model.safetensors"
        renamed = {f"base_model.model.{name}": each for name, each in load_file(file).items()}
        save_file(renamed, file, metadata={"format": "pt"})

    monkeypatch.setattr(encoder.Encoder, "save", with_prefix)
    given = {"steps": 2, "batch_size": 8, "quiet": True}
    with pytest.raises(OutputError, match=r"cannot be read: all weights of .* have 'base_model\.model\.' before"):
        train(SENTENCES, "simcse", base_of("bert"), tmp_path / "run", **given)
    with pytest.raises(OutputError, match="cannot be read"):
        train(SENTENCES, "whitening", base_of("bert"), tmp_path / "white", quiet=True)
    for name in ("run", "white"):
        assert not (tmp_path / name / "model").exists()
    monkeypatch.undo()
    train(SENTENCES, "simcse", base_of("bert"), tmp_path / "run", resume=True, **given)
    assert (tmp_path / "run/model/modules.json").is_file()


@WITH_LORA
def test_an_adapter_of_a_base_in_half_precision_is_compared_in_full(tmp_path):
    lines = [f"The printer in room {number} does not answer." for number in range(40)]
    (tmp_path / "texts.txt").write_text("\n".join(lines), encoding="utf-8")
    common = {"steps": 5, "batch_size": 8, "hold_out": 0}

    kept = train(
        tmp_path / "texts.txt", "simcse", "bundled-encoder", tmp_path / "kept", lora=4, keep_adapter=True, **common
    )
    whole = train(tmp_path / "texts.txt", "simcse", tmp_path / "kept", tmp_path / "whole", **common)

    one, other = (torch.nn.functional.normalize(torch.tensor(run.model.encode(lines)).float()) for run in (kept, whole))
    assert (one * other).sum(1).min() > 0.9
