"""From the name of a base encoder to a local directory that is safe to load."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath

from selfsent import extensions
from selfsent.errors import BaseEncoderError, HubFallbackWarning, first_line
from selfsent.files import read_json
from selfsent.integrity import find_damaged
from selfsent.models.new_bases import NewBase, make_base
from selfsent.models.saved import adapter_config, modules_of, transformer_folder
from selfsent.naming import name_of

BUNDLED, MULTILINGUAL, ENCODER, RAW = "bundled", "bundled-multilingual", "bundled-encoder", "bundled-raw"
SHIPPED = {BUNDLED: "static", MULTILINGUAL: "multilingual", ENCODER: "encoder", RAW: "raw"}
"""The encoders that ship with selfsent, and their directories: distilled from a teacher, static embeddings (English and
multilingual) and a transformer; and from raw text alone, without teacher or label, a transformer."""
LANGUAGES_OF_MULTILINGUAL = frozenset(
    ("ar", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he", "hi", "hu", "id", "it", "ja", "ko", "nl", "no")
) | {"pl", "pt", "ro", "ru", "sv", "tr", "uk", "vi", "zh"}
"""Languages whose texts `bundled-multilingual` was made from, by their ISO 639 codes."""
_KINDS = "a base encoder is a directory, a hub id, or 'bundled' or another that ships with selfsent"
_HUB_FILES = ["README.md", "*.json", "*.txt", "*.jinja", "*.model", "*.safetensors", "*/*.json", "*/*.safetensors"]
_MODEL_FILES = ("modules.json", "config.json", "adapter_config.json")
_PART = re.compile(r"[\w.-]+\.safetensors")
_PICKLED, _NAMES = (".bin", ".pt", ".pth", ".ckpt", ".pkl"), ("pytorch_model", "model", "adapter_model")
_PLAIN_LORA = {
    *("alpha_pattern", "auto_mapping", "base_model_name_or_path", "bias", "corda_config", "eva_config"),
    *("exclude_modules", "fan_in_fan_out", "inference_mode", "init_lora_weights", "layers_pattern"),
    *("layers_to_transform", "loftq_config", "lora_alpha", "lora_bias", "lora_dropout", "lora_ga_config"),
    *("ensure_weight_tying", "megatron_core", "peft_type", "peft_version", "qalora_group_size", "r"),
    *("rank_pattern", "revision", "runtime_config", "target_modules", "task_type", "use_rslora"),
}
"""Keys of an adapter's configuration with which W + s B A, biases included, is all that is computed.

Any other name, of a newer peft too, may stand for another sum (DoRA), other layers, or weights beside the adapter's.
"""
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def resolve(base: str | os.PathLike[str]) -> Path:
    """The local directory of a base encoder, fetched from the hub when it is an id that is not in the hub's cache yet.

    Args:
        base: the name of an encoder that ships with selfsent, an untrained one (`bert`, `albert` or
            `random-table`, with `:SIZE` and `:SOURCE` as in `NewBase`, or one of an extension), a directory in
            transformers or
            sentence-transformers layout, the directory of a finished run, or a hub id.

    Raises:
        BaseEncoderError: there is no such directory, it holds no encoder or an unsafe one, or the hub does not have it
            or cannot be reached.
    """
    name = str(name_of(base))
    if name in SHIPPED:
        return Path(__file__).parent / "bundled" / SHIPPED[name]
    if network := NewBase.named(name):
        return make_base(network, resolve)
    if made := extensions.prefixed("bases", name):
        directory: Path = extensions.load("bases", made[0])(name)
        return directory
    directory = Path(name).expanduser()
    if directory.name == "model" and not directory.exists() and (directory.parent / "run.json").is_file():
        directory = directory.parent  # the error of the hub gives the reason
    if directory.is_dir():
        found = _model_in(directory)
    elif directory.exists():
        raise BaseEncoderError(f"{name} is a file; {_KINDS}")
    elif name.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(name):
        raise BaseEncoderError(f"there is no directory {name}; {_KINDS}")
    else:
        found = _from_hub(name)
        _warn_of_hub(name)
    refuse_unsafe(found)
    return found


def table_for(language: str | None) -> str:
    """The table that ships for texts in a language.

    Args:
        language: its ISO 639 code; None where it is unsure.

    Examples:
        >>> table_for("de"), table_for("en"), table_for(None)
        ('bundled-multilingual', 'bundled', 'bundled')
    """
    return MULTILINGUAL if language in LANGUAGES_OF_MULTILINGUAL - {"en"} else BUNDLED


def holds_model(directory: Path) -> bool:
    """Whether a directory is that of a model, or of a run."""
    return any((directory / name).is_file() for name in (*_MODEL_FILES, "run.json"))


def files_of(directory: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and modification time of each file of a model, which change when the model does."""
    states = ((str(path), path.stat()) for path in sorted(directory.rglob("*")) if path.is_file())
    return tuple((name, state.st_size, state.st_mtime_ns) for name, state in states)


def _model_in(directory: Path) -> Path:
    """The model in a directory, which may be that of a run."""
    is_run = (directory / "run.json").is_file()
    if is_run and (directory / "model").is_dir():
        return directory / "model"
    if any((directory / name).is_file() for name in _MODEL_FILES):
        return directory
    if is_run:
        record = read_json(directory / "run.json")
        reason = "resume it first"
        if stopped := record.get("stopped"):
            reason = f"{stopped}; leave it out"
        elif record.get("status") == "finished":  # a comparison whose untrained base is best, or models of folds
            reason = "it ended without one"
        raise BaseEncoderError(f"{directory} is a run without a model: {reason}")
    if any((directory / "seeds").glob("*/run.json")):
        raise BaseEncoderError(f"{directory} holds a run of each seed: give one or all of {directory}/seeds/*")
    raise BaseEncoderError(f"{directory} holds no encoder: neither config.json nor modules.json is there")


def refuse_unsafe(directory: Path) -> None:
    """Reject a directory that is damaged or may be malicious.

    Code in it is never run. Weights are read from safetensors alone: a pickle may run code when it is opened.

    Raises:
        BaseEncoderError: weights are damaged or in a pickle, or a module is outside the directory.
    """
    paths = [path for _, path in modules_of(directory)]
    for path in paths:
        pure = PurePosixPath(path), PureWindowsPath(path)
        if any(each.anchor or ".." in each.parts for each in pure):
            problem = f"{directory}/modules.json names {path!r}, which is elsewhere: a model is one directory"
            raise BaseEncoderError(problem)
    folders = {directory, *(directory / path for path in paths)}
    folders |= {below for path in paths if path for below in (directory / path).rglob("*") if below.is_dir()}
    for folder in sorted(folders):
        weights = [each for each in folder.glob("*") if each.suffix in _PICKLED and each.stem.startswith(_NAMES)]
        whole = [folder / f"model.safetensors{end}" for end in ("", ".index.json")]
        beside = {True: [folder / "adapter_model.safetensors"], False: whole}
        pickles = [path for path in weights if not any(f.is_file() for f in beside[path.stem.startswith("adapter")])]
        if pickles:
            problem = f"{min(pickles)} is a pickle, which may run code when it is opened: only safetensors are read"
            convert = "convert it if you trust it: SentenceTransformer(MODEL).save(DIRECTORY)"
            raise BaseEncoderError(f"{problem}; ask for a safetensors version, or {convert}")
        for file in sorted(folder.glob("*.safetensors.index.json")):  # a part is read by its suffix
            parts = read_json(file).get("weight_map")
            if not isinstance(parts, dict) or not all(_PART.fullmatch(str(part)) for part in parts.values()):
                problem = f"{file} names weights that are no safetensors file beside it: ask for another copy"
                raise BaseEncoderError(problem)
    if damaged := find_damaged(directory):
        raise BaseEncoderError(f"{damaged} is damaged: it is not as it was written: copy the model again, or train it")


@cache
def _warn_of_hub(name: str) -> None:
    """Warn once that a name, perhaps a mistyped directory, is read as a hub id."""
    warnings.warn(f"there is no directory {name} here: it is taken from the hub", HubFallbackWarning, stacklevel=3)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        cached = Path(snapshot_download(name, allow_patterns=_HUB_FILES, local_files_only=True))
        if any(cached.rglob("*.safetensors")):  # more than a tokenizer that another program has fetched
            return cached
    except Exception:  # nosec B110 # not in the cache, whatever the reason
        pass
    try:
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES, etag_timeout=5))
    # The hub client raises its own and its HTTP library's errors, which change between versions.
    except Exception as error:
        reason = first_line(error)[:120] if str(error).strip() else ""
        raise BaseEncoderError(
            f"there is no directory {name}, and as a hub id it is not in the hub's cache and could not be fetched"
            f" ({type(error).__name__}{': ' + reason if reason else ''}): check the name and the network,"
            " or copy the model here and give its directory"
        ) from None


def below_adapter(directory: Path) -> Path | None:
    """The directory of the base below the adapter that a directory holds; None where it holds a whole model.

    Raises:
        BaseEncoderError: the adapter is of an unknown kind, or its base cannot be found.
    """
    config = adapter_config(directory)
    if config is None:
        return None
    other = [name for name, value in sorted(config.items()) if name not in _PLAIN_LORA and value]
    if (kind := config.get("peft_type")) != "LORA" or other:
        named = next(iter(other), None) if kind == "LORA" else kind
        problem = f"{directory} is an adapter other than plain LoRA{f' ({named})' if named else ''}"
        raise BaseEncoderError(f"{problem}: merge it with peft (merge_and_unload), and save the whole model")
    base = config.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise BaseEncoderError(f"{directory} is an adapter that does not name its base: merge it with that")
    found = resolve(base)
    if not (found / "config.json").is_file():
        raise BaseEncoderError(f"{directory} is an adapter of {base}, which has no transformer: give its directory")
    return found


def known_elsewhere(base: str) -> str:
    """Name of the transformer of a base for other programs: its hub id, or its absolute path on this machine."""
    folder = transformer_folder(resolve(base))
    made = base in SHIPPED or NewBase.named(base) or extensions.prefixed("bases", base)
    return str(folder.absolute()) if made or folder != resolve(base) or Path(base).exists() else base


def weights_digest(directory: Path) -> str:
    """A short digest of a base's weights."""
    total = hashlib.sha256()
    for file in weights_of(directory):
        with file.open("rb") as opened:
            total.update(hashlib.file_digest(opened, "sha256").digest())
    return total.hexdigest()[:16]


def weights_of(directory: Path) -> list[Path]:
    """The safetensors files of a model, and of the base below its adapter."""
    folders = [directory, *([below] if (below := below_adapter(directory)) else [])]
    return [file for folder in folders for file in sorted(folder.rglob("*.safetensors"))]
