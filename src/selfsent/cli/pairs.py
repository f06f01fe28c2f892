"""`selfsent pairs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from selfsent.cli.console import counting, notice, show
from selfsent.cli.outputs import write_outputs
from selfsent.cli.results import Searching, as_line, line_of
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.search import Pair
    from selfsent.search.index import Index


@dataclass(kw_only=True)
class Pairs(Searching):
    """Find the most similar pairs of texts in a corpus.

    Find the pairs of different texts that are most alike: by the cosine of their vectors and by the words that they
    share. All pairs are compared, unless --approximate or --index is given.
    """

    usage: ClassVar = "selfsent pairs MODEL CORPUS [options]\n       selfsent pairs --index DIR [options]"

    words: tuple[str, ...] = setting(
        (),
        "a directory, a hub id, or bundled; and a corpus, as for selfsent train",
        positional=True,
        nargs="*",
        metavar="MODEL CORPUS",
    )
    top: int = setting(100, "pairs at most", minimum=1)
    threshold: float = setting(-1.0, "smallest score that counts, as it is shown", minimum=-1, maximum=1)
    word_weight: float | None = setting(
        None,
        "a pair's score is (cosine + W x words) / (1 + W), where words is how many words both texts share, by"
        " TF-IDF; 0: the cosine alone (default: 0.5)",
        metavar="W",
    )
    approximate: bool = setting(
        False,
        "for millions of texts: compare only where neighbours are likely, and say what share of the pairs that"
        " finds (needs the extra `index`)",
    )

    def run(self) -> None:
        """Find them."""
        from selfsent.lexical import Analyzer
        from selfsent.lexical.weight import PAIR_WEIGHT, check_weight
        from selfsent.search.cells import require_index
        from selfsent.search.pairs import by_words, proposed
        from selfsent.search.tables import pair_columns, with_texts

        weight = PAIR_WEIGHT if self.word_weight is None else self.word_weight
        check_weight(weight)
        Analyzer(self.language)
        self.take_words()
        place: Corpus | Index
        if self.index is not None:
            place = self.open_index()
            if "text" not in place.columns:
                if self.word_weight or self.language:
                    raise SettingsError(f"{place.path} has no texts: leave out --word-weight and --language")
                weight = 0.0
            pairs, recall = self._in_index(place, *proposed(self.top, self.threshold, weight))
        else:
            if self.approximate:
                require_index()
            place, pairs, recall = self._in_corpus(*proposed(self.top, self.threshold, weight))
        measured = self.approximate or self.index is not None
        if measured:
            share = "unknown: no such pair has a text of the sample" if recall is None else f"{recall:.1%}"
            notice(f"share of the most similar pairs that the index finds, measured on a sample: {share}")
        if weight:
            pairs = by_words(pairs, place, self.top, self.threshold, weight, self.language)
        rows = list(with_texts(pairs, place, weight))
        about: dict[str, Any] = {**self.searched, "word_weight": weight, "pairs": rows}
        about |= {"recall": recall} if measured else {}
        self.write_rows(rows, pair_columns(place), len(pairs), "pair")
        if not write_outputs({self.json: lambda: as_line(about)}) and not self.output:
            names = self.shown_columns(place)
            for row in rows:
                show(f"{row['score']:.3f}  {line_of(row, names, '1')}\n       {line_of(row, names, '2')}")
        if not pairs:
            notice(f"no pair has a score of {self.threshold} or more")

    def _in_corpus(self, count: int, least: float) -> tuple[Corpus, list[Pair], float | None]:
        """The pairs by cosine, and what share of them an approximate answer finds."""
        from selfsent.search import encode_corpus
        from selfsent.search.approximate import approximately_most_similar_pairs
        from selfsent.search.pairs import blocks, most_similar_pairs

        corpus, stored = self.read_with_vectors(self.corpus)
        model = self.load(str(self.model), corpus)
        with counting("reading vectors" if stored else "encoding") as done:
            vectors = encode_corpus(model, corpus, lambda count: done(count, len(corpus.input_rows)), stored)
        with counting("comparing") as compared:
            if not self.approximate:
                total = blocks(len(vectors))
                return corpus, most_similar_pairs(vectors, count, least, lambda n: compared(n, total)), None
            return corpus, *approximately_most_similar_pairs(
                vectors, self.top, least, advance=lambda n: compared(n, len(vectors)), proposed=count
            )

    def _in_index(self, index: Index, count: int, least: float) -> tuple[list[Pair], float | None]:
        """The pairs of an index by cosine, and what share of them it finds."""
        from selfsent.search.approximate import pairs_in_cells

        with counting("comparing") as compared:
            return pairs_in_cells(
                index.cells, self.top, least, advance=lambda n: compared(n, len(index)), proposed=count
            )
