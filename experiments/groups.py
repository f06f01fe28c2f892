"""Groups of labelled texts: how many are found, how well they fit the labels, and how well their words go together.

Ours beside BERTopic, where that is installed, on the same vectors; HDBSCAN on principal components; and k-means with
as many groups as labels. Words by their NPMI over the texts (Bouma, 2009; ten words of a group, pairs in one text).

    python experiments/groups.py --data DIR --output docs/results/quality/groups.json

Also the quick choice of the penalty beside the nested one (`--labels`): accuracy and seconds of `evaluate --labels`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sklearn.cluster import HDBSCAN
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score, v_measure_score

from selfsent.data.vector_files import unit
from selfsent.evaluation.tasks.own import read_labels
from selfsent.evaluation.tasks.transfer import score_classification
from selfsent.scorers.load_scorer import load_scorer
from selfsent.search.clusters import Clusters, find_clusters, telling_words

SETS, WORDS = ("newsgroups", "bbc"), 10
Found = tuple[np.ndarray, list[list[str]]]


def npmi(groups: Sequence[Sequence[str]], texts: Sequence[str]) -> float:
    """The mean normalised pointwise mutual information of the pairs of words of each group."""
    vocabulary = sorted({word for words in groups for word in words})
    there = CountVectorizer(vocabulary=vocabulary, binary=True, token_pattern=r"(?u)\b\w\w+\b").fit_transform(texts)
    both, column = (there.T @ there).toarray() / len(texts), {word: place for place, word in enumerate(vocabulary)}
    found = []
    for words in groups:
        scores = []
        for one, other in combinations((column[word] for word in words), 2):
            joint = both[one, other]
            chance = both[one, one] * both[other, other]
            scores.append(-1.0 if not joint or not chance else np.log(joint / chance) / max(-np.log(joint), 1e-12))
        found += [float(np.mean(scores))] if scores else []
    return float(np.mean(found))


def ours(texts: list[str], vectors: np.ndarray, count: int | None) -> Found:
    """`selfsent cluster`."""
    found = find_clusters(vectors, count)
    return found.cluster, telling_words(texts, found, WORDS, "english")


def dense(texts: list[str], vectors: np.ndarray) -> Found:
    """HDBSCAN on ten principal components, named as ours."""
    narrow = unit(PCA(10, random_state=0).fit_transform(vectors))
    label = HDBSCAN(min_cluster_size=max(10, len(texts) // 100), min_samples=5, copy=True).fit_predict(narrow)
    return label, telling_words(texts, Clusters(label, np.ones(len(label), np.float32)), WORDS, "english")


def bertopic(texts: list[str], vectors: np.ndarray) -> Found:
    """BERTopic as it comes, with stop words out of its names, as its documentation advises."""
    from bertopic import BERTopic  # type: ignore[import-not-found,unused-ignore]
    from umap import UMAP  # type: ignore[import-not-found,unused-ignore]

    narrow = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0)
    model = BERTopic(umap_model=narrow, vectorizer_model=CountVectorizer(stop_words="english"))
    label = np.array(model.fit_transform(texts, vectors)[0])
    topics = sorted(set(label.tolist()) - {-1})
    return label, [[word for word, _ in model.get_topic(topic) if word][:WORDS] for topic in topics]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder `domain` of the mirror")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--labels", action="store_true", help="evaluate --labels, quick and nested, too")
    given = parser.parse_args()
    result: dict[str, Any] = json.loads(given.output.read_text()) if given.output.exists() else {}
    encoder = load_scorer("bundled")
    for name in SETS:
        table = pq.read_table(given.data / name / "test.parquet").to_pydict()
        texts, labels = (
            [" ".join(text.split()) for text in table["text"]],
            np.unique(table["label"], return_inverse=True)[1],
        )
        vectors = unit(np.asarray(encoder(texts), np.float32))
        ways: dict[str, Callable[[list[str], np.ndarray], Found]] = {
            "ours": partial(ours, count=None),
            "ours, as many as labels": partial(ours, count=int(labels.max()) + 1),
            "HDBSCAN on principal components": dense,
        }
        if find_spec("bertopic"):
            ways["BERTopic"] = bertopic
        for way, run in ways.items():
            since, spent = time.perf_counter(), time.process_time()
            label, words = run(texts, vectors)
            inside = label >= 0
            found = {
                "groups": int(label.max()) + 1,
                "labels": int(labels.max()) + 1,
                "outliers": float(np.mean(~inside)),
                "v_measure": 100 * v_measure_score(labels, label),
                "v_measure_inside": 100 * v_measure_score(labels[inside], label[inside]),
                "ari_inside": 100 * adjusted_rand_score(labels[inside], label[inside]),
                "npmi": npmi(words, texts),
                "seconds": time.perf_counter() - since,
                "cpu_seconds": time.process_time() - spent,
                "words": words[:5],
            }
            result.setdefault(name, {})[way] = found
            print(name, way, {key: value for key, value in found.items() if key != "words"}, flush=True)
        for protocol in ("quick", "nested") if given.labels else ():
            rows, spent = read_labels(given.data / name / "test.parquet"), time.process_time()
            score = score_classification(name, protocol, rows, scorer=encoder)
            found = {"accuracy": score.score, "cpu_seconds": time.process_time() - spent}
            result.setdefault(name, {})[f"labels, {protocol}"] = found
            print(name, protocol, found, flush=True)
        given.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
