"""Groups beside BERTopic's and EVoC's, of the same vectors: agreement with labels, texts left out, names, seconds.

    python -m pip install bertopic evoc
    python benchmarks/groups.py --data DATA

V-measure (Rosenberg and Hirschberg, 2007) counts texts in no group as one group more, for all alike. Names are judged
by the mean NPMI (Bouma, 2009) of two of a group's first five words in a text. Seconds are those of the processor,
naming included and encoding not; a first call of either library, which compiles, does not count.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.metrics import v_measure_score

from selfsent.cli.console import show
from selfsent.data.vector_files import unit
from selfsent.display import table_of
from selfsent.files import write_json
from selfsent.lexical import words_of
from selfsent.models.opening import open_encoder
from selfsent.search import find_clusters
from selfsent.search.clusters import telling_words, without_content

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "speed" / "groups.json"
SETS = {"newsgroups": "domain/newsgroups/test.parquet", "bbc": "domain/bbc/test.parquet"}
WORDS = 5
Found = tuple[NDArray[np.int64], list[list[str]]]


def ours(texts: Sequence[str], vectors: NDArray[np.float32]) -> Found:
    """Groups and names as `selfsent cluster` has them."""
    found = find_clusters(vectors, empty=without_content(texts, "english"))
    return found.cluster, telling_words(texts, found, WORDS, "english")


def bertopic(texts: Sequence[str], vectors: NDArray[np.float32]) -> Found:
    """BERTopic as it comes, with English stop words left out of the names, as its documentation advises."""
    from bertopic import BERTopic
    from sklearn.feature_extraction.text import CountVectorizer

    model = BERTopic(vectorizer_model=CountVectorizer(stop_words="english"), embedding_model=None)
    topics, _ = model.fit_transform(list(texts), vectors)
    names = [[word for word, _ in model.get_topic(topic)[:WORDS]] for topic in sorted({*topics} - {-1})]
    return np.array(topics), names


def evoc(texts: Sequence[str], vectors: NDArray[np.float32]) -> Found:
    """EVoC as it comes; its groups are named as ours are, since it names none."""
    from evoc import EVoC

    from selfsent.search import Clusters

    label = np.asarray(EVoC(random_state=0).fit_predict(vectors))
    found = Clusters(label, np.ones(len(label), np.float32), count=int(label.max()) + 1)
    return label, telling_words(texts, found, WORDS, "english")


def coherence(names: Sequence[Sequence[str]], texts: Sequence[str]) -> float:
    """Mean NPMI of two words of a name in a text, from -1 to 1."""
    holding: dict[str, set[int]] = {}
    for row, text in enumerate(texts):
        for word in set(words_of(text)):
            holding.setdefault(word, set()).add(row)
    values = []
    for name in names:
        for first, second in combinations(name, 2):
            one, two = holding.get(first, set()), holding.get(second, set())
            both = len(one & two) / len(texts)
            expected = len(one) * len(two) / len(texts) ** 2
            values.append(-1.0 if not both else 1.0 if both == 1 else np.log(both / expected) / -np.log(both))
    return float(np.mean(values)) if values else float("nan")


def main() -> None:
    """Run all on the same vectors, and write figures and a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SELFSENT_DATA"), help="mirror of the data sets")
    parser.add_argument("--model", default="bundled", help="the encoder")
    parser.add_argument("--only", default="selfsent,bertopic,evoc", help="what to run")
    options = parser.parse_args()
    known: dict[str, Callable[..., Found]] = {"selfsent": ours, "bertopic": bertopic, "evoc": evoc}
    encoder, rows = open_encoder(options.model), list[dict[str, Any]]()
    for name, place in SETS.items():
        table = pq.read_table(Path(options.data) / place).to_pydict()
        texts, labels = table["text"], table["label"]
        vectors = unit(np.asarray(encoder.vectors(texts), np.float32))
        for tool in options.only.split(","):
            if tool != "selfsent":
                known[tool](texts[:500], vectors[:500])  # compiles
            start = time.process_time()
            cluster, names = known[tool](texts, vectors)
            seconds = time.process_time() - start
            row = {"set": name, "tool": tool, "groups": len({*cluster.tolist()} - {-1})}
            row |= {"v_measure": 100 * v_measure_score(labels, cluster), "left_out": 100 * float((cluster < 0).mean())}
            rows.append(row | {"npmi": coherence(names, texts), "seconds": seconds})
            print(rows[-1], names[:3], flush=True)
    write_json(RESULTS, {"model": options.model, "rows": rows})
    heads = ["set", "tool", "groups", "V-measure", "left out, %", "NPMI of names", "seconds"]
    cells = [[str(each) if not isinstance(each, float) else f"{each:.2f}" for each in row.values()] for row in rows]
    show(table_of(heads, cells))


if __name__ == "__main__":
    main()
