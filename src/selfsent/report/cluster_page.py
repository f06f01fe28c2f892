"""The page of the clusters of a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.report.maps import FEW, colours_of, map_of, named, sample
from selfsent.report.pages import render
from selfsent.search.clusters import Clusters


def cluster_page(
    found: Clusters,
    words: Sequence[Sequence[str]],
    corpus: Corpus,
    vectors: NDArray[np.float32],
    about: Mapping[str, Any],
    points: int,
) -> str:
    """The page: a map, then the clusters as a table.

    Args:
        found: the clusters.
        words: telling words of each.
        corpus: the sentences.
        vectors: (n, d) of the sentences.
        about: details by name, shown below.
        points: sentences on the map; 0 for no map.
    """
    drawn = None
    rows = sample(np.arange(len(corpus)), points)
    if len(rows) >= FEW:
        groups = named(found, words)
        colours = {"group": [groups[row] for row in rows.tolist()], **colours_of(corpus, rows)}
        drawn = map_of(corpus.texts(rows), {"": vectors[rows]}, colours, "sentences", len(corpus))
    sizes = found.sizes.tolist()
    typical = corpus.texts(np.array([found.typical(number)[0] for number in range(len(sizes))]))
    return render(
        "clusters.html",
        headline=f"{len(sizes)} groups of {len(corpus):,} sentences",
        map=drawn,
        groups=[(n, f"{size:,}", ", ".join(words[n]), typical[n]) for n, size in enumerate(sizes)],
        about=about.items(),
    )
