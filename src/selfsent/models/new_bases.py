"""Bases made where they are named: random token vectors, and recurrent networks over such or over those of a file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.errors import BaseEncoderError
from selfsent.files import cache_folder, whole_directory, write_json
from selfsent.integrity import broken_seal, checksum, seal, tell_damaged
from selfsent.models.heads.loading import is_sentence_encoder, is_static

if TYPE_CHECKING:
    from selfsent.models.encoder import Encoder

WORDS = 256
"""Numbers in a random word vector."""
TABLE = "random-table"
"""Random token vectors for the vocabulary of `bundled-raw`, and no network."""
SIZES = {"gru": 512, "lstm": 512, "bilstm": 256, TABLE: WORDS}
"""Numbers in a state of each direction, so that sentence vectors have 512; in a token vector of a table."""
MOST_WORDS = 200_000
"""Words of a file that get a vector, the first ones: such files begin with the frequent words."""
_LARGEST = 16_384
_NAME = re.compile(rf"({'|'.join(SIZES)})(?::(\d+))?(?::(.+))?", re.DOTALL)
_VERSION = 1
"""Another one for networks that begin as others."""


@dataclass(frozen=True)
class NewBase:
    """A base made by its name: `KIND`, `KIND:SIZE`, `KIND:VECTORS` or `KIND:SIZE:VECTORS`.

    Args:
        kind: `gru`, `lstm`, `bilstm` or `random-table`.
        size: numbers in a state, of each direction; of a table, in a token vector.
        vectors: a file of word vectors, or a table of token vectors; empty for random ones, as a random table has.
    """

    kind: str
    size: int
    vectors: str = ""

    @classmethod
    def named(cls, name: str) -> NewBase | None:
        """What a name means; None for the name of anything else.

        Raises:
            BaseEncoderError: its states would have no numbers, or too many; or a random table is to have vectors.
        """
        found = _NAME.fullmatch(name)
        if not found:
            return None
        kind, size = found[1], int(found[2] or SIZES[found[1]])
        what = "token vector" if kind == TABLE else "state"
        if not 1 <= size <= _LARGEST:
            raise BaseEncoderError(f"{name}: a {what} has 1 to {_LARGEST} numbers, not {size}")
        if kind == TABLE and found[3]:
            raise BaseEncoderError(f"{name}: {TABLE} has random vectors, and takes a size alone, as in {TABLE}:100")
        return cls(kind, size, found[3] or "")


def made(network: NewBase, resolve: Callable[[str], Path]) -> Path:
    """The directory of a base that nobody has trained, in the cache; it is made the first time.

    Args:
        network: which.
        resolve: gives the directory of a base.

    Raises:
        BaseEncoderError: its word vectors are neither a file nor a table of token vectors.
        DataError: the file cannot be read.
        OutputError: the cache cannot be written.
    """
    file = Path(network.vectors).expanduser()
    source = resolve("bundled-raw") if not network.vectors else file if file.is_file() else resolve(network.vectors)
    if network.vectors and source.is_dir() and not is_static(source):
        raise BaseEncoderError(
            f"{network.kind} takes word vectors from a file of them, or a table such as bundled, and"
            f" {network.vectors} is neither"
        )
    told = repr((_VERSION, network.kind, network.size, bool(network.vectors), _identity(source)))
    place = cache_folder() / "recurrent" / hashlib.blake2b(told.encode(), digest_size=8).hexdigest()
    if not _is_whole(place):
        with whole_directory(place) as folder:
            _write(folder / "model", network, source)
            # As of a table that nobody has trained: it is no sentence encoder yet.
            write_json(folder / "run.json", {"asked": {"method": "table"}, "status": "finished"})
    return place / "model"


def _identity(source: Path) -> tuple[Any, ...]:
    if source.is_dir():
        return tuple(checksum(path) for path in (source / "tokenizer.json", source / "model.safetensors"))
    about = source.stat()
    return str(source.resolve()), about.st_size, about.st_mtime_ns


def _is_whole(place: Path) -> bool:
    if not (place / "model" / "modules.json").is_file():
        return False
    if broken_seal(place) is None:
        return True
    tell_damaged(place)
    return False


def _write(folder: Path, network: NewBase, source: Path) -> None:
    from selfsent.models.recurrent import new_recurrent
    from selfsent.models.static import new_table

    if not network.vectors:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True, trust_remote_code=False)
        if network.kind == TABLE:
            made: Encoder = new_table(tokenizer.backend_tokenizer, network.size)
        else:
            made = new_recurrent(network.kind, tokenizer, network.size, WORDS)
    else:
        tokenizer, vectors, fixed = _of_table(source) if source.is_dir() else _of_file(source)
        made = new_recurrent(network.kind, tokenizer, network.size, vectors, fixed)
    made.save(folder)
    seal(folder)


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
