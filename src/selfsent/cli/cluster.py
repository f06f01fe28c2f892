"""`selfsent cluster`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from selfsent.cli.console import doing, notice, show, shown
from selfsent.cli.options import MODEL_OR_TABLE, ONE_CORPUS, is_text
from selfsent.cli.outputs import as_line
from selfsent.cli.results import Results, line_of
from selfsent.display import counted, shortened, table_of
from selfsent.errors import AugmenterError, SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from selfsent.augment.endpoint import Endpoint
    from selfsent.data.corpus import Corpus
    from selfsent.models.encoding import Model
    from selfsent.progress import Progress
    from selfsent.search import Clusters

TYPICAL = 200
"""Maximum number of characters of a typical text on a terminal."""


@dataclass(kw_only=True)
class Cluster(Results):
    """Put the texts of a corpus into groups of like meaning.

    There are as many groups as the texts have, and texts unlike all others are in none; with --clusters, so many groups
    hold every text. Each is shown with the words that tell it from the others and its most typical text.
    """

    model: str | None = MODEL_OR_TABLE
    corpus: str = ONE_CORPUS
    clusters: int | None = setting(None, "how many groups (default: as many as the texts have)", minimum=2)
    to: str | None = setting(None, "put the texts into the groups that an earlier --output holds, and make none")
    levels: int = setting(1, "2: put the groups into groups, too", minimum=1, maximum=2)
    llm: str | None = setting(None, "OpenAI-compatible address of a language model that gives each group a title")
    llm_model: str = setting("", "its name there, such as llama3.2 (key: OPENAI_API_KEY)", needs="llm")
    timeout: float = setting(60.0, "seconds for a title, before it is given up", above=0.0, needs="llm")
    over: str | None = setting(None, "column with dates such as 2026-01-31: the texts of each group over time")
    seed: int = setting(0, "seed of the first centres", minimum=0, maximum=2**32 - 1)
    page: str | None = setting(None, "write an HTML page: a map coloured by group, and the groups")
    map_points: int = setting(2000, "texts on the map", flags=("--map",))

    def metadata_columns(self) -> tuple[str, ...]:
        """The input columns to copy, from --id-column, --keep and --over."""
        from selfsent.search.tables import check_metadata_columns

        check_metadata_columns([self.over] if self.over else [], "--over")
        if self.levels > 1 and "parent" in super().metadata_columns():
            raise SettingsError("--keep: results have a column 'parent' of their own; rename yours")
        return tuple(dict.fromkeys([*super().metadata_columns(), *([self.over] if self.over else [])]))

    def run(self) -> None:
        """Find and show the clusters."""
        import numpy as np

        from selfsent.report.cluster_page import cluster_page
        from selfsent.search.clusters import read_clusters
        from selfsent.search.exact import corpus_language
        from selfsent.search.tables import cluster_columns, cluster_rows

        self._check()
        endpoint = self._endpoint()
        page = ""
        corpus, stored = self.read_with_vectors(self.corpus, 1 if self.to else 2)
        unit = corpus.report.unit
        if len(corpus) < (self.clusters or 0):
            has = counted(len(corpus), "different text")
            raise SettingsError(f"clusters is {self.clusters}; the corpus has {has}")
        old = read_clusters(self.to) if self.to else None
        self.model = self.model or self.table_for(corpus)
        model = self.load(self.model, corpus)
        vectors = self.vectors(model, corpus, stored)
        with doing() as say:
            say("grouping")
            language = corpus_language(corpus if old is None else old[0])
            found, named = self._found(model, vectors, corpus, old, language)
            groups = self._groups(found, corpus, named, language)
            above, parents = self._parents(found, vectors, groups, corpus, language)
        if endpoint is not None:
            try:
                with endpoint, shown("asking for titles") as progress:
                    _entitle(groups, *named, endpoint, progress)
                    _entitle(parents, corpus, above, endpoint, progress)
            except AugmenterError as error:  # the groups took longer than their titles
                notice(f"not all titles: {error}")
        with doing() as say:
            say("drawing the map")
            if self.page is not None:
                about: dict[str, Any] = {"model": self.model, "corpus": corpus.source, "seed": self.seed}
                page = cluster_page(found, groups, corpus, vectors, about, self.map_points, parents)
            del vectors
        about = {"model": self.model, "corpus": self.corpus, "outliers": found.outliers, "clusters": groups}
        about |= {"parents": parents} if parents else {}
        whose = np.array([group["parent"] for group in groups], np.int64) if parents else None
        files = {self.json: lambda: as_line(about), self.page: lambda: page}
        count = counted(int(found.sizes.sum()) + found.outliers, corpus.input_rows.unit)
        rows, columns = cluster_rows(found, corpus, whose), cluster_columns(corpus, self.levels)
        if not self.write(rows, columns, count, files):
            _show(groups, parents, self.metadata_columns(), unit)
        if found.outliers:
            why = "unlike all others, or nothing but courtesies"
            notice(f"{counted(found.outliers, unit)} in no group: {why} (cluster -1)")
        if len(found.sizes) < (self.clusters or 0):
            equal = f"the other {unit}s have equal vectors"
            notice(f"{counted(len(found.sizes), 'group')} instead of {self.clusters}: {equal}")

    def _check(self) -> None:
        """Reject options that do not fit together, before anything is read.

        Raises:
            SettingsError: they do not.
        """
        from selfsent.report.maps import check_points

        check_points(self.map_points)
        if self.model is None and not is_text(self.corpus):
            self.parser.error("the following arguments are required: CORPUS")
        self.check_files(self.corpus, self.page, self.to)
        if self.to and self.clusters:
            raise SettingsError("--to takes the groups of a file, and --clusters makes new ones: give one of them")
        if self.to and self.levels > 1:
            raise SettingsError("--levels makes groups of groups, and --to takes those of a file: give one of them")

    def _endpoint(self) -> Endpoint | None:
        """The language model that writes titles.

        Raises:
            SettingsError: no model at an address, or no address.
        """
        from selfsent.augment.endpoint import Endpoint

        if self.llm and not self.llm_model:
            raise SettingsError(f"{self.llm} serves models by name: give llm_model, such as llama3.2")
        return None if self.llm is None else Endpoint(self.llm, self.llm_model, self.timeout)

    def _parents(
        self,
        found: Clusters,
        vectors: NDArray[np.float32],
        groups: list[dict[str, Any]],
        corpus: Corpus,
        language: str | None,
    ) -> tuple[Clusters, list[dict[str, Any]]]:
        """The groups of groups as clusters, and size and telling words of each; none with one level."""
        import numpy as np

        from selfsent.search import Clusters
        from selfsent.search.clusters import centres_of, parents_of, telling_words

        if self.levels == 1 or not groups:
            return found, []
        parents = parents_of(centres_of(vectors, found.cluster))
        for group, parent in zip(groups, parents.tolist(), strict=True):
            group["parent"] = parent
        cluster = np.append(parents, -1)[found.cluster]
        above = Clusters(cluster, found.cosine, found.repeats, int(parents.max()) + 1)
        words = telling_words((text for batch in corpus.batches() for text in batch), above, language=language)
        sizes = enumerate(above.sizes.tolist())
        return above, [{"parent": number, "size": size, "words": words[number]} for number, size in sizes]

    def _found(
        self,
        model: Model,
        vectors: NDArray[np.float32],
        corpus: Corpus,
        old: tuple[Corpus, NDArray[np.int64]] | None,
        language: str | None,
    ) -> tuple[Clusters, tuple[Corpus, Clusters]]:
        """The groups of the corpus, and the groups of the texts by which they are named."""
        from selfsent.search import encode_corpus, find_clusters
        from selfsent.search.clusters import Centres, clusters_of, without_content

        repeats = corpus.input_rows.repeats
        if self.clusters:  # so many groups hold every text
            found = find_clusters(vectors, self.clusters, self.seed, repeats)
            return found, (corpus, found)
        empty = without_content((text for batch in corpus.batches() for text in batch), language)
        if old is None:
            found = find_clusters(vectors, None, self.seed, repeats, empty)
            return found, (corpus, found)
        texts, cluster = old
        known = encode_corpus(model, texts)
        return Centres.of(known, cluster).assign(vectors, repeats, empty), (texts, clusters_of(known, cluster))

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


def _entitle(
    groups: list[dict[str, Any]], corpus: Corpus, clusters: Clusters, endpoint: Endpoint, progress: Progress
) -> None:
    """Give groups the titles that a language model finds for their central texts."""
    from selfsent.search.titles import CENTRAL, group_titles

    central = [corpus.texts(clusters.typical(number, CENTRAL)) for number in range(len(groups))]
    titles = group_titles(central, [group["words"] for group in groups], endpoint, progress)
    for group, title in zip(groups, titles, strict=True):
        group["title"] = title
    if without := titles.count(""):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in endpoint.failed.most_common())
        notice(f"{counted(without, 'group')} without a title: {reasons or 'the answers hold none'}")


def _show(groups: list[dict[str, Any]], parents: list[dict[str, Any]], names: tuple[str, ...], unit: str) -> None:
    from selfsent.search.timeline import bars, span

    over = "over" in groups[0] if groups else False
    titled = any(group.get("title") for group in groups)
    above = [f"{each['parent']}: {each.get('title') or ', '.join(each['words'][:3])}" for each in parents]
    rows = []
    for group in sorted(groups, key=lambda group: group.get("parent", 0)):
        typical = "" if group["typical"] is None else line_of(group["typical"], names, repeated=False)
        row = [str(group["cluster"]), f"{group['size']:,}"]
        row += [above[group["parent"]]] if above else []
        row += [bars(list(group["over"].values()))] if over else []
        row += [group["title"]] if titled else []
        rows.append([*row, ", ".join(group["words"]), shortened(typical, TYPICAL)])
    headings = ["cluster", f"{unit}s"]
    headings += ["part of"] if above else []
    headings += [span(list(groups[0]["over"]))] if over else []
    headings += ["title"] if titled else []
    headings += ["telling words", f"most typical {unit}"]
    show(table_of(headings, rows, left=tuple(range(2, len(headings))), expand=True))
