"""`selfsent index`, and what `search` and `pairs` share of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_fast_options, load
from selfsent.cli.options import add_carry_options, add_corpus_options, carried, read, refuse_unread
from selfsent.display import counted

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.data.vector_files import VectorsFile
    from selfsent.models.encoder import Encoder
    from selfsent.search.index import Index
    from selfsent.search.index_sources import Source


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "index",
        help="write an index of a corpus, which search and pairs read again and again",
        description="Encode a corpus, or take vectors that selfsent encode wrote, and write an index that finds the"
        " nearest of millions in milliseconds. How much of them it finds is measured and told. (Needs the extra"
        " `index`.)",
    )
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument("corpus", nargs="*", metavar="CORPUS", help="as for selfsent train; none with --encoded alone")
    parser.add_argument("--output", required=True, metavar="DIR", help="the directory of the index")
    parser.add_argument(
        "--encoded",
        metavar="FILE",
        help="vectors that selfsent encode wrote with this model: nothing is encoded again. Without CORPUS, texts and"
        " columns are those of the .parquet file, or of all such files of a folder",
    )
    parser.add_argument("--add", action="store_true", help="keep what the index in DIR holds, and add to it")
    parser.add_argument("--overwrite", action="store_true", help="throw away the index in DIR")
    parser.add_argument(
        "--recall",
        type=float,
        default=0.95,
        metavar="X",
        help="share of the ten nearest texts that a search shall find; more takes longer (default: 0.95)",
    )
    add_fast_options(parser)
    add_carry_options(parser, "the index, and everything found in it")
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write the index, and say what it finds."""
    from selfsent.cli.console import counting, notice
    from selfsent.errors import SettingsError
    from selfsent.search.cells import require_index
    from selfsent.search.index import Index
    from selfsent.search.index_writer import check_index_output, write_index

    if not 0 < options.recall <= 1:
        raise SettingsError(f"--recall is {options.recall}; it is a share, above 0 and at most 1")
    if not options.corpus and options.encoded is None:
        raise SettingsError("there is nothing to index: give a corpus, or --encoded FILE")
    output = Path(options.output)
    require_index()
    old = check_index_output(output, options.add, options.overwrite)
    source, fingerprint = _source(options, output)
    with counting("reading vectors" if options.encoded else "encoding") as done:
        added = write_index(
            source,
            output,
            _name(options.model),
            fingerprint,
            old,
            options.recall,
            lambda count: done(count, source.rows),
        )
    index = Index(output)
    if options.add:
        known = f", {added.known:,} of the texts were there already" if added.known else ""
        notice(f"{counted(added.new, 'vector')} added{known}")
    notice(index.summary)
    if index.cells.probed * 4 > index.cells.count > 4:
        notice("that is many: the vectors lie in no groups. A smaller --recall would be quicker")


def _source(options: argparse.Namespace, output: Path) -> tuple[Source, str]:
    """What goes into the index, and the fingerprint of the encoder."""
    from selfsent.data.corpus.remote import path_of
    from selfsent.data.vector_files import VectorsFile
    from selfsent.errors import SettingsError
    from selfsent.search.index_sources import from_corpus, from_files
    from selfsent.search.sources import check_rows

    if not options.corpus:
        if carried(options):
            raise SettingsError("--id-column and --keep name columns of CORPUS; of vectors alone all columns are kept")
        refuse_unread(options, "CORPUS")
        model, fingerprint = _load(options)
        return from_files(model, Path(options.encoded)), fingerprint
    for source in options.corpus:
        place = path_of(source).resolve()
        if output.resolve() in (place, *place.parents):
            raise SettingsError(f"--output would replace {source}, which is read: name another directory")
    stored: VectorsFile | None = None if options.encoded is None else VectorsFile(Path(options.encoded))
    corpus = read(options, options.corpus, min_rows=1)
    if stored is not None:
        check_rows(stored, corpus)
    model, fingerprint = _load(options, corpus)
    return from_corpus(model, corpus, stored), fingerprint


def _load(options: argparse.Namespace, corpus: Corpus | None = None) -> tuple[Encoder, str]:
    """The encoder `options.model`, and its fingerprint."""
    from selfsent.models.fingerprint import fingerprint

    found: list[str] = []
    model = load(options, corpus, lambda model: found.append(fingerprint(model)))
    return model, found[0]


def _name(model: str) -> str:
    """How a model is found again from another directory."""
    return str(Path(model).resolve()) if Path(model).is_dir() else model


def add_index_options(parser: argparse.ArgumentParser, loads: bool) -> None:
    """`--index`, in place of a model and a corpus; and the model, where one is loaded."""
    group = parser.add_argument_group("index")
    group.add_argument("--index", metavar="DIR", help="read what selfsent index wrote, in place of MODEL and CORPUS")
    if loads:
        group.add_argument("--model", metavar="MODEL", help="where the index's model is now (default: where it was)")


def take_words(options: argparse.Namespace, last: str = "") -> list[str]:
    """The words behind MODEL and CORPUS, which become `options.model` and `options.corpus`; all with `--index`.

    Args:
        options: with `words`.
        last: what those behind are called; there must be one at least, or none where this is empty.

    Raises:
        SettingsError: `--model` is given without `--index`.
    """
    from selfsent.errors import SettingsError

    words = list(options.words)
    if options.index is None:
        if getattr(options, "model", None) is not None:
            raise SettingsError("--model says where the model of --index is now: without --index MODEL comes first")
        if lacking := [name for name in ("MODEL", "CORPUS", last) if name][len(words) :]:
            options.parser.error(f"the following arguments are required: {', '.join(lacking)}")
        options.model, options.corpus, words = words[0], words[1], words[2:]
    elif last and not words:
        options.parser.error(f"the following arguments are required: {last}")
    if not last:
        options.parser.refuse(words)
    return words


def what_was_searched(options: argparse.Namespace) -> dict[str, str]:
    """What was searched, for files."""
    if options.index is not None:
        return {"index": options.index}
    return {"model": options.model, "corpus": options.corpus}


def unit_of(place: Corpus | Index) -> str:
    """What one of the texts is called."""
    from selfsent.search.index import Index

    return place.unit if isinstance(place, Index) else place.report.unit


def shown_columns(options: argparse.Namespace, place: Corpus | Index) -> list[str]:
    """The columns that a terminal shows before a text: those that were carried along."""
    from selfsent.search.index_sources import PLACES

    if options.index is None:
        return list(carried(options))
    return [name for name in getattr(place, "columns", ()) if name not in (*PLACES, "text")]


def open_index(options: argparse.Namespace) -> Index:
    """The index of `--index`, beside which nothing else says what to read.

    Raises:
        SettingsError: something does, or faiss is not installed.
        DataError: there is no index.
    """
    from selfsent.cli.outputs import check_outputs
    from selfsent.errors import SettingsError
    from selfsent.search.index import Index
    from selfsent.search.tables import check_table

    if options.encoded is not None:
        raise SettingsError("--index holds vectors already: leave out --encoded")
    if options.id_column is not None or options.keep:
        raise SettingsError("--index shows the columns that it was made with: leave out --id-column and --keep")
    refuse_unread(options, "a corpus")
    check_outputs({"--output": options.output, "--json": options.json})
    if options.output:
        check_table(Path(options.output))
    return Index(Path(options.index))


def encoder_of(index: Index, options: argparse.Namespace) -> Encoder:
    """The encoder that made the vectors of an index: by its name, or `--model`.

    Raises:
        BaseEncoderError: it is not where it was.
        DataError: it is another one.
    """
    from selfsent.errors import BaseEncoderError

    name = options.model or index.model
    try:
        model, fingerprint = _load(argparse.Namespace(**{**vars(options), "model": name}))
    except BaseEncoderError as error:
        hint = "" if options.model else f"; the index {index.path} was made with it: say with --model where it is now"
        raise BaseEncoderError(f"{error}{hint}") from None
    index.check_model(fingerprint, _name(name))
    return model
