"""`selfsent index`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import ClassVar

from selfsent.cli.console import counting, notice
from selfsent.cli.options import CORPUS, MODEL
from selfsent.cli.results import WithVectors, full_name
from selfsent.display import counted
from selfsent.errors import SettingsError
from selfsent.settings import setting


@dataclass(kw_only=True)
class Index(WithVectors):
    """Write an index of a corpus, which search reads again and again.

    It holds vectors and texts, and finds the nearest of millions in milliseconds. Its recall is measured and shown.
    (Needs the extra `index`.)
    """

    examples: ClassVar = (
        "selfsent index runs/tickets tickets.csv --text-column body --output tickets.index",
        "selfsent index runs/tickets new.csv --text-column body --output tickets.index --add",
    )
    main_options: ClassVar = ("output", "text_column", "id_column", "keep", "add", "overwrite", "recall", "encoded")

    model: str = MODEL
    corpus: tuple[str, ...] = CORPUS
    output: str = setting(MISSING, "the directory of the index")
    add: bool = setting(False, "keep what the index in OUTPUT holds, and add to it")
    overwrite: bool = setting(False, "throw away the index in OUTPUT")
    recall: float = setting(0.95, "share of the ten nearest texts that a search shall find", above=0, maximum=1)

    def run(self) -> None:
        """Write the index."""
        from selfsent.data.corpus.remote import path_of
        from selfsent.search.index import Index
        from selfsent.search.index_writer import check_index_output, write_index
        from selfsent.search.ivf import require_faiss

        output, seen = Path(self.output), list[str]()
        require_faiss()
        old = check_index_output(output, self.add, self.overwrite)
        for source in self.corpus:
            path = path_of(source).resolve()
            if output.resolve() in (path, *path.parents):
                raise SettingsError(f"--output would replace {source}, which is read: name another directory")
        corpus, stored = self.read_with_vectors(self.corpus, min_rows=1)
        model = self.load(self.model, corpus, seen)
        with counting("reading vectors" if self.encoded else "encoding", len(corpus)) as done:
            added = write_index(model, corpus, output, full_name(self.model), seen[0], old, self.recall, done, stored)
        index = Index(output)
        if self.add:
            known = f", {added.known:,} of the texts were there already" if added.known else ""
            notice(f"{counted(added.new, 'vector')} added{known}")
        notice(index.summary)
        if index.ivf.nprobe * 4 > index.ivf.nlist > 4:
            notice("that is many: the vectors form no groups. A smaller --recall would be quicker")
