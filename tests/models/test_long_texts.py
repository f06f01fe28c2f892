"""Texts of thousands of tokens: nothing grows with the square of their length, and what is cut is told."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import selfsent
import tiny
from selfsent.cli import main
from selfsent.data.packed import Packed
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder

LENGTH = 8192
WINDOWED = {
    "modernbert": {"local_attention": 128, "global_attn_every_n_layers": 2, "num_hidden_layers": 2},
    "gemma3_text": {
        **{"sliding_window": 512, "use_bidirectional_attention": True, "query_pre_attn_scalar": 16, "head_dim": 16},
        **{"num_key_value_heads": 1, "layer_types": ["sliding_attention", "full_attention"]},
    },
}
"""What is special about the shapes of ModernBERT and EmbeddingGemma; the rest is small."""


def long_base(directory, kind, **changes):
    """A tiny base that reads 8,192 tokens."""
    from transformers import AutoConfig, AutoModel

    tokenizer = tiny.make_tokenizer("byte pairs")
    tokenizer.model_max_length = LENGTH
    special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep")}
    special |= {"bos_token_id": tokenizer.cls_token_id, "eos_token_id": tokenizer.sep_token_id}
    values = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = AutoConfig.for_model(
        kind,
        vocab_size=len(tokenizer),
        max_position_embeddings=LENGTH,
        **{**values, **special, **WINDOWED[kind], **changes},
    )
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


class Largest(TorchDispatchMode):
    """Numbers of the largest tensor that an operation returns."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        sizes = [each.numel() for each in tree_leaves(found) if isinstance(each, torch.Tensor)]
        # A view that repeats takes no memory.
        storage = [each.untyped_storage().nbytes() // each.element_size() for each in tree_leaves(found)
                   if isinstance(each, torch.Tensor)]  # fmt: skip
        self.numbers = max([self.numbers, *map(min, zip(sizes, storage, strict=True))])
        return found


def packed(*lengths):
    ids = np.random.default_rng(0).integers(10, 200, sum(lengths))
    return Packed(ids, np.array(lengths))


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("kind", WINDOWED)
def test_memory_is_linear_in_the_tokens(kind, dropout, tmp_path):
    model = load_encoder(long_base(tmp_path, kind), "mean", dropout)
    assert model.states.runs_packed
    largest = {}
    for tokens in (1500, 3000):
        batch = packed(tokens, tokens - tokens // 20)  # padded to the longer one in attention
        for trains in (False, True):
            with Largest() as seen, torch.set_grad_enabled(trains):
                vectors = model.train(trains)(batch)
                if trains:
                    vectors.square().sum().backward()
            largest[tokens, trains] = seen.numbers
    for trains in (False, True):
        assert largest[3000, trains] < 2.2 * largest[1500, trains]
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters() if weight.grad is not None)


@pytest.mark.parametrize("kind", WINDOWED)
def test_long_texts_have_the_vectors_of_plain_sentence_transformers(kind, tmp_path):

    base = long_base(tmp_path, kind)
    texts = [" ".join(tiny.make_sentences(count, seed=count)) for count in (30, 60, 64)]
    model = load_encoder(base, "mean")
    lengths = [len(ids) for ids in model.tokenizer(texts)["input_ids"]]
    assert lengths[0] < 1024 < lengths[1] < lengths[2]
    plain = tiny.peer(base).encode(texts)
    np.testing.assert_allclose(encode(model, texts), plain, atol=1e-4)


def words(count):
    return " ".join(tiny.make_sentences(count // 8 + 50, seed=count)).split(" ")[:count]


def test_a_text_of_8000_words_is_read_as_far_as_the_base_reads(tmp_path, capsys, caplog):
    base = str(long_base(tmp_path / "base", "modernbert"))
    texts = [" ".join(words(count)) for count in (8000, 2000, 1500, 30)]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    with pytest.raises(SystemExit, match="0"):
        main(["encode", base, str(tmp_path / "texts.txt"), "--no-split-sentences", "--output", str(tmp_path / "v.npy")])
    assert [record.getMessage() for record in caplog.records] == [
        "1 text is cut after 8,192 tokens, which is all that this encoder reads"
    ]
    with pytest.raises(SystemExit, match="0"):
        main(["search", base, str(tmp_path / "texts.txt"), "--no-split-sentences", texts[1]])
    assert texts[1][:60] in capsys.readouterr().out.splitlines()[0]
    found = np.load(tmp_path / "v.npy")
    np.testing.assert_allclose(selfsent.encode(base, texts), found, atol=1e-4)
    np.testing.assert_allclose(selfsent.encode(base, [" ".join(words(8000)[:6000])])[0], found[0], atol=1e-4)
    changed = [texts[1] + " ba", texts[2]]  # the end of a text of thousands of tokens counts
    moved = np.abs(selfsent.encode(base, changed) - found[1:3]).max(1)
    assert moved[1] < 1e-5 < moved[0]


@pytest.mark.full
def test_training_reads_long_texts_and_tells_what_is_cut(tmp_path):
    base = str(long_base(tmp_path / "base", "modernbert"))
    texts = [" ".join(words(count)) for count in (8000, 7000, 1500, 1400, 40, 30)]
    heard = []
    usual = {"method": "simcse", "delete_words": 0.3, "batch_size": 2, "steps": 1, "lora": 2}
    corpus = selfsent.read_corpus(texts, split_sentences=False, cache=tmp_path / "cache")
    selfsent.train(
        corpus, base=base, output=tmp_path / "run", max_length=8192, **usual, progress=tiny.heard(notice=heard.append)
    )
    assert any("2 of 6 texts are cut after 8192 tokens" in line for line in heard), heard
