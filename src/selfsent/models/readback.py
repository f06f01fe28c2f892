"""A saved model is read again, as its users will read it, and held against the one in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.errors import OutputError, SelfsentError, first_line
from selfsent.foreign.transformers import silent
from selfsent.models.cross_encoder import CrossEncoder
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.models.saved import load_sentence_transformer
from selfsent.models.static import PlainTable, StaticEncoder
from selfsent.models.weights import require_weights

TEXTS = (
    "The printer on the second floor does not answer.",
    "How do I change my password?",
    "It rains.",
)
TOLERANCE = 1e-4
"""Maximum difference of a number to the model in memory, where the longest of the vectors has length 1."""
_OTHER_DEVICE = 10
"""How much larger it may be where the model in memory is on a GPU, whose sums are others."""


def check_saved(model: Encoder, directory: Path) -> None:
    """Read a saved model with plain sentence-transformers, and compare what it makes of a few texts.

    An adapter is read with its base, modules that sentence-transformers lacks with selfsent's classes, and a table
    with nothing behind it by its two files alone, which is all that sentence-transformers does. Both sides compute in
    float32: the base of an adapter may be stored in half precision, in which sentence-transformers would compute.

    Main memory holds the model once more meanwhile.

    Args:
        model: the model that was saved, still as it was.
        directory: where it was saved.

    Raises:
        OutputError: it cannot be read, or is another model.
    """
    if not (texts := _texts_for(model)):
        return
    table = isinstance(model.sentence_transformer, PlainTable)
    peer = model.peer if isinstance(model, CrossEncoder) else model.sentence_transformer
    expected = _outputs(model if table else peer, texts)
    try:
        with torch.random.fork_rng([]):
            found = _outputs(_read(model, directory), texts)
        problem = "" if found.shape == expected.shape else f"gives {found.shape[1:]} numbers for {expected.shape[1:]}"
    except SelfsentError as error:
        problem = f"cannot be read: {error}"
    except Exception as error:  # of any library, over any file
        problem = f"cannot be read: {first_line(error)}"
    if not problem:
        allowed = TOLERANCE * (1 if model.device.type == "cpu" else _OTHER_DEVICE)
        longest = float(np.linalg.norm(expected.reshape(len(expected), -1), axis=1).max()) or 1.0
        difference = float(np.abs(found - expected).max()) / longest
        if difference <= allowed:
            return
        problem = f"gives vectors that differ by {difference:.1e} of their length, and {allowed:.0e} is allowed"
    raise OutputError(f"nothing was written: the model, saved and read again by sentence-transformers, {problem}")


def _read(model: Encoder, directory: Path) -> Any:
    if isinstance(model, CrossEncoder):
        import sentence_transformers

        with silent():
            peer = sentence_transformers.CrossEncoder(
                str(directory), device="cpu", local_files_only=True, model_kwargs={"dtype": torch.float32}
            )
        require_weights(peer, directory)
        return peer
    if model.is_static and (table := PlainTable.read(directory)):
        return StaticEncoder(table)
    if model.is_static:
        return load_sentence_transformer(directory, device="cpu").float()
    return load_sentence_transformer(directory, device="cpu", model_kwargs={"dtype": torch.float32})


def _texts_for(model: Encoder) -> list[str]:
    """Texts of which the model reads something: in English, and of its own tokens."""
    ids = np.random.default_rng(0).integers(model.vocabulary_size, size=8)
    texts = [*TEXTS, str(model.tokenizer.decode(ids.tolist(), skip_special_tokens=True))]
    return [text for text in texts if model.tokenizer(text)["input_ids"]]


def _outputs(model: Any, texts: list[str]) -> NDArray[np.float32]:
    """Outputs of a model for texts: (texts, d) vectors, or scores of pairs."""
    if isinstance(model, StaticEncoder):
        return encode(model, texts)
    if hasattr(model, "predict"):
        return np.asarray(model.predict([(text, texts[0]) for text in texts], show_progress_bar=False), np.float32)
    was = model.training
    found = model.encode(texts, show_progress_bar=False)
    model.train(was)
    return np.asarray(found, np.float32)
