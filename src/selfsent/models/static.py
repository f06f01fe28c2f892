"""Static embeddings: a sentence vector is the mean of token vectors from a table. Hundreds of times as fast.

Importing sentence-transformers takes more than a second, so a plain table is loaded and saved without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.data.tokenizing import CachedTokenizer
from selfsent.data.views.tokens import Template
from selfsent.fast.rows_in_use import RowsInUse
from selfsent.foreign.transformers import silent
from selfsent.lexical.hybrid import SEARCH_WEIGHT
from selfsent.models.encoder import Encoder
from selfsent.models.table import CONFIG, PLAIN, WEIGHTS
from selfsent.models.table_tokenizer import TableTokenizer

_SPREAD = 0.1
"""Standard deviation of the numbers in a new table."""


class StaticEmbedding(nn.Module):
    """Replacement for the class of that name in sentence-transformers: a table and its tokenizer."""

    def __init__(self, tokenizer: Tokenizer, weights: Tensor) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.embedding = nn.EmbeddingBag.from_pretrained(weights, freeze=False)

    def get_embedding_dimension(self) -> int:
        """Width of a vector."""
        return self.embedding.embedding_dim


class PlainTable(nn.Sequential):
    """Replacement for a SentenceTransformer of a `StaticEmbedding`, until other modules are appended.

    Args:
        table: the table.
        module: its entry in `modules.json`.
        config: content of `config_sentence_transformers.json`.
    """

    def __init__(self, table: StaticEmbedding, module: dict[str, Any], config: dict[str, Any]) -> None:
        super().__init__(table)
        self._json: dict[str, Any] = {"modules.json": [{**module, "path": ""}], CONFIG: config}
        self.prompts: dict[str, str] = {}
        self.default_prompt_name: str | None = None

    @classmethod
    def read(cls, directory: Path) -> PlainTable | None:
        """The table in a directory, in float32; None if only sentence-transformers knows all that is in it."""
        module, *others = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
        path = directory / CONFIG
        config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        prompts = [config.get("default_prompt_name"), *config.get("prompts", {}).values()]
        folder = directory / module["path"]
        foreign = not module["type"].startswith("sentence_transformers.") or not (folder / WEIGHTS).is_file()
        if others or foreign or any(prompts) or config.keys() - PLAIN:
            return None
        weights = load_file(folder / WEIGHTS)
        if weights.keys() != {"embedding.weight"}:
            return None
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        return cls(StaticEmbedding(tokenizer, weights["embedding.weight"].float()), module, config)

    def get_embedding_dimension(self) -> int:
        """Width of a sentence vector."""
        modules: list[Any] = [module for module in self if hasattr(module, "get_embedding_dimension")]
        return int(modules[-1].get_embedding_dimension())

    def save(self, path: str, create_model_card: bool = False) -> None:
        """Write the ordinary directory, through sentence-transformers itself if there is more than the table."""
        table = cast(StaticEmbedding, self[0])
        weights = table.embedding.weight.detach()
        if len(self) > 1:
            from sentence_transformers import SentenceTransformer
            from sentence_transformers.sentence_transformer import modules as ordinary

            modules = [ordinary.StaticEmbedding(table.tokenizer, embedding_weights=weights), *list(self)[1:]]
            options: dict[str, Any] = {"device": str(weights.device), "prompts": self.prompts}
            options["default_prompt_name"] = self.default_prompt_name
            options["similarity_fn_name"] = self._json[CONFIG].get("similarity_fn_name")
            whole = SentenceTransformer(modules=modules, **options)
            with silent():
                whole.save(path, create_model_card=create_model_card)
            return
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        asked = {"prompts": self.prompts, "default_prompt_name": self.default_prompt_name}
        if any(self.prompts.values()):
            self._json[CONFIG] = {**self._json[CONFIG], **asked}
        for name, content in self._json.items():
            (folder / name).write_text(json.dumps(content, indent=2), encoding="utf-8")
        save_file({"embedding.weight": weights}, folder / WEIGHTS)
        table.tokenizer.save(str(folder / "tokenizer.json"))


class StaticEncoder(Encoder):
    """The mean of the vectors of a sentence's tokens, and whatever follows: sentence-transformers' `StaticEmbedding`.

    Args:
        sentence_transformer: its first module is a `StaticEmbedding`.
    """

    is_static = True
    lexical_weight = SEARCH_WEIGHT["table"]
    pooling = "mean"
    _pooling_index = 0  # the table computes the mean itself
    rows: RowsInUse | None = None
    """The rows trained in place of the table, during a run that trains some of its rows."""

    def __init__(self, sentence_transformer: Any) -> None:
        super().__init__(sentence_transformer)
        self.tokenizer = TableTokenizer(sentence_transformer[0].tokenizer)

    @property
    def table(self) -> nn.EmbeddingBag:
        """The token vectors, (vocabulary, d)."""
        return cast(nn.EmbeddingBag, self.sentence_transformer[0].embedding)

    words = table

    @property
    def transformer(self) -> Any:
        """The module that holds the table."""
        return self.sentence_transformer[0]

    @cached_property
    def reader(self) -> CachedTokenizer:
        """Tokenises texts faster than the tokenizer does: nothing else takes long here."""
        return CachedTokenizer(self.tokenizer.backend_tokenizer)

    @property
    def template(self) -> Template:
        """The special tokens: none are around a sentence."""
        return cast(TableTokenizer, self.tokenizer).template(self.vocabulary_size)

    @property
    def hidden_size(self) -> int:
        """Width of a token vector."""
        return self.table.embedding_dim

    def token_vectors(self, packed: Packed) -> Tensor:
        """(tokens, d) vectors of the tokens, in packed order."""
        return F.embedding(*self._rows_of(packed.ids))

    def forward(self, packed: Packed, leave_out: int = 0) -> Tensor:
        """(sentences, e) vectors of a packed batch, in the order of its sentences.

        Args:
            packed: the batch.
            leave_out: trailing modules that are skipped.
        """
        mean = F.embedding_bag(*self._rows_of(packed.flat_ids), packed.starts, mode="mean")
        return self.after_pooling(mean, leave_out)

    def _rows_of(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """The rows to look up, and the weights that hold them."""
        if self.rows is None or not torch.is_grad_enabled():
            return ids, self.table.weight
        return self.rows.place[ids], self.rows.part

    def save_modules(self, directory: Path) -> None:
        """Write the ordinary directory, of a plain table without the import of transformers."""
        if isinstance(self.sentence_transformer, PlainTable):
            self.sentence_transformer.save(str(directory))
        else:
            super().save_modules(directory)

    def put_affine(self, weight: Tensor, bias: Tensor) -> None:
        """Apply the map to the rows of a bare table, since it commutes with the mean.

        The encoder stays a bare table, and a text without tokens stays at zero.
        """
        if len(self.sentence_transformer) > 1:
            super().put_affine(weight, bias)
            return
        self.put_rows((self.table.weight.detach().to(weight) @ weight.T + bias).float())

    def put_rows(self, rows: Tensor) -> None:
        """Replace the table by (vocabulary, d) rows. Of the modules behind it, one that gives length 1 stays."""
        modules = self.sentence_transformer
        del modules[1 : len(modules) - self.ends_normalized]
        module = modules[0]
        module.embedding, module.embedding_dim = nn.EmbeddingBag.from_pretrained(rows, freeze=False), rows.shape[1]


def rows_of_model2vec(weights: Mapping[str, Tensor]) -> Tensor:
    """(tokens, d) float32 rows of a table in model2vec's own layout, as it averages them.

    Its rows may be shared by several tokens, have a weight for each token, and be whole numbers of 8 bits. These are
    left as they are: their scale is not kept in the file, and a cosine does without.

    Args:
        weights: `embeddings` (rows, d); perhaps `mapping` (tokens,) to rows, and `weights` (tokens,).
    """
    rows = weights["embeddings"].float()
    if "mapping" in weights:
        rows = rows[weights["mapping"].long()]
    return rows * weights["weights"].float()[:, None] if "weights" in weights else rows


def new_table(tokenizer: Tokenizer, size: int, seed: int = 0) -> StaticEncoder:
    """An untrained encoder: random static embeddings.

    Args:
        tokenizer: each of its tokens gets a vector.
        size: width of a vector.
        seed: of the random numbers.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    plain = Tokenizer.from_str(tokenizer.to_str())
    plain.no_truncation()
    plain.no_padding()
    weights = torch.empty(plain.get_vocab_size(), size)
    weights.normal_(std=_SPREAD, generator=torch.Generator().manual_seed(seed))
    module = StaticEmbedding(plain, embedding_weights=weights)
    return StaticEncoder(SentenceTransformer(modules=[module], device="cpu"))
