import json

import pytest

from selfsent.errors import BaseEncoderError, HubFallbackWarning
from selfsent.models.bases import resolve
from selfsent.models.loading import load_encoder
from selfsent.models.saved import is_sentence_encoder


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"stopped": "the loss is not finite at step 6"}, "the loss is not finite at step 6; leave it out"),
        ({"status": "running"}, "go on with it by --resume"),
        ([], "go on with it by --resume"),
    ],
)
def test_a_run_without_a_model_says_why(record, complaint, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(BaseEncoderError, match=f"is a run without a model: {complaint}"):
        resolve(tmp_path)


def test_runs_over_seeds_are_named_one_by_one(tmp_path):
    (tmp_path / "seeds" / "0").mkdir(parents=True)
    (tmp_path / "seeds" / "0" / "run.json").write_text("{}")
    with pytest.raises(BaseEncoderError, match=r"holds a run of each seed: give one or all of .*/seeds/\*$"):
        resolve(tmp_path)


def test_a_tokenizer_alone_in_the_hub_s_cache_is_no_model(tmp_path, monkeypatch):
    asked = []

    def fetched(name, local_files_only=False, **_):
        asked.append(local_files_only)
        if not local_files_only:
            (tmp_path / "model.safetensors").write_bytes(b"")
        return str(tmp_path)

    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    monkeypatch.setattr("selfsent.models.bases.refuse_unsafe", lambda directory: None)
    with pytest.warns(HubFallbackWarning, match="there is no directory some/tickets here: it is taken from the hub"):
        assert resolve("some/tickets") == tmp_path
    assert asked == [True, False]
    resolve("some/tickets")  # said once
    assert asked == [True, False, True]


def test_a_transformer_of_a_shape_is_made_where_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    for name, layers, width in (("bert:1x64", 1, 64), ("albert:2x128:bundled-encoder", 2, 128)):
        model = load_encoder(name)
        assert (model.transformer.config.num_hidden_layers, model.embedding_size) == (layers, width)
        assert model.require_head("test").output.out_features == model.vocabulary_size
        assert not is_sentence_encoder(resolve(name))
    assert resolve("bert:1x64") == resolve("bert:1x64:bundled-raw")
    for name, complaint in (
        ("bert:64", "LAYERSxWIDTH"),
        ("gru:2x64", "LAYERSxWIDTH"),
        ("bert:1x65", "a multiple of 64"),
        ("bert:0x64", "LAYERSxWIDTH"),
        ("bert:1x64:bundled", "has no cls token"),
    ):
        with pytest.raises(BaseEncoderError, match=complaint):
            resolve(name)


def test_a_random_table_is_made_where_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    sizes = [load_encoder(name).table.embedding_dim for name in ("random-table:12", "random-table")]
    assert sizes == [12, 256]
    with pytest.raises(BaseEncoderError, match="random-table:0: the size is a number of 1 to"):
        resolve("random-table:0")
    with pytest.raises(BaseEncoderError, match="takes a size alone, as in random-table:100"):
        resolve("random-table:12:bundled")
