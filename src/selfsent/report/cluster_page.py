"""The page of the clusters of a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.display import counted, shortened
from selfsent.report.maps import FEW, GROUPS, map_of, named, sample
from selfsent.report.pages import render
from selfsent.search.clusters import Clusters
from selfsent.search.timeline import bars, span

_LONGEST = 200
"""Characters of a typical text."""


def cluster_page(
    found: Clusters,
    groups: Sequence[Mapping[str, Any]],
    corpus: Corpus,
    vectors: NDArray[np.float32],
    about: Mapping[str, Any],
    points: int,
) -> str:
    """The page: a map, then the clusters as a table.

    Args:
        found: the clusters.
        groups: of each `words`, `typical` (None without a text) and perhaps `over`, its texts by period.
        corpus: the texts.
        vectors: (n, d) of the texts.
        about: details by name, shown below.
        points: texts on the map; 0 for no map.
    """
    drawn, inputs, unit = None, corpus.input_rows, corpus.report.unit
    rows = sample(np.arange(len(corpus)), points)
    if len(rows) >= FEW:
        names = named(found, [group["words"] for group in groups])
        own = [names[row] for row in rows.tolist()]
        cells = inputs.describe(np.asarray(inputs.first[rows]))
        metadata = {name: values for name, values in cells.items() if name not in ("row", "sentence")}
        # What a reader may colour by: columns with few values, as labels have.
        few = {name: list(map(str, values)) for name, values in metadata.items() if 1 < len(set(values)) <= GROUPS}
        about_each = {**metadata, "group": own} if metadata else {"row": cells["row"], "group": own}
        heads = [
            " · ".join(f"{name} {value}" for name, value in zip(about_each, values, strict=True) if value is not None)
            for values in zip(*about_each.values(), strict=True)
        ]
        colours = {"group": own, **few}
        if corpus.documents is not None and 1 < len(np.unique(corpus.documents[rows])) <= GROUPS:
            colours["document"] = [f"document {number + 1}" for number in corpus.documents[rows].tolist()]
        drawn = map_of(corpus.texts(rows), vectors[rows], colours, f"{unit}s", len(corpus), heads)
    over = [list(group["over"].values()) for group in groups if "over" in group]
    return render(
        "clusters.html",
        headline=f"{counted(len(groups), 'group')} of {counted(len(corpus), unit)}",
        unit=unit,
        map=drawn,
        over=span(list(groups[0]["over"])) if over else "",
        outliers=counted(found.outliers, unit) if found.outliers else "",
        groups=[
            {
                "number": number,
                "size": f"{size:,}",
                "words": ", ".join(groups[number]["words"]),
                "typical": shortened((groups[number]["typical"] or {}).get("text", ""), _LONGEST),
                "over": bars(over[number]) if over else "",
            }
            for number, size in enumerate(found.sizes.tolist())
        ],
        about=about.items(),
    )
