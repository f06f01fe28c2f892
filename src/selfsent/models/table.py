"""A table of token vectors without torch: numpy, tokenizers and safetensors start in a tenth of its time.

Commands that encode with a table load it here. Training needs `selfsent.models.static`, the same table in torch.
"""

from __future__ import annotations

import json
import math
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from tokenizers import Tokenizer

from selfsent.data.tokenizing import CachedTokenizer, equal_tokens, read_whole
from selfsent.data.views.tokens import Tokens
from selfsent.errors import AmbiguousTokensWarning, BaseEncoderError
from selfsent.files import read_json
from selfsent.lexical.hybrid import SEARCH_WEIGHT

Vectors = NDArray[np.float32]

LONGEST = 1 << 20
"""Tokens read of a text by an encoder without positions: these cannot run out, but memory can."""
CONFIG, WEIGHTS = "config_sentence_transformers.json", "model.safetensors"
PLAIN = {"__version__", "default_prompt_name", "model_type", "prompts", "similarity_fn_name"}
"""Keys of the configuration that a table may have."""
_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1"}
"""Types of safetensors in numpy, which has no bfloat16: its bits are the first half of a float32."""
_USUAL = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding", "use_residual": False}
"""Values of a module's configuration that equal its defaults."""
_TOGETHER = 1 << 9
"""Rows of the table that are converted at a time: they stay in the processor's cache."""
_FEW = 1 << 18
"""Characters up to which a tokenizer is quicker than to find out how it may be cached."""
_GATHERED = 1 << 10
"""Tokens whose rows are added up at a time: they stay in the processor's cache."""


class Rows:
    """The vector of each token, (vocabulary, d), as float32 where they are asked for; the file itself stays mapped.

    Once more tokens were asked for than there are, all are held as float32, if they are not too many: to convert them
    takes longer than to add them up.

    Args:
        stored: the rows in a file.
        bits: whether these are the bits of bfloat16.
        mapping: (vocabulary,) the stored row of each token, if tokens share rows, as in model2vec.
        weights: (vocabulary,) a factor of each token's vector, if there is one.
        most_held: numbers of the largest table that is held.
    """

    def __init__(
        self, stored: Any, bits: bool, mapping: Any = None, weights: Any = None, most_held: int = 1 << 25
    ) -> None:
        self.most_held = most_held
        self._stored, self._bits, self._mapping, self._weights = stored, bits, mapping, weights
        self.shape = (len(stored) if mapping is None else len(mapping), int(stored.shape[1]))
        self._asked = 0
        self.held: Vectors | None = None
        """All rows as float32, once they are."""

    def __getitem__(self, tokens: Any) -> Vectors:
        self._asked += len(tokens)
        if self.held is None and self._asked > self.shape[0] and math.prod(self.shape) <= self.most_held:
            self.held = np.concatenate([*self.parts()])
        return self._converted(tokens) if self.held is None else self.held[tokens]

    def _converted(self, tokens: Any) -> Vectors:
        found = self._stored[tokens if self._mapping is None else self._mapping[tokens]]
        found = (found.astype(np.uint32) << 16).view(np.float32) if self._bits else found
        if self._weights is not None:
            found = found.astype(np.float32) * self._weights[tokens][:, None]
        return np.asarray(found, np.float32)

    def parts(self) -> Iterator[Vectors]:
        """All rows in order, some thousand at a time."""
        for start in range(0, self.shape[0], _TOGETHER):
            yield self._converted(np.arange(start, min(start + _TOGETHER, self.shape[0])))


class Table:
    """An encoder whose vector of a sentence is the mean of its tokens' vectors, and modules after it.

    Vectors are those of sentence-transformers' `StaticEmbedding`. It encodes as other encoders of selfsent do, through
    `selfsent.models.encoding`.

    Args:
        tokenizer: of the texts; it is changed.
        rows: the vector of each token.
        after: the modules behind the mean: their kind, the arrays in them by name, and what they make of vectors.

    Examples:
        >>> from selfsent.models.bases import resolve
        >>> table = Table.read(resolve("bundled"))
        >>> table.vectors(["the printer is dead", "it rains"]).shape
        (2, 256)
    """

    is_static = True
    lexical_weight: float = SEARCH_WEIGHT["table"]
    pooling = "mean"
    texts_cut = 0
    sizes: tuple[int, ...] = ()
    space = ""
    known_fingerprint = "", ""
    """The inputs of a fingerprint besides the numbers, its time, and the fingerprint."""

    def __init__(self, tokenizer: Tokenizer, rows: Rows, after: Sequence[Module] = ()) -> None:
        self.longest = int((tokenizer.truncation or {}).get("max_length", LONGEST))
        """Tokens read of a text."""
        self.tokenizer, self.rows, self.after = tokenizer, rows, list(after)
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self._characters_read = 0
        self.prompts: dict[str, str] = {}
        self.default_prompt_name: str | None = None

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """The table in a directory, in the layout of sentence-transformers or of model2vec.

        None where torch is needed: for another kind of encoder, and for a table with modules that are not known here.
        """
        if (directory / "modules.json").is_file():
            first, *others = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
            kind = str(first["type"])
            if not kind.startswith("sentence_transformers.") or not kind.endswith(".StaticEmbedding"):
                return None
            folder, ends = directory / first["path"], [_module(directory, each) for each in others]
        else:
            about = read_json(directory / "config.json")
            if about.get("model_type") != "model2vec":
                return None
            folder, ends = directory, [Module("Normalize", {}, _normalized)] if about.get("normalize") else []
        config = read_json(directory / CONFIG)
        known = [end for end in ends if end is not None]
        if len(known) < len(ends) or config.keys() - PLAIN or not (folder / WEIGHTS).is_file():
            return None
        rows = _rows(folder / WEIGHTS)
        if rows is None:
            return None
        found = cls(Tokenizer.from_file(str(folder / "tokenizer.json")), rows, known)
        found.prompts = {name: text for name, text in (config.get("prompts") or {}).items() if isinstance(text, str)}
        found.default_prompt_name = config.get("default_prompt_name")
        return found

    @cached_property
    def reader(self) -> CachedTokenizer:
        """Tokenises texts faster than the tokenizer does: nothing else takes long here."""
        return CachedTokenizer(self.tokenizer, words=False)

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens that have a vector."""
        return self.rows.shape[0]

    @property
    def embedding_size(self) -> int:
        """Width of a sentence vector."""
        sizes = [each.size for each in self.after if each.size is not None]
        return sizes[-1] if sizes else self.rows.shape[1]

    @property
    def unknown(self) -> int | None:
        """The token for unknown words, if there is one."""
        name = getattr(self.tokenizer.model, "unk_token", None)
        if name is not None:
            found: int | None = self.tokenizer.token_to_id(name)
            return found
        number: int | None = json.loads(self.tokenizer.to_str())["model"].get("unk_id")
        return number

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """The tokens of texts, as many as it reads, without the starts of words."""
        self._characters_read += sum(map(len, texts))
        few = self._characters_read <= _FEW and "reader" not in self.__dict__
        whole = read_whole(self.tokenizer, texts, words=False) if few else self.reader(texts)
        self.texts_cut += int(np.count_nonzero(whole.lengths > self.longest))
        return whole.select(np.arange(len(texts)), self.longest)

    def vectors_of(self, tokens: Tokens) -> Vectors:
        """(sentences, e) vectors of tokenised texts."""
        means, begins = np.zeros((len(tokens.lengths), self.rows.shape[1]), np.float32), tokens.starts
        order = np.argsort(tokens.lengths, kind="stable")
        lengths, starts = np.unique(tokens.lengths[order], return_index=True)
        # Sentences of one length are a cube, and a sum along its edge is twice as fast as one of parts of a list.
        for length, alike in zip(lengths.tolist(), np.split(order, starts[1:]), strict=True):
            step = max(1, _GATHERED // max(1, length))
            for chosen in (alike[start : start + step] for start in range(0, len(alike), step) if length):
                ids = tokens.ids[begins[chosen, None] + np.arange(length)]
                cube = self.rows[ids.ravel()].reshape(*ids.shape, -1)
                means[chosen] = cube.sum(1) / np.float32(length)
        for module in self.after:
            means = module.apply(means)
        return means

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """(n, e) vectors of texts; zeros, mapped by any modules after the mean, for a text without tokens."""
        return self.vectors_of(self.tokens(texts))

    def cut(self, size: int) -> None:
        """Keep at most the first `size` numbers of each vector, and the length 1 where whole vectors have it."""
        if size < self.embedding_size:
            unit = [self.after[-1]] if self.after and self.after[-1].kind == "Normalize" else []
            self.after += [_beginning(size), *unit]

    def twin(self) -> Table:
        """A copy that can be cut without the other."""
        found = type(self).__new__(type(self))
        found.__dict__ |= self.__dict__ | {"after": list(self.after)}
        return found


class Module:
    """A module after the mean.

    Args:
        kind: name of its class in sentence-transformers.
        arrays: its numbers, by their names there.
        apply: (n, d) vectors -> (n, e).
        size: e; None where that is d.
    """

    def __init__(
        self, kind: str, arrays: dict[str, Vectors], apply: Callable[[Vectors], Vectors], size: int | None = None
    ) -> None:
        self.kind, self.arrays, self.apply, self.size = kind, arrays, apply, size


def check_tokenizer(base: object, tokenizer: Any, rows: int) -> None:
    """Reject a tokenizer that numbers a token beyond the embeddings, which would end in the middle of some text.

    Warns of tokens that the normalizer makes equal: vectors then differ from one loading to the next.

    Args:
        base: the name of the encoder.
        tokenizer: of tokenizers or transformers.
        rows: number of embeddings.

    Raises:
        BaseEncoderError: there are too few.
    """
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    for one, other, *_ in equal_tokens(backend) if isinstance(backend, Tokenizer) else ():
        what = f"its tokenizer has the tokens {one!r} and {other!r}, which are equal once it has normalized them"
        reason = f"{what}: chance decides at each loading which one a text has"
        warnings.warn(f"{base}: {reason}", AmbiguousTokensWarning, stacklevel=3)
    if (last := max(tokenizer.get_vocab().values(), default=-1)) >= rows:
        problem = f"{base}: its tokenizer numbers tokens up to {last:,}, and it has embeddings up to {rows - 1:,} only"
        advice = "take the tokenizer that it was saved with, or give it rows for the new tokens and save it"
        raise BaseEncoderError(f"{problem}: {advice}")


def _normalized(vectors: Vectors) -> Vectors:
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    found: Vectors = vectors / np.maximum(lengths, np.float32(1e-12))[:, None]
    return found


def _beginning(size: int) -> Module:
    return Module("Beginning", {}, lambda vectors: np.ascontiguousarray(vectors[:, :size]), size)


def _module(directory: Path, about: dict[str, Any]) -> Module | None:
    """A module of sentence-transformers after the table; None for one that is not known here."""
    kind, folder = str(about["type"]), directory / str(about["path"])
    if not kind.startswith("sentence_transformers."):
        return None
    told = read_json(folder / "config.json")
    config = {name: value for name, value in told.items() if name not in _USUAL or value != _USUAL[name]}
    if kind.endswith(".Normalize") and not config:
        return Module("Normalize", {}, _normalized)
    known = {"in_features", "out_features", "bias", "activation_function"}
    functions: dict[Any, Callable[[Vectors], Vectors] | None] = {"Identity": None, "Tanh": np.tanh}
    activation = str(config.get("activation_function", "")).rpartition(".")[2]
    if not kind.endswith(".Dense") or config.keys() - known or activation not in functions:
        return None
    expected = ["linear.weight", *(["linear.bias"] if config.get("bias", True) else [])]
    if _names(folder / WEIGHTS) != {*expected}:
        return None
    # In the order of torch's state, which a fingerprint reads.
    arrays = {name: np.asarray(_array(folder / WEIGHTS, name)[0], np.float32) for name in expected}
    weight, bias, function = arrays["linear.weight"], arrays.get("linear.bias", np.float32(0)), functions[activation]

    def apply(vectors: Vectors) -> Vectors:
        mapped = vectors @ weight.T + bias
        return mapped if function is None else function(mapped)

    return Module("Dense", arrays, apply, len(weight))


def _rows(path: Path) -> Rows | None:
    """The rows in a file of weights; None for other weights than a table's."""
    names = _names(path)
    if names == {"embedding.weight"}:
        return Rows(*_array(path, "embedding.weight"))
    if "embeddings" not in names or names - {"embeddings", "mapping", "weights"}:
        return None
    mapping = np.asarray(_array(path, "mapping")[0], np.int64) if "mapping" in names else None
    weights = np.asarray(_array(path, "weights")[0], np.float32) if "weights" in names else None
    return Rows(*_array(path, "embeddings"), mapping, weights)


def _names(path: Path) -> set[str]:
    with safe_open(path, "numpy") as file:  # checks the whole header
        return {*file.keys()}


def _array(path: Path, name: str) -> tuple[Any, bool]:
    """An array of a safetensors file, mapped, and whether it holds the bits of bfloat16."""
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        about = json.loads(file.read(size))[name]
    shape, start = tuple(about["shape"]), 8 + size + about["data_offsets"][0]
    if not math.prod(shape):
        raise ValueError(f"{path} holds no numbers in {name}")
    return np.memmap(path, _KINDS[about["dtype"]], "r", start, shape), about["dtype"] == "BF16"
