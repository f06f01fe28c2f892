"""`selfsent index`: build, add, delete, compact, map."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from selfsent.cli.console import notice, shown
from selfsent.cli.options import FILES, Command, Encoding, Sized, full_name
from selfsent.cli.results import LANGUAGE, WithVectors
from selfsent.display import counted
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.index import Added, Index as OnDisk

_C = TypeVar("_C", bound=Command)
CORPUS: Any = setting((), FILES, positional=True, nargs="+", metavar="CORPUS")
CHANGED: Any = setting(MISSING, "the directory of the index", positional=True)
OVERWRITE: Any = setting(False, "throw away the index in OUTPUT")
RECALL: Any = setting(0.95, "target recall@10 of a search, measured on a sample", above=0, maximum=1)
QUERY_MODEL: Any = setting(None, "a student of MODEL that encodes queries (distil --space teacher)")
PRECISION: Any = setting("float16", "bits of the vectors of more than 8,192 texts: 16 or 8")
_MANY_COMPARED = 0.25
"""Share of the vectors that a search compares above which the lists save little."""


@dataclass(kw_only=True)
class IndexBuild(WithVectors, Sized):
    """Write an index of a corpus, for searches in milliseconds.

      selfsent index build runs/tickets tickets.csv --text-column body --id-column id --output tickets.index

    It holds vectors, words and texts. Its recall is measured and shown. With --exam it is what the plan of
    `selfsent exam` took: its model, passages, columns and corpus, unless others are given.
    (More than 8,192 texts need the extra `index`.)
    """

    main_options = "output text_column id_column keep overwrite"

    model: str | None = setting(None, "a directory, a hub id, or bundled", positional=True, nargs="?")
    corpus: tuple[str, ...] = setting((), FILES, positional=True, nargs="*", metavar="CORPUS")
    output: str = setting(MISSING, "the directory of the index")
    exam: str | None = setting(None, "build what the plan of this exam took")
    overwrite: bool = OVERWRITE
    recall: float = RECALL
    query_model: str | None = QUERY_MODEL
    precision: Literal["float16", "int8"] = PRECISION
    language: str | None = LANGUAGE

    def run(self) -> None:
        """Write the index."""
        from selfsent.index import Index as OnDisk, write_index
        from selfsent.index.writer import check_index_output
        from selfsent.lexical import Analyzer
        from selfsent.models.fingerprint import share_space

        output = Path(self.output)
        if self.exam is not None:
            self._as_examined(self.exam)
        if self.model is None or not self.corpus:
            raise SettingsError("name a model and a corpus, or an exam with a plan by --exam")
        Analyzer(self.language)
        check_index_output(output, False, self.overwrite)
        _check_sources(output, self.corpus, "--output")
        corpus, stored = self.read_with_vectors(self.corpus, min_rows=1)
        seen = list[str]()
        model = self.load(self.model, corpus, seen)
        if self.query_model is not None:
            seen_student = list[str]()
            student = self.load(self.query_model, None, seen_student)
            if not share_space((seen_student[0], student.space), (seen[0], model.space)):
                problem = f"{self.query_model} has no vectors of the space of {self.model}"
                problem += ", so their cosines say nothing"
                advice = f"train it by selfsent train --method distil --teacher {self.model} --space teacher"
                raise SettingsError(f"{problem}: {advice}")
            model.lexical_weight = student.lexical_weight  # BM25 compensates for a weaker encoder of queries
        with shown("writing the index") as progress:
            about = full_name(self.model), seen[0], self.recall, progress, stored, self.id_column, self.language
            query_model = None if self.query_model is None else full_name(self.query_model)
            added = write_index(model, corpus, output, *about, query_model=query_model, precision=self.precision)
        if line := _counts(added):
            notice(line)
        _summarise(OnDisk(output))

    def _as_examined(self, exam: str) -> None:
        """Take model, passages, columns and corpus from an exam, where they are not given.

        Raises:
            SettingsError: no plan was tried on it, or an index cannot be what it took.
        """
        from selfsent.cli.exam import read_record_of
        from selfsent.cli.exam_plan import chosen_row
        from selfsent.exam.trial import encoders_in
        from selfsent.scorers.passages import passages_in
        from selfsent.scorers.programs import program_in
        from selfsent.scorers.rerank import reranking

        row, record = chosen_row(exam), read_record_of(Path(exam))
        self.corpus = (self.model, *self.corpus) if self.model is not None else self.corpus
        self.corpus = self.corpus or (str(record.get("source", "")),)
        first, second = reranking(row["model"]) or (row["model"], "")
        if not (encoders := encoders_in(first)):
            raise SettingsError(f"{exam} took {row['name']}, which has no vectors for an index: name a model")
        if programmed := program_in(first):
            problem = f"{exam} took {row['name']}, and an index ranks without programs"
            raise SettingsError(f"{problem}: name the model, or take `{programmed[1]}` out of the plan")
        if "prompts" in row:
            advice = "write them into its config_sentence_transformers.json, and name the model"
            raise SettingsError(f"{exam} took {row['name']}, and an index is made with a model's own prompts: {advice}")
        self.model, parts = encoders[0], passages_in(first)
        self.passages = self.passages or (parts[1] if parts else None)
        reading = record.get("reading", {})
        asked, *answer = reading.get("pairs") or (reading.get("title_column"), *(reading.get("text_column") or ()))
        texts = answer if reading.get("pairs") else [name for name in (asked, *answer) if name]
        self.text_column = self.text_column or tuple(texts)
        self.id_column = self.id_column or reading.get("id_column")
        self.clean = self.clean or tuple(reading.get("clean") or ())
        notice(f"{exam} took {row['name']}: the model is {self.model}")
        if second:
            candidates = f" --candidates {row['candidates']}" if "candidates" in row else ""
            notice(f"search it with --rerank {second}{candidates}")


@dataclass(kw_only=True)
class IndexAdd(WithVectors, Encoding):
    """Add rows to an index; a row replaces older ones with its id, and a row without text only removes them.

      selfsent index add tickets.index today.csv

    Columns, cleaning and model are those of the index unless options name them again.
    """

    main_options = "text_column id_column keep model"

    index: str = CHANGED
    corpus: tuple[str, ...] = CORPUS
    model: str | None = setting(None, "where the model of the index is now (default: where it was)")

    def run(self) -> None:
        """Add the rows."""
        from selfsent.index import Index

        path = Path(self.index)
        index = Index(path)
        if self.id_column not in (None, index.id_column):
            raise SettingsError(f"{path} has {index.id_column or 'no column'} for ids: give the same as --id-column")
        _check_sources(path, self.corpus, "the index")
        self._read_as(index)
        corpus, stored = self.read_with_vectors(self.corpus, min_rows=1)
        index.check_corpus(corpus)
        name, seen = self.model or index.model, list[str]()
        try:
            model = self.load(name, corpus, seen)
        except BaseEncoderError as error:
            hint = "" if self.model else f"; the index {path} was made with it: say with --model where it is now"
            raise BaseEncoderError(f"{error}{hint}") from None
        index.check_model(seen[0], full_name(name))
        with shown("updating the index") as progress:
            added = index.upsert(corpus, model, progress, stored)
        notice(", ".join(filter(None, [f"{counted(added.new, 'vector')} added", _counts(added)])))
        _summarise(index)

    def _read_as(self, index: OnDisk) -> None:
        """Read the corpus with the options of the index, where none are given."""
        made = index.reading
        self.text_column = self.text_column or tuple(made["text_column"])
        self.clean = self.clean or tuple(made["clean"])
        self.id_column = self.id_column or index.id_column
        self.keep = self.keep or tuple(name for name in made["metadata_columns"] if name != self.id_column)
        self.split_sentences = self.split_sentences or made["split_sentences"]
        self.passages = self.passages or made.get("passages")


@dataclass(kw_only=True)
class IndexDelete(Command):
    """Delete rows of an index by their ids.

      selfsent index delete tickets.index T-17 T-23

    Searches do not find them any more; their words and vectors leave the files with the next compaction.
    """

    index: str = CHANGED
    ids: tuple[str, ...] = setting((), "ids of the rows", positional=True, nargs="+", metavar="ID")

    def run(self) -> None:
        """Delete the rows."""
        from selfsent.index import Index

        index = Index(self.index)
        deleted, ids = index.delete(self.ids), len({*self.ids})
        missing = f"; {ids - deleted:,} of {counted(ids, 'id')} not in the index" if deleted < ids else ""
        notice(f"{counted(deleted, 'row')} deleted{missing}")
        _summarise(index)


@dataclass(kw_only=True)
class IndexCompact(Command):
    """Rewrite an index without a trace of deleted rows.

      selfsent index compact tickets.index

    Adding and deleting do so automatically from time to time.
    """

    index: str = CHANGED

    def run(self) -> None:
        """Compact the index."""
        from selfsent.index import Index

        index = Index(self.index)
        index.compact()
        _summarise(index)


@dataclass(kw_only=True)
class IndexMap(Command):
    """Ask an index with another encoder than its texts were encoded with, by a map of its query vectors.

      selfsent adapt --from all-minilm --to all-mpnet --sample tickets.csv --output mpnet.safetensors
      selfsent index map tickets.index mpnet.safetensors
      selfsent index map tickets.index --remove

    search and serve encode queries with the new encoder then. Rows are added with the old one, as before.
    """

    index: str = CHANGED
    adapter: str | None = setting(None, "what selfsent adapt --from OLD --to NEW wrote", positional=True, nargs="?")
    model: str | None = setting(None, "where the new encoder is now (default: where it was)")
    remove: bool = setting(False, "take the map out: queries are encoded as before")

    def run(self) -> None:
        """Record the map, or take it out."""
        from selfsent.index import Index
        from selfsent.index.query_map import QueryMap

        if (self.adapter is None) != self.remove:
            raise SettingsError("give the file of a map, or --remove, and not both")
        if self.model and self.remove:
            raise SettingsError("`model` goes with the file of a map: leave it out")
        index, query_map = Index(self.index), None
        if self.adapter is not None:
            query_map = QueryMap.load(Path(self.adapter))
            name = full_name(self.model) if self.model else query_map.about.model
            query_map = dataclasses.replace(query_map, about=dataclasses.replace(query_map.about, model=name))
        elif index.query_map is None:
            notice(f"{self.index} has no map")
        index.set_query_map(query_map)
        notice(f"queries of {self.index} are encoded by {index.query_model}{' and mapped' if query_map else ''}")


@dataclass(kw_only=True)
class Index(WithVectors, Sized):
    """Build an index of a corpus for quick searches, or change one.

      selfsent index build runs/tickets tickets.csv --text-column body --id-column id --output tickets.index
      selfsent index add tickets.index today.csv
      selfsent index delete tickets.index T-17 T-23
      selfsent index compact tickets.index
      selfsent index map tickets.index mpnet.safetensors

    Each of these has its own --help. Without one of these words, the options below are those of build and, with the
    deprecated flags --add, --delete and --compact, of the others.
    """

    subcommands: ClassVar[dict[str, type[Command]]] = {
        "build": IndexBuild,
        "add": IndexAdd,
        "delete": IndexDelete,
        "compact": IndexCompact,
        "map": IndexMap,
    }
    main_options = "output text_column id_column keep overwrite"
    usage = (
        "selfsent index build MODEL CORPUS [CORPUS ...] --output DIR [options]\n"
        "       selfsent index add DIR CORPUS [CORPUS ...] [options]\n"
        "       selfsent index delete DIR ID [ID ...] | compact DIR | map DIR [ADAPTER] [options]"
    )

    words: tuple[str, ...] = setting(
        (), f"a model; and a corpus: {FILES}", positional=True, nargs="*", metavar="MODEL CORPUS"
    )
    output: str = setting(MISSING, "the directory of the index")
    add: bool = setting(False, "deprecated: give selfsent index add")
    delete: tuple[str, ...] = setting((), "deprecated: give selfsent index delete", nargs="+", metavar="ID")
    compact: bool = setting(False, "deprecated: give selfsent index compact")
    overwrite: bool = OVERWRITE
    recall: float = RECALL
    query_model: str | None = QUERY_MODEL
    precision: Literal["float16", "int8"] = PRECISION
    language: str | None = LANGUAGE

    def run(self) -> None:
        """Run the subcommand of the deprecated flags."""
        commands = self._commands()
        for command in commands:
            command.run()
        names = [type(command).__name__.removeprefix("Index").lower() for command in commands]
        if names != ["build"]:
            flags = " and ".join(f"--{name}" for name in names)
            notice(f"{flags}: deprecated; give {' and '.join(f'selfsent index {name}' for name in names)}")

    def _commands(self) -> list[Command]:
        """The subcommands for the flags.

        Raises:
            SettingsError: flags that exclude each other, or settings that the index has already.
        """
        if self.delete or self.compact:
            if self.words or self.add or self.overwrite:
                problem = "--delete and --compact change the index in --output: leave out MODEL, CORPUS and --add"
                raise SettingsError(problem)
            self.refuse_unread("MODEL CORPUS")
            found: list[Command] = []
            if self.delete:
                found.append(self._as(IndexDelete, index=self.output, ids=self.delete))
            return found + [self._as(IndexCompact, index=self.output)] * self.compact
        if lacking := ("MODEL", "CORPUS")[len(self.words) :]:
            self.parser.error(f"the following arguments are required: {', '.join(lacking)}")
        model, *corpus = self.words
        if not self.add:
            return [self._as(IndexBuild, model=model, corpus=tuple(corpus))]
        self._check_added()
        return [self._as(IndexAdd, index=self.output, model=model, corpus=tuple(corpus))]

    def _check_added(self) -> None:
        from selfsent.index import Index as OnDisk
        from selfsent.index.writer import check_index_output

        check_index_output(Path(self.output), True, self.overwrite)
        index = OnDisk(self.output)
        made = {"language": index.language or "none", "size": index.size, "query_model": index.query_model}
        for option, its in made.items():
            if getattr(self, option) not in (None, its):
                advice = f"leave out `{option}`, or make it again"
                raise SettingsError(f"{self.output} was made with {option} {its}: {advice}")

    def _as(self, kind: type[_C], **more: Any) -> _C:
        """A subcommand with the options of this command that it has, too."""
        names = {item.name for item in dataclasses.fields(kind)} & {item.name for item in dataclasses.fields(self)}
        return kind(**{name: getattr(self, name) for name in names} | more)


def _check_sources(index: Path, sources: Sequence[str], what: str) -> None:
    """Reject a source inside of the directory of the index."""
    from selfsent.data.corpus.remote import path_of

    for source in sources:
        path = path_of(source).resolve()
        if index.resolve() in (path, *path.parents):
            raise SettingsError(f"{what} would replace {source}, which is read: name another directory")


def _summarise(index: OnDisk) -> None:
    """Show the size and the recall of an index."""
    notice(index.summary)
    if _MANY_COMPARED < index.compared < 1:
        notice("that is many: the vectors form no groups. A smaller --recall would be quicker")


def _counts(added: Added) -> str:
    """Known texts and replaced rows; empty without any."""
    parts = [f"{added.known:,} of the texts were there already"] if added.known else []
    later = "a later one" if added.replaced == 1 else "later ones"
    parts += [f"{counted(added.replaced, 'row')} replaced by {later} with the same id"] if added.replaced else []
    return ", ".join(parts)
