"""`selfsent cluster`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from selfsent.cli.console import doing, notice, show
from selfsent.cli.options import MODEL, ONE_CORPUS
from selfsent.cli.outputs import as_line
from selfsent.cli.results import Results, line_of
from selfsent.display import counted, shortened, table_of
from selfsent.errors import DataError, SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from selfsent.data.corpus import Corpus
    from selfsent.models.encoding import Model
    from selfsent.search import Clusters

TYPICAL = 200
"""Maximum number of characters of a typical text on a terminal."""


@dataclass(kw_only=True)
class Cluster(Results):
    """Put the texts of a corpus into groups of like meaning.

    There are as many groups as the texts have, and texts unlike all others are in none; with --clusters, so many groups
    hold every text. Each is shown with the words that tell it from the others and its most typical text.
    """

    model: str = MODEL
    corpus: str = ONE_CORPUS
    clusters: int | None = setting(None, "how many groups (default: as many as the texts have)", minimum=2)
    to: str | None = setting(None, "put the texts into the groups that an earlier --output holds, and make none")
    over: str | None = setting(None, "column with dates such as 2026-01-31: the texts of each group over time")
    seed: int = setting(0, "seed of the first centres", minimum=0, maximum=2**32 - 1)
    page: str | None = setting(None, "write an HTML page: a map coloured by group, and the groups")
    map_points: int = setting(2000, "texts on the map", flags=("--map",))

    def metadata_columns(self) -> tuple[str, ...]:
        """The input columns to copy: those of --id-column, --keep and --over."""
        from selfsent.search.tables import check_metadata_columns

        check_metadata_columns([self.over] if self.over else [], "--over")
        return tuple(dict.fromkeys([*super().metadata_columns(), *([self.over] if self.over else [])]))

    def run(self) -> None:
        """Find and show the clusters."""
        from selfsent.report.cluster_page import cluster_page
        from selfsent.report.maps import check_points
        from selfsent.search.exact import corpus_language
        from selfsent.search.tables import cluster_columns, cluster_rows

        check_points(self.map_points)
        self.check_files(self.corpus, self.page, self.to)
        if self.to and self.clusters:
            raise SettingsError("--to takes the groups of a file, and --clusters makes new ones: give one of them")
        corpus, stored = self.read_with_vectors(self.corpus, 1 if self.to else 2)
        unit = corpus.report.unit
        if len(corpus) < (self.clusters or 0):
            has = counted(len(corpus), "different text")
            raise SettingsError(f"clusters is {self.clusters}; the corpus has {has}")
        old = self._old() if self.to else None
        model = self.load(self.model, corpus)
        vectors = self.vectors(model, corpus, stored)
        with doing() as say:
            say("grouping")
            language = corpus_language(corpus if old is None else old[0])
            found, named = self._found(model, vectors, corpus, old, language)
            groups, page = self._groups(found, corpus, named, language), ""
            if self.page is not None:
                about: dict[str, Any] = {"model": self.model, "corpus": corpus.source, "seed": self.seed}
                page = cluster_page(found, groups, corpus, vectors, about, self.map_points)
            del vectors
        about = {"model": self.model, "corpus": self.corpus, "outliers": found.outliers, "clusters": groups}
        files = {self.json: lambda: as_line(about), self.page: lambda: page}
        count = counted(int(found.sizes.sum()) + found.outliers, corpus.input_rows.unit)
        if not self.write(cluster_rows(found, corpus), cluster_columns(corpus), count, files):
            _show(groups, self.metadata_columns(), unit)
        if found.outliers:
            why = "unlike all others, or nothing but courtesies"
            notice(f"{counted(found.outliers, unit)} in no group: {why} (cluster -1)")
        if len(found.sizes) < (self.clusters or 0):
            equal = f"the other {unit}s have equal vectors"
            notice(f"{counted(len(found.sizes), 'group')} instead of {self.clusters}: {equal}")

    def _old(self) -> tuple[Corpus, NDArray[np.int64]]:
        """The texts of an earlier --output, and the group of each.

        Raises:
            DataError: the file has no column with groups, or no group in it.
        """
        import numpy as np

        from selfsent.data.corpus import read_corpus

        assert self.to is not None
        old = read_corpus(self.to, metadata_columns=("cluster",), min_rows=1)
        cells = old.input_rows.describe(np.asarray(old.input_rows.first))["cluster"]
        try:
            cluster = np.array([int(cell) for cell in cells], np.int64)
        except (TypeError, ValueError):
            problem = f"{self.to}: the column cluster holds no numbers: give what cluster --output wrote"
            raise DataError(problem) from None
        if missing := {*range(max(1, cluster.max() + 1))} - {*cluster.tolist()}:
            raise DataError(f"{self.to} has no group {min(missing)}: give what cluster --output wrote")
        return old, cluster

    def _found(
        self,
        model: Model,
        vectors: NDArray[np.float32],
        corpus: Corpus,
        old: tuple[Corpus, NDArray[np.int64]] | None,
        language: str | None,
    ) -> tuple[Clusters, tuple[Corpus, Clusters]]:
        """The groups of the corpus, and those of the texts by which they are named."""
        from selfsent.search import Clusters, encode_corpus, find_clusters
        from selfsent.search.clusters import assign, without_content

        repeats = corpus.input_rows.repeats
        if self.clusters:  # so many groups hold every text
            found = find_clusters(vectors, self.clusters, self.seed, repeats)
            return found, (corpus, found)
        empty = without_content((text for batch in corpus.batches() for text in batch), language)
        if old is None:
            found = find_clusters(vectors, None, self.seed, repeats, empty)
            return found, (corpus, found)
        texts, cluster = old
        found = assign(vectors, encode_corpus(model, texts), cluster, repeats, empty)
        return found, (texts, Clusters(cluster, found.cosine, count=len(found.sizes)))

    def _groups(
        self, found: Clusters, corpus: Corpus, named: tuple[Corpus, Clusters], language: str | None
    ) -> list[dict[str, Any]]:
        """Number, size, telling words and most typical text of each group, and its texts over time."""
        import numpy as np

        from selfsent.search.clusters import telling_words
        from selfsent.search.tables import describe
        from selfsent.search.timeline import counts_over

        texts, by = named
        words = telling_words((text for batch in texts.batches() for text in batch), by, language=language)
        first = {number: rows[0] for number in range(len(found.sizes)) if len(rows := found.typical(number))}
        typical = dict(zip(first, describe(corpus, map(int, first.values())), strict=True))
        sizes = enumerate(found.sizes.tolist())
        groups = [{"cluster": n, "size": size, "words": words[n], "typical": typical.get(n)} for n, size in sizes]
        if self.over:
            inputs = corpus.input_rows
            rows = np.flatnonzero(inputs.corpus_rows >= 0)
            dates, own = inputs.describe(rows)[self.over], found.cluster[inputs.corpus_rows[rows]]
            periods, counts, far = counts_over(dates, own, len(groups), self.over)
            if far:
                notice(f"--over {self.over}: {counted(far, 'date')} such as 9999-12-31 left out")
            for group, each in zip(groups, counts.tolist(), strict=True):
                group["over"] = dict(zip(periods, each, strict=True))
        return groups


def _show(groups: list[dict[str, Any]], names: tuple[str, ...], unit: str) -> None:
    from selfsent.search.timeline import bars, span

    rows, over = [], [bars(list(group["over"].values())) for group in groups if "over" in group]
    for number, group in enumerate(groups):
        typical = "" if group["typical"] is None else line_of(group["typical"], names, repeated=False)
        rows.append([str(group["cluster"]), f"{group['size']:,}", *over[number : number + 1]])
        rows[-1] += [", ".join(group["words"]), shortened(typical, TYPICAL)]
    when = [span(list(groups[0]["over"]))] if over else []
    headings = ["cluster", f"{unit}s", *when, "telling words", f"most typical {unit}"]
    show(table_of(headings, rows, left=(2, 3, 4), expand=True))
