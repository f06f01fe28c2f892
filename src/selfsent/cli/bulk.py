"""`selfsent encode --engine ray`."""

from __future__ import annotations

import argparse
from pathlib import Path

from selfsent.cli.options import carried, text_column
from selfsent.display import counted
from selfsent.errors import OutputError, SettingsError


def encode_in_bulk(options: argparse.Namespace) -> None:
    """Encode files, here or elsewhere, into a folder of parquet files."""
    from selfsent.cli.console import counting, notice
    from selfsent.encoding import BatchEncoder
    from selfsent.encoding.job import Done, make_job, missing
    from selfsent.encoding.on_ray import encode_on_ray

    _check(options)
    encoder = BatchEncoder(
        options.model,
        str(text_column(options)),
        fast=options.fast,
        int8=options.int8,
        clean=options.clean,
        prompt=options.prompt,
    )
    job, parts = make_job(
        encoder, options.input, options.output, carry=carried(options), split=bool(options.split_sentences)
    )
    left = missing(job, parts)
    if len(left) < len(parts):
        notice(
            f"{len(parts) - len(left):,} of {counted(len(parts), 'part')} had been made before an earlier run stopped"
        )
    rows = zeros = 0
    if left:
        with counting("encoding") as encoded:

            def tell(done: Done) -> None:
                nonlocal rows, zeros
                rows, zeros = rows + done.rows, zeros + done.zeros
                encoded(1, len(left))

            try:
                encode_on_ray(job, left, options.workers, options.cores or 1, tell)
            except KeyboardInterrupt:
                done = len(parts) - len(missing(job, parts))
                raise KeyboardInterrupt(
                    f"interrupted: {done:,} of {counted(len(parts), 'part')} are done, the same command goes on from"
                    " there"
                ) from None
        notice(
            f"{counted(rows, 'vector')} in {counted(len(left), 'part')}"
            + (f" ({zeros:,} of empty texts)" if zeros else "")
        )
    job.output.sweep()
    notice(f"all of {counted(len(parts), 'part')} in {job.output}")


def _check(options: argparse.Namespace) -> None:
    """Refuse what does not go together, before anything is looked at.

    Raises:
        SettingsError: there is something.
        OutputError: `--output` names a file.
    """
    for flag, value in {"--without": options.without, "--document-column": options.document_column}.items():
        if value:
            raise SettingsError(f"{flag} does not go with --engine ray, whose workers see a part of the input each")
    for flag, number in {"--workers": options.workers, "--cores": options.cores}.items():
        if number is not None and number < 1:
            raise SettingsError(f"{flag} is {number}; it must be at least 1")
    if not isinstance(text_column(options), str):
        raise SettingsError("--engine ray reads one text column: join them beforehand, and give --text-column once")
    if "file" in carried(options):
        raise SettingsError("--id-column or --keep: results have a column 'file' of their own; rename yours")
    if Path(options.output).suffix in (".npy", ".npz", ".parquet"):
        raise OutputError(f"--output {options.output} is to be a folder with --engine ray: leave out its ending")
    from selfsent.data.corpus.remote import path_of

    output = path_of(options.output).resolve()
    for name in options.input:
        place = path_of(name)
        if place.is_dir() and place.resolve() in (output, *output.parents):
            raise SettingsError(f"--output lies in {name}, which is read: name a folder outside of it")
    for name in (*options.input, options.output):
        if name.startswith("memory://"):
            raise SettingsError(f"{name} lies in the memory of one process, where Ray's workers do not see it")
