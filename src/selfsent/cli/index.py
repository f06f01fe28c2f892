"""`selfsent index`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selfsent.cli.console import counting, notice
from selfsent.cli.options import MODEL, Carrying, Encoding
from selfsent.cli.results import full_name
from selfsent.display import counted
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.search.index_writer import Source


@dataclass(kw_only=True)
class Index(Carrying, Encoding):
    """Write an index of a corpus, which search and pairs read again and again.

    It holds vectors of a corpus, or those that selfsent encode wrote, and finds the nearest of millions in
    milliseconds. Its recall is measured and shown. (Needs the extra `index`.)
    """

    model: str = MODEL
    corpus: tuple[str, ...] = setting((), "none: the texts of --encoded", positional=True, nargs="*")
    output: str = setting(MISSING, "the directory of the index")
    encoded: str | None = setting(
        None,
        "vectors that selfsent encode wrote with this model: nothing is encoded again. Without CORPUS, a"
        " .parquet file, whose texts and columns are taken, or a folder of such files",
    )
    add: bool = setting(False, "keep what the index in OUTPUT holds, and add to it")
    overwrite: bool = setting(False, "throw away the index in OUTPUT")
    recall: float = setting(0.95, "share of the ten nearest texts that a search shall find", above=0, maximum=1)

    def run(self) -> None:
        """Write the index."""
        from selfsent.search.index import Index
        from selfsent.search.index_writer import check_index_output, write_index
        from selfsent.search.ivf import require_faiss

        if not self.corpus and self.encoded is None:
            raise SettingsError("there is nothing to index: give a corpus, or --encoded FILE")
        output, seen = Path(self.output), list[str]()
        require_faiss()
        old = check_index_output(output, self.add, self.overwrite)
        source = self._source(output, seen)
        with counting("reading vectors" if self.encoded else "encoding") as done:

            def advance(count: int) -> None:
                done(count, source.rows)

            added = write_index(source, output, full_name(self.model), seen[0], old, self.recall, advance)
        index = Index(output)
        if self.add:
            known = f", {added.known:,} of the texts were there already" if added.known else ""
            notice(f"{counted(added.new, 'vector')} added{known}")
        notice(index.summary)
        if index.ivf.nprobe * 4 > index.ivf.nlist > 4:
            notice("that is many: the vectors form no groups. A smaller --recall would be quicker")

    def _source(self, output: Path, seen: list[str]) -> Source:
        """The content of the index; appends the fingerprint of the encoder to `seen`."""
        from selfsent.data.corpus.remote import path_of
        from selfsent.data.vector_files import VectorsFile
        from selfsent.search.index_writer import from_corpus, from_files
        from selfsent.search.vectors import check_rows

        if not self.corpus:
            if self.carried():
                raise SettingsError(
                    "--id-column and --keep name columns of CORPUS; of vectors alone all columns are kept"
                )
            self.refuse_unread("CORPUS")
            model = self.load(self.model, None, seen)
            return from_files(model, Path(str(self.encoded)))
        for source in self.corpus:
            path = path_of(source).resolve()
            if output.resolve() in (path, *path.parents):
                raise SettingsError(f"--output would replace {source}, which is read: name another directory")
        stored = None if self.encoded is None else VectorsFile(Path(self.encoded))
        corpus = self.read(self.corpus, min_rows=1)
        if stored is not None:
            check_rows(stored, corpus)
        model = self.load(self.model, corpus, seen)
        return from_corpus(model, corpus, stored)
