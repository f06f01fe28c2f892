import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from selfsent.data.vector_files import inner
from selfsent.errors import BaseEncoderError, DataError, SettingsError
from selfsent.models.bases import resolve
from selfsent.models.precision import computes_int8, inference_device
from selfsent.scorers.lexical import Hybrid, LexicalScorer
from selfsent.scorers.load_scorer import PairScorer, Scorer, check_model, load_object, load_scorer
from selfsent.scorers.passages import InPassages
from selfsent.scorers.programs import Program
from selfsent.scorers.rerank import Reranked, Reranker

INT8 = computes_int8(inference_device())


def test_every_distinct_text_is_encoded_once(model):
    encoder = load_scorer(model)
    first = encoder(["a b", "c", "a b"])
    encoder.similarity(["c", "d"], ["a b", "d"])
    assert sorted(model.seen) == ["a b", "c", "d"]
    assert first.dtype == np.float32
    assert (first[0] == first[2]).all()
    assert (first == np.asarray(model.encode(["a b", "c", "a b"]), np.float32)).all()


@pytest.mark.parametrize("shape", [(1, 3), (2,), (2, 3, 1)])
def test_wrong_shapes_are_refused(shape):
    with pytest.raises(DataError, match="for 2 texts"):
        Scorer(lambda texts: np.ones(shape), "odd")(["a", "b"])


def test_changing_size_is_refused():
    encoder = Scorer(lambda texts: np.ones((len(texts), len(texts))), "odd")
    encoder(["a"])
    with pytest.raises(DataError, match="size 1 and 2"):
        encoder(["b", "c"])


def test_written_vectors_stand_for_the_model(tmp_path):
    texts = ["a b", "", "line\nend", "ünï\t😀 "]
    encoder = Scorer(
        lambda texts: np.arange(3 * len(texts)).reshape(-1, 3) / 7, "model", "mean", ["a.tsv", "sts-b"], ["mlm"]
    )
    expected = encoder(texts)
    encoder.write(tmp_path / "kept.parquet")
    kept = load_scorer(str(tmp_path / "kept.parquet"))
    with pytest.raises(DataError, match="lacks 1 of 1 texts, first: 'c'"):
        kept(["c"])
    assert np.array_equal(kept(texts[::-1]), expected[::-1])
    assert kept.pooling == "mean"
    assert kept.trained_on == ["a.tsv", "sts-b"]
    assert kept.trained_by == ["mlm"]


@pytest.mark.parametrize(
    "kind", ["bfloat16", pytest.param("int8", marks=pytest.mark.skipif(not INT8, reason="needs AVX-512 VNNI, no GPU"))]
)
def test_a_lower_precision_is_used_where_the_processor_has_it(kind, monkeypatch):
    texts, options = ["a word", "two words"], {"fast": True} if kind == "bfloat16" else {"int8": True}
    exact = load_scorer("bundled-raw")(texts)
    monkeypatch.setattr("selfsent.models.precision.computes_bfloat16", lambda device: False)
    for there in (False, True):
        monkeypatch.setattr(f"selfsent.models.precision.computes_{kind}", lambda device, there=there: there)
        quick = load_scorer("bundled-raw", **options)
        assert np.array_equal(quick(texts), exact) is not there
        assert quick.pooling == (f"mean+{kind}" if there else "mean")
        assert np.array_equal(load_scorer("bundled-raw")(texts), exact)


def test_damaged_parquet_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "junk.parquet").write_bytes(b"PAR1 and no more")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "half.parquet")
    pq.write_table(pa.table({"text": ["a", "b"], "embedding": [[1.0], [1.0, 2.0]]}), tmp_path / "ragged.parquet")
    pq.write_table(pa.table({"text": ["a"], "embedding": ["b"]}), tmp_path / "words.parquet")
    for name in ("junk", "half", "ragged", "words"):
        with pytest.raises(DataError, match=r"must hold the columns text and embedding") as caught:
            load_scorer(str(tmp_path / f"{name}.parquet"))
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="does not exist"):
        load_scorer(str(tmp_path / "no.parquet"))


def test_a_factory_is_called(model, monkeypatch):
    module = types.ModuleType("toy_models")
    module.make = lambda: model
    monkeypatch.setitem(sys.modules, "toy_models", module)
    assert load_scorer("toy_models:make")(["a"]).shape == (1, model.size)
    for wrong in ("toy_models:lacks", "no_such_module:make"):
        with pytest.raises(BaseEncoderError, match="cannot import"):
            load_scorer(wrong)


def test_a_module_in_the_current_directory_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(Path.cwd()))])
    monkeypatch.chdir(tmp_path)
    Path("my_own_models.py").write_text("def make(): return 'made'\n")
    try:
        assert load_object("my_own_models:make")() == "made"
        assert load_object("my_own_models:make")() == "made"
        assert sys.path.count(str(tmp_path)) == 1
    finally:
        sys.modules.pop("my_own_models", None)


def test_a_cross_encoder_scores_pairs_and_has_no_vectors():
    class Cross:
        def predict(self, pairs, show_progress_bar):
            return np.array([len(a) + len(b) if a else np.nan for a, b in pairs])

    encoder = load_scorer(Cross())
    assert isinstance(encoder, PairScorer)
    assert encoder.similarity(["a", "bb"], ["c", "d"]).tolist() == [2, 3]
    assert encoder.measure == "cross"
    assert encoder.broken == 0
    assert encoder.similarity(["a", ""], ["c", "d"]).tolist() == [2, 0]
    assert encoder.broken == 1
    with pytest.raises(DataError, match="Cross has no vectors"):
        encoder(["a"])


@pytest.mark.parametrize(
    "above",
    [
        Hybrid,
        lambda odd: InPassages(odd, 20),
        lambda odd: Program(odd, "hubs", 0.5),
        lambda odd: Reranked(odd, Reranker(load_scorer("bundled"))),
        lambda odd: Reranked(
            LexicalScorer("bm25"), Reranker(PairScorer(lambda pairs: np.full(len(pairs), np.nan), "odd"), 1)
        ),
    ],
)
def test_searches_above_count_the_outputs_that_are_not_finite(above):
    odd = Scorer(lambda texts: np.array([[1, np.nan if "x" in text else 0] for text in texts]), "odd")
    search = above(odd)
    assert (search.broken, search.warnings) == (0, ())
    inner(*search.query_document_vectors(["a"], ["b", "x"], search=True))
    assert search.warnings == (f"{search.name}: 1 output not finite, taken for zeros",)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_transformer_of_a_model_is_scored_with_another_pooling(pooling, base_of, tmp_path):
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import AutoModel, AutoTokenizer

    CrossEncoder(str(base_of("bert")), num_labels=1).save(str(tmp_path))
    assert isinstance(load_scorer(str(tmp_path)), PairScorer)
    encoder = load_scorer(str(tmp_path), pooling=pooling)
    transformer, tokenizer = (kind.from_pretrained(base_of("bert")) for kind in (AutoModel, AutoTokenizer))
    with torch.no_grad():
        states = transformer.eval()(**tokenizer(["alpha beta"], return_tensors="pt")).last_hidden_state[0]
    expected = states[0] if pooling == "cls" else states.mean(0)
    assert encoder(["alpha beta"])[0] == pytest.approx(expected.numpy(), abs=1e-5)
    assert (encoder.pooling, encoder.measure, encoder.name) == (pooling, "cos", f"{tmp_path}, {pooling}")


def test_another_pooling_takes_the_place_of_heads_and_maps_as_well(base_of, tmp_path):
    from selfsent.models.assemble import put_head
    from selfsent.models.heads.options import HEADS
    from selfsent.models.loading import load_encoder

    encoder = load_encoder(base_of("bert"), "mean")
    put_head(encoder, HEADS["ngram-cnn"](filters=4))
    encoder.save(tmp_path / "model")
    found = load_scorer(str(tmp_path / "model"), pooling="cls")(["alpha beta"])
    assert found == pytest.approx(load_scorer(str(base_of("bert")), pooling="cls")(["alpha beta"]), abs=1e-6)


def test_what_has_no_transformer_cannot_be_given_a_pooling(model):
    for wrong in (model, "toy_models:make", "vectors.parquet"):
        with pytest.raises(SettingsError, match="pooling is for models given by directory or hub id"):
            load_scorer(wrong, pooling="cls")


def test_what_is_no_model_is_refused(tmp_path):
    for wrong in (3, str(tmp_path / "nowhere"), "no-such-model-anywhere"):
        with pytest.raises(BaseEncoderError) as caught:
            load_scorer(wrong)
        assert "\n" not in str(caught.value)


def test_a_directory_gives_the_vectors_of_sentence_transformers(tmp_path):
    import torch
    from sentence_transformers import SentenceTransformer

    encoder = load_scorer("bundled-raw")
    texts = ["One sentence.", "Another, rather longer sentence about something else.", "", "Short"]
    kind = {"dtype": torch.float32}
    reference = SentenceTransformer(str(resolve("bundled-raw")), local_files_only=True, model_kwargs=kind)
    assert encoder(texts) == pytest.approx(reference.encode(texts), abs=1e-5)
    assert encoder.pooling == "mean"
    (tmp_path / "run.json").write_text("{}")
    reference.save(str(tmp_path / "model"))
    assert load_scorer(tmp_path)(texts) == pytest.approx(encoder(texts), abs=1e-6)


@pytest.mark.parametrize(
    ("module", "code", "message"),
    [
        ("wrong", "def f(:", "cannot import wrong:f: "),
        ("number", "f = 3", "number:f is no function: it is int"),
        ("other", "", "cannot import other:f"),
    ],
)
def test_code_that_makes_no_model_is_refused_in_one_line(module, code, message, tmp_path, monkeypatch):
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BaseEncoderError, match=message) as caught:
        check_model(f"{module}:f")
    assert "\n" not in str(caught.value)


def test_a_loaded_table_tells_what_it_was_trained_on_as_its_directory_does(tmp_path):
    from selfsent import train

    texts = [f"ticket number {number} is about printers" for number in range(40)]
    run = train(texts, "ct", "bundled", tmp_path, steps=1, quiet=True)
    loaded, named = load_scorer(run.model), load_scorer(str(tmp_path))
    assert loaded.trained_by == named.trained_by == ("ct",)
    assert loaded.trained_on == named.trained_on
    assert loaded.pooling == named.pooling == "mean"


def test_threads_may_share_what_remembers_texts():
    def encode(texts):
        time.sleep(0.001)  # another thread comes in between
        return np.array([[float(text), 1] for text in texts], np.float32)

    encoder, wrong = Scorer(encode, "numbers"), []

    def work(start):
        for number in range(start, start + 30):
            if encoder([str(number % 50), str(number)])[:, 0].tolist() != [number % 50, number]:
                wrong.append(number)

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(work, start) for start in range(0, 120, 20)]:
            done.result()
    assert not wrong
    assert encoder(["3"]).tolist() == [[3, 1]]
