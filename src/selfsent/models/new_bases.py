"""Bases made where they are named: untrained transformers, recurrent networks and tables of random vectors."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.errors import BaseEncoderError
from selfsent.files import atomic_directory, cache_folder, write_json
from selfsent.integrity import broken_seal, checksum, seal, warn_damaged
from selfsent.models.saved import is_sentence_encoder, is_static

if TYPE_CHECKING:
    from selfsent.models.encoder import Encoder

POSITIONS = 512
"""Positions of a new transformer, and so the longest input of its tokenizer."""
SPECIAL = ("cls", "sep", "pad", "mask")
"""The special tokens that a transformer reads."""
TABLE = "random-table"
"""Random token vectors for the vocabulary of `bundled-raw`, and no network."""
TRANSFORMERS = ("bert", "albert")
SIZES = {"gru": "512", "lstm": "512", "bilstm": "256", TABLE: "256", "bert": "4x256", "albert": "4x256"}
"""Numbers in a state of each direction or in a token vector; of a transformer, its layers before them."""
WORDS = 256
"""Numbers in a random word vector."""
MOST_WORDS = 200_000
"""Words of a file that get a vector, the first ones: such files begin with the frequent words."""
_LARGEST = 16_384
_HEAD = 64
_NAME = re.compile(rf"({'|'.join(SIZES)})(?::(\d+(?:x\d+)?))?(?::(.+))?", re.DOTALL)
_VERSION = 1
"""Another one for networks with other initial weights."""


@dataclass(frozen=True)
class NewBase:
    """A base made by its name: `KIND`, `KIND:SIZE`, `KIND:SOURCE` or `KIND:SIZE:SOURCE`.

    Args:
        kind: `gru`, `lstm`, `bilstm`, `random-table`, `bert` or `albert`.
        size: numbers in a state, of each direction; of a table, in a token vector.
        source: a file of word vectors, or a table of token vectors; for a transformer, an encoder whose vocabulary it
            gets. Empty for random vectors and the vocabulary of `bundled-raw`.
        layers: of a transformer, whose SIZE is LAYERSxWIDTH, such as 12x768; else 1.
    """

    kind: str
    size: int
    source: str = ""
    layers: int = 1

    @classmethod
    def named(cls, name: str) -> NewBase | None:
        """What a name means; None for the name of anything else.

        Raises:
            BaseEncoderError: the size is out of range, or a random table is to have vectors.
        """
        found = _NAME.fullmatch(name)
        if not found:
            return None
        kind, source = found[1], found[3] or ""
        *layers, size = map(int, (found[2] or SIZES[kind]).split("x"))
        if (kind in TRANSFORMERS) != bool(layers):
            raise BaseEncoderError(f"{name}: a size is a number, and of {' and '.join(TRANSFORMERS)} LAYERSxWIDTH")
        if layers and not (1 <= layers[0] <= _LARGEST and 1 <= size <= _LARGEST and size % _HEAD == 0):
            raise BaseEncoderError(f"{name}: LAYERSxWIDTH needs 1 layer or more, and a width that is a multiple of 64")
        if not 1 <= size <= _LARGEST:
            what = "token vector" if kind == TABLE else "state"
            raise BaseEncoderError(f"{name}: a {what} has 1 to {_LARGEST} numbers, not {size}")
        if kind == TABLE and source:
            raise BaseEncoderError(f"{name}: {TABLE} has random vectors, and takes a size alone, as in {TABLE}:100")
        return cls(kind, size, source, *layers)


def made(base: NewBase, resolve: Callable[[str], Path]) -> Path:
    """The directory of an untrained base, in the cache; it is made the first time.

    Args:
        base: which.
        resolve: gives the directory of a base.

    Raises:
        BaseEncoderError: its word vectors are neither a file nor a table of token vectors, or there is no vocabulary.
        DataError: the file cannot be read.
        OutputError: the cache cannot be written.
    """
    if base.kind in TRANSFORMERS:
        tokenizer = load_tokenizer(resolve(base.source or "bundled-raw"))
        shape = {"layers": base.layers, "hidden_size": base.size, "heads": base.size // _HEAD}

        def write(folder: Path) -> None:
            save_language_model(new_language_model(base.kind, tokenizer, **shape), tokenizer, folder)

        return in_cache((_VERSION, base.kind, shape, tokenizer_digest(tokenizer)), write)
    file = Path(base.source).expanduser()
    source = resolve("bundled-raw") if not base.source else file if file.is_file() else resolve(base.source)
    if base.source and source.is_dir() and not is_static(source):
        raise BaseEncoderError(
            f"{base.kind} takes word vectors from a file of them, or a table such as bundled, and {base.source} is"
            " neither"
        )
    key = _VERSION, base.kind, base.size, bool(base.source), _identity(source)
    return in_cache(key, lambda folder: _new_encoder(base, source).save(folder))


def in_cache(key: tuple[Any, ...], write: Callable[[Path], None]) -> Path:
    """The directory of an untrained base in the cache.

    Args:
        key: what tells it from others.
        write: writes it into a folder, the first time.
    """
    place = cache_folder() / "recurrent" / hashlib.blake2b(repr(key).encode(), digest_size=8).hexdigest()
    there = (place / "run.json").is_file()
    if there and broken_seal(place):
        warn_damaged(place)
        there = False
    if not there:
        with atomic_directory(place) as folder:
            write(folder / "model")
            seal(folder / "model")
            # As of a table that nobody has trained: it is no sentence encoder yet.
            write_json(folder / "run.json", {"asked": {"method": "table"}, "status": "finished"})
    return place / "model"


def load_tokenizer(directory: Path, special: Sequence[str] = SPECIAL) -> Any:
    """A tokenizer that an encoder came with, for a new encoder.

    Args:
        directory: of the encoder.
        special: the special tokens it must have.

    Raises:
        BaseEncoderError: there is none, or it lacks one of them.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise BaseEncoderError(f"{directory} has no tokenizer that can be loaded: {reason}") from None
    if not getattr(tokenizer, "is_fast", False):
        raise BaseEncoderError(f"{directory} has no fast tokenizer: choose another encoder")
    for kind in special:
        if getattr(tokenizer, f"{kind}_token_id") is None:
            raise BaseEncoderError(f"the tokenizer of {directory} has no {kind} token: choose another encoder")
    tokenizer.model_max_length = POSITIONS
    return tokenizer


def tokenizer_digest(tokenizer: Any) -> str:
    """A short digest of what a tokenizer does."""
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()[:16]


def new_language_model(
    kind: str,
    tokenizer: Any,
    layers: int,
    hidden_size: int,
    heads: int,
    feed_forward: int | None = None,
    seed: int = 0,
) -> Any:
    """A transformer with a masked-language-model head and random weights.

    Args:
        kind: `bert` or `albert`.
        tokenizer: whose tokens it reads.
        layers: how many.
        hidden_size: width of a token state.
        heads: attention heads in a layer.
        feed_forward: width of the feed-forward layers; 4 times the hidden size when None.
        seed: of the random numbers.
    """
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    config = AutoConfig.for_model(
        kind,
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=feed_forward or 4 * hidden_size,
        max_position_embeddings=POSITIONS,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return AutoModelForMaskedLM.from_config(config)


def save_language_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a directory in transformers' layout."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _identity(source: Path) -> tuple[Any, ...]:
    if source.is_dir():
        return tuple(checksum(path) for path in (source / "tokenizer.json", source / "model.safetensors"))
    about = source.stat()
    return str(source.resolve()), about.st_size, about.st_mtime_ns


def _new_encoder(base: NewBase, source: Path) -> Encoder:
    from selfsent.models.recurrent import new_recurrent
    from selfsent.models.static import new_table

    if base.source:
        tokenizer, vectors, fixed = _of_table(source) if source.is_dir() else _of_file(source)
        return new_recurrent(base.kind, tokenizer, base.size, vectors, fixed)
    tokenizer = load_tokenizer(source)
    if base.kind == TABLE:
        return new_table(tokenizer.backend_tokenizer, base.size)
    return new_recurrent(base.kind, tokenizer, base.size, WORDS)


def _of_table(directory: Path) -> tuple[Any, Any, bool]:
    """Tokenizer and vectors of a table, and whether somebody trained it, so that they are to stay as they are.

    Raises:
        BaseEncoderError: it cannot be read, or its tokenizer puts nothing around sentences.
    """
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        vectors = load_file(directory / "model.safetensors")["embedding.weight"].float()
    except Exception as error:  # what `tokenizers` raises has no class of its own
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BaseEncoderError(f"{directory} has no token vectors that can be read: {reason}") from error
    around = tokenizer.encode("").tokens
    if len(around) < 2:
        raise BaseEncoderError(
            f"the tokenizer of {directory} puts no tokens around a sentence, which a recurrent network reads: make a"
            " table with selfsent table"
        )
    return _wrapped(tokenizer, around[0], around[-1]), vectors, is_sentence_encoder(directory)


def _wrapped(tokenizer: Any, begin: str, end: str) -> Any:
    from transformers import PreTrainedTokenizerFast

    tokenizer.no_padding()
    tokenizer.no_truncation()
    about = json.loads(tokenizer.to_str())
    special = [entry["content"] for entry in about["added_tokens"] if entry["special"]]
    names = {"pad_token": "[PAD]", "mask_token": "[MASK]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=about["model"].get("unk_token"),
        cls_token=begin,
        sep_token=end,
        **{name: token for name, token in names.items() if token in special},
    )


def _of_file(path: Path) -> tuple[Any, Any, bool]:
    """A tokenizer of the words of a file, their vectors, and that these stay as they are.

    What the file lacks of the tokens for padding, unknown words, begin and end gets a vector: zeros for padding, else
    the mean of all.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words, parts = _first_words(path)
    table = torch.cat([torch.from_numpy(part) for part in parts])[: len(words)]
    special = ["[PAD]", "[UNK]", "<s>", "</s>"]
    known = {word: row for row, word in reversed(list(enumerate(words)))}
    mean = table.mean(0)
    rows = [torch.zeros_like(mean), *(table[known[word]] if word in known else mean for word in special[1:])]
    kept = [word for word in known if word not in special]
    vocabulary = {word: number for number, word in enumerate([*special, *kept])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    if not any(word != word.lower() for word in kept):
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(special)
    ends = [(token, vocabulary[token]) for token in special[2:]]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> $B </s>", ends)
    return (
        _wrapped(tokenizer, *special[2:]),
        torch.cat([torch.stack(rows), table[[known[word] for word in kept]]]),
        True,
    )


def _first_words(path: Path) -> tuple[list[str], list[Any]]:
    from selfsent.data.word_vectors import word_blocks

    words, parts = list[str](), list[Any]()
    for block, vectors in word_blocks(path):
        words += block
        parts.append(vectors)
        if len(words) >= MOST_WORDS:
            break
    return words[:MOST_WORDS], parts
