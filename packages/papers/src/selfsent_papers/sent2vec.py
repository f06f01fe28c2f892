"""Sent2Vec with vectors of bigrams, and the base that has them, such as `ngrams:700x2000000`.

The base is a class of transformers, so that selfsent and sentence-transformers load it where this package is installed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput

from selfsent.data.packed import Packed
from selfsent.errors import BaseEncoderError
from selfsent.foreign.transformers import silent
from selfsent.integrity import checksum
from selfsent.methods.method import AnyBase, Method
from selfsent.methods.sent2vec import Sent2Vec, Sent2VecLearner
from selfsent.models.bases import resolve
from selfsent.models.new_bases import in_cache
from selfsent.models.table import LONGEST
from selfsent.settings import Settings, setting

_NAME = re.compile(r"ngrams(?::(\d{1,5})(?:x(\d{1,8}))?)?(?::(.+))?", re.DOTALL)
_MULTIPLIER = 116_049_371
"""Of the hash of fastText and of Sent2Vec's authors."""
_VERSION = 1
"""Version of the initial weights; raise it when they change."""


class NgramsConfig(PreTrainedConfig):  # type: ignore[misc]  # transformers is not typed
    """Vectors of words, and of pairs of neighbouring words.

    Args:
        vocab_size: number of words.
        hidden_size: width of a vector.
        buckets: number of vectors of pairs, which share them by a hash.
        **others: of transformers.
    """

    model_type = "selfsent-ngrams"

    def __init__(self, vocab_size: int = 2, hidden_size: int = 100, buckets: int = 100, **others: Any) -> None:
        self.vocab_size, self.hidden_size, self.buckets = vocab_size, hidden_size, buckets
        super().__init__(**others)


class NgramsModel(PreTrainedModel):  # type: ignore[misc]  # transformers is not typed
    """Token states whose mean is the mean of the vectors of a sentence's words and bigrams."""

    config_class = NgramsConfig
    base_model_prefix = "ngrams"

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.pairs = nn.Embedding(config.buckets, config.hidden_size)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Leave weights as torch begins them: the base's weights are in its file."""

    def get_input_embeddings(self) -> nn.Embedding:
        """The word vectors."""
        return self.words

    def bigrams(self, ids: Tensor) -> Tensor:
        """The numbers of the vectors of neighbours, (..., n - 1), of the numbers of words, (..., n)."""
        return (ids[..., :-1] * _MULTIPLIER + ids[..., 1:]) % int(self.config.buckets)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> BaseModelOutput:
        """(batch, length, d) states of sentences that are padded on the right."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = self.words(input_ids)
        there = (mask[:, :-1] * mask[:, 1:])[..., None]
        both = nn.functional.pad(self.pairs(self.bigrams(input_ids)) * there, (0, 0, 0, 1))
        count = mask.sum(1).clamp(min=1)[:, None, None]
        return BaseModelOutput(last_hidden_state=(states + both) * (count / (2 * count - 1)))


AutoConfig.register(NgramsConfig.model_type, NgramsConfig, exist_ok=True)
AutoModel.register(NgramsConfig, NgramsModel, exist_ok=True)


def make_ngrams(name: str) -> Path:
    """The directory of an untrained base of words and bigrams, in the cache; made the first time.

    Args:
        name: `ngrams`, with `:SIZE` or `:SIZExBUCKETS` (the width and the number of vectors of pairs), and perhaps
            `:DIRECTORY` of a table or encoder whose tokens are the words.

    Raises:
        BaseEncoderError: another name, or there is no tokenizer.

    Examples:
        >>> make_ngrams("ngrams:700x2000000").name
        'model'
    """
    found = _NAME.fullmatch(name)
    if not found or "0" in (found[1], found[2]):
        raise BaseEncoderError(f"{name}: such a base is named like ngrams:700x2000000, or ngrams:100:DIRECTORY")
    size, buckets = int(found[1] or 100), int(found[2] or 100_000)
    file = resolve(found[3] or "bundled-raw") / "tokenizer.json"
    if not file.is_file():
        raise BaseEncoderError(f"{name}: {file} is missing: name the directory of a table or encoder")

    def write(folder: Path) -> None:
        about = Tokenizer.from_file(str(file))
        about.no_padding()
        about.no_truncation()
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=about, model_max_length=LONGEST)
        tokenizer.backend_tokenizer.post_processor = None  # bare words
        pad = next((token for token in ("[PAD]", "<pad>", "[UNK]") if about.token_to_id(token) is not None), None)
        tokenizer.pad_token = pad or about.id_to_token(0)
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            model = NgramsModel(NgramsConfig(about.get_vocab_size(), size, buckets, pad_token_id=0))
            for table in (model.words, model.pairs):
                nn.init.uniform_(table.weight, -1 / size, 1 / size)
        with silent():
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)

    return in_cache((_VERSION, "ngrams", size, buckets, checksum(file)), write)


@dataclass(frozen=True)
class Bigrams(Sent2Vec):
    """Sent2Vec, of words and bigrams.

    Σ_w ℓ(u_w·v) + Σ_n ℓ(−u_n·v), v the mean of the vectors of a sentence's words and bigrams but for those of w.

    Pagliardini, Gupta and Jaggi, 2018. arXiv:1703.02507.
    """

    drop: int = setting(4, "words of a sentence, redrawn each time, of which no bigram is read", minimum=0)

    def check_base(self, base: AnyBase, dropout: float | None = None) -> None:
        """Reject a base without vectors of bigrams."""
        if base.kind != NgramsConfig.model_type:
            problem = "sent2vec-bigrams trains words and bigrams, and this base has no vectors of bigrams"
            raise BaseEncoderError(f"{problem}: choose a base such as ngrams:700")


class BigramsLearner(Sent2VecLearner):
    """Σ_w ℓ(u_w·v) + Σ_n ℓ(−u_n·v), v the mean of all vectors but those with w (Pagliardini et al. 2018, section 2.2).

    As `Sent2VecLearner`, with bigrams, of which those of `drop` words are left out at random as long as two words stay.
    The authors draw these words for each w, here they are drawn once a sentence and step.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | those of a single token predict nothing |
    | loss | a sum | over the tokens that are predicted |

    Raises:
        BaseEncoderError: the base has no vectors of bigrams.

    Examples:
        >>> learner = BigramsLearner(load_encoder("ngrams:8x50"), Bigrams(threshold=1.0))
        >>> batch = pack(learner.model, ["a cat sat", "dogs"])
        >>> learner([batch]).count
        3
    """

    options: Bigrams

    def contexts(self, packed: Packed, chosen: Tensor) -> Tensor:
        """(chosen, d) means of the vectors of words and bigrams of the sentences, without the chosen words' own."""
        model, owner = self.model.transformer, packed.sentence
        words, kept = model.words(packed.ids), ~self.dropped(packed)
        together = (owner[:-1] == owner[1:]) & kept[:-1] & kept[1:]
        pairs = model.pairs(model.bigrams(packed.ids)) * together[:, None]
        sums = words.new_zeros(len(packed), words.shape[1]).index_add(0, owner, words)
        sums = sums.index_add(0, owner[:-1], pairs)
        counts = packed.lengths.new_zeros(len(packed)).index_add(0, owner[:-1], together.long()) + packed.lengths
        before = nn.functional.pad(pairs, (0, 0, 1, 0)), nn.functional.pad(together.long(), (1, 0))
        after = nn.functional.pad(pairs, (0, 0, 0, 1)), nn.functional.pad(together.long(), (0, 1))
        rest = sums[owner[chosen]] - words[chosen] - before[0][chosen] - after[0][chosen]
        left = counts[owner[chosen]] - 1 - before[1][chosen] - after[1][chosen]
        means: Tensor = rest / left[:, None]
        return means

    def dropped(self, packed: Packed) -> Tensor:
        """(tokens,) whether no bigram of a word is read: of the first ones of its sentence in random order."""
        owner = packed.sentence
        chance = torch.rand(packed.tokens, dtype=torch.float64, device=owner.device, generator=self._random())
        order = torch.argsort(chance)
        order = order[torch.argsort(owner[order], stable=True)]
        begins = packed.lengths.cumsum(0) - packed.lengths
        rank = torch.empty_like(owner)
        rank[order] = torch.arange(len(owner), device=owner.device) - begins[owner[order]]
        return rank < (packed.lengths - 2).clamp(min=0, max=self.options.drop)[owner]


Bigrams.method = Method("sent2vec-bigrams", Bigrams, BigramsLearner).replace(
    # As Sent2Vec's: single sentences at a rate of 0.2, by plain gradient descent in several threads.
    published=Sent2Vec.method.published,
    defaults=Settings(batch_size=128, learning_rate=0.004, epochs=15, max_length=64),
    large_learning_rate=0.004,
    static=None,
    default_base="ngrams:100x100000",
    presets=Sent2Vec.method.presets,
    compared=False,
)
