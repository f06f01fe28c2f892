"""The trainable encoder: a SentenceTransformer on packed batches, with its language-model head."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.data.views.tokens import Template
from selfsent.errors import BaseEncoderError
from selfsent.fast.gradcache import in_parts
from selfsent.files import write_json
from selfsent.foreign.transformers import has_masked_language_model, silent
from selfsent.lexical.hybrid import SEARCH_FILE, SEARCH_WEIGHT
from selfsent.models.dropout import rate_of, without_dropout
from selfsent.models.heads.language_model import LanguageModelHead, new_head, save_head
from selfsent.models.heads.layers import Layers, is_layer_mean, layer_mean, mean_of
from selfsent.models.heads.options import CNN_POOL
from selfsent.models.texts_read import TextsRead
from selfsent.models.token_states import TokenStates

logger = logging.getLogger(__name__)


def pooling_index(sentence_transformer: Any) -> int | None:
    """Index of the only pooling module of a model; None when there is none, or several."""
    found = [index for index, module in enumerate(sentence_transformer) if hasattr(module, "pooling_mode")]
    return found[0] if len(found) == 1 and found[0] else None


class Encoder(nn.Module):
    """The model that a run trains and saves: packed batches of sentences to vectors.

    Args:
        sentence_transformer: the ordinary model: a transformer, perhaps an n-gram CNN, a pooling, and whatever follows.
        language_model_head: the head that predicts words from the transformer's states, when the base has one.
        whole: the directory of the encoder-decoder that the transformer is the first half of, if it is one.
    """

    is_static = False
    """Whether this is a table of static embeddings, in place of a transformer."""
    lexical_weight = SEARCH_WEIGHT["transformer"]
    """Weight of BM25 added to the cosine in a search; a directory may override it in `search.json`."""
    texts_cut = 0
    """Texts so far that were encoded, and had more tokens than it reads."""
    mini_batch_size: int | None = None
    """Sentences that go through it at a time, each part twice in training; None for all. See `forward`."""
    sizes: tuple[int, ...] = ()
    """How many of a vector's first numbers it was trained for, the whole width first; empty for the whole alone."""
    space = ""
    """Fingerprint of the encoder in whose space its vectors are, if it learned them; see `same_space`."""
    texts_read = TextsRead()
    """The record of what it was trained on, saved with it."""
    tokenizer: Any
    states: TokenStates
    """(tokens, d) last-layer states of every token of a packed batch, in packed order."""

    def __init__(
        self, sentence_transformer: Any, language_model_head: LanguageModelHead | None = None, whole: Path | None = None
    ) -> None:
        super().__init__()
        self.sentence_transformer, self.language_model_head = sentence_transformer, language_model_head
        self.whole = whole
        if self.is_static:
            return
        self.tokenizer = sentence_transformer.tokenizer
        # A pooler on the first token is for next-sentence prediction: it never gets a gradient here.
        pooler = getattr(self.transformer, "pooler", None)
        for module in (pooler, *filter(is_layer_mean, self.token_modules)):
            if isinstance(module, nn.Module):
                module.requires_grad_(False)
        self.states = TokenStates(self.transformer, self.tokenizer)

    @property
    def transformer(self) -> Any:
        """The transformers model inside, without any head; of an encoder-decoder its encoder."""
        model = self.sentence_transformer[0].model
        return model.encoder if getattr(model.config, "is_encoder_decoder", False) else model

    @property
    def kind(self) -> str:
        """Architecture, by transformers' `model_type`; `static` for a table of static embeddings."""
        return "static" if self.is_static else str(self.transformer.config.model_type)

    @property
    def adapted(self) -> bool:
        """Whether the transformer has an adapter (LoRA) that is not merged with its weights."""
        return not self.is_static and bool(getattr(self.sentence_transformer[0].model, "peft_config", None))

    @property
    def frozen(self) -> list[nn.Parameter]:
        """The weights below an adapter, which stay those of the base."""
        weights = self.sentence_transformer[0].model.parameters() if self.adapted else ()
        return [weight for weight in weights if not weight.requires_grad]

    @property
    def words(self) -> Any:
        """The embedding module of the tokens."""
        return self.transformer.get_input_embeddings()

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens that have an embedding."""
        return int(self.words.num_embeddings)

    @property
    def pooling(self) -> str:
        """Name of the pooling: one of `POOLINGS`, or `cnn-pool`."""
        return cast(str, self.pooling_module.pooling_mode)

    @property
    def pooling_module(self) -> Any:
        """The module that makes a sentence vector of token states."""
        return self.sentence_transformer[self._pooling_index]

    @property
    def _pooling_index(self) -> int:
        return cast(int, pooling_index(self.sentence_transformer))

    @property
    def token_modules(self) -> list[nn.Module]:
        """The modules between transformer and pooling, which transform token states; often none."""
        return list(self.sentence_transformer)[1 : self._pooling_index]

    def put_before_pooling(self, modules: Sequence[nn.Module], width: int) -> None:
        """Insert modules that transform token states just before the pooling.

        Args:
            modules: sentence-transformers modules.
            width: of their output.

        Raises:
            BaseEncoderError: a module after the pooling expects vectors of another width.
        """
        model, index = self.sentence_transformer, self._pooling_index
        if any(getattr(module, "in_features", width) != width for module in list(model)[index + 1 :]):
            problem = f"the dense layer after its pooling takes no vectors of width {width}: choose another base"
            raise BaseEncoderError(problem)
        pooling = type(model[index])(**{**model[index].get_config_dict(), "embedding_dimension": width})
        pooling.load_state_dict(model[index].state_dict())
        self.put_pooling(pooling)
        for module in reversed(modules):
            model.insert(index, module.to(self.device))

    def put_pooling(self, module: nn.Module) -> None:
        """Replace the pooling by another module that makes a sentence vector of token states."""
        self.sentence_transformer[self._pooling_index] = module.to(self.device)

    def average_layers(self, layers: Layers) -> None:
        """Make the pooling read the mean of two layers' states instead of the last layer's.

        Raises:
            BaseEncoderError: there are no layers, or there are modules before the pooling already.
        """
        if layers == "last":
            return
        self.require_transformer(f"layers={layers} are a transformer's")
        if self.token_modules:
            raise BaseEncoderError(f"this base has modules before its pooling, which layers={layers} would replace")
        if self.transformer is not self.sentence_transformer[0].model:
            problem = f"sentence-transformers reads only the last layer of this base: leave out layers={layers}"
            raise BaseEncoderError(problem)
        config = self.transformer.config
        self.put_before_pooling([layer_mean(self.hidden_size, config.num_hidden_layers, layers)], self.hidden_size)
        config.output_hidden_states = True

    def left_out(self, prompt: str) -> int:
        """Leading tokens of a text with this prompt that its pooling leaves out, as sentence-transformers counts them.

        Special tokens in front are among them. None are left out unless the pooling says so (`include_prompt`).
        """
        if not prompt or self.is_static or getattr(self.pooling_module, "include_prompt", True):
            return 0
        ids = self.tokenizer(prompt, truncation=True, max_length=self.tokenizer.model_max_length)["input_ids"]
        return len(ids) - (ids[-1] in self.tokenizer.all_special_ids)

    def put_affine(self, weight: Tensor, bias: Tensor) -> None:
        """Append the map u → weight u + bias, of shapes (k, d) and (k,), in float32."""
        from sentence_transformers.base.modules import Dense

        k, d = weight.shape
        self.sentence_transformer.append(Dense(d, k, True, nn.Identity(), weight.float().clone(), bias.float().clone()))

    @property
    def template(self) -> Template:
        """The special tokens around a sentence, and those that noise needs."""
        return Template.of(self.tokenizer, self.vocabulary_size)

    @property
    def hidden_size(self) -> int:
        """Width of a token state."""
        return int(self.transformer.config.hidden_size)

    @property
    def embedding_size(self) -> int:
        """Width of a sentence vector."""
        return int(self.sentence_transformer.get_embedding_dimension())

    @property
    def dropout_rate(self) -> float:
        """The largest dropout rate anywhere in the transformer; 0 when it has none, or when there is no transformer."""
        return 0.0 if self.is_static else rate_of(self.transformer.config)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device

    def token_vectors(self, packed: Packed) -> Tensor:
        """Input of the pooling, (tokens, e), in packed order: token states after the modules in between."""
        modules = self.token_modules
        if not modules:
            return self.states(packed)
        if is_layer_mean(modules[0]):
            return self.states(packed, lambda output: mean_of(modules[0], output.hidden_states))
        from selfsent.models.heads.ngram_cnn import forward_packed, reads_padding

        if reads_padding(modules):
            return self._through_padded(packed, modules)
        return forward_packed(modules, self.states(packed), packed)

    def _through_padded(self, packed: Packed, modules: Sequence[nn.Module]) -> Tensor:
        """(tokens, e) token vectors of modules that read padding: in one block, as sentence-transformers has it."""
        longest = int(packed.given_lengths.max())
        lengths = packed.lengths[torch.from_numpy(packed.order).to(packed.device)]
        mask = torch.arange(longest, device=packed.device) < lengths[:, None]
        ids = torch.full_like(mask, self.tokenizer.pad_token_id or 0, dtype=torch.long)
        ids[mask] = packed.ids
        typed = {}
        if (types := self.states.types(packed)) is not None:
            typed["token_type_ids"] = torch.zeros_like(ids).masked_scatter(mask, types)
        block = self.transformer(input_ids=ids, attention_mask=mask.long(), **typed).last_hidden_state
        features: Any = {"token_embeddings": block, "input_ids": ids, "attention_mask": mask.long()}
        for module in modules:
            features = module(features)
        return cast(Tensor, features["token_embeddings"][mask])

    def pool(self, states: Tensor, packed: Packed, leave_out: int = 0) -> Tensor:
        """From (tokens, e) token vectors to (sentences, e) sentence vectors: the pooling and all modules after it."""
        states, packed = packed.without_prompts(states)
        if self.pooling == CNN_POOL:
            vectors: Tensor = self.pooling_module.of_packed(states, packed)
        elif self.pooling == "mean":
            vectors = packed.mean(states)
        elif self.pooling == "max":
            vectors = packed.max(states)
        else:
            vectors = states[packed.first if self.pooling == "cls" else packed.last]
        return self.after_pooling(vectors, leave_out)

    def after_pooling(self, vectors: Tensor, leave_out: int = 0) -> Tensor:
        """Apply the modules after the pooling, but for the last `leave_out`, to (sentences, e) vectors."""
        features = {"sentence_embedding": vectors}
        modules = list(self.sentence_transformer)
        for module in modules[self._pooling_index + 1 : len(modules) - leave_out]:
            features = module(features)
        return features["sentence_embedding"]

    @property
    def ends_normalized(self) -> bool:
        """Whether a module at the end gives vectors length 1."""
        return type(list(self.sentence_transformer)[-1]).__name__ == "Normalize"

    def forward(self, packed: Packed, leave_out: int = 0) -> Tensor:
        """(sentences, e) vectors of a packed batch, in the order of its sentences.

        A batch of more sentences than `mini_batch_size` goes in parts, of which vectors alone are kept: see `in_parts`.

        Args:
            packed: the batch.
            leave_out: trailing modules that are skipped.
        """
        size, training = self.mini_batch_size or len(packed), self.training
        if len(packed) <= size:
            return self.pool(self.token_vectors(packed), packed, leave_out)

        def encode(rows: slice) -> Tensor:
            part = packed.take(range(rows.start, rows.stop))
            with nullcontext() if training else without_dropout(self):  # as in the first pass
                return self.pool(self.token_vectors(part), part, leave_out)

        weights = [weight for weight in self.parameters() if weight.requires_grad]
        return in_parts(encode, len(packed), size, weights)

    def twin(self) -> Encoder:
        """A copy with its own weights, but shared ones below an adapter, and without language-model head."""
        return copy.deepcopy(self, {id(self.language_model_head): None, **{id(each): each for each in self.frozen}})

    def require_transformer(self, why: str) -> None:
        """Raise a `BaseEncoderError` that begins with a reason, unless there is a transformer."""
        if self.is_static:
            problem = f"{why}, and this base is a table of token vectors: choose a transformer, such as bundled-raw"
            raise BaseEncoderError(problem)

    def require_head(self, purpose: str, hidden: bool = True) -> LanguageModelHead:
        """The language-model head; a new one, with a warning, when the base came without.

        Args:
            purpose: its user, for messages.
            hidden: whether it predicts masked words from both sides, for which causal states are of no use.

        Raises:
            BaseEncoderError: there is no transformer, or no such head for this architecture.
        """
        self.require_transformer(f"{purpose} predicts words by a transformer's head")
        config: Any = self.transformer.config
        if hidden and not has_masked_language_model(config):
            problem = f"{purpose} hides words, and transformers has no masked language model for {config.model_type!r}"
            advice = "choose another base or method"
            raise BaseEncoderError(f"{problem}: {advice}")
        if self.language_model_head is None:
            self.language_model_head = new_head(self.transformer).to(self.device)
            if self.language_model_head.own_tensors(self.transformer):
                logger.warning("this base has no language-model head: %s starts with a new, untrained one", purpose)
        frozen = set(self.frozen)
        for weight in self.language_model_head.parameters():
            weight.requires_grad_(weight not in frozen)
        return self.language_model_head

    def forget(self) -> None:
        """Reset transformer and language-model head to random weights."""
        self.require_transformer("starting from random weights is for transformers")
        if self.adapted:
            raise BaseEncoderError("LoRA leaves the weights as they are, and random ones are of no use: leave it out")
        fresh = type(self.transformer)(self.transformer.config)
        self.transformer.load_state_dict(fresh.state_dict(), strict=False)
        if self.language_model_head is not None:
            self.language_model_head = new_head(self.transformer).to(self.device)

    def save(self, directory: Path) -> None:
        """Write an ordinary sentence-transformers directory, with the language-model head in an extra file.

        Raises:
            BaseEncoderError: it computes in 8 bits, which other programs cannot load.
        """
        if any(parameter.dtype == torch.int8 for parameter in self.transformer.parameters()):
            raise BaseEncoderError("an encoder in 8 bits cannot be saved: save it before")
        self.save_modules(directory)
        if self.language_model_head is not None:
            save_head(self.language_model_head, directory, self.transformer)
        self.texts_read.save(directory)
        about = {"sizes": self.sizes, "space": self.space}
        if self.lexical_weight != type(self).lexical_weight or any(about.values()):
            told = {name: value for name, value in about.items() if value}
            write_json(directory / SEARCH_FILE, {"lexical_weight": self.lexical_weight, **told})

    def save_modules(self, directory: Path) -> None:
        """Write the ordinary directory, without what selfsent keeps beside it."""
        with silent():
            self.sentence_transformer.save(str(directory), create_model_card=False)

    def cut(self, size: int) -> None:
        """Keep at most the first `size` numbers of each vector, and the length 1 where whole vectors have it."""
        if size >= (width := self.embedding_size):
            return
        last, weight = list(self.sentence_transformer)[-1], next(self.parameters())
        self.put_affine(torch.eye(width, device=weight.device)[:size], weight.new_zeros(size, dtype=torch.float32))
        if type(last).__name__ == "Normalize":
            self.sentence_transformer.append(copy.deepcopy(last))
        self.to(weight.device, weight.dtype)
