"""`selfsent cluster`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from selfsent.cli.console import doing, notice, show
from selfsent.cli.options import MODEL, ONE_CORPUS
from selfsent.cli.results import Results, as_line, line_of
from selfsent.display import counted, table_of
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.search import Clusters


@dataclass(kw_only=True)
class Cluster(Results):
    """Put the texts of a corpus into groups of like meaning.

    Groups are made by k-means on the vectors. Each is shown with the words that tell it from the others and its most
    typical text.
    """

    model: str = MODEL
    corpus: str = ONE_CORPUS
    clusters: int = setting(20, "how many groups", minimum=2)
    seed: int = setting(0, "seed of the first centres", minimum=0, maximum=2**32 - 1)
    page: str | None = setting(None, "write an HTML page: a map coloured by group, and the groups")
    map_points: int = setting(2000, "texts on the map", flags=("--map",))

    def run(self) -> None:
        """Find and show the clusters."""
        from selfsent.report.cluster_page import cluster_page
        from selfsent.report.maps import check_points, slowness
        from selfsent.search import find_clusters
        from selfsent.search.tables import cluster_columns, cluster_rows

        check_points(self.map_points)
        self.check_files(self.corpus, self.page)
        corpus, stored = self.read_with_vectors(self.corpus)
        unit = corpus.report.unit
        if len(corpus) < self.clusters:
            has = counted(len(corpus), "different text")
            raise SettingsError(f"clusters is {self.clusters}; the corpus has {has}")
        model = self.load(self.model, corpus)
        vectors = self.vectors(model, corpus, stored)
        with doing() as say:
            say("grouping")
            found = find_clusters(vectors, self.clusters, self.seed, corpus.input_rows.repeats)
            groups, page = _groups(found, corpus), ""
            if self.page is not None:
                if line := slowness(min(self.map_points, len(corpus))):
                    notice(line)
                about: dict[str, Any] = {"model": self.model, "corpus": corpus.source, "seed": self.seed}
                words = [group["words"] for group in groups]
                page = cluster_page(found, words, corpus, vectors, about, self.map_points)
            del vectors
        about = {"model": self.model, "corpus": self.corpus, "clusters": groups}
        files = {self.json: lambda: as_line(about), self.page: lambda: page}
        count = counted(int(found.sizes.sum()), corpus.input_rows.unit)
        if not self.write(cluster_rows(found, corpus), cluster_columns(corpus), count, files):
            _show(groups, self.carried(), unit)
        if len(found.sizes) < self.clusters:
            equal = f"the other {unit}s have equal vectors"
            notice(f"{counted(len(found.sizes), 'group')} instead of {self.clusters}: {equal}")


def _groups(found: Clusters, corpus: Corpus) -> list[dict[str, Any]]:
    """Number, size, telling words and most typical sentence of each group."""
    from selfsent.search import telling_words
    from selfsent.search.tables import describe

    words = telling_words((text for batch in corpus.batches() for text in batch), found)
    typical = describe(corpus, (int(found.typical(number)[0]) for number in range(len(found.sizes))))
    return [
        {"cluster": number, "size": size, "words": words[number], "typical": typical[number]}
        for number, size in enumerate(found.sizes.tolist())
    ]


def _show(groups: list[dict[str, Any]], names: tuple[str, ...], unit: str) -> None:
    rows = []
    for group in groups:
        typical = line_of(group["typical"], names, repeated=False)
        rows.append([str(group["cluster"]), f"{group['size']:,}", ", ".join(group["words"]), typical])
    headings = ["cluster", f"{unit}s", "telling words", f"most typical {unit}"]
    show(table_of(headings, rows, left=(2, 3), expand=True))
