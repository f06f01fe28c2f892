"""Names of bases, and which directories are refused before anything is loaded from them."""

import json
import shutil

import pytest

import tiny
from selfsent.augment.translate import marian
from selfsent.errors import BaseEncoderError, HubFallbackWarning
from selfsent.integrity import embed_checksum
from selfsent.methods import get_method
from selfsent.models.bases import resolve
from selfsent.models.loading import load_encoder
from selfsent.models.saved import is_sentence_encoder
from selfsent.training.plan import Plan


@pytest.mark.parametrize("name", ["", "model"])
@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"stopped": "the loss is not finite at step 6"}, "the loss is not finite at step 6; leave it out"),
        ({"status": "running"}, "resume it first"),
        ({"status": "finished"}, "it ended without one"),
        ([], "resume it first"),
    ],
)
def test_a_run_without_a_model_says_why(name, record, complaint, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(BaseEncoderError, match=f"is a run without a model: {complaint}"):
        resolve(tmp_path / name)


def test_a_base_that_is_not_there_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no encoder")
    (tmp_path / "over" / "seeds" / "0").mkdir(parents=True)
    (tmp_path / "over" / "seeds" / "0" / "run.json").write_text("{}")

    def unreachable(*args, **kwargs):
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    for name, complaint in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "nothing", "there is no directory"),
        (tmp_path, "holds no encoder"),
        (tmp_path / "over", r"holds a run of each seed: give one or all of .*/seeds/\*$"),
        ("nobody/nothing", r"there is no directory nobody/nothing, and as a hub id .*ConnectionError: no route"),
    ):
        with pytest.raises(BaseEncoderError, match=complaint):
            resolve(name)


def test_a_tokenizer_alone_in_the_hub_s_cache_is_no_model(tmp_path, monkeypatch):
    lookups = []

    def fetched(name, local_files_only=False, **_):
        lookups.append(local_files_only)
        if not local_files_only:
            (tmp_path / "model.safetensors").write_bytes(b"")
        return str(tmp_path)

    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    monkeypatch.setattr("selfsent.models.bases.refuse_unsafe", lambda directory: None)
    with pytest.warns(HubFallbackWarning, match="there is no directory some/tickets here: it is taken from the hub"):
        assert resolve("some/tickets") == tmp_path
    assert lookups == [True, False]
    resolve("some/tickets")  # said once
    assert lookups == [True, False, True]


def test_a_transformer_of_a_shape_is_made_where_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    for name, layers, width in (("bert:1x64", 1, 64), ("albert:2x128:bundled-encoder", 2, 128)):
        model = load_encoder(name)
        assert (model.transformer.config.num_hidden_layers, model.embedding_size) == (layers, width)
        assert model.require_head("test").output.out_features == model.vocabulary_size
        assert not is_sentence_encoder(resolve(name))
    assert resolve("bert:1x64") == resolve("bert:1x64:bundled-raw")
    assert load_encoder("random-table:12").table.embedding_dim == 12


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        *((name, "LAYERSxWIDTH") for name in ("bert:64", "bert:1x65", "bert:0x64")),
        ("random-table:0", "the size is a number of 1 to 16384"),
        ("random-table:12:bundled", "takes a size alone, as in random-table:100"),
        ("bert:1x64:bundled", "has no cls token"),
        ("bert:1x64:./nowhere", "there is no directory ./nowhere"),
    ],
)
def test_what_the_name_of_an_untrained_base_cannot_be(name, complaint):
    with pytest.raises(BaseEncoderError, match=complaint) as caught:
        resolve(name)
    assert "\n" not in str(caught.value)


@pytest.fixture
def model(tmp_path):
    """As far as a directory must be one."""
    folder = tmp_path / "model"
    (folder / "1_Pooling" / "route").mkdir(parents=True)
    modules = [{"idx": n, "name": str(n), "path": path, "type": "a"} for n, path in enumerate(("", "1_Pooling"))]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


@pytest.mark.parametrize("path", ["../1_Pooling", "1_Pooling/../../x", "/etc", "..\\x", "C:\\x"])
def test_a_module_outside_the_directory_is_refused(model, path):
    assert resolve(model) == model
    modules = json.loads((model / "modules.json").read_text())
    modules[1]["path"] = path
    (model / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(BaseEncoderError, match=r"modules\.json names .* which is elsewhere: a model is one"):
        resolve(model)


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "1_Pooling/model.pt", "pytorch_model-00001-of-00002.bin", "1_Pooling/route/model.bin"]
)
def test_a_pickle_is_refused_where_there_is_nothing_else(model, name):
    (model / name).write_bytes(b"a pickle")
    (model / name).with_name("model_x.safetensors").write_bytes(b"")  # of another name, which is no excuse
    with pytest.raises(BaseEncoderError, match=f"{name} is a pickle, .*: only safetensors are read"):
        resolve(model)
    (model / name).with_name("model.safetensors").write_bytes(b"")
    with pytest.raises(BaseEncoderError, match="is damaged"):  # it goes on to the weights
        resolve(model)


@pytest.mark.parametrize(
    "index",
    [
        {"weight_map": {"a": "model-1-of-1.safetensors", "b": "weights.dat"}},
        {"weight_map": {"a": "pytorch_model.bin"}},
        {"weight_map": {"a": "../model.safetensors"}},
        {"weight_map": {"a": "a.safetensors\n"}},
        {"weight_map": ["a"]},
        [],
    ],
)
def test_parts_of_weights_are_safetensors_beside_their_list(model, index):
    """A list of safetensors files may name a pickle, which transformers then opens."""
    file = model / "model.safetensors.index.json"
    file.write_text(json.dumps({"weight_map": {"a": "model-00001-of-00001.safetensors"}}))
    assert resolve(model) == model
    file.write_text(json.dumps(index))
    with pytest.raises(BaseEncoderError, match=r"index\.json names weights that are no safetensors file beside it"):
        resolve(model)
    with pytest.raises(BaseEncoderError, match="beside it"):
        marian(str(model), 1)


@pytest.mark.parametrize("name", ["modules.json", "model.safetensors"])
def test_json_that_is_nested_too_deep_is_one_line(base_of, tmp_path, name):
    folder = shutil.copytree(base_of("bert"), tmp_path / "deep")
    deep = b"[" * 100_000
    (folder / name).write_bytes(deep if name.endswith("json") else len(deep).to_bytes(8, "little") + deep)
    with pytest.raises(BaseEncoderError):
        load_encoder(folder)


def test_a_translator_s_code_is_neither_run_nor_asked_about(base_of, tmp_path, monkeypatch):
    folder = shutil.copytree(base_of("bert"), tmp_path / "evil")
    code = {"auto_map": {"AutoConfig": "evil.Evil", "AutoModelForSeq2SeqLM": "evil.Evil"}, "model_type": "evil"}
    tiny.change_json(folder / "config.json", **code)
    (folder / "evil.py").write_text("raise SystemExit('run')")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a question that waits for an answer"))
    with pytest.raises(BaseEncoderError, match="cannot be loaded as a translator"):
        marian(str(folder), 1)


def test_damaged_weights_are_named_before_they_are_loaded(base_of, tmp_path):
    model = shutil.copytree(base_of("bert"), tmp_path / "copy")
    embed_checksum(model)
    assert resolve(model) == model
    file = model / "model.safetensors"
    tiny.flip_bit(file, -5)
    with pytest.raises(BaseEncoderError, match=r"model\.safetensors is damaged: it is not as it was written"):
        resolve(model)
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(BaseEncoderError, match="is damaged"):
        Plan.resolve(get_method("mlm"), model)


def test_a_damaged_cross_encoder_is_one_line(tmp_path):
    from selfsent.scorers.load_scorer import load_scorer

    (tmp_path / "config.json").write_text('{"architectures": ["BertForSequenceClassification"], "model_type": "bert"}')
    with pytest.raises(BaseEncoderError, match="cannot load the model"):
        load_scorer(str(tmp_path))
