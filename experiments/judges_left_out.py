"""Two label-free scores that are no judges: made paraphrases find their sentences, and clusters agree with documents.

    python experiments/judges_left_out.py --text DIR --model minilm=DIR --output judges_left_out.json

Both are computed for encoders whose order is known, beside `robust` and `document`, which ask for the same. WordNet
(Debian's wordnet-base) and Apertium (apertium-eng-spa) make the paraphrases. banking77.txt and tweets.txt hold the
texts of domain/banking77/train.parquet and of kwang2049/useb/data-train/twitter/unsupervised/train.parquet, one to a
line. What is done already is not done again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from grid import finished, keep
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score

from selfsent import read_corpus
from selfsent.augment.augmenter import Augmenter, Sentences
from selfsent.augment.synonym import Synonym
from selfsent.augment.translate import Translate
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.judges import Held, make_judges
from selfsent.evaluation.tasks.partners import PartnerTask

SINGLE = ("banking77.txt", "tweets.txt")
DOCUMENTS = ("forum-newsgroups.txt.zst", "forum-counsel.txt.zst", "news-bbc.txt.zst")
MAKERS: tuple[Augmenter, ...] = (
    Synonym(),
    Synonym(ratio=1.0),
    Synonym(ratio=1.0, sense="random"),
    Translate(engine="apertium", pivot="spa"),
)
SENTENCES = {"paraphrases": 700, "clusters": 1000}
SEEDS = range(3)


def paraphrases(path: Path, encoders: dict[str, Any]) -> dict[str, Any]:
    """MRR@10 of sentences that are looked for by what each maker makes of them, and by damage."""
    corpus = read_corpus(path)
    rows = np.sort(np.random.default_rng(0).permutation(len(corpus))[: SENTENCES["paraphrases"]])
    texts = corpus.texts(rows)
    tasks, _ = make_judges(Held(corpus, rows), ["robust"])
    for maker in MAKERS:
        with maker.start() as change:
            made = change(Sentences(texts, np.arange(len(texts))), 0)
        answers = np.array(
            [row if one != other else -1 for row, (one, other) in enumerate(zip(made, texts, strict=True))]
        )
        asked, goals = [(text,) for text in made], [(text,) for text in texts]
        near = tasks["robust"].near_asked, tasks["robust"].near
        tasks[maker.spec] = PartnerTask("again", asked, goals, answers, rows, candidates=None, near=near)
    return {
        name: {title: round(task.score(one).score, 2) for title, one in encoders.items()}
        for name, task in tasks.items()
    }


def clusters(path: Path, encoders: dict[str, Any]) -> dict[str, Any]:
    """Adjusted mutual information of k-means' clusters and documents, over seeds, beside `document`."""
    corpus = read_corpus(path)
    held = Held(corpus, HoldOut.of(corpus, dev=True, notice=print).dev, SENTENCES["clusters"])
    judge = make_judges(held, ["document"])[0]["document"]
    found: dict[str, Any] = {"documents": int(held.document.max()) + 1}
    for title, encoder in encoders.items():
        vectors = np.asarray(encoder(held.texts))
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        drawn = [KMeans(found["documents"], random_state=seed).fit_predict(vectors) for seed in SEEDS]
        agreement = [round(100 * float(adjusted_mutual_info_score(held.document, each)), 2) for each in drawn]
        found[title] = {"document": round(judge.score(encoder).score, 2), "clusters": agreement}
    return found


def main() -> None:
    """Score what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True, metavar="DIR", help="where the text is")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=DIR", help="another encoder")
    options = parser.parse_args()
    given = dict(each.split("=", 1) for each in options.model)
    encoders = {name: as_encoder(given.get(name, name)) for name in ("bundled-raw", "bundled", *given)}
    words = {"tfidf": as_encoder("tfidf")}  # has no vectors to put into groups
    for names, measured, scored in ((SINGLE, paraphrases, encoders | words), (DOCUMENTS, clusters, encoders)):
        for name in names:
            if name not in finished(options.output):
                keep(options.output, Path(__file__).name, name, measured(options.text / name, scored))
                print(name, finished(options.output)[name], flush=True)


if __name__ == "__main__":
    main()
