"""A map of a corpus: its sentences as dots on a plane, near each other where their vectors are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.errors import SettingsError
from selfsent.search.clusters import Clusters, find_clusters, telling_words

POINTS, MOST = 1_000, 30_000
"""Dots of a map where nobody says how many, and at most."""
FEW = 4
"""Dots below which there is nothing to see."""
MANY = 3_000
"""Dots from which on PaCMAP lays them out, where it is installed."""
LONGEST, GROUPS, SIDE = 300, 20, 1_000
"""Characters of a text, groups that have a colour of their own, and the side of the plane."""
_ITERATIONS, _PERPLEXITY, _ANGLE = 500, 15, 0.8


def check_points(count: int) -> None:
    """Refuse a number of dots that no map has.

    Raises:
        SettingsError: it is neither 0 nor between FEW and MOST.
    """
    if count and not FEW <= count <= MOST:
        raise SettingsError(f"--map is {count}; it must be 0, or at least {FEW} and at most {MOST:,} sentences")


def slowness(count: int) -> str | None:
    """What the user should know of a map of so many dots: what would make it sooner; None where nothing would."""
    if count < MANY or find_spec("pacmap") is not None:
        return None
    return f"--map {count:,} takes minutes: pip install 'selfsent[map]' lays it out in seconds"


def sample(rows: NDArray[np.int64], count: int, seed: int = 0) -> NDArray[np.int64]:
    """So many of the rows at most, drawn at random, in order."""
    if len(rows) <= count:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def lay_out(
    vectors: NDArray[np.float32], beside: NDArray[np.float32] | None = None, seed: int = 0
) -> NDArray[np.float32]:
    """Two numbers for each row, near where rows are near: principal components, then t-SNE, or PaCMAP for many rows.

    van der Maaten, 2014, "Accelerating t-SNE using tree-based algorithms"; Wang, Huang, Rudin and Shaposhnik, 2021,
    arXiv:2012.04456.

    Args:
        vectors: (n, d); rows may be equal.
        beside: (n, 2) of the same rows, where the search begins, so that two maps can be read side by side.
        seed: of the noise that sets equal rows apart.

    Returns:
        (n, 2), float32.
    """
    from sklearn.decomposition import PCA

    kept = max(2, min(50, *vectors.shape))
    wide = np.pad(vectors, ((0, 0), (0, max(0, kept - vectors.shape[1]))))
    apart = wide + 1e-6 * np.random.default_rng(seed).normal(size=wide.shape)
    narrow = PCA(kept, random_state=seed).fit_transform(apart)
    start = narrow[:, :2] if beside is None else beside
    start = (start - start.mean(0)) / max(float(start.std()), 1e-12)
    found = _many(narrow, start, seed) if len(vectors) >= MANY and find_spec("pacmap") else _few(narrow, start, seed)
    found = np.asarray(found - found.mean(0), dtype=np.float32)
    if beside is None:
        return found
    left, _, right = np.linalg.svd(found.T @ start.astype(np.float32))  # turned and mirrored to fit what it is beside
    turned: NDArray[np.float32] = found @ left @ right
    return turned


def _many(vectors: NDArray[np.float32], start: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    from pacmap import PaCMAP

    found: NDArray[np.float32] = PaCMAP(random_state=seed).fit_transform(vectors.astype(np.float32), init=start)
    return found


def _few(vectors: NDArray[np.float32], start: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(vectors) - 1) / 3)
    kind = TSNE(2, init=1e-4 * start, perplexity=perplexity, angle=_ANGLE, max_iter=_ITERATIONS, random_state=seed)
    found: NDArray[np.float32] = kind.fit_transform(vectors)
    return found


def map_of(
    texts: Sequence[str],
    vectors: Mapping[str, NDArray[np.float32]],
    colours: Mapping[str, Sequence[str]],
    what: str,
    total: int,
) -> dict[str, Any] | None:
    """What the template draws of sentences; None of too few.

    Args:
        texts: n sentences.
        vectors: the (n, d) vectors of each map, by what it is called; the same sentences in each.
        colours: by what it is called, the n names of a grouping that the dots can be coloured by.
        what: what the sentences are, as in `sentences`.
        total: of how many these were drawn.
    """
    if len(texts) < FEW:
        return None
    layouts: dict[str, NDArray[np.float32]] = {}
    for name, each in vectors.items():
        layouts[name] = lay_out(each, next(iter(layouts.values()), None))
    return {
        "names": list(layouts),
        "colours": list(colours),
        "told": f"{len(texts):,} {what}"
        if len(texts) == total
        else f"{len(texts):,} of {total:,} {what}, drawn at random",
        "data": {
            "texts": [text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for text in texts],
            "places": [_on_plane(layout) for layout in layouts.values()],
            "colours": [_grouping(names) for names in colours.values()],
        },
    }


def colours_of(corpus: Corpus, rows: NDArray[np.int64]) -> dict[str, list[str]]:
    """By what the dots of these rows can be coloured: their labels, and their documents where these are few."""
    found = {}
    if corpus.labels is not None:
        names = corpus.label_names
        found["label"] = [names[label] if names else str(label) for label in corpus.labels[rows].tolist()]
    if corpus.documents is not None and 1 < len(np.unique(corpus.documents[rows])) <= GROUPS:
        found["document"] = [f"document {number + 1}" for number in corpus.documents[rows].tolist()]
    return found


def named(clusters: Clusters, words: Sequence[Sequence[str]]) -> list[str]:
    """The name of each row's group: its number and the words that tell it."""
    names = [f"{number}: {', '.join(own[:3])}" if own else str(number) for number, own in enumerate(words)]
    return [names[number] for number in clusters.cluster.tolist()]


def grouped_by_words(texts: Sequence[str], vectors: NDArray[np.float32], most: int = 10) -> list[str]:
    """A name for each sentence, by groups of k-means on its vector; every one a group of fifty on average."""
    count = min(most, max(2, len(texts) // 50))
    clusters = find_clusters(vectors, count)
    return named(clusters, telling_words(texts, clusters))


def _on_plane(layout: NDArray[np.float32]) -> list[list[int]]:
    """Whole numbers from 0 to SIDE, along x and along y; both on one scale."""
    low, span = layout.min(0), float(np.ptp(layout, axis=0).max()) or 1.0
    middle = (1 - np.ptp(layout, axis=0) / span) / 2
    placed = ((layout - low) / span + middle) * SIDE
    return [axis.tolist() for axis in placed.round().astype(int).T]


def _grouping(names: Sequence[str]) -> dict[str, Any]:
    """The groups, the largest first, and each dot's; the smallest of too many share one."""
    sizes = Counter(names).most_common()
    own = [name for name, _ in sizes[: GROUPS - 1 if len(sizes) > GROUPS else GROUPS]]
    number = {name: place for place, name in enumerate(own)}
    return {
        "groups": own + (["others"] if len(sizes) > len(own) else []),
        "of": [number.get(n, len(own)) for n in names],
    }
