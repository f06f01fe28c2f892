"""A trained encoder as one ONNX graph from token ids to sentence vectors."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from selfsent.errors import OutputError, SettingsError, first_line, install
from selfsent.files import atomic_directory, write_json, write_text
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import Side, encode, prompt_of

# ONNX Runtime would keep a number of this machine and a queue of events under the home folder, to send them.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

TOLERANCE = 1e-4
"""Largest difference of a number of a unit vector that an export may have."""
_INPUTS = ("input_ids", "attention_mask", "left_out")
_SIDES: dict[str, Side | None] = {"text": None, "query": "query", "document": "document"}
_ABOUT = "export.json"
_PROBE = (1, 3, 7, 20, 60, 200, 500)
"""Tokens of the texts on which an export is checked."""


@dataclass(frozen=True)
class Exported:
    """Description of an export, with the difference of its vectors to torch's: the contents of `export.json`.

    `prompts` are what stands before a text of one kind, a query and a document, by these names: `text`, `query` and
    `document`. `left_out` is how many tokens of a text with that prompt the pooling leaves out: the input of that name,
    which a graph has if one of them is not 0.
    """

    normalized: bool
    size: int
    longest: int
    prompts: dict[str, str]
    left_out: dict[str, int]
    largest_difference: float
    smallest_cosine: float
    runtime: str = "onnx"


class _Graph(nn.Module):
    """Token ids and attention mask to vectors: all modules of a SentenceTransformer, and perhaps a normalisation.

    The pooling itself wants a Python number for the tokens that it leaves out, so they leave its mask before.
    """

    def __init__(self, modules: Sequence[nn.Module], normalize: bool) -> None:
        super().__init__()
        self.parts, self.normalize = nn.ModuleList(modules), normalize

    def forward(self, input_ids: Tensor, attention_mask: Tensor, left_out: Tensor | None = None) -> Tensor:
        features = {"input_ids": input_ids, "attention_mask": attention_mask}
        for part in self.parts:
            if left_out is not None and hasattr(part, "pooling_mode"):
                read = torch.arange(input_ids.shape[1], device=input_ids.device) >= left_out
                features["attention_mask"] = attention_mask * read
            features = part(features)
        vectors = features["sentence_embedding"]
        return nn.functional.normalize(vectors, dim=-1) if self.normalize else vectors


def check_export(output: Path, overwrite: bool) -> None:
    """Reject an export that cannot work, before anything slow.

    Args:
        output: the directory to write.
        overwrite: replace the export that is there.

    Raises:
        SettingsError: a package is missing; it names the extra.
        OutputError: the directory is a file, or holds something else than an export, or one that is not to be replaced.
    """
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(name) is None:
            raise SettingsError(f"an export needs {name}: {install('onnx')}")
    if output.is_file():
        raise OutputError(f"{output} is a file: name a directory")
    if output.is_dir() and any(output.iterdir()):
        if not (output / _ABOUT).is_file():
            raise OutputError(f"{output} exists and is no export of selfsent: name another directory")
        if not overwrite:
            raise OutputError(f"{output} exists already: name another directory, or give overwrite=True")


def export(model: Encoder, output: Path, normalize: bool = False) -> Exported:
    """Write a directory with the graph, its tokenizer and a description; nothing when its vectors are not torch's.

    Batch and length are dynamic. The tokenizer pads and truncates as the model does, so that `tokenizers` and a
    runtime for ONNX are all that is needed to use the graph.

    Args:
        model: the encoder.
        output: the directory; an export that is there is replaced.
        normalize: give the vectors length 1 inside the graph, also where the model does not.

    Raises:
        SettingsError: packages are missing, or the model cannot become a graph, or needs none.
        OutputError: the vectors differ by more than `TOLERANCE`, or the directory cannot be written or holds
            something else than an export.
    """
    if model.is_static:
        raise SettingsError("a table of token vectors needs no graph: model.safetensors and tokenizer.json are enough")
    check_export(output, overwrite=True)
    longest, draw = int(model.tokenizer.model_max_length), np.random.default_rng(0)
    known = [draw.integers(len(model.tokenizer), size=size) for size in _PROBE]
    texts = [str(model.tokenizer.decode(ids, skip_special_tokens=True)) for ids in known]
    prompts = {name: prompt_of(model, side) for name, side in _SIDES.items()}
    left_out = {name: model.left_out(prompt) for name, prompt in prompts.items()}
    tokenizer = Tokenizer.from_str(model.tokenizer.backend_tokenizer.to_str())
    tokenizer.enable_truncation(longest, direction=model.tokenizer.truncation_side)
    pad = model.tokenizer.pad_token_id or 0  # any will do: the mask hides it
    tokenizer.enable_padding(pad_id=pad, pad_token=str(tokenizer.id_to_token(pad)))
    with atomic_directory(output) as directory:
        write_text(directory / "tokenizer.json", tokenizer.to_str(pretty=True))
        graph = directory / "model.onnx"
        _to_onnx(model, graph, normalize)
        difference, cosine = 0.0, 1.0
        for name in {prompt: name for name, prompt in prompts.items()}.values():  # one of each prompt
            prompted, out = [prompts[name] + text for text in texts], left_out[name] if any(left_out.values()) else None
            found = np.concatenate([_encode(graph, tokenizer, part, out) for part in (prompted[:1], prompted[1:])])
            apart, alike = _compared(encode(model, texts, side=_SIDES[name]), found, normalize)
            difference, cosine = float(np.maximum(difference, apart)), min(cosine, alike)  # which keeps a NaN
        if not difference <= TOLERANCE:
            less = f"a vector of the graph differs from torch's by {difference:.1e}, and {TOLERANCE:.0e} is allowed"
            raise OutputError(f"nothing was written: {less}: this architecture cannot be exported")
        unit, size = normalize or model.ends_normalized, model.embedding_size
        done = Exported(unit, size, longest, prompts, left_out, difference, cosine)
        write_json(directory / _ABOUT, asdict(done))
    return done


def _compared(expected: NDArray[np.float32], found: NDArray[np.float32], unit: bool) -> tuple[float, float]:
    """The largest difference of a number of vectors of length 1, and the smallest cosine."""
    norms = np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-12)
    expected, found = expected / norms, found if unit else found / norms
    cosines = (expected * found).sum(axis=1) / np.maximum(np.linalg.norm(found, axis=1), 1e-12)
    return float(np.abs(expected - found).max()), float(cosines.min())


def _to_onnx(model: Encoder, path: Path, normalize: bool) -> None:
    twin = model.twin()
    twin.eval().float().cpu()
    twin.transformer.set_attn_implementation("eager")  # plain products and softmax: every runtime has them
    axes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    inputs: list[Tensor] = [torch.ones(2, 8, dtype=torch.long), torch.tensor([[1] * 8, [1] * 5 + [0] * 3])]
    if any(model.left_out(prompt_of(model, side)) for side in _SIDES.values()):
        inputs.append(torch.tensor([2]))
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                _Graph(list(twin.sentence_transformer), normalize),
                tuple(inputs),
                str(path),
                input_names=list(_INPUTS[: len(inputs)]),
                output_names=["sentence_embedding"],
                dynamic_shapes=(axes, axes, None)[: len(inputs)],
                dynamo=True,
                external_data=False,
                optimize=True,
                verbose=False,
            )
    except Exception as error:  # the exporter's own errors have no common base
        kind = model.transformer.config.model_type
        raise SettingsError(f"a {kind} model cannot be exported with this torch: {first_line(error)}") from error


def _encode(
    graph: Path, tokenizer: Tokenizer, texts: Sequence[str], left_out: int | None = None
) -> NDArray[np.float32]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    encoded = tokenizer.encode_batch(list(texts))
    arrays = [np.array([getattr(one, name) for one in encoded]) for name in ("ids", "attention_mask")]
    arrays += [] if left_out is None else [np.array([left_out])]
    return np.asarray(session.run(None, dict(zip(_INPUTS, arrays)))[0])
