"""`selfsent push`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selfsent.cli.console import notice, show, shown
from selfsent.cli.options import Asking
from selfsent.display import counted
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.index import Index
    from selfsent.push.target import Address, Target


@dataclass(kw_only=True)
class Push(Asking):
    """Carry an index into a vector database, and print the query that ranks there as `search` does.

      selfsent push tickets.index lancedb://folder#tickets
      selfsent push tickets.index lancedb://folder#tickets --check

    Vectors, words with their BM25 weights, ids and kept columns go there. A second push sends what changed, and deletes
    what went; one that was stopped goes on. Credentials are read from the environment.
    """

    index: str = setting(MISSING, "the directory of the index", positional=True)
    target: str = setting(
        MISSING,
        "the collection: lancedb://FOLDER#NAME, qdrant://HOST:PORT/NAME or qdrant://FOLDER#NAME, milvus://HOST:PORT/NAME"
        " or milvus://FILE.db#NAME, postgresql://HOST/DATABASE#NAME, opensearch://HOST:PORT/NAME",
        positional=True,
    )
    texts: bool = setting(False, "send the texts, too")
    overwrite: bool = setting(False, "delete the rows of another index that the collection holds")
    check: bool = setting(False, "send nothing: ask both sides queries of an exam from the texts, and compare")

    def run(self) -> None:
        """Push, or compare."""
        from selfsent.index import Index
        from selfsent.push.sync import push
        from selfsent.push.target import Address, open_target

        if self.check and (self.texts or self.overwrite):
            raise SettingsError("`check` sends nothing: leave out --texts and --overwrite")
        address, path = Address.of(self.target), Path(self.index)
        index = Index(path)
        with closing(open_target(address)) as target:
            if self.check:
                self._check(index, target, address)
                return
            with shown("comparing with the target") as progress:
                done = push(index, target, address, self.texts, self.overwrite, progress)
        parts = [f"{done.new:,} new", f"{done.changed:,} changed", f"{done.kept:,} as they were"]
        notice(f"{address}: {', '.join(parts)}, {counted(done.deleted, 'row')} deleted")
        show(target.query(index, address))

    def _check(self, index: Index, target: Target, address: Address) -> None:
        from selfsent.data.vector_files import unit
        from selfsent.models.encoding import encode
        from selfsent.push.check import check, exam_of

        queries, answers = exam_of(index)
        encoder, query_map = self.encoder_of(index)
        vectors = encode(encoder, queries, side="query")
        vectors = unit(vectors) if query_map is None else query_map(vectors)
        found = check(index, target, address, queries, vectors, answers)
        line = f"{counted(found.queries, 'query', 'queries')}: {found.same:.1%} with the same first ten, overlap"
        show(f"{line} {found.overlap:.1%}")
        if found.judged:
            here, there = found.ndcg
            line = f"nDCG@10 of {found.judged:,} with a known answer: {here:.1f} here, {there:.1f} there"
            show(f"{line} ({found.difference.shown})")
