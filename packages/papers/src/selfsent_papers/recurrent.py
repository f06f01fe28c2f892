"""Recurrent networks: untrained bases by name, such as `gru:2400x620`, and a decoder.

SDAE, Skip-Thoughts and InferSent train them. They are a class of transformers, so that selfsent and
sentence-transformers load and train them like any transformer, where this package is installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput

from selfsent.data.packed import Packed
from selfsent.data.word_vectors import word_blocks
from selfsent.errors import BaseEncoderError
from selfsent.foreign.transformers import silent
from selfsent.models.bases import resolve
from selfsent.models.decoders.transformer import start_for
from selfsent.models.encoder import Encoder
from selfsent.models.new_bases import in_cache, load_tokenizer, tokenizer_digest
from selfsent.models.table import LONGEST

Reads = Literal["steps", "start", "both"]
"""Where a decoder reads the sentence vector: at every step, as its first state, or both."""
MOST_WORDS = 200_000
"""Words of a file that get a vector, the first ones: such files begin with the frequent words."""
_NAME = re.compile(r"(gru|lstm|bilstm):?(\d{1,5})?(?:x(\d{1,5}))?(?::(.+))?", re.DOTALL)
_SPREAD = 0.1
"""Standard deviation of initial word vectors."""
_VERSION = 1
"""Version of the initial weights; raise it when they change."""


class RecurrentConfig(PreTrainedConfig):  # type: ignore[misc]  # transformers is not typed
    """A network of one layer over word vectors.

    Args:
        vocab_size: number of words.
        word_size: width of a word vector.
        width: of a state, of each direction.
        cell: `gru` or `lstm`.
        bidirectional: whether a second network reads from right to left.
        fixed_words: whether training leaves the word vectors as they are.
        **others: of transformers.
    """

    model_type = "selfsent-recurrent"

    def __init__(
        self,
        vocab_size: int = 2,
        word_size: int = 100,
        width: int = 100,
        cell: str = "gru",
        bidirectional: bool = False,
        fixed_words: bool = False,
        **others: Any,
    ) -> None:
        self.vocab_size, self.word_size, self.width = vocab_size, word_size, width
        self.cell, self.bidirectional, self.fixed_words = cell, bidirectional, fixed_words
        self.hidden_size, self.num_hidden_layers = width * (1 + bidirectional), 1
        others = {name: value for name, value in others.items() if name not in ("hidden_size", "num_hidden_layers")}
        super().__init__(**others)


class RecurrentModel(PreTrainedModel):  # type: ignore[misc]  # transformers is not typed
    """Word vectors and a GRU or LSTM over them; the states do not depend on padding."""

    config_class = RecurrentConfig
    base_model_prefix = "recurrent"

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.word_size)
        kind = nn.GRU if config.cell == "gru" else nn.LSTM
        self.network = kind(config.word_size, config.width, batch_first=True, bidirectional=config.bidirectional)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Leave weights as torch begins them: the base's weights are in its file."""

    def get_input_embeddings(self) -> nn.Embedding:
        """The word vectors."""
        return self.words

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> BaseModelOutput:
        """(batch, length, h) states of padded sentences, in float32: a rounding error would reach all later states."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        words = self.words(input_ids)
        words = words.detach() if self.config.fixed_words else words
        lengths = mask.sum(1).clamp(min=1).cpu()
        with torch.autocast(input_ids.device.type, enabled=False):
            packed = pack_padded_sequence(words.float(), lengths, batch_first=True, enforce_sorted=False)
            states = pad_packed_sequence(self.network(packed)[0], batch_first=True, total_length=mask.shape[1])[0]
        return BaseModelOutput(last_hidden_state=states)


AutoConfig.register(RecurrentConfig.model_type, RecurrentConfig, exist_ok=True)
AutoModel.register(RecurrentConfig, RecurrentModel, exist_ok=True)


def begin_orthogonal(network: nn.Module) -> None:
    """Initialise recurrent weights as random orthogonal matrices, one for each gate (Kiros et al. 2015, section 3).

    A state then keeps its length from step to step, and with it the first words.
    """
    for name, weight in network.named_parameters():
        if name.startswith("weight_hh"):
            for block in torch.split(weight.detach(), weight.shape[1]):
                nn.init.orthogonal_(block)


def make_recurrent(name: str) -> Path:
    """The directory of an untrained network, in the cache; made the first time.

    Args:
        name: `gru`, `lstm` or `bilstm`, with `:STATE`, `:STATExWORD` (the widths of a state and of a word vector), and
            perhaps `:FILE` of word vectors, which training leaves as they are.

    Raises:
        BaseEncoderError: another name.
        DataError: the file cannot be read.

    Examples:
        >>> make_recurrent("gru:2400x620").name
        'model'
    """
    found = _NAME.fullmatch(name)
    if not found or not int(found[2] or 512) > 0 or found[3] == "0":
        raise BaseEncoderError(f"{name}: a network is named like gru:2400x620 or bilstm:2048:glove.840B.300d.txt")
    cell, width, word_size, source = found[1], int(found[2] or 512), int(found[3] or 256), found[4]
    file = Path(source).expanduser() if source else None
    tokenizer: Any = None if file else load_tokenizer(resolve("bundled-raw"))
    if file is None:
        identity: Any = tokenizer_digest(tokenizer)
    elif file.is_file():
        identity = str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns
    else:
        raise BaseEncoderError(f"{name}: there is no file {source} of word vectors")

    def write(folder: Path) -> None:
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            read = (tokenizer, _SPREAD * torch.randn(len(tokenizer), word_size)) if file is None else read_words(file)
            _write(folder, cell, width, *read, fixed=file is not None)

    return in_cache((_VERSION, cell, width, word_size if file is None else 0, identity), write)


def _write(folder: Path, cell: str, width: int, tokenizer: Any, vectors: Tensor, fixed: bool) -> None:
    config = RecurrentConfig(
        vocab_size=len(vectors),
        word_size=vectors.shape[1],
        width=width,
        cell=cell.removeprefix("bi"),
        bidirectional=cell == "bilstm",
        fixed_words=fixed,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = RecurrentModel(config)
    model.words.weight.data.copy_(vectors)
    if cell == "gru":
        begin_orthogonal(model.network)
    tokenizer.model_max_length = LONGEST
    with silent():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def read_words(path: Path) -> tuple[Any, Tensor]:
    """A tokenizer of the words of a file, and their vectors.

    The tokens for padding, unknown words, begin and end get a vector, too: zeros for padding, else the mean of all.

    Raises:
        DataError: the file cannot be read.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words, parts = list[str](), list[Tensor]()
    for block, vectors in word_blocks(path):
        words += block
        parts.append(torch.from_numpy(vectors))
        if len(words) >= MOST_WORDS:
            break
    table, special = torch.cat(parts)[:MOST_WORDS], ("[PAD]", "[UNK]", "<s>", "</s>")
    row = {word: number for number, word in reversed(list(enumerate(words[:MOST_WORDS])))}
    mean = table.mean(0)
    rows = [torch.zeros_like(mean), *(table[row[word]] if word in row else mean for word in special[1:])]
    kept = [word for word in row if word not in special]
    vocabulary = {word: number for number, word in enumerate([*special, *kept])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=special[1]))
    if all(word == word.lower() for word in kept):
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(special))
    ends = [(token, vocabulary[token]) for token in special[2:]]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> $B </s>", ends)
    kinds = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), special, strict=True))
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **kinds)
    return wrapped, torch.cat([torch.stack(rows), table[[row[word] for word in kept]]])


class RecurrentDecoder(nn.Module):
    """A GRU over word vectors from left to right, conditioned on the sentence vector s.

    At every step, s enters both gates and the new state (Kiros et al. 2015, equations 5 to 7): the input is the word
    vector concatenated with s. The reset gate scales the product of weights and state, as in torch, where Kiros et
    al. scale the state itself. The first state is s; with `both` it is tanh(W s), as in the code of Hill et al. 2016.

    Args:
        model: the encoder, which also gives the word vectors.
        reads: where s enters.
    """

    def __init__(self, model: Encoder, reads: Reads) -> None:
        super().__init__()
        tokenizer, size, self.reads = model.tokenizer, model.embedding_size, reads
        self.start = start_for(model, (tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.pad_token_id))
        self.network = nn.GRU(model.words.embedding_dim + (0 if reads == "start" else size), size)
        begin_orthogonal(self.network)
        self.begin: nn.Module = nn.Linear(size, size) if reads == "both" else nn.Identity()

    def reading(self, whole: Packed) -> Packed:
        """Input for whole sentences; the target of each token is the next one, the end included."""
        return whole.without_last() if self.start is None else whole.shift_right(self.start)

    def forward(self, words: Callable[[Tensor], Tensor], vectors: Tensor, read: Packed) -> Tensor:
        """States from which each token of `read` predicts the next.

        Args:
            words: gives word vectors, (tokens, d).
            vectors: (sentences, e) sentence vectors.
            read: the input, from `reading`.

        Returns:
            (tokens, e) states, in packed order.
        """
        inputs = words(read.ids)
        if self.reads != "start":
            inputs = torch.cat([inputs.float(), vectors.float()[read.sentence]], dim=-1)
        first = None
        if self.reads != "steps":
            first = self.begin(vectors.float())[torch.from_numpy(read.order).to(vectors.device)][None]
            first = first.tanh() if self.reads == "both" else first
        # Sentences are packed in order of falling length: first tokens of all, then second tokens, and so on.
        order = torch.argsort(read.positions, stable=True)
        with torch.autocast(inputs.device.type, enabled=False):
            packed = PackedSequence(inputs.float()[order], torch.bincount(read.positions).cpu())
            states: Tensor = self.network(packed, None if first is None else first.float())[0].data
        return states[torch.argsort(order)]
