"""A trained encoder as one graph from token ids to sentence vectors, for ONNX Runtime or OpenVINO."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from selfsent.errors import OutputError, SettingsError
from selfsent.files import atomic_directory, write_json, write_text
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode, prompt_of

Runtime = Literal["onnx", "openvino"]
TOLERANCE = 1e-4
"""Largest difference of a number of a unit vector that an export may have."""
INT8_TOLERANCE = 0.9
"""Smallest cosine between a vector of an int8 export and torch's."""
_INPUTS = ("input_ids", "attention_mask")
_ABOUT = "export.json"
_VECTORS = "sentence_embedding"
_PROBE = (1, 3, 7, 20, 60, 200, 500)
"""Tokens of the texts on which an export is checked."""

Run = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]
"""From token ids and attention mask, (batch, length) each, to vectors."""


@dataclass(frozen=True)
class Exported:
    """What was checked on export, between torch's vectors and the graph's."""

    runtime: Runtime
    int8: bool
    normalized: bool
    size: int
    longest: int
    prompt: str
    largest_difference: float
    smallest_cosine: float


class _Graph(nn.Module):
    """Token ids and attention mask to vectors: transformer, pooling, and whatever follows it.

    Args:
        modules: those of a SentenceTransformer.
        normalize: whether the vectors get length 1 at the end.
    """

    def __init__(self, modules: Sequence[nn.Module], normalize: bool) -> None:
        super().__init__()
        self.parts = nn.ModuleList(modules)
        self.normalize = normalize

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        features = {"input_ids": input_ids, "attention_mask": attention_mask}
        for part in self.parts:
            features = part(features)
        vectors = features[_VECTORS]
        return nn.functional.normalize(vectors, dim=-1) if self.normalize else vectors


def require(runtime: Runtime) -> None:
    """Refuse a runtime whose packages are not installed.

    Raises:
        SettingsError: it names the extra that brings them.
    """
    needed = ["onnx", "onnxscript", "onnxruntime"] + (["openvino"] if runtime == "openvino" else [])
    for name in needed:
        try:
            __import__(name)
        except ImportError:
            raise SettingsError(f"--to {runtime} needs {name}: pip install 'selfsent[{runtime}]'") from None


def check_directory(output: Path, overwrite: bool) -> None:
    """Refuse a directory that cannot become an export, before anything that takes long.

    Args:
        output: the directory.
        overwrite: replace the export that is there.

    Raises:
        OutputError: it is a file, or holds something else than an export, or an export and it is not to be replaced.
    """
    if output.is_file():
        raise OutputError(f"{output} is a file: name a directory")
    if output.is_dir() and any(output.iterdir()):
        if not (output / _ABOUT).is_file():
            raise OutputError(f"{output} exists and is no export of selfsent: name another directory")
        if not overwrite:
            raise OutputError(f"{output} is there already: name another directory, or say --overwrite")


def export(
    model: Encoder,
    output: Path,
    to: Runtime = "onnx",
    int8: bool = False,
    normalize: bool = False,
) -> Exported:
    """Write a directory with the graph, its tokenizer and a description; nothing when its vectors are not torch's.

    Batch and length are dynamic. The tokenizer pads and truncates as the model does, so that `tokenizers` and the
    runtime are all that is needed to use the graph.

    Args:
        model: the encoder.
        output: the directory; an export that is there is replaced.
        to: the runtime.
        int8: keep weights as 8-bit integers and quantise states as they come; smaller, and faster on some processors.
        normalize: give the vectors length 1 inside the graph, also where the model does not.

    Raises:
        SettingsError: packages are missing, or the model cannot become a graph, or needs none.
        OutputError: the vectors differ by more than `TOLERANCE`, or the directory cannot be written or holds
            something else than an export.
    """
    if not (model.has_transformer or model.is_static):
        raise SettingsError("a recurrent network reads a sentence word by word, which makes no graph: export another")
    if model.is_static:
        raise SettingsError(
            "a table of token vectors needs no graph: its model.safetensors and tokenizer.json are all that is needed"
        )
    if int8 and to != "onnx":
        raise SettingsError("--int8 is there for --to onnx only")
    check_directory(output, overwrite=True)
    require(to)
    texts = _probe(model)
    expected = encode(model, texts)
    if normalize:
        expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-12)
    with atomic_directory(output) as directory:
        tokenizer = _tokenizer(model)
        write_text(directory / "tokenizer.json", tokenizer.to_str(pretty=True))
        graph = directory / "model.onnx"
        _to_onnx(model, graph, normalize)
        if int8:
            _to_int8(graph)
        if to == "openvino":
            graph = _to_openvino(graph)
        prompted = [prompt_of(model) + text for text in texts]
        found = np.concatenate([_encode(load_graph(graph), tokenizer, part) for part in (prompted[:1], prompted[1:])])
        done = _compare(model, expected, found, to, int8, normalize)
        write_json(directory / _ABOUT, asdict(done))
    return done


def _compare(
    model: Encoder,
    expected: NDArray[np.float32],
    found: NDArray[np.float32],
    to: Runtime,
    int8: bool,
    normalize: bool,
) -> Exported:
    """How near the vectors are.

    Raises:
        OutputError: not near enough.
    """
    lengths = [np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12) for v in (expected, found)]
    cosine = float(((expected / lengths[0]) * (found / lengths[1])).sum(axis=1).min())
    difference = float((np.abs(expected - found) / lengths[0]).max())
    if int8 and not cosine >= INT8_TOLERANCE:
        raise OutputError(
            f"nothing was written: in int8 a vector has a cosine of {cosine:.3f} to torch's,"
            f" and {INT8_TOLERANCE} is the least: leave --int8 out"
        )
    if not int8 and not difference <= TOLERANCE:
        raise OutputError(
            f"nothing was written: a vector of the {to} graph differs from torch's by {difference:.1e},"
            f" and {TOLERANCE:.0e} is allowed: this architecture cannot be exported"
        )
    longest = int(model.tokenizer.model_max_length)
    ends = normalize or model.ends_normalized
    return Exported(to, int8, ends, expected.shape[1], longest, prompt_of(model), difference, cosine)


def _probe(model: Encoder) -> list[str]:
    """Texts of very different lengths, in tokens that the model knows."""
    draw = np.random.default_rng(0)
    size = len(model.tokenizer)
    return [
        str(model.tokenizer.decode(draw.integers(size, size=length), skip_special_tokens=True)) for length in _PROBE
    ]


def _tokenizer(model: Encoder) -> Tokenizer:
    """The model's tokenizer, with its longest length and padding as settings of its own."""
    tokenizer = Tokenizer.from_str(model.tokenizer.backend_tokenizer.to_str())
    tokenizer.enable_truncation(int(model.tokenizer.model_max_length), direction=model.tokenizer.truncation_side)
    pad = model.tokenizer.pad_token_id or 0  # what it is does not matter: the mask hides it
    tokenizer.enable_padding(pad_id=pad, pad_token=str(tokenizer.id_to_token(pad)))
    return tokenizer


def _to_onnx(model: Encoder, path: Path, normalize: bool) -> None:
    twin = model.twin()
    twin.eval().float().cpu()
    twin.transformer.set_attn_implementation("eager")  # plain products and softmax: every runtime has them
    graph = _Graph(list(twin.sentence_transformer), normalize)
    ids = torch.ones(2, 8, dtype=torch.long)
    mask = torch.tensor([[1] * 8, [1] * 5 + [0] * 3])
    axes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    try:
        with _silence(), torch.no_grad():
            torch.onnx.export(
                graph,
                (ids, mask),
                str(path),
                input_names=list(_INPUTS),
                output_names=[_VECTORS],
                dynamic_shapes=(axes, axes),
                dynamo=True,
                external_data=False,
                optimize=True,
                verbose=False,
            )
    except Exception as error:  # the exporter's own errors have no common base
        kind = model.transformer.config.model_type
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise SettingsError(f"a {kind} model cannot be exported with this torch: {reason}") from error


@contextlib.contextmanager
def _silence() -> Any:
    """The exporter prints and warns about its own insides."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _to_int8(path: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    whole = path.rename(path.with_name("float32.onnx"))
    with _silence():
        quantize_dynamic(str(whole), str(path), weight_type=QuantType.QInt8, per_channel=True)
    whole.unlink()


def _to_openvino(path: Path) -> Path:
    import openvino

    graph = openvino.convert_model(str(path))
    openvino.save_model(graph, str(path.with_name("model.xml")), compress_to_fp16=False)
    path.unlink()
    return path.with_name("model.xml")


def load_graph(path: Path) -> Run:
    """An exported graph as a function.

    Args:
        path: `model.onnx` or `model.xml`.
    """
    if path.suffix == ".xml":
        import openvino

        compiled = openvino.compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        return lambda ids, mask: np.asarray(compiled((ids, mask))[0], dtype=np.float32)
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return lambda ids, mask: np.asarray(session.run(None, dict(zip(_INPUTS, (ids, mask), strict=True)))[0])


def _encode(run: Run, tokenizer: Tokenizer, texts: Sequence[str]) -> NDArray[np.float32]:
    encoded = tokenizer.encode_batch(list(texts))
    ids, mask = (np.array([getattr(one, name) for one in encoded]) for name in ("ids", "attention_mask"))
    return run(ids, mask)
