"""A model on the Hugging Face hub, with its card, and without a word of the text that it was trained on."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from selfsent.errors import OutputError, RunError, SettingsError, first_line
from selfsent.models.bases import resolve
from selfsent.models.texts_read import FILE as TEXTS_READ
from selfsent.run_record import read_record
from selfsent.scorers.load_scorer import load_scorer

_FILE = re.compile(
    r"(\w*config\w*|modules|\w*tokenizer\w*|special_tokens_map|added_tokens|vocab|search|model.safetensors.index)\.json"
    r"|[\w-]+\.safetensors|(vocab|merges)\.txt|(sentencepiece\.bpe|spiece|tokenizer)\.model"
)
"""Names of the files of a model; others in its directory are not published."""
_FOLDER = re.compile(r"(?<![\w./:])(?:/|~/|[A-Za-z]:\\)(?:[^\s/\\`|<>]+[/\\])+")
_STATUS = {
    **dict.fromkeys((401, 403), "the hub refuses the token: log in with `hf auth login`, or set HF_TOKEN"),
    404: "the hub knows no such user or organisation",
    409: "the hub has one of that name: give `update` to put a new version into it",
}


def published_card(directory: Path, repository: str, licence: str | None = None) -> str:
    """The card of a model as others may read it: of files and folders only the last names, and with a licence.

    Args:
        directory: of the model.
        repository: where it will be.
        licence: in place of its base's.

    Raises:
        RunError: it has no card of selfsent's.
    """
    path, record = directory / "README.md", read_record(directory.parent)
    card = path.read_text(encoding="utf-8") if path.is_file() else ""
    if not card.startswith("---\nlibrary_name: ") or "Trained by selfsent" not in card:
        raise RunError(f"{directory} has no card of selfsent's: publish the directory of a finished run")
    source = str(record.config.get("corpus", {}).get("source", ""))
    card = card.replace(source or "\0", re.split("[?#]", re.split(r"[/\\]", source.rstrip("/\\"))[-1])[0])
    card = _FOLDER.sub("", card).replace("path/to/this/directory", repository)
    if licence is not None:
        card = re.sub(r"^license: .*\n", "", card, count=1, flags=re.M)
        card = card.replace("\ntags:", f"\nlicense: {licence}\ntags:", 1)
    return card


def publish(
    model: str | os.PathLike[str],
    repository: str,
    public: bool = False,
    licence: str | None = None,
    update: bool = False,
    texts_read: bool = False,
) -> tuple[str, list[str]]:
    """Put the model of a run and its card on the hub, as a private repository unless told otherwise.

    The files of the model and its card are all that leaves this machine: no text, page, log, score of a single row or
    checkpoint. The card holds base, name of the data, settings, scores and their intervals. The token is that of
    `hf auth login`, or `HF_TOKEN`.

    Args:
        model: a run, or the directory of one or of its model.
        repository: as `user/name` or `organisation/name`.
        public: whether all may read it.
        licence: as the hub spells it, such as `apache-2.0`; by default that of the base, if its card says one.
        update: put a new version into a repository that is there; access to it is unchanged.
        texts_read: send the record of what the model has read, too: short hashes of sentences, by which who has a text
            can ask whether it was among them.

    Returns:
        The address, and the names of the files in it.

    Raises:
        RunError: there is no such directory, or it has no card of selfsent's.
        BaseEncoderError: it holds no model, or a damaged one.
        SettingsError: no such name of a repository or licence.
        OutputError: the hub refuses, or cannot be reached.

    Examples:
        >>> selfsent.publish("runs/tickets", "me/tickets")  # doctest: +SKIP
    """
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HfHubHTTPError

    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository, re.ASCII):
        raise SettingsError(f"{repository!r} names no repository: write user/name")
    if licence is not None and not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", licence):
        raise SettingsError(f"{licence!r} is no licence as the hub spells it, such as apache-2.0 or cc-by-4.0")
    if not Path(model).is_dir():
        raise RunError(f"there is no directory {model}: publish the directory of a finished run")
    directory = resolve(model)
    load_scorer(str(directory))  # a model with weights missing, as earlier versions wrote some, is for nobody
    files: dict[str, Any] = {"README.md": published_card(directory, repository, licence).encode()}
    for path in sorted(directory.rglob("*")):
        recorded = texts_read and path.name == TEXTS_READ
        if (recorded or _FILE.fullmatch(path.name)) and path.is_file():
            files[path.relative_to(directory).as_posix()] = path
    what = f"{directory} was not published as {repository}"
    try:
        api = HfApi()
        made = api.create_repo(repository, private=not public, exist_ok=update)
        what += "; the repository is there already, so give `update` the next time"
        operations = [CommitOperationAdd(name, content) for name, content in files.items()]
        api.create_commit(repository, operations, commit_message="Model trained by selfsent")
    except Exception as error:  # errors of the hub, and of its HTTP library, which change between versions
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
        raise OutputError(f"{what}: {_STATUS.get(status) or first_line(error)}") from error
    return str(made), list(files)
