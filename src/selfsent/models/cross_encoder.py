"""A cross-encoder: two texts as one input, and scores instead of vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.foreign.transformers import silent
from selfsent.models.encoder import Encoder
from selfsent.models.heads.language_model import save_head
from selfsent.models.heads.options import POOLINGS
from selfsent.models.loading import transformer_alone


class CrossEncoder(Encoder):
    """An encoder of joined pairs with a dense layer and an output layer after its pooling.

    Saved, it is a CrossEncoder of sentence-transformers; called, it gives the (pairs, e) vectors of joined pairs. It
    takes transformer and pooling of the encoder; heads and maps were learned for vectors of single sentences.

    Args:
        encoder: the encoder it grows from.
        outputs: numbers that it gives a pair.
        activation: makes scores of these numbers: `nn.Sigmoid()` or `nn.Identity()`.
    """

    def __init__(self, encoder: Encoder, outputs: int, activation: nn.Module) -> None:
        from sentence_transformers.base.modules import Dense

        encoder = transformer_alone(encoder, encoder.pooling if encoder.pooling in POOLINGS else "cls")
        super().__init__(encoder.sentence_transformer, encoder.language_model_head)
        width = encoder.embedding_size
        self.hidden: Any = Dense(width, width)
        self.output: Any = Dense(width, outputs, activation_function=nn.Identity(), module_output_name="scores")
        self.drop, self.activation = nn.Dropout(self.dropout_rate), activation
        if (pooler := self._pooler()) is not None:
            self.hidden.linear.load_state_dict(pooler.state_dict())

    def _pooler(self) -> nn.Linear | None:
        """The dense layer that next-sentence prediction was pre-trained with, where the base has a fitting one."""
        pooler = getattr(self.transformer, "pooler", None)
        layer = getattr(pooler, "dense", pooler)
        fits = isinstance(layer, nn.Linear) and layer.weight.shape == self.hidden.linear.weight.shape
        return layer if fits else None

    def scores(self, packed: Packed) -> Tensor:
        """(pairs, outputs) numbers for joined pairs, before the activation."""
        vectors = self.hidden({"sentence_embedding": self(packed)})["sentence_embedding"]
        return cast(Tensor, self.output({"sentence_embedding": self.drop(vectors)})["scores"])

    @property
    def peer(self) -> Any:
        """The CrossEncoder of sentence-transformers with the same weights, which predicts and is saved."""
        import sentence_transformers

        kind: Any = sentence_transformers.CrossEncoder
        modules = [*self.sentence_transformer, self.hidden, self.output]
        return kind(modules=modules, device=str(self.device), activation_fn=self.activation)

    def save(self, directory: Path) -> None:
        """Write a CrossEncoder of sentence-transformers, with the language-model head in a file of its own.

        The dense layer becomes the transformer's pooler, where it has one: another cross-encoder begins with it.
        """
        if (pooler := self._pooler()) is not None:
            pooler.load_state_dict(self.hidden.linear.state_dict())
        with silent():
            self.peer.save(str(directory), create_model_card=False)
        if self.language_model_head is not None:
            save_head(self.language_model_head, directory, self.transformer)
        self.texts_read.save(directory)
