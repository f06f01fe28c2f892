"""What the commands that encode share: in how many bits they compute, and vectors that are there already."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from selfsent.cli.options import add_carry_options, read
from selfsent.cli.outputs import check_outputs

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.data.vector_files import VectorsFile
    from selfsent.models.encoder import Encoder


class Quick(TypedDict):
    """As `quicken` and `as_encoder` take it."""

    fast: bool
    int8: bool


def add_fast_options(parser: argparse.ArgumentParser) -> None:
    """Add `--fast` and `--int8`."""
    parser.add_argument(
        "--fast", action="store_true", help="compute in bfloat16 where that is faster (cosine to float32: 0.9999)"
    )
    parser.add_argument(
        "--int8",
        action="store_true",
        help="faster still on a CPU with AVX-512 VNNI: some products in 8 bits, the others as with --fast (cosine to"
        " float32: 0.999)",
    )


def add_result_options(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--output`, for a table of `what`, `--json`, `--encoded`, columns that come out again, and how to encode."""
    parser.add_argument("--output", metavar="FILE", help=f"write {what} to a .csv, .tsv, .jsonl or .parquet file")
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write what is shown as one object; - is standard output, and nothing else goes there then",
    )
    parser.add_argument(
        "--safe-csv",
        action="store_true",
        help="for spreadsheets: put ' before texts of a .csv or .tsv that begin with = + - or @, formulas there",
    )
    parser.add_argument(
        "--encoded",
        metavar="FILE",
        help="a file that selfsent encode wrote for this model and corpus: nothing is encoded again",
    )
    add_fast_options(parser)
    add_carry_options(parser, "everything that is shown and written")


def read_with_vectors(options: argparse.Namespace, min_rows: int = 2) -> tuple[Corpus, VectorsFile | None]:
    """The corpus, of so many distinct sentences at least, and the file of `--encoded`.

    Raises:
        SettingsError: a name does not say what its file is, or what is written would replace what is read.
        OutputError: `--output` or `--json` cannot be written.
        DataError: `--encoded` holds no vectors, or more or fewer than there are rows.
    """
    from selfsent.data.vector_files import VectorsFile
    from selfsent.search.sources import check_rows
    from selfsent.search.tables import check_table

    check_outputs(
        {"--output": options.output, "--json": options.json, "--page": getattr(options, "page", None)},
        [options.corpus, options.encoded, *(options.without or ())],
    )
    if options.output:
        check_table(Path(options.output))
    stored = None if options.encoded is None else VectorsFile(Path(options.encoded))
    corpus = read(options, options.corpus, min_rows=min_rows)
    if stored is not None:
        check_rows(stored, corpus)
    return corpus, stored


def load(
    options: argparse.Namespace, corpus: Corpus | None, look: Callable[[Encoder], None] = lambda model: None
) -> Encoder:
    """The encoder `options.model`, ready to be run: on a GPU where there is one, and in as few bits as asked for.

    Notices say what of the corpus, if any, was left out, and where the encoder can hardly read it. `look` is shown the
    encoder as it was loaded.
    """
    import numpy as np

    from selfsent.cli.console import notice
    from selfsent.models.loading import load_encoder
    from selfsent.models.reading import LOOKED_AT, complaint_of_text
    from selfsent.training.precision import inference_device, quicken

    if corpus and (odd := what_was_read(corpus)):
        notice(odd)
    bits = quick(options)
    model = load_encoder(options.model)
    look(model)
    model = model.to(inference_device())
    if corpus and (line := complaint_of_text(model, corpus.texts(np.arange(min(len(corpus), LOOKED_AT))))):
        notice(line)
    return quicken(model, **bits)


def what_was_read(corpus: Corpus) -> str:
    """How many rows, and what is odd about them; empty where nothing is."""
    inputs, report = corpus.input_rows, corpus.report
    counts = (
        (inputs.dropped - report.excluded, "empty"),
        (int(inputs.repeats.sum()) - len(corpus), "repeated"),
        (report.excluded, "left out"),
    )
    odd = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    line = f"{inputs.rows:,} row{'s' * (inputs.rows != 1)}"
    line += f", split into {len(inputs):,} sentence{'s' * (len(inputs) != 1)}" if inputs.split else ""
    line += f" ({odd})" if odd else ""
    return "\n".join(filter(None, (line if odd else "", report.changes)))


def labelled(row: dict[str, Any], names: Sequence[str], side: str = "") -> str:
    """The cells of a row that carry what goes with it, before a text on a terminal; empty where nothing does."""
    from selfsent.cli.console import shortened
    from selfsent.data.corpus.clean import clean

    cells = clean("" if (cell := row[f"{name}{side}"]) is None else str(cell) for name in names)[0]
    return "".join(f"{shortened(cell) or '-'}  " for cell in cells)


def text_of(row: dict[str, Any], side: str = "") -> str:
    """The text of a row as a terminal shows it; its number where an index has no texts."""
    from selfsent.cli.console import shortened

    return shortened(row[f"text{side}"]) if f"text{side}" in row else f"row {row[f'row{side}']}"


def again(repeats: int) -> str:
    """How many more rows have a text, behind it on a terminal; empty where none has."""
    return f"  (and {repeats:,} more row{'s' * (repeats != 1)})" if repeats else ""


def quick(options: argparse.Namespace) -> Quick:
    """What the flags say; a notice tells what is no gain on this processor, and left undone."""
    from selfsent.cli.console import notice
    from selfsent.training.precision import computes_bfloat16, computes_int8, inference_device

    device = inference_device()
    short = computes_bfloat16(device)
    if options.int8 and not computes_int8(device):
        used = "bfloat16" if short else "float32"
        notice(f"--int8 needs a CPU that multiplies bytes (AVX-512 VNNI): {used} is used")
    elif options.fast and not short:
        notice("--fast: this machine is no faster in bfloat16, so float32 is used")
    return {"fast": options.fast, "int8": options.int8}
