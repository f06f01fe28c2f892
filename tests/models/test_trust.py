import json
import shutil

import pytest

from selfsent.errors import BaseEncoderError
from selfsent.integrity import seal
from selfsent.models.bases import refuse_unsafe, resolve
from selfsent.models.loading import load_encoder


@pytest.fixture
def model(tmp_path):
    """As far as a directory must be one."""
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "a"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "b"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def test_an_ordinary_directory_passes(model):
    assert resolve(model) == model


@pytest.mark.parametrize("place", ["../1_Pooling", "1_Pooling/../../x", "/etc", "..\\x", "C:\\x"])
def test_a_module_that_lies_elsewhere_is_refused(model, place):
    modules = json.loads((model / "modules.json").read_text())
    modules[1]["path"] = place
    (model / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(
        BaseEncoderError, match=r"modules\.json names .* which lies elsewhere: a model is one directory"
    ):
        resolve(model)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "1_Pooling/model.pt", "pytorch_model-00001-of-00002.bin"])
def test_a_pickle_is_refused_where_there_is_nothing_else(model, name):
    (model / name).write_bytes(b"a pickle")
    with pytest.raises(BaseEncoderError, match=f"{name} is a pickle, .*: only safetensors are read"):
        resolve(model)
    (model / name).with_name("model.safetensors").write_bytes(b"")
    with pytest.raises(BaseEncoderError, match="is damaged"):  # it goes on to the weights
        refuse_unsafe(model)


def test_weights_of_another_name_do_not_excuse_a_pickle(model):
    (model / "1_Pooling" / "model_x.safetensors").write_bytes(b"")
    (model / "1_Pooling" / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(BaseEncoderError, match=r"pytorch_model\.bin is a pickle"):
        resolve(model)


def test_nor_does_a_pickle_in_a_module_of_a_module(model):
    (model / "1_Pooling" / "route").mkdir()
    (model / "1_Pooling" / "route" / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(BaseEncoderError, match=r"pytorch_model\.bin is a pickle"):
        resolve(model)


@pytest.mark.parametrize("name", ["modules.json", "model.safetensors"])
def test_json_that_is_nested_too_deep_is_one_line(base, tmp_path, name):
    folder = shutil.copytree(base, tmp_path / "deep")
    deep = b"[" * 100_000
    (folder / name).write_bytes(deep if name.endswith("json") else len(deep).to_bytes(8, "little") + deep)
    with pytest.raises(BaseEncoderError):
        load_encoder(folder)


def test_a_translator_s_code_is_neither_run_nor_asked_about(base, tmp_path, monkeypatch):
    from selfsent.augment.marian import marian

    def asked(*_):
        raise AssertionError("asked")

    folder = shutil.copytree(base, tmp_path / "evil")
    about = json.loads((folder / "config.json").read_text())
    code = {"auto_map": {"AutoConfig": "evil.Evil", "AutoModelForSeq2SeqLM": "evil.Evil"}, "model_type": "evil"}
    (folder / "config.json").write_text(json.dumps({**about, **code}))
    (folder / "evil.py").write_text("raise SystemExit('run')")
    monkeypatch.setattr("builtins.input", asked)
    with pytest.raises(BaseEncoderError, match="cannot be loaded as a translator"), marian(str(folder), 1):
        pass


def test_damaged_weights_are_named_before_they_are_loaded(base, tmp_path):
    model = shutil.copytree(base, tmp_path / "copy")
    seal(model)
    assert resolve(model) == model
    file = model / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-5] ^= 4
    file.write_bytes(bytes(data))
    with pytest.raises(BaseEncoderError, match=r"model\.safetensors is damaged: it is not as it was written"):
        resolve(model)


def test_code_is_neither_run_nor_asked_about(base, tmp_path, monkeypatch):
    from selfsent.models.loading import load_encoder

    model, touched = shutil.copytree(base, tmp_path / "copy"), tmp_path / "touched"
    (model / "evil.py").write_text(f"open({str(touched)!r}, 'w')\nclass Config: pass\n")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(
        json.dumps({**config, "model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}})
    )
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a question that waits for an answer"))
    with pytest.raises(BaseEncoderError, match="cannot be loaded as an encoder"):
        load_encoder(model)
    assert not touched.exists()


@pytest.mark.parametrize(
    "change", [{"hidden_size": "many"}, {"num_attention_heads": 0}, {"vocab_size": -1}, {"model_type": 7}]
)
def test_nonsense_in_a_configuration_is_one_line(base, tmp_path, change):
    from selfsent.models.loading import load_encoder

    model = shutil.copytree(base, tmp_path / "copy")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(BaseEncoderError, match="cannot be loaded as an encoder"):
        load_encoder(model)


def test_a_damaged_cross_encoder_is_one_line(tmp_path):
    from selfsent.evaluation.encoders import as_encoder

    (tmp_path / "config.json").write_text('{"architectures": ["BertForSequenceClassification"], "model_type": "bert"}')
    with pytest.raises(BaseEncoderError, match="cannot load the model"):
        as_encoder(str(tmp_path))


@pytest.fixture
def base(base_of):
    return base_of("bert")
