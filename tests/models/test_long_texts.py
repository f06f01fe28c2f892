"""Texts of thousands of tokens: nothing grows with the square of their length, and what is cut is told."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import tiny
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
    from sentence_transformers import SentenceTransformer

    base = long_base(tmp_path, kind)
    texts = [" ".join(tiny.make_sentences(count, seed=count)) for count in (30, 60, 64)]
    model = load_encoder(base, "mean")
    lengths = [len(ids) for ids in model.tokenizer(texts)["input_ids"]]
    assert lengths[0] < 1024 < lengths[1] < lengths[2]
    plain = SentenceTransformer(str(base), device="cpu").encode(texts)
    np.testing.assert_allclose(encode(model, texts), plain, atol=1e-4)
