"""From text to a new table of token vectors: a vocabulary, and a vector for each entry, which is to be trained."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from selfsent.errors import SettingsError, guess
from selfsent.models.new_bases import tokenizer_digest
from selfsent.models.static import new_table
from selfsent.pretraining.options import TableOptions
from selfsent.pretraining.vocabulary import Text, given_tokenizer, text_of, train_vocabulary
from selfsent.progress import Progress, shown
from selfsent.training.run_directory import RunDirectory, save_model


def make_table(
    corpus: Text | None,
    output: str | Path,
    *,
    tokenizer: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    quiet: bool = False,
    **changes: Any,
) -> Path:
    """Make a table of token vectors that nobody has trained, to be the base of `selfsent.train`.

    Args:
        corpus: what the vocabulary is learned on: a corpus, anything `read_corpus` reads, or a function that is called
            for it; None where there is a tokenizer.
        output: the directory; the table is in `model`.
        tokenizer: an encoder whose tokenizer is taken instead.
        overwrite: throw away what is in `output`.
        progress: hears how it goes; by default it is shown.
        quiet: nothing is shown.
        **changes: fields of `TableOptions`.

    Returns:
        The directory of the table, which sentence-transformers loads.

    Raises:
        SelfsentError: what is wrong with corpus, tokenizer, options or directory, in one line.

    Example:
        >>> base = make_table("tickets.txt", "table")
        >>> train("tickets.txt", base=base, output="run")
    """
    names = [item.name for item in dataclasses.fields(TableOptions)]
    if unknown := changes.keys() - set(names):
        raise SettingsError(f"a table has no option {min(unknown)!r}; {guess(min(unknown), names)}")
    options = TableOptions(**changes)
    if (corpus is None) == (tokenizer is None):
        raise SettingsError("give either a corpus to learn a vocabulary on, or --tokenizer ENCODER")
    given: Any = None if tokenizer is None else given_tokenizer(tokenizer, changes, special=())
    directory = RunDirectory(Path(output))
    directory.check(resume=False, overwrite=overwrite, read=[tokenizer])
    about: dict[str, Any] = {"method": "table", "options": dataclasses.asdict(options)}
    with shown(progress, quiet) as told:
        if corpus is not None:
            text = text_of(corpus)
            given = train_vocabulary(text, options, told.notice)
            about["corpus"] = {"source": text.source, "fingerprint": text.fingerprint, "sentences": len(text)}
        directory.match({**about, "tokenizer": tokenizer_digest(given)})
        directory.begin(steps=False)
        table = new_table(given.backend_tokenizer, options.size, options.seed)
        save_model(directory.model, table.save)
        directory.update(status="finished", parameters=table.table.weight.numel())
        told.notice(f"{table.vocabulary_size:,} tokens, {options.size} numbers each")
    return directory.model
