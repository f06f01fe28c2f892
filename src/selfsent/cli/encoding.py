"""What the commands that encode share: in how many bits they compute, and vectors that are there already."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from selfsent.cli.options import read
from selfsent.cli.outputs import check_outputs

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.evaluation.vectors import VectorsFile
    from selfsent.models.encoder import Encoder


class Quick(TypedDict):
    """As `quicken` and `as_encoder` take it."""

    fast: bool
    int8: bool


def add_fast_options(parser: argparse.ArgumentParser) -> None:
    """Add `--fast` and `--int8`."""
    parser.add_argument(
        "--fast", action="store_true", help="compute in bfloat16 where the processor has it (cosine to float32: 0.9999)"
    )
    parser.add_argument(
        "--int8",
        action="store_true",
        help="faster still on a CPU with AVX-512 VNNI: some products in 8 bits, the others as with --fast (cosine to"
        " float32: 0.999)",
    )


def add_result_options(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--output`, for a table of `what`, `--encoded`, and how to encode."""
    parser.add_argument("--output", metavar="FILE", help=f"write {what} to a .csv, .tsv, .jsonl or .parquet file")
    parser.add_argument(
        "--safe-csv",
        action="store_true",
        help="for spreadsheets: put ' before texts of a .csv or .tsv that begin with = + - or @, formulas there",
    )
    parser.add_argument(
        "--encoded",
        metavar="FILE",
        help="what selfsent encode wrote of this model and corpus, instead of encoding it again",
    )
    add_fast_options(parser)


def read_with_vectors(options: argparse.Namespace, least: int = 2) -> tuple[Corpus, VectorsFile | None]:
    """The corpus, of so many distinct sentences at least, and the file of `--encoded`.

    Raises:
        SettingsError: a name does not say what its file is, or `--output` would replace what is read.
        OutputError: `--output` cannot be written.
        DataError: `--encoded` holds no vectors, or more or fewer than there are sentences.
    """
    from selfsent.evaluation.vectors import VectorsFile
    from selfsent.search.sources import check_rows
    from selfsent.search.tables import check_table

    check_outputs({"--output": options.output}, [options.corpus, options.encoded, *(options.without or ())])
    if options.output:
        check_table(Path(options.output))
    stored = None if options.encoded is None else VectorsFile(Path(options.encoded))
    corpus = read(options, options.corpus, least=least)
    if stored is not None:
        check_rows(stored, corpus)
    return corpus, stored


def load(options: argparse.Namespace, corpus: Corpus) -> Encoder:
    """The encoder `options.model`, ready to be run: on a GPU where there is one, and in as few bits as asked for.

    Notices say what of the corpus was left out, and where the encoder can hardly read it.
    """
    import numpy as np

    from selfsent.cli.console import notice
    from selfsent.models.encoding import LOOKED_AT, complaint_of_unknown
    from selfsent.models.loading import load_encoder
    from selfsent.training.precision import inference_device, quicken

    if not corpus.report.whole:
        notice(corpus.report.summary())
    bits = quick(options)
    model = load_encoder(options.model).to(inference_device())
    if line := complaint_of_unknown(model, corpus.texts(np.arange(min(len(corpus), LOOKED_AT)))):
        notice(line)
    return quicken(model, **bits)


def quick(options: argparse.Namespace) -> Quick:
    """What the flags say; a notice tells what is no gain on this processor, and left undone."""
    from selfsent.cli.console import notice
    from selfsent.training.precision import computes_bfloat16, computes_int8, inference_device

    device = inference_device()
    short = computes_bfloat16(device)
    if options.int8 and not computes_int8(device):
        used = "bfloat16" if short else "float32"
        notice(f"--int8 is for CPUs that multiply bytes (AVX-512 VNNI): {used} is used")
    elif options.fast and not short:
        notice("--fast: this processor does not compute bfloat16, float32 is faster on it and is used")
    return {"fast": options.fast, "int8": options.int8}
