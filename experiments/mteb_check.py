"""Does mteb's own runner, on data at hand, give the figures that selfsent gives? It needs selfsent[mteb].

    python experiments/mteb_check.py bundled bundled-encoder bundled-raw --output docs/results/quality/mteb_check.json

STS-B, Banking77 (classification), 20 Newsgroups (clustering) and counsel answers (retrieval) become tasks of mteb that
read the local mirror, and mteb runs them on the SentenceTransformer. Beside it stand the scores of
`selfsent evaluate` for STS-B and of experiments/domain.py for retrieval; the classifier and the clusters of mteb are
repeated by hand, with scikit-learn on vectors that never went through mteb.
"""

from __future__ import annotations

import argparse
import os
import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pyarrow.parquet as pq
from datasets import Dataset, DatasetDict
from domain import domain_rows, score_domain
from mteb.abstasks.classification import AbsTaskClassification
from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import v_measure_score

from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.suites import TASKS
from selfsent.files import write_json
from selfsent.models.bases import resolve
from selfsent.models.saved import load_sentence_transformer
from selfsent.scorers.load_scorer import load_scorer
from selfsent.scorers.scorer import Scorer

ROOT = Path(os.environ.get("SELFSENT_DATA", ""))
SEED = 42
"""mteb's."""


def about(name: str, kind: str, score: str) -> TaskMetadata:
    """What mteb wants to know of a task."""
    told = {"name": name, "type": kind, "main_score": score, "description": f"{name}, from a local mirror"}
    given = {"path": "local", "revision": "1"}
    return TaskMetadata(
        dataset=given, eval_splits=["test"], eval_langs=["eng-Latn"], modalities=["text"], category="t2t", **told
    )


class Sts(AbsTaskSTS):
    """STS-B test."""

    metadata = about("LocalSTSB", "STS", "cosine_spearman")
    min_score, max_score = 0, 5

    def load_data(self, **_: Any) -> None:
        """Read the local file."""
        rows = pq.read_table(ROOT / "mteb/stsbenchmark-sts/test.parquet").select(["sentence1", "sentence2", "score"])
        self.dataset, self.data_loaded = DatasetDict(test=Dataset(rows)), True


class Classification(AbsTaskClassification):
    """Banking77, by all of its training split."""

    metadata = about("LocalBanking77", "Classification", "accuracy")
    samples_per_label, n_experiments = 1_000_000, 1

    def load_data(self, **_: Any) -> None:
        """Read the local files."""
        splits = {name: pq.read_table(ROOT / f"domain/banking77/{name}.parquet") for name in ("train", "test")}
        self.dataset = DatasetDict({name: Dataset(rows.select(["text", "label"])) for name, rows in splits.items()})
        self.data_loaded = True


class Clustering(AbsTaskClusteringLegacy):
    """20 Newsgroups, the half that is for tests."""

    metadata = about("LocalNewsgroups", "Clustering", "v_measure")

    def load_data(self, **_: Any) -> None:
        """Read the local file."""
        rows = domain_rows("newsgroups-test", None)
        self.dataset = DatasetDict(test=Dataset.from_dict({"sentences": [rows["text"]], "labels": [rows["label"]]}))
        self.data_loaded = True


class Retrieval(AbsTaskRetrieval):
    """The counsellor's answer to a question."""

    metadata = about("LocalCounsel", "Retrieval", "mrr_at_10")

    def load_data(self, **_: Any) -> None:
        """Read the local file."""
        rows = domain_rows("counsel-answers", None)
        numbers = [str(number) for number in range(len(rows["query"]))]
        self.queries = {"test": dict(zip(numbers, rows["query"], strict=True))}
        self.corpus = {"test": dict(zip(numbers, rows["text"], strict=True))}
        self.relevant_docs = {"test": {number: {number: 1} for number in numbers}}
        self.data_loaded = True


def classified(encoder: Scorer) -> float:
    """The accuracy of mteb's classifier on Banking77, by hand: it shuffles the texts, then takes all of them."""
    train, test = (pq.read_table(ROOT / f"domain/banking77/{name}.parquet").to_pydict() for name in ("train", "test"))
    order = list(range(len(train["text"])))
    random.Random(SEED).shuffle(order)
    texts, labels = ([train[name][row] for row in order] for name in ("text", "label"))
    model = LogisticRegression(max_iter=100, random_state=SEED).fit(encoder(texts), labels)
    return 100 * float(np.mean(model.predict(encoder(test["text"])) == np.array(test["label"])))


def clustered(encoder: Scorer) -> float:
    """The V-measure of mteb's clusters on 20 Newsgroups, by hand."""
    rows = domain_rows("newsgroups-test", None)
    means = MiniBatchKMeans(len(Counter(rows["label"])), batch_size=500, n_init="auto", random_state=SEED)
    return 100 * float(v_measure_score(rows["label"], means.fit(encoder(rows["text"])).labels_))


def main() -> None:
    """Score every model both ways."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="+")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for name in options.model:
        model, encoder = load_sentence_transformer(resolve(name)), load_scorer(name)
        theirs = {}
        for task in (Sts(), Classification(), Clustering(), Retrieval()):
            result = mteb.evaluate(model, task, cache=None)
            theirs[task.metadata.name] = 100 * result.task_results[0].get_score()
        ours = {
            "LocalSTSB": TASKS["stsb"](encoder, Store(None)).score,
            "LocalBanking77": classified(encoder),
            "LocalNewsgroups": clustered(encoder),
            "LocalCounsel": score_domain("counsel-answers", encoder, None)[0],
        }
        found[name] = {task: [round(float(score), 3) for score in (theirs[task], ours[task])] for task in ours}
        print(name, found[name], flush=True)
        write_json(options.output, {"mteb": mteb.__version__, "columns": ["mteb", "selfsent"], "models": found})


if __name__ == "__main__":
    main()
