"""Models with settings of sentence-transformers' own: the same vectors as there, or a line that says why not."""

import json
import shutil

import numpy as np
import pytest
import torch

import tiny
from selfsent.errors import BaseEncoderError
from selfsent.models.encoding import encode, prompt_of
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder
from selfsent.scorers.load_scorer import load_scorer

TEXTS = [*tiny.make_sentences(6, seed=1), " ".join(tiny.make_sentences(20, seed=2))]


@pytest.fixture(scope="module")
def base(base_of):
    return base_of("bert")


def saved(base, directory, transformer=None, pooling=None, **options):
    """A base as a model that sentence-transformers saved, with options of its modules and of the whole."""
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    modules = Transformer(str(base), **transformer or {}), Pooling(tiny.SIZE, "mean", **pooling or {})
    return tiny.save_modules(directory, *modules, **options)


def assert_peer_encodes(directory, vectors):
    """Plain sentence-transformers gives these vectors of the texts, one at a time."""
    peer = tiny.peer(directory)
    np.testing.assert_allclose(vectors, np.stack([peer.encode(text) for text in TEXTS]), atol=2e-5)


def assert_the_same(directory, again):
    """Vectors are the peer's, before and after the encoder is saved."""
    encoder = load_encoder(directory)
    found = encode(encoder, TEXTS)
    assert_peer_encodes(directory, found)
    encoder.save(again)
    assert_peer_encodes(again, found)


def architecture(directory, name, kind, **config):
    """A tiny model of an architecture that is in no other test."""
    from transformers import AutoConfig, AutoModel

    tokenizer = tiny.make_tokenizer(kind)
    torch.manual_seed(0)
    model = AutoModel.from_config(
        AutoConfig.for_model(name, vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **config)
    )
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def test_a_chat_template_is_left_out_of_a_plain_language_model(base_of, tmp_path):
    from transformers import AutoTokenizer

    base = shutil.copytree(base_of("qwen3"), tmp_path / "chat")
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.chat_template = "{% for m in messages %}<s>{{ m['role'] }}</s>{% endfor %}"
    tokenizer.save_pretrained(base)
    encoder = load_encoder(base)
    found = encode(encoder, TEXTS)
    np.testing.assert_allclose(found, encode(load_encoder(base_of("qwen3")), TEXTS), atol=1e-6)
    encoder.save(tmp_path / "again")
    assert_peer_encodes(tmp_path / "again", found)
    whole = saved(base, tmp_path / "whole")
    with pytest.raises(BaseEncoderError, match="it gets other tokens than sentence-transformers"):
        load_encoder(whole)


def test_code_that_comes_with_a_model_is_refused_and_not_needed_where_transformers_knows_it(base, tmp_path):
    model = saved(base, tmp_path / "model")
    own = {"auto_map": {"AutoConfig": "configuration.NewConfig", "AutoModel": "modeling.NewModel"}}
    tiny.change_json(model / "config.json", **own)
    (model / "modeling.py").write_text("raise SystemExit('it ran')")
    np.testing.assert_array_equal(encode(load_encoder(model), TEXTS), encode(load_encoder(base), TEXTS))
    tiny.change_json(model / "config.json", model_type="new")
    with pytest.raises(BaseEncoderError, match=r"needs code of its own \('new'\), and selfsent runs no code") as told:
        load_encoder(model)
    assert "\n" not in str(told.value)
    with pytest.raises(BaseEncoderError) as told:
        load_scorer(str(model))
    assert "\n" not in str(told.value)


def test_a_prompt_that_the_pooling_leaves_out_is_left_out(base, tmp_path):
    prompts = {"prompts": {"q": "ba du: "}, "default_prompt_name": "q"}
    model = saved(base, tmp_path / "model", pooling={"include_prompt": False}, **prompts)
    assert_the_same(model, tmp_path / "again")
    encoder, included = load_encoder(model), load_encoder(saved(base, tmp_path / "other", **prompts))
    assert fingerprint(encoder) != fingerprint(included)
    assert load_encoder(model, "cls").pooling_module.include_prompt is False


def test_settings_that_are_not_known_are_refused_where_they_change_anything(base, tmp_path):
    model = saved(base, tmp_path / "model", transformer={"processing_kwargs": {"text": {"max_length": 6}}})
    with pytest.raises(BaseEncoderError, match="it gets other tokens than sentence-transformers"):
        load_encoder(model)
    np.testing.assert_allclose(load_scorer(str(model))(TEXTS), tiny.peer(model).encode(TEXTS), atol=2e-5)


def test_of_a_saved_encoder_that_reads_the_decoder_the_encoder_is_not_taken(base_of, tmp_path):
    model = saved(base_of("bart"), tmp_path / "bart")
    with pytest.raises(BaseEncoderError, match="vectors of its decoder's states"):
        load_encoder(model)
    load_encoder(base_of("bart")).save(tmp_path / "ours")
    assert_the_same(tmp_path / "ours", tmp_path / "again")


def test_rotary_positions_are_no_limit_where_the_model_names_a_longer_one(tmp_path):
    base = tiny.save_base(tmp_path / "base", "qwen3", max_position_embeddings=24)
    assert load_encoder(base).tokenizer.model_max_length == 24
    model = saved(base, tmp_path / "model")
    tiny.change_json(model / "sentence_bert_config.json", max_seq_length=90)
    encoder = load_encoder(model)
    assert encoder.tokenizer.model_max_length == 90
    assert_peer_encodes(model, encode(encoder, TEXTS))


def test_word_vectors_below_a_network_are_refused(tmp_path):
    from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings

    tokenizer = tiny.make_tokenizer()
    words = WordEmbeddings(tokenizer, torch.randn(len(tokenizer), 16))
    tiny.save_modules(tmp_path, words, LSTM(16, 16, bidirectional=True), Pooling(32, "mean"))
    with pytest.raises(BaseEncoderError, match="is a WordEmbeddings; selfsent needs a transformer there"):
        load_encoder(tmp_path)


def test_token_states_of_another_width_are_refused_in_a_line(tmp_path):
    sizes = {"hidden_size": 32, "word_embed_proj_dim": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    base = architecture(tmp_path, "opt", "byte pairs", ffn_dim=64, max_position_embeddings=104, **sizes)
    with pytest.raises(
        BaseEncoderError, match="cannot be loaded as an encoder: its vectors have 16 numbers, but its pooling says 32"
    ):
        load_encoder(base)


def test_a_window_that_only_the_mask_knows_is_not_lost(tmp_path):
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    options = {"intermediate_size": 64, "max_position_embeddings": 104, "sliding_window": 8, "num_local_experts": 2}
    base = architecture(tmp_path / "base", "phimoe", "byte pairs", **sizes, **options)
    assert not load_encoder(base).states.runs_packed
    assert_the_same(base, tmp_path / "again")


def test_the_transformer_is_found_by_its_path_in_the_modules(base, tmp_path):
    model = saved(base, tmp_path / "model")
    (model / "encoder").mkdir()
    for path in list(model.iterdir()):
        if path.is_file() and path.name not in ("modules.json", "config_sentence_transformers.json"):
            path.rename(model / "encoder" / path.name)
    modules = json.loads((model / "modules.json").read_text())
    (model / "modules.json").write_text(json.dumps([{**modules[0], "path": "encoder"}, *modules[1:]]))
    (model / "config.json").write_text('{"__version__": "0.3.0"}')
    assert_the_same(model, tmp_path / "again")
    (model / "encoder" / "config.json").rename(model / "encoder" / "adapter_config.json")
    with pytest.raises(BaseEncoderError, match="is an adapter other than plain LoRA: merge it"):
        load_encoder(model)
    kind = "sentence_transformers.base.modules.router.Router"
    (model / "modules.json").write_text(json.dumps([{**modules[0], "type": kind}, *modules[1:]]))
    with pytest.raises(BaseEncoderError, match="is a Router; selfsent needs a transformer"):
        load_encoder(model)


def test_what_is_cut_is_the_beginning_where_the_tokenizer_says_so(base_of, tmp_path):
    from selfsent.data.views.tokens import Template, Tokens
    from selfsent.models.packing import pack

    base = shutil.copytree(base_of("bert"), tmp_path / "left")
    tiny.change_json(base / "tokenizer_config.json", truncation_side="left")
    assert_the_same(base, tmp_path / "again")
    encoder = load_encoder(base)
    text = " ".join(tiny.make_sentences(40))
    read = pack(encoder, [text]).ids.numpy()
    whole = np.array(encoder.tokenizer(text, add_special_tokens=False)["input_ids"])
    assert len(read) == tiny.LONGEST < len(whole)
    tokens = Tokens(whole, np.array([len(whole)]), np.ones(len(whole), bool), np.array([0]))
    trained_on = Template.of(encoder.tokenizer, encoder.vocabulary_size).pack(tokens, tiny.LONGEST)
    np.testing.assert_array_equal(trained_on.ids.numpy(), read)


@pytest.fixture(scope="module")
def prompted(base, tmp_path_factory):
    prompts = {"query": "ba du ka ", "document": "fi ", "other": "lu lu "}
    return saved(base, tmp_path_factory.mktemp("prompted"), prompts=prompts, default_prompt_name="other")


def test_prompts_are_chosen_as_the_peer_does(prompted, base):
    encoder, peer = load_encoder(prompted), tiny.peer(prompted)
    for side, theirs in ((None, peer.encode), ("query", peer.encode_query), ("document", peer.encode_document)):
        np.testing.assert_allclose(encode(encoder, TEXTS, side=side), theirs(TEXTS), atol=2e-5)
    assert prompt_of(load_encoder(base), "query") == ""


def test_a_search_puts_the_prompts_of_both_sides(prompted, base, tmp_path):
    from selfsent.data.corpus import read_corpus
    from selfsent.data.vector_files import VectorsFile
    from selfsent.errors import DataError
    from selfsent.index import Index, write_index
    from selfsent.search import encode_to_file, search

    encoder, peer, corpus = load_encoder(prompted), tiny.peer(prompted), read_corpus(TEXTS)
    queries, documents = peer.encode_query(TEXTS[:2]), peer.encode_document(TEXTS)
    unit = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (queries, documents)]
    expected = np.sort(unit[0] @ unit[1].T)[:, ::-1][:, :3]

    def assert_found(found):
        np.testing.assert_allclose([[hit.dense_score for hit in hits] for hits in found], expected, atol=1e-3)

    assert_found(search(encoder, corpus, TEXTS[:2], 3, lexical_weight=0))
    write_index(encoder, corpus, tmp_path / "i", str(prompted), fingerprint(encoder))
    assert_found(Index(tmp_path / "i").search(encode(encoder, TEXTS[:2], side="query"), 3))
    encode_to_file(encoder, corpus, tmp_path / "plain.npy")
    with pytest.raises(DataError, match="encode --prompt document"):
        search(encoder, corpus, TEXTS[:2], 3, lexical_weight=0, file=VectorsFile(tmp_path / "plain.npy"))
    encode_to_file(encoder, corpus, tmp_path / "d.npy", side="document")
    assert_found(search(encoder, corpus, TEXTS[:2], 3, lexical_weight=0, file=VectorsFile(tmp_path / "d.npy")))
    encoder.sentence_transformer.prompts["document"] = "other"
    assert fingerprint(encoder) != fingerprint(load_encoder(prompted))


def test_batches_take_the_prompt(prompted):
    from selfsent.encoding import BatchEncoder

    expected = tiny.peer(prompted).encode_document(TEXTS)
    np.testing.assert_allclose(BatchEncoder(prompted, prompt="document").vectors(TEXTS), expected, atol=2e-5)


def test_vectors_that_are_cut_short_stay_so(base, tmp_path):
    model = saved(base, tmp_path / "cut", truncate_dim=8)
    assert load_encoder(model).embedding_size == 8
    assert_the_same(model, tmp_path / "again")


def test_a_layout_of_version_2_is_read_as_today(base, tmp_path):
    """The transformer in a folder of its own, classes at their former places, and a flag for each pooling."""
    now, then = saved(base, tmp_path / "now"), tmp_path / "then"
    (then / "0_Transformer").mkdir(parents=True)
    (then / "1_Pooling").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(now / name, then / "0_Transformer")
    kinds = [("Transformer", "0_Transformer"), ("Pooling", "1_Pooling")]
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (kind, path) in enumerate(kinds)
    ]
    lengths = {"max_seq_length": 20, "do_lower_case": False}
    pooling = {"word_embedding_dimension": tiny.SIZE}
    pooling |= {f"pooling_mode_{name}": name == "max_tokens" for name in ("cls_token", "mean_tokens", "max_tokens")}
    files = {"modules.json": modules, "0_Transformer/sentence_bert_config.json": lengths}
    files |= {
        "1_Pooling/config.json": pooling,
        "config_sentence_transformers.json": {"__version__": {"pytorch": "1.9"}},
    }
    for name, content in files.items():
        (then / name).write_text(json.dumps(content))
    encoder = load_encoder(then)
    assert (encoder.pooling, encoder.tokenizer.model_max_length) == ("max", 20)
    assert_the_same(then, tmp_path / "again")


def test_dense_layers_and_norms_behind_the_pooling_stay(base, tmp_path):
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.modules import LayerNorm, Normalize, Pooling, Transformer

    torch.manual_seed(0)
    norm = LayerNorm(12)
    torch.nn.init.normal_(norm.norm.weight)
    behind = Dense(tiny.SIZE, 12), norm, Dense(12, 20), Normalize()
    tiny.save_modules(tmp_path / "model", Transformer(str(base)), Pooling(tiny.SIZE, "mean"), *behind)
    assert load_encoder(tmp_path / "model").embedding_size == 20
    assert_the_same(tmp_path / "model", tmp_path / "again")


def test_a_router_is_asked_as_the_peer_asks_it(base_of, tmp_path):
    from sentence_transformers.sentence_transformer.modules import Pooling, Router, Transformer

    routes = [[Transformer(str(base_of(name))), Pooling(tiny.SIZE, "mean")] for name in ("bert", "distilbert")]
    router = Router.for_query_document(query_modules=routes[0], document_modules=routes[1])
    tiny.save_modules(tmp_path, router)
    peer = tiny.peer(tmp_path)
    asked, held = load_scorer(str(tmp_path)).query_document_vectors(TEXTS[:2], TEXTS, search=True)
    for found, expected in ((asked, peer.encode_query(TEXTS[:2])), (held, peer.encode_document(TEXTS))):
        unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(np.asarray(found), unit, atol=2e-5)


def test_a_folder_of_links_is_read_as_one_of_files(base, tmp_path):
    """As in the hub's cache."""
    model = saved(base, tmp_path / "model")
    for path in model.rglob("*"):
        link = tmp_path / "links" / path.relative_to(model)
        if path.is_file():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    (tmp_path / "link").symlink_to(tmp_path / "links")
    assert_the_same(tmp_path / "link", tmp_path / "again")
    assert not [path for path in (tmp_path / "again").rglob("*") if path.is_symlink()]


def test_relative_positions_of_mpnet_come_through(base_of, tmp_path):
    base = base_of("mpnet")
    assert_the_same(base, tmp_path / "again")
    bias = "encoder.relative_attention_bias.weight"
    encoder, again = load_encoder(base), load_encoder(tmp_path / "again")
    assert torch.equal(encoder.transformer.get_parameter(bias), again.transformer.get_parameter(bias))
    with torch.no_grad():
        again.transformer.get_parameter(bias).add_(torch.randn_like(again.transformer.get_parameter(bias)))
    assert np.abs(encode(encoder, TEXTS) - encode(again, TEXTS)).max() > 1e-3
