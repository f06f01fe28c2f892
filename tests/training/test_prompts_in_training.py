"""Prompts in training: the same tokens, and the same of them pooled, as sentence-transformers has in use."""

import json
import shutil

import numpy as np
import pytest
import torch

import tiny
from selfsent import train
from selfsent.data.corpus import read_corpus
from selfsent.data.tokenizing import seam
from selfsent.errors import RunError, SettingsError
from selfsent.methods.denoising import DenoisingLearner
from selfsent.methods.distil import DistilLearner
from selfsent.methods.ranking import RankingLearner
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.models.prompts import Prompts

LINES = tiny.make_sentences(48, seed=5, words=(2, 9))
PROMPTS = {"query": "ba du ka ", "passage": "fi ", "STS": "lu lu "}
RUN = {"steps": 2, "batch_size": 8, "max_length": tiny.LONGEST, "pooling": "mean", "hold_out": 0}
BASES = {
    "word pieces": ("bert", {}, PROMPTS),
    "pieces": ("xlm-roberta", {}, PROMPTS),
    "byte pairs": ("roberta", {}, PROMPTS),
    "byte pairs with the space before a word": ("roberta", {"add_prefix_space": False}, PROMPTS),
    "a prompt that grows together with the text": ("qwen3", {"add_prefix_space": False}, {"query": "ba d", "STS": ""}),
    "a table": (tiny.STATIC, {}, PROMPTS),
}


def prompted(base, directory, prompts, include_prompt=True, splits=None):
    """A base with prompts in its configuration, and perhaps other rules for the beginning of a word."""
    load_encoder(base).save(directory)
    tiny.change_json(directory / "config_sentence_transformers.json", prompts=prompts)
    if splits:
        file = directory / "tokenizer.json"
        tokenizer = json.loads(file.read_text())
        tokenizer["pre_tokenizer"] |= splits
        file.write_text(json.dumps(tokenizer))
    if not include_prompt:
        tiny.change_json(directory / "1_Pooling" / "config.json", include_prompt=False)
    return directory


@pytest.fixture(scope="module")
def pairs():
    return read_corpus({"a": LINES[:24], "b": LINES[24:]}, text_columns=("a", "b"))


@pytest.fixture
def seen_by(monkeypatch):
    """The batches that learners of a class get."""

    def of(kind):
        found, forward = [], kind.forward

        def recorded(self, views, labels=None):
            found.extend(views)
            return forward(self, views, labels)

        monkeypatch.setattr(kind, "forward", recorded)
        return found

    return of


@pytest.fixture
def seen(seen_by):
    """The batches that learners of ranking losses get."""
    return seen_by(RankingLearner)


def lists_of(packed):
    """The token ids of each sentence, in the order given."""
    return [part.tolist() for part in np.split(packed.given_ids, np.cumsum(packed.given_lengths)[:-1])]


def ids_of_peer(peer, method, texts):
    """Token ids that a model of sentence-transformers reads."""
    found, first = [], peer[0]
    forward = first.forward

    def read(features, **options):
        if "offsets" in features:
            found.extend(part.tolist() for part in np.split(features["input_ids"].numpy(), features["offsets"][1:]))
        else:
            rows = zip(features["input_ids"], features["attention_mask"].bool(), strict=True)
            found.extend(ids[mask].tolist() for ids, mask in rows)
        return forward(features, **options)

    first.forward = read
    for text in texts:
        getattr(peer, method)([text], show_progress_bar=False)
    first.forward = forward
    return found


@pytest.mark.parametrize("kind", BASES)
def test_training_reads_what_encoding_reads(kind, base_of, pairs, seen, tmp_path):
    name, splits, prompts = BASES[kind]
    base = prompted(base_of(name), tmp_path / "base", prompts, splits=splits)
    cut = {"pooling": None} if name == tiny.STATIC else {"max_length": 24}
    train(pairs, "mnrl", base, tmp_path / "run", **{**RUN, **cut})
    model = tmp_path / "run" / "model"
    peer = tiny.peer(model)
    if name != tiny.STATIC:
        peer.max_seq_length = 24
    for view, (method, texts) in enumerate((("encode_query", LINES[:24]), ("encode_document", LINES[24:]))):
        expected = ids_of_peer(peer, method, texts)
        known = {tuple(ids): n for n, ids in enumerate(expected)}
        read = [ids for batch in seen[view::2] for ids in lists_of(batch)]
        assert len(read) == 16
        assert {tuple(ids) for ids in read} <= known.keys()


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
def test_tokens_of_a_prompt_are_left_out_of_the_pooling_as_in_encoding(pooling, base_of, pairs, seen, tmp_path):
    encoder = load_encoder(base_of("bert"), pooling)
    encoder.save(tmp_path / "plain")
    base = prompted(tmp_path / "plain", tmp_path / "base", PROMPTS, include_prompt=False)
    train(pairs, "mnrl", base, tmp_path / "run", **{**RUN, "pooling": None, "mini_batch_size": 3})
    peer, trained = tiny.peer(tmp_path / "run" / "model"), load_encoder(tmp_path / "run" / "model").eval()
    assert not peer[1].include_prompt
    for side, view, theirs in (("query", seen[0], peer.encode_query), ("document", seen[1], peer.encode_document)):
        texts = LINES[:24] if side == "query" else LINES[24:]
        vectors = theirs(texts)
        np.testing.assert_allclose(encode(trained, texts, side=side), vectors, atol=2e-5)
        with torch.no_grad():
            read = trained(view).numpy()
            parts = torch.cat([trained(view.take([n])) for n in range(len(view))]).numpy()
        nearest = np.abs(read[:, None] - vectors[None]).max(-1).min(1)
        assert nearest.max() < 2e-5
        np.testing.assert_allclose(parts, read, atol=2e-5)


def test_views_of_documents_are_queries_and_what_they_ask_for(base_of, tmp_path, seen):
    documents = read_corpus({"text": LINES, "id": [str(n // 4) for n in range(48)]}, document_column="id")
    base = prompted(base_of("roberta"), tmp_path / "base", PROMPTS, splits={"add_prefix_space": False})
    for positives, sides in (("title", ("query", "document")), ("neighbours", ("symmetric",) * 2)):
        seen.clear()
        changes = {**RUN, "positives": positives, "keep_base": 0}
        train(documents, "neighbours", base, tmp_path / positives, **changes)
        peer = tiny.peer(tmp_path / positives / "model")
        assert peer.default_prompt_name == "STS"
        begun = {"query": "ba du ka ", "document": "fi ", "symmetric": "lu lu "}
        for view, side in zip(seen, sides, strict=False):
            for ids in lists_of(view):
                text = peer.tokenizer.decode(ids, skip_special_tokens=True)
                assert text.startswith(begun[side])
                assert text.count(begun[side].strip()) == 1 or side == "document"
        if positives == "title":  # the sentences of a document are joined behind one prompt
            first = [f"{begun['query']}{LINES[n]}" for n in range(0, 48, 4)]
            decoded = {peer.tokenizer.decode(ids, skip_special_tokens=True) for ids in lists_of(seen[0])}
            assert decoded <= set(first)


def test_equal_texts_are_no_negatives_whatever_stands_before_them(base_of, tmp_path, seen):
    same = read_corpus({"a": LINES[:24], "b": LINES[1:24] + LINES[:1]}, text_columns=("a", "b"))
    base = prompted(base_of("bert"), tmp_path / "base", {**PROMPTS, "document": ""})
    train(same, "mnrl", base, tmp_path / "run", **{**RUN, "document_prompt": "", "batch_size": 24})
    queries, documents = seen[:2]
    assert set(queries.texts.tolist()) == set(documents.texts.tolist())
    assert lists_of(queries)[0] not in lists_of(documents)


def test_words_to_predict_have_no_prompt(base_of, tmp_path, seen_by):
    found = seen_by(DenoisingLearner)
    base = prompted(base_of("bert"), tmp_path / "base", PROMPTS)
    train(LINES, "tsdae", base, tmp_path / "run", **RUN)
    damaged, whole = ({tuple(ids[1:3]) for ids in lists_of(view)} for view in found[:2])
    assert len(damaged) == 1  # lu lu
    assert len(whole) > 1


@pytest.mark.parametrize(
    ("known", "default", "expected"),
    [
        ({}, None, Prompts()),
        ({"query": "q", "document": "d", "other": "o"}, "other", Prompts("q", "d", "o")),
        ({"query": "q", "passage": "p", "STS": "s"}, None, Prompts("q", "p", "s")),  # nomic-embed-text-v2
        ({"query": "q", "document": "p"}, None, Prompts("q", "p", "q")),  # E5
        ({"query": "q", "document": ""}, None, Prompts("q", "", "")),  # Qwen3-Embedding, bge, arctic
        ({"query": "q", "document": "d"}, "document", Prompts("q", "d", "d")),
        ({"s2p_query": "q"}, None, Prompts()),
    ],
)
def test_which_prompt_goes_with_texts_of_one_kind(known, default, expected):
    assert Prompts.among(known, default) == expected


def test_prompts_are_recorded_saved_and_kept_when_a_run_goes_on(base_of, pairs, tmp_path):
    base, output = prompted(base_of("bert"), tmp_path / "base", PROMPTS), tmp_path / "run"
    run = train(pairs, "mnrl", base, output, **RUN, query_prompt="mo ")
    assert run.record["config"]["prompts"] == {"query": "mo ", "document": "fi ", "symmetric": "lu lu "}
    peer = tiny.peer(output / "model")
    assert (peer.prompts["query"], peer.prompts["document"]) == ("mo ", "fi ")
    assert peer.default_prompt_name == "STS"
    record = json.loads((output / "run.json").read_text())
    del record["checksum"]
    (output / "run.json").write_text(json.dumps({**record, "status": "running"}))
    with pytest.raises(RunError, match="cannot be resumed: prompts query was mo , now ba du ka"):
        train(pairs, "mnrl", base, output, **RUN, resume=True)
    train(pairs, "mnrl", base, tmp_path / "none", **RUN, prompts=False)
    peer = tiny.peer(tmp_path / "none" / "model")
    assert (peer.prompts["query"], peer.prompts["document"], peer.default_prompt_name) == ("", "", None)


def test_what_is_said_of_prompts(base_of, pairs, tmp_path):
    base, lines = prompted(base_of("bert"), tmp_path / "base", PROMPTS), []
    train(pairs, "mnrl", base, tmp_path / "run", progress=tiny.heard(notice=lines.append), **RUN)
    assert any(line.startswith("prompts: 'ba du ka ' before queries, 'fi ' before documents") for line in lines)
    with pytest.raises(SettingsError, match="`query_prompt` is a prompt, and prompts=False takes none"):
        train(pairs, "mnrl", base, tmp_path / "other", **RUN, prompts=False, query_prompt="mo ")
    with pytest.raises(SettingsError, match="max_length=6 leaves no room for a text behind '"):
        train(pairs, "mnrl", base, tmp_path / "other", **{**RUN, "max_length": 6})
    assert not (tmp_path / "other").exists()


def test_teacher_and_student_have_prompts_of_their_own(base_of, tmp_path, seen_by):
    found = seen_by(DistilLearner)
    teacher = prompted(base_of("roberta"), tmp_path / "teacher", {"STS": "mo "})
    student = prompted(base_of("bert"), tmp_path / "student", {"STS": "fi "})
    corpus = read_corpus(LINES)
    train(corpus, "distil", student, tmp_path / "run", teacher=str(teacher), precision="float32", **RUN)
    expected = tiny.peer(teacher).encode(LINES, prompt_name="STS")
    for vector in found[0].vectors.numpy():
        assert np.abs(expected - vector).max(1).min() < 2e-3  # in 16 bits
    tokenizer = tiny.peer(student).tokenizer
    assert all(tokenizer.decode(ids, skip_special_tokens=True).startswith("fi ") for ids in lists_of(found[0]))


@pytest.mark.parametrize(
    ("kind", "prompt", "end"),
    [("word pieces", "ba: ", ""), ("pieces", "ba ", " "), ("byte pairs", "ba ", " "), ("byte pairs", "ba d", "d")],
)
def test_where_a_prompt_is_cut(kind, prompt, end):
    tokenizer = tiny.make_tokenizer(kind).backend_tokenizer
    if kind == "byte pairs":
        from tokenizers import pre_tokenizers

        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ids, found = seam(tokenizer, prompt)
    assert found.strip() == end.strip()
    assert bool(found) == bool(end)
    for text in (*LINES, *(f"a{line}" for line in LINES)):
        behind = tokenizer.encode(found + text, add_special_tokens=False).ids
        assert tokenizer.encode(prompt + text, add_special_tokens=False).ids == [*ids.tolist(), *behind]


def test_a_copy_of_a_base_without_prompts_is_trained_as_before(base_of, pairs, tmp_path):
    base = shutil.copytree(base_of("bert"), tmp_path / "base")
    run = train(pairs, "mnrl", base, tmp_path / "run", **RUN)
    assert "prompts" not in run.record["config"]
