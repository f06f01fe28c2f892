"""The page of the clusters of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.batch import POSITIONS
from selfsent.display import counted, shortened
from selfsent.report.maps import FEW, GROUPS, NONE, SEARCHED, map_of, names_of, sample
from selfsent.report.pages import render
from selfsent.search.clusters import Clusters
from selfsent.search.timeline import bars, span

_LONGEST = 200
"""Characters of a typical text."""
_BLOCK = 1 << 16
"""Rows counted at once."""


def cluster_page(
    found: Clusters,
    groups: Sequence[Mapping[str, Any]],
    corpus: Corpus,
    vectors: NDArray[np.float32],
    about: Mapping[str, Any],
    points: int,
    parents: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The page: a map, then the clusters as a table.

    Args:
        found: the clusters.
        groups: of each `words`, `typical` (None without a text) and perhaps `title`, `parent`, and `over`, its texts by
            period.
        corpus: the texts.
        vectors: (n, d) of the texts.
        about: details by name, shown below.
        points: texts on the map; 0 for no map.
        parents: of each group of groups `size`, `words` and perhaps `title`.
    """
    drawn, inputs, unit = None, corpus.input_rows, corpus.report.unit
    dots = sample(np.arange(len(corpus)), points)
    if len(dots) >= FEW:
        rest = np.setdiff1d(np.arange(len(corpus)), dots, assume_unique=True)
        rows = np.concatenate([dots, sample(rest, max(0, SEARCHED - len(dots)))])
        names = [*names_of(groups), NONE]
        own = [names[number] for number in found.cluster[rows].tolist()]
        cells = inputs.describe(np.asarray(inputs.first[rows]))
        metadata = {name: values for name, values in cells.items() if name not in POSITIONS}
        # Colours to choose from: columns with few values, as labels have.
        few = {name: list(map(str, values)) for name, values in metadata.items() if 1 < len(set(values)) <= GROUPS}
        about_each = {**metadata, "group": own} if metadata else {"row": cells["row"], "group": own}
        heads = [
            " · ".join(f"{name} {value}" for name, value in zip(about_each, values, strict=True) if value is not None)
            for values in zip(*about_each.values(), strict=True)
        ]
        colours = {"group": own, **few}
        sizes = {"group": {**dict(zip(names, found.sizes.tolist(), strict=False)), NONE: found.outliers}}
        sizes["group"] = {name: size for name, size in sizes["group"].items() if size}
        if parents:
            above = [*names_of(parents), NONE]
            whose = [*(group["parent"] for group in groups), -1]
            colours = {"parent": [above[whose[number]] for number in found.cluster[rows].tolist()], **colours}
            sizes["parent"] = {**dict(zip(above, (parent["size"] for parent in parents), strict=False))}
            sizes["parent"] |= {NONE: found.outliers} if found.outliers else {}
        if few:
            sizes |= _sizes(corpus, list(few))
        if corpus.documents is not None and 1 < len(np.unique(corpus.documents[rows])) <= GROUPS:
            colours["document"] = [f"document {number + 1}" for number in corpus.documents[rows].tolist()]
        drawn = map_of(corpus.texts(rows), vectors[dots], colours, f"{unit}s", len(corpus), heads, sizes)
    over = [list(group["over"].values()) for group in groups if "over" in group]
    return render(
        "clusters.html",
        headline=f"{counted(len(groups), 'group')} of {counted(len(corpus), unit)}",
        unit=unit,
        map=drawn,
        over=span(list(groups[0]["over"])) if over else "",
        outliers=counted(found.outliers, unit) if found.outliers else "",
        parents=bool(parents),
        titled=any(group.get("title") for group in groups),
        groups=[
            {
                "number": number,
                "size": f"{size:,}",
                "title": groups[number].get("title", ""),
                "parent": names_of(parents)[groups[number]["parent"]] if parents else "",
                "words": ", ".join(groups[number]["words"]),
                "typical": shortened((groups[number]["typical"] or {}).get("text", ""), _LONGEST),
                "over": bars(over[number]) if over else "",
            }
            for number, size in enumerate(found.sizes.tolist())
        ],
        about=about.items(),
    )


def _sizes(corpus: Corpus, columns: Sequence[str]) -> dict[str, dict[str, int]]:
    """Rows of the input with each value of columns."""
    inputs, counts = corpus.input_rows, {name: Counter[str]() for name in columns}
    rows = np.flatnonzero(inputs.corpus_rows >= 0)
    for start in range(0, len(rows), _BLOCK):
        cells = inputs.describe(rows[start : start + _BLOCK])
        for name, count in counts.items():
            count.update(map(str, cells[name]))
    return {name: dict(count) for name, count in counts.items()}
