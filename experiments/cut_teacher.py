"""A smaller encoder cut out of a larger one: some of its layers, its most frequent tokens, embeddings of a lower rank.

Before it is trained it computes nearly what the larger one does, as far as that much of it can. So it has little to
learn, and learns it in minutes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoModel, BertModel, ElectraConfig, ElectraModel

from selfsent.files import atomic_directory

_BATCH = 4096
_TYPICAL = 24
"""Positions over which a word is averaged: most sentences end there."""
_SAMPLE = 4096
"""Words over which a position is averaged."""
_LONGER = 1.2
"""How much longer than the longest word all words are made."""
_SCALE = 0.5
"""Makes embeddings large beside the steps of an optimiser; layer norm takes it away."""


def cut(teacher: Path, texts: Sequence[str], place: Path, layers: Sequence[int], tokens: int, rank: int) -> None:
    """Write an ELECTRA, which is a BERT with embeddings of a size of their own, made of parts of a BERT.

    Args:
        teacher: the directory of a BERT with an uncased WordPiece.
        texts: by which tokens are counted.
        place: the directory that is written.
        layers: which of the teacher's layers are kept.
        tokens: how many tokens are kept; other words are cut into smaller ones.
        rank: the size of the embeddings.
    """
    large = AutoModel.from_pretrained(teacher, attn_implementation="eager").eval()
    assert isinstance(large, BertModel)
    tokenizer = json.loads((teacher / "tokenizer.json").read_text(encoding="utf-8"))
    kept, frequency = _frequent(tokenizer, texts, tokens)
    small = _small(large, [tokenizer["model"]["vocab"][token] for token in kept], frequency, layers, rank)
    with atomic_directory(place) as temporary:
        small.save_pretrained(temporary)
        _write_tokenizer(tokenizer, kept, temporary)


def _frequent(tokenizer: dict[str, Any], texts: Sequence[str], count: int) -> tuple[list[str], Tensor]:
    """The tokens that stay, special ones first, and how often each occurs.

    All single characters that occur stay, so that every word can be written. A token that goes leaves its occurrences
    to its parts, which hardly changes the order.
    """
    engine = Tokenizer.from_str(json.dumps(tokenizer))
    engine.no_padding()
    engine.no_truncation()
    found: Counter[str] = Counter()
    for start in range(0, len(texts), _BATCH):
        for encoding in engine.encode_batch(list(texts[start : start + _BATCH]), add_special_tokens=False):
            found.update(encoding.tokens)
    special = [token["content"] for token in tokenizer["added_tokens"]]
    letters = [token for token in tokenizer["model"]["vocab"] if len(token.removeprefix("##")) == 1 and found[token]]
    common = (token for token, _ in found.most_common())
    kept = list(dict.fromkeys([*special, *letters, *common]))[:count]
    return kept, torch.tensor([float(found[token]) + 1 for token in kept])


def _write_tokenizer(tokenizer: dict[str, Any], kept: Sequence[str], place: Path) -> None:
    numbers = {token: number for number, token in enumerate(kept)}
    tokenizer["model"]["vocab"] = numbers
    tokenizer["padding"] = tokenizer["truncation"] = None
    for token in tokenizer["added_tokens"]:
        token["id"] = numbers[token["content"]]
    for token in tokenizer["post_processor"]["special_tokens"].values():
        token["ids"] = [numbers[name] for name in token["tokens"]]
    (place / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    names = ("pad", "unk", "cls", "sep", "mask")
    settings = {f"{name}_token": f"[{name.upper()}]" for name in names}
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, "do_lower_case": True}
    (place / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")


@torch.no_grad()
def _small(large: BertModel, kept: Sequence[int], frequency: Tensor, layers: Sequence[int], rank: int) -> ElectraModel:
    """The ELECTRA: layers as they are, and embeddings that come as near to the larger one's as their rank allows.

    Args:
        large: the BERT.
        kept: the number that each token of the smaller one has in the larger one.
        frequency: (kept,) how often each occurs.
        layers: which layers are kept.
        rank: the size of the embeddings.
    """
    settings = large.config
    config = ElectraConfig(
        vocab_size=len(kept),
        embedding_size=rank,
        hidden_size=settings.hidden_size,
        num_hidden_layers=len(layers),
        num_attention_heads=settings.num_attention_heads,
        intermediate_size=settings.intermediate_size,
        layer_norm_eps=settings.layer_norm_eps,
    )
    small = ElectraModel(config).eval()
    for place, layer in enumerate(layers):
        small.encoder.layer[place].load_state_dict(large.encoder.layer[layer].state_dict())
    words, positions, center = _additive(large, kept, frequency)
    weights = frequency.sqrt()[:, None] / frequency.sqrt().sum()
    _, axes = torch.linalg.eigh((words * weights).T @ words)
    axes = axes[:, -(rank - 2) :]  # (hidden, rank - 2) those of the largest variance
    plane = _plane(rank)
    words, positions = words @ axes, positions @ axes
    # Layer norm leaves the direction of vectors of equal length alone: one number more, which the projection drops,
    # fills every word up to the same length.
    length = _LONGER * float(words.norm(dim=1).max())
    filler = (length**2 - words.square().sum(1)).sqrt()[:, None]
    embeddings = small.embeddings
    embeddings.word_embeddings.weight.copy_(_SCALE * torch.cat([filler, words], dim=1) @ plane)
    embeddings.position_embeddings.weight.copy_(_SCALE * positions @ plane[1:])
    embeddings.token_type_embeddings.weight.zero_()
    small.embeddings_project.weight.copy_(axes @ plane[1:] * (length / rank**0.5))
    small.embeddings_project.bias.copy_(center)
    return small


def _additive(large: BertModel, kept: Sequence[int], frequency: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What leaves the embeddings of a BERT, its layer norm included, as the sum of a word's, a position's and a centre.

    Returns:
        (kept, d) of words and (positions, d) of positions, each with a mean of zero over what occurs, and (d,).
    """
    part = large.embeddings
    words = part.word_embeddings.weight[torch.tensor(kept)] + part.token_type_embeddings.weight[0]
    positions = part.position_embeddings.weight
    share = frequency / frequency.sum()
    of_words = torch.stack([part.LayerNorm(words + position) for position in positions[1:_TYPICAL]]).mean(0)
    usual = torch.multinomial(share, _SAMPLE, replacement=True, generator=torch.Generator().manual_seed(0))
    of_positions = torch.stack([part.LayerNorm(words[usual] + position).mean(0) for position in positions])
    center = share @ of_words
    return of_words - center, of_positions - of_positions[1:_TYPICAL].mean(0), center


def _plane(size: int) -> Tensor:
    """(size - 1, size) orthonormal rows whose numbers add up to zero, as layer norm makes them do."""
    drawn = torch.randn(size, size - 1, generator=torch.Generator().manual_seed(0))
    return torch.linalg.qr(torch.cat([torch.ones(size, 1), drawn], dim=1))[0][:, 1:].T
