"""A table of token vectors in the form of sentence-transformers, without that library, whose import takes seconds."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

_KINDS = {
    f"sentence_transformers.{place}": place.rpartition(".")[2]
    for place in (
        "sentence_transformer.modules.static_embedding.StaticEmbedding",
        "base.modules.normalize.Normalize",
        "models.StaticEmbedding",
        "models.Normalize",
    )
}
"""What the two modules are called in `modules.json`, by this version of sentence-transformers and earlier ones."""
_ABOUT = {"__version__", "default_prompt_name", "model_type", "prompts", "similarity_fn_name"}
"""What is understood in `config_sentence_transformers.json`."""


class StaticEmbedding(nn.Module):
    """What the class of that name is in sentence-transformers: a table, and the tokenizer of its rows."""

    def __init__(self, tokenizer: Tokenizer, weights: Tensor) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.embedding = nn.EmbeddingBag.from_pretrained(weights, freeze=False)

    def get_embedding_dimension(self) -> int:
        """Numbers in a vector."""
        return self.embedding.embedding_dim


class Normalize(nn.Module):
    """Gives vectors length 1, as the class of that name in sentence-transformers."""

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Change the sentence vectors of some features."""
        features.update(sentence_embedding=F.normalize(features["sentence_embedding"], dim=-1))
        return features


class PlainTable(nn.Sequential):
    """Stands where a SentenceTransformer of these modules would, until it is saved as one.

    Args:
        modules: a `StaticEmbedding`, and perhaps a `Normalize`; modules of sentence-transformers may be appended.
        similarity: what the model names as its similarity function.
    """

    def __init__(self, modules: list[nn.Module], similarity: str | None) -> None:
        super().__init__(*modules)
        self.similarity = similarity
        self.prompts: dict[str, str] = {}
        self.default_prompt_name: str | None = None

    def get_embedding_dimension(self) -> int:
        """Numbers in a vector that comes out."""
        modules: list[Any] = [module for module in self if hasattr(module, "get_embedding_dimension")]
        return int(modules[-1].get_embedding_dimension())

    def save(self, directory: str, create_model_card: bool = False) -> None:
        """Write the ordinary directory; by sentence-transformers itself if there is more to it than a table."""
        mine = cast(StaticEmbedding, self[0])
        if len(self) == 1 and not create_model_card:
            self._save_alone(Path(directory), mine)
            return
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import modules as ordinary

        table = ordinary.StaticEmbedding(mine.tokenizer, embedding_weights=mine.embedding.weight.detach())
        rest = [ordinary.Normalize() if isinstance(module, Normalize) else module for module in list(self)[1:]]
        whole = SentenceTransformer(
            modules=[table, *rest], device=str(table.embedding.weight.device), similarity_fn_name=self.similarity
        )
        whole.save(directory, create_model_card=create_model_card)

    def _save_alone(self, directory: Path, table: StaticEmbedding) -> None:
        """The files that sentence-transformers writes of a table without anything after it, byte for byte."""
        directory.mkdir(parents=True, exist_ok=True)
        about = {
            "__version__": {
                "pytorch": str(torch.__version__),
                "sentence_transformers": version("sentence-transformers"),
                "transformers": version("transformers"),
            },
            "default_prompt_name": None,
            "model_type": "SentenceTransformer",
            "prompts": {"document": "", "query": ""},
            "similarity_fn_name": self.similarity or "cosine",
        }
        (directory / "config_sentence_transformers.json").write_text(json.dumps(about, indent=2), encoding="utf-8")
        listed = [{"idx": 0, "name": "0", "path": "", "type": next(iter(_KINDS))}]
        (directory / "modules.json").write_text(json.dumps(listed, indent=2), encoding="utf-8")
        save_file({"embedding.weight": table.embedding.weight.detach()}, directory / "model.safetensors")
        table.tokenizer.save(str(directory / "tokenizer.json"))


def read_plain_table(directory: Path) -> PlainTable | None:
    """The model of a directory in float32; None if only sentence-transformers knows all that is in it.

    Raises:
        Exception: what the libraries raise that read a damaged file.
    """
    listed: list[dict[str, Any]] = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
    kinds = [_KINDS.get(module["type"]) for module in listed]
    config = directory / "config_sentence_transformers.json"
    about = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
    prompts = [about.get("default_prompt_name"), *about.get("prompts", {}).values()]
    if kinds not in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"]) or any(prompts) or set(about) - _ABOUT:
        return None
    place = directory / listed[0]["path"]
    if not (place / "model.safetensors").is_file():
        return None
    weights = load_file(place / "model.safetensors")
    if weights.keys() != {"embedding.weight"}:
        return None
    tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
    tokenizer.no_padding()
    table = StaticEmbedding(tokenizer, weights["embedding.weight"].to(torch.float32))
    ends = [Normalize()] if len(kinds) > 1 else []
    return PlainTable([table, *ends], about.get("similarity_fn_name"))
