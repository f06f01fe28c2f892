"""Base class of selfsent's own modules of a SentenceTransformer, with saving and loading."""

from __future__ import annotations

from typing import Any, Self, cast

from sentence_transformers.base.modules.module import Module


class OwnModule(Module):  # type: ignore[misc]  # sentence-transformers ships no types
    """A module that is saved as its `config_keys`, the arguments of its constructor, and safetensors."""

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write configuration and weights."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=True)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:
        """Read configuration and weights."""
        names = ("token", "cache_folder", "revision", "local_files_only")
        where = {"subfolder": subfolder, **{name: kwargs[name] for name in names if name in kwargs}}
        module = cls(**cls.load_config(model_name_or_path, **where))
        return cast(Self, cls.load_torch_weights(model_name_or_path, model=module, **where))
