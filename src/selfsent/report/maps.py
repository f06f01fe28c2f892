"""A map of a corpus: its sentences as dots on a plane, laid out by their vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.display import shortened
from selfsent.errors import SettingsError

MAX_POINTS = 10_000
"""Largest number of dots."""
SEARCHED = 20_000
"""Texts that the search box of a page finds, with and without a dot."""
FEW = 4
"""Minimum number of dots."""
LONGEST, GROUPS, SIDE = 300, 20, 1_000
"""Characters of a text, coloured groups, and the side of the plane."""
NONE = "no group"
_ITERATIONS, _PERPLEXITY, _ANGLE = 500, 15, 0.8


def check_points(count: int) -> None:
    """Check a number of dots.

    Raises:
        SettingsError: neither 0 nor between FEW and MAX_POINTS.
    """
    if count and not FEW <= count <= MAX_POINTS:
        raise SettingsError(
            f"map_points is {count}; it must be 0, or at least {FEW} and at most {MAX_POINTS:,} sentences"
        )


def sample(rows: NDArray[np.int64], count: int, seed: int = 0) -> NDArray[np.int64]:
    """A random sample of at most so many rows, in order."""
    if len(rows) <= count:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def lay_out(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """A layout in two dimensions: principal components, then t-SNE.

    van der Maaten, 2014, "Accelerating t-SNE using tree-based algorithms".

    Args:
        vectors: (n, d); rows may be equal.

    Returns:
        (n, 2), float32.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    kept = max(2, min(50, *vectors.shape))
    wide = np.pad(vectors, ((0, 0), (0, max(0, kept - vectors.shape[1]))))
    narrow = PCA(kept, random_state=0).fit_transform(wide + 1e-6 * np.random.default_rng(0).normal(size=wide.shape))
    start = narrow[:, :2] / max(float(narrow[:, :2].std()), 1e-12)
    shape = {"perplexity": min(_PERPLEXITY, (len(narrow) - 1) / 3), "angle": _ANGLE, "max_iter": _ITERATIONS}
    found = TSNE(2, init=1e-4 * start, random_state=0, **shape).fit_transform(narrow)
    return np.asarray(found - found.mean(0), np.float32)


def map_of(
    texts: Sequence[str],
    vectors: NDArray[np.float32],
    colours: Mapping[str, Sequence[str]],
    what: str,
    total: int,
    heads: Sequence[str] = (),
    sizes: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Any]:
    """A map of sentences, for the template.

    Args:
        texts: n sentences that the page searches.
        vectors: (m, d) of the first of them, at least FEW, which become dots.
        colours: groupings to colour the dots by: n names each, by title.
        what: noun for the sentences, as in `sentences`.
        total: number they were drawn from.
        heads: headings above each text, such as its id, and found by a search; nothing if empty.
        sizes: of the groups in all `total`, by title; by default those among the texts.
    """
    drawn = "" if len(vectors) == total else f" of {total:,}"
    searched = "all of them" if len(texts) == total else f"{len(texts):,} of them"
    return {
        "colours": list(colours),
        "caption": f"{len(vectors):,}{drawn} {what}"
        + (f", drawn at random; the search box finds {searched}" if drawn else ""),
        "data": {
            "texts": [shortened(text, LONGEST) for text in texts],
            "heads": list(heads),
            "places": _on_plane(lay_out(vectors)),
            "colours": [_grouping(names, (sizes or {}).get(title)) for title, names in colours.items()],
        },
    }


def names_of(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """The name of each cluster: its number, and its title or telling words."""
    about = [group.get("title") or ", ".join(group["words"][:3]) for group in groups]
    return [f"{number}: {own}" if own else str(number) for number, own in enumerate(about)]


def _on_plane(layout: NDArray[np.float32]) -> list[list[int]]:
    """Integer coordinates x and y from 0 to SIDE, on one scale."""
    low, span = layout.min(0), float(np.ptp(layout, axis=0).max()) or 1.0
    middle = (1 - np.ptp(layout, axis=0) / span) / 2
    return [axis.tolist() for axis in (((layout - low) / span + middle) * SIDE).round().astype(int).T]


def _grouping(names: Sequence[str], sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The groups, largest first, their sizes, and the group of each text; the smallest of too many are merged."""
    counts = Counter(names if sizes is None else sizes).most_common()
    kept = counts[: GROUPS - 1 if len(counts) > GROUPS else GROUPS]
    own, number = [name for name, _ in kept], {name: index for index, (name, _) in enumerate(kept)}
    merged = len(counts) > len(own)
    return {
        "groups": own + ["others"] * merged,
        "sizes": [size for _, size in kept] + [sum(size for _, size in counts[len(own) :])] * merged,
        "of": [number.get(name, len(own)) for name in names],
        "none": number.get(NONE, -1),
        "others": len(own) if merged else -1,
    }
