"""Encoders that people start from today, as tiny models: with their modules and prompts, trained, resumed, exported."""

import json
import shutil

import numpy as np
import pytest
import torch

import tiny
from selfsent import train
from selfsent.data.corpus import read_corpus
from selfsent.errors import BaseEncoderError
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder

TODAY = {
    "modernbert": ("cls", {}),
    "gemma3_text": ("mean", {"query": "ba du | ka ", "document": "fi | lu ", "STS": "mo | ka "}),
    "qwen3": ("lasttoken", {"query": "ba du\nka", "document": ""}),
    "gte": ("cls", {}),
    "nomic_bert": ("mean", {"query": "ba du ", "passage": "fi ", "Clustering": "lu "}),
    "xlm-roberta": ("mean", {"query": "ba ", "document": "fi "}),
    "t5": ("mean", {"query": "ba ", "document": "fi "}),
    "mpnet": ("mean", {}),
}
"""Pooling and prompts of EmbeddingGemma, Qwen3-Embedding, gte-multilingual and ModernBERT, nomic-embed, E5 ..."""
SENTENCES = tiny.make_sentences(48, seed=7, words=(2, 12))
RUN = {"batch_size": 8, "max_length": tiny.LONGEST, "hold_out": 0, "precision": "float32"}
PAIRS, DOCUMENTS, LABELLED = "pairs", "documents", "labelled"
METHODS = {
    **{name: (DOCUMENTS, {}) for name in ("simcse", "tsdae", "mlm", "ct", "ct-inbatch", "infomax", "whitening")},
    **{name: (DOCUMENTS, {}) for name in ("flow", "neighbours", "cropping")},
    **{name: (DOCUMENTS, {"delete_words": 0.3}) for name in ("bootstrap", "ntxent")},
    **{name: (LABELLED, {}) for name in ("softmax", "cosine", "cross-encoder")},
    "mnrl": (PAIRS, {"mini_batch_size": 3}),
    "distil": (DOCUMENTS, {"mini_batch_size": 3}),
}
"""Methods, each with the corpus and the options it is tried with."""
REFUSED = {
    ("infomax", "gemma3_text"): "the dense layer after its pooling takes no vectors of width",
    ("tsdae", "t5"): "tsdae needs the decoder of this 't5'",
}
"""What cannot be, and the line that says so."""


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    cache, halves = tmp_path_factory.mktemp("corpora"), {"a": SENTENCES[:24], "b": SENTENCES[24:]}
    labelled = {**halves, "label": [0, 1] * 12, "score": [0.0, 0.5, 1.0] * 8}
    about = {"label_column": "label", "score_column": "score"}
    return {
        PAIRS: read_corpus(halves, text_columns=("a", "b"), cache=cache),
        DOCUMENTS: read_corpus({"text": SENTENCES, "id": [*range(12)] * 4}, document_column="id", cache=cache),
        LABELLED: read_corpus(labelled, text_columns=("a", "b"), **about, cache=cache),
    }


@pytest.fixture(scope="module")
def today(base_of, tmp_path_factory):
    """The directory of a base by its architecture, as sentence-transformers saves it."""
    made = {}

    def of(name):
        if name in made:
            return made[name]
        pooling, prompts = TODAY[name]
        from sentence_transformers.base.modules import Dense
        from sentence_transformers.sentence_transformer.modules import Normalize

        encoder = load_encoder(base_of(name, initializer_range=0.3), pooling)
        torch.manual_seed(0)
        if name == "gemma3_text":
            for sizes in ((tiny.SIZE, 2 * tiny.SIZE), (2 * tiny.SIZE, tiny.SIZE)):
                encoder.sentence_transformer.append(Dense(*sizes, bias=False, activation_function=torch.nn.Identity()))
        encoder.sentence_transformer.append(Normalize())
        encoder.sentence_transformer.prompts = prompts
        made[name] = tmp_path_factory.mktemp("today") / name
        encoder.save(made[name])
        return made[name]

    return of


def assert_as_the_peer(model, atol=5e-5, **given):
    """Vectors of queries, documents and texts of one kind are those of plain sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    encoder, peer = load_encoder(model), SentenceTransformer(str(model), device="cpu", local_files_only=True, **given)
    texts = [*SENTENCES[:6], " ".join(SENTENCES[:5])]  # longer than any window
    for side, theirs in ((None, peer.encode), ("query", peer.encode_query), ("document", peer.encode_document)):
        np.testing.assert_allclose(encode(encoder, texts, side=side), theirs(texts), atol=atol, rtol=1e-4)
    return peer


def weights(model):
    return {path.relative_to(model): path.read_bytes() for path in model.rglob("*.safetensors")}


def some(first):
    """Architectures as parameters; all but the first are for `make contract`."""
    return [pytest.param(name, marks=() if name == first else pytest.mark.full) for name in TODAY]


@pytest.mark.parametrize("lora", [None, pytest.param(4, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", some("gemma3_text"))
def test_a_run_with_prompts_and_cached_gradients_goes_on_where_it_was(name, lora, today, corpora, tmp_path):
    base, output = today(name), tmp_path / "run"
    how = {**RUN, "steps": 4, "mini_batch_size": 3, "checkpoint_every": 2, "keep": 2, "dropout": 0.1}
    how |= {"lora": lora} if lora else {}
    run = train(corpora[PAIRS], "mnrl", base, output, **how)
    _, prompts = TODAY[name]
    document = prompts.get("document") or prompts.get("passage") or ""
    asked = run.record["config"].get("prompts", {"query": "", "document": ""})
    assert (asked["query"], asked["document"]) == (prompts.get("query", ""), document)
    peer = assert_as_the_peer(output / "model")
    assert (peer.prompts["query"], peer.prompts["document"]) == (asked["query"], document)
    assert load_encoder(base).states.runs_packed == (name not in ("t5", "mpnet"))
    assert weights(base) != weights(output / "model")

    again = shutil.copytree(output, tmp_path / "again")
    record = json.loads((again / "run.json").read_text())
    del record["checksum"]
    (again / "run.json").write_text(json.dumps({**record, "status": "running"}))
    shutil.rmtree(again / "model")
    assert [path.name for path in (again / "checkpoints").iterdir()] == ["step-00000002"]
    train(corpora[PAIRS], "mnrl", base, again, **how, resume=True)
    assert weights(again / "model") == weights(output / "model")


@pytest.mark.full
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TODAY)
def test_every_method_trains_them_with_prompts(name, method, today, corpora, tmp_path):
    if method == "mlm" and name in (*tiny.UNMASKED, "t5"):
        pytest.skip("it has no masked language model, which the grid shows to be told")
    base, (corpus, changes) = today(name), METHODS[method]
    steps = {} if method == "whitening" else {"steps": 2, "dropout": 0.1}
    teacher = {"teacher": str(base)} if method == "distil" else {}
    if why := REFUSED.get((method, name)):
        with pytest.raises(BaseEncoderError, match=why):
            train(corpora[corpus], method, base, tmp_path / "run", **RUN, **steps)
        return
    train(corpora[corpus], method, base, tmp_path / "run", **RUN, **steps, **teacher, **changes)
    if method != "cross-encoder":
        # Whitening multiplies the rounding of directions in which there is next to nothing.
        atol = 2e-3 if method == "whitening" else 5e-5
        assert_as_the_peer(tmp_path / "run" / "model", atol, trust_remote_code=method == "flow")


@pytest.mark.full
@pytest.mark.parametrize("name", TODAY)
def test_they_are_exported(name, today, tmp_path):
    from selfsent import export

    assert export(today(name), tmp_path / "graph").largest_difference < 1e-4
