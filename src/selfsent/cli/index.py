"""`selfsent index`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from selfsent.cli.console import counting, notice
from selfsent.cli.options import FILES, Sized, full_name
from selfsent.cli.results import LANGUAGE, WithVectors
from selfsent.display import counted
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.index.writer import Added


@dataclass(kw_only=True)
class Index(WithVectors, Sized):
    """Write an index of a corpus, which search reads again and again, or change one.

      selfsent index runs/tickets tickets.csv --text-column body --id-column id --output tickets.index
      selfsent index runs/tickets new.csv --text-column body --id-column id --output tickets.index --add
      selfsent index --output tickets.index --delete T-17 T-23

    It holds vectors, words and texts, and finds the nearest of millions in milliseconds. Its recall is measured and
    shown. (More than 8,192 texts need the extra `index`.)
    """

    main_options = "output text_column id_column keep add delete compact overwrite"
    usage = (
        "selfsent index MODEL CORPUS [CORPUS ...] --output DIR [--add] [options]\n"
        "       selfsent index --output DIR --delete ID [ID ...]\n"
        "       selfsent index --output DIR --compact"
    )

    words: tuple[str, ...] = setting(
        (), f"a model; and a corpus: {FILES}", positional=True, nargs="*", metavar="MODEL CORPUS"
    )
    output: str = setting(MISSING, "the directory of the index")
    add: bool = setting(False, "add to the index in OUTPUT; a row takes the place of those with its id")
    delete: tuple[str, ...] = setting((), "delete the rows with these ids", nargs="+", metavar="ID")
    compact: bool = setting(False, "write the index in OUTPUT anew, without a trace of what is deleted")
    overwrite: bool = setting(False, "throw away the index in OUTPUT")
    recall: float = setting(0.95, "share of the ten nearest texts that a search shall find", above=0, maximum=1)
    query_model: str | None = setting(None, "a student of MODEL that encodes queries (distil --space teacher)")
    precision: Literal["float16", "int8"] = setting("float16", "bits of the vectors of more than 8,192 texts: 16 or 8")
    language: str | None = LANGUAGE

    def run(self) -> None:
        """Write or change the index."""
        from selfsent.index import Index

        if self.delete or self.compact:
            self._change()
        else:
            self._write()
        index = Index(self.output)
        notice(index.summary)
        if 0.25 < index.compared < 1:
            notice("that is many: the vectors form no groups. A smaller --recall would be quicker")

    def _change(self) -> None:
        from selfsent.index import Index

        if self.words or self.add or self.overwrite:
            problem = "--delete and --compact change the index in --output: leave out MODEL, CORPUS and --add"
            raise SettingsError(problem)
        self.refuse_unread("MODEL CORPUS")
        index = Index(self.output)
        if self.delete:
            deleted, ids = index.delete(self.delete), len({*self.delete})
            missing = f"; {ids - deleted:,} of {counted(ids, 'id')} not in the index" if deleted < ids else ""
            notice(f"{counted(deleted, 'row')} deleted{missing}")
        if self.compact:
            index.compact()

    def _write(self) -> None:
        from selfsent.data.corpus.remote import path_of
        from selfsent.index import Index
        from selfsent.index.writer import check_index_output, write_index
        from selfsent.lexical import Analyzer
        from selfsent.models.fingerprint import share_space

        if lacking := ("MODEL", "CORPUS")[len(self.words) :]:
            self.parser.error(f"the following arguments are required: {', '.join(lacking)}")
        name, sources, output = self.words[0], self.words[1:], Path(self.output)
        Analyzer(self.language)
        check_index_output(output, self.add, self.overwrite)
        old = Index(output) if self.add else None
        made = {"language": old.language or "none", "size": old.size, "query_model": old.query_model} if old else {}
        for option, its in made.items():
            if getattr(self, option) not in (None, its):
                raise SettingsError(f"{output} was made with {option} {its}: leave out `{option}`, or make it again")
        if old and self.id_column != old.id_column:
            raise SettingsError(f"{output} has {old.id_column or 'no column'} for ids: give the same as --id-column")
        for source in sources:
            path = path_of(source).resolve()
            if output.resolve() in (path, *path.parents):
                raise SettingsError(f"--output would replace {source}, which is read: name another directory")
        corpus, stored = self.read_with_vectors(sources, min_rows=1)
        if old:
            old.check_corpus(corpus)
        seen = list[str]()
        self.size = None if old else self.size  # the index cuts what it adds, and knows the model as a whole
        model = self.load(name, corpus, seen)
        if self.query_model is not None and not old:
            asked = list[str]()
            student = self.load(self.query_model, None, asked)
            if not share_space((asked[0], student.space), (seen[0], model.space)):
                problem = f"{self.query_model} has no vectors of the space of {name}, so their cosines say nothing"
                advice = f"train it by selfsent train --method distil --teacher {name} --space teacher"
                raise SettingsError(f"{problem}: {advice}")
            model.lexical_weight = student.lexical_weight  # words make up for what who asks does not know
        with counting("reading vectors" if self.encoded else "encoding", len(corpus)) as done:
            if old:
                old.check_model(seen[0], full_name(name))
                added = old.upsert(corpus, model, done, stored)
            else:
                about = full_name(name), seen[0], self.recall, done, stored, self.id_column, self.language
                asker = None if self.query_model is None else full_name(self.query_model)
                added = write_index(model, corpus, output, *about, query_model=asker, precision=self.precision)
        if line := _told(added, bool(old)):
            notice(line)


def _told(added: Added, more: bool) -> str:
    """What became of the rows; empty if all of them are new in a new index."""
    parts = [f"{counted(added.new, 'vector')} added"] if more else []
    parts += [f"{added.known:,} of the texts were there already"] if added.known else []
    later = "a later one" if added.replaced == 1 else "later ones"
    parts += [f"{counted(added.replaced, 'row')} replaced by {later} with the same id"] if added.replaced else []
    return ", ".join(parts)
