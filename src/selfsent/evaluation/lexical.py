"""TF-IDF, BM25 and counts in the place of an encoder: what counting words is worth, which every encoder must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from selfsent.data.vector_files import Vectors
from selfsent.errors import DataError
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.stats.resampling import Floats
from selfsent.lexical import BM25, Analyzer, language_of

LEXICAL = {"tfidf": "TF-IDF", "bm25": "BM25"}
"""Those that stand beside other scores: how they are named to commands, and how they are shown."""
COUNTING = {**LEXICAL, "counts": "Unigram counts"}
"""All of them."""


class LexicalEncoder(Encoder):
    """TF-IDF, BM25 (Robertson et al., 1994) or counts, fitted on the texts searched, or on both sides of the pairs.

    TF-IDF and counts are in scikit-learn's usual settings, no stop word left out, and the same in both directions. BM25
    is as in `search`: stop words out, stems, and a share of what the query can reach; the first text of a pair is the
    query.

    Args:
        kind: `tfidf`, `bm25` or `counts`.
        name: how it is called in results.
        language: whose stems BM25 compares; by default the one that the texts are in.

    Example:
        >>> LexicalEncoder("tfidf").similarity(["a red car"], ["the red car"]).round(2).tolist()
        [1.0]
    """

    def __init__(self, kind: str, name: str | None = None, language: str | None = None) -> None:
        super().__init__(self._no_vectors, name or kind, kind)
        self.kind, self.has_vectors, self.language = kind, False, language

    def sides(self, queries: Sequence[str], texts: Sequence[str], search: bool = False) -> tuple[Any, Any]:
        """Sparse rows for queries and for texts, whose inner products are cosines, or scores of BM25."""
        from scipy.sparse import csr_matrix
        from sklearn.feature_extraction.text import TfidfVectorizer

        if self.kind == "bm25":
            bm25 = BM25(queries, Analyzer(self.language or language_of(texts)))
            bm25.add(texts)
            return bm25.queries, bm25.texts
        maker = TfidfVectorizer(dtype=np.float32, use_idf=self.kind == "tfidf")  # counts, too, of length one
        try:
            fitted = maker.fit_transform(texts)
        except ValueError:  # the texts hold no words
            return csr_matrix((len(queries), 1), dtype=np.float32), csr_matrix((len(texts), 1), dtype=np.float32)
        return (fitted if list(queries) == list(texts) else maker.transform(queries)), fitted

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        """The cosine, or the score of BM25, of each pair of texts, (n,); fitted on the texts of both sides."""
        texts = list(dict.fromkeys([*left, *right]))
        place = {text: number for number, text in enumerate(texts)}
        asked, weighed = self.sides(texts, texts)
        product = asked[[place[text] for text in left]].multiply(weighed[[place[text] for text in right]])
        return np.asarray(product.sum(axis=1), np.float64).ravel()

    @property
    def measure(self) -> str:
        """What `similarity` is, for the signature."""
        return "bm25" if self.kind == "bm25" else "cos"

    def _no_vectors(self, texts: Sequence[str]) -> Vectors:
        raise DataError(f"{COUNTING[self.kind]}: what counts words has no vectors, so this task cannot use it")
