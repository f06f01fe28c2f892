"""How to add BM25 to a cosine, and how much of it: scales and weights on judged answers, from several bases.

    python experiments/hybrid.py --output docs/results/quality/hybrid.json --base minilm=DIR [--tests]
    python experiments/hybrid.py --output docs/results/quality/hybrid.json --table

Chosen on the train and dev queries of counsel and scitldr together: of the weights whose gain over the base's own
cosine excludes zero on both sets, and that are not behind BM25 by more than the interval, the one with the largest mean
gain; where gains differ by less than half a point, the smallest. `--tests` scores every split with the weights that the
product has. Cosines are kept in `runs/hybrid`; rows that are there are not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from selfsent.evaluation.encoders import as_encoder
from selfsent.files import read_json, write_json
from selfsent.lexical import BM25, Analyzer, language_of
from selfsent.lexical.weight import SEARCH_WEIGHT

CHOSEN_BY = ("counsel", "scitldr")
SPLITS = {**dict.fromkeys(CHOSEN_BY, ("train", "dev", "test")), "cranfield": ("test",), "cisi": ("test",)}
WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
SHARES = (0.1, 0.2, 0.3, 0.5, 0.7)
LANGUAGES = ("ar", "de", "es", "fr", "tr")
LISTED, CONSTANT = 100, 60
RESAMPLES = 2000
Matrix = np.ndarray


def read(data: Path, name: str) -> tuple[list[str], list[str], dict[str, dict[int, dict[int, float]]]]:
    """Documents, queries, and for each split the grades of the documents of each query."""
    corpus = pq.read_table(data / name / "corpus.parquet").to_pylist()
    asked = pq.read_table(data / name / "queries.parquet").to_pylist()
    documents = {row["id"]: place for place, row in enumerate(corpus)}
    queries = {row["id"]: place for place, row in enumerate(asked)}
    judged: dict[str, dict[int, dict[int, float]]] = {}
    for split in SPLITS[name]:
        for row in pq.read_table(data / name / "qrels" / f"{split}.parquet").to_pylist():
            found = judged.setdefault(split, {}).setdefault(queries[row["query"]], {})
            found[documents[row["document"]]] = row["grade"]
    return [f"{row['title']} {row['text']}".strip() for row in corpus], [row["text"] for row in asked], judged


def known_items(data: Path, language: str) -> dict[str, tuple[list[str], list[str]]]:
    """Texts and queries by kind, the answer of each query in its own place.

    A translation finds its other half, among a thousand; in one language a sentence finds one that people judged to
    mean the same.
    """
    rows = pq.read_table(data / "parallel" / f"en-{language}" / "tatoeba_test.parquet").to_pydict()
    found = {f"en to {language}": (rows[language], rows["en"]), f"{language} to en": (rows["en"], rows[language])}
    for place in (data / "PhilipMay/stsb_multi_mt" / language, data / "Huertas97/mSTSb" / language):
        if (place / "test.parquet").is_file():
            pairs = pq.read_table(place / "test.parquet").to_pylist()
            names = [name for name, value in pairs[0].items() if isinstance(value, str)]
            scores = next(name for name, value in pairs[0].items() if isinstance(value, float))
            most = max(row[scores] for row in pairs)
            same = {row[names[0]]: row[names[1]] for row in pairs if row[scores] >= 0.8 * most}
            same = {left: right for left, right in same.items() if left != right}
            found[f"{language} to {language}"] = (list(same.values()), list(same))
    return found


def cosines(base: str, model: str, name: str, documents: list[str], queries: list[str]) -> Matrix:
    """(queries, documents), computed once."""
    path = Path("runs/hybrid") / f"{base}-{name}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        left, right = as_encoder(model).sides(queries, documents)
        np.save(path, left @ right.T)
    return np.load(path)


def bm25(documents: list[str], queries: list[str]) -> Matrix:
    """BM25 as a share of what a query can reach, (queries, documents)."""
    found = BM25(queries, Analyzer(language_of(documents)))
    found.add(documents)
    return np.asarray((found.queries @ found.texts.T).toarray())


def ndcg(scores: Matrix, grades: dict[int, dict[int, float]]) -> np.ndarray:
    """nDCG@10 x 100 of each query."""
    discount, found = 1 / np.log2(np.arange(2, 12)), []
    for query, judged in grades.items():
        best = np.argsort(-scores[query], kind="stable")[:10]
        ideal = sorted(judged.values(), reverse=True)[:10]
        gained = sum(judged.get(int(place), 0) * by for place, by in zip(best, discount, strict=False))
        found.append(100 * gained / sum(np.array(ideal) * discount[: len(ideal)]))
    return np.array(found)


def interval(gains: np.ndarray) -> list[float]:
    """The mean and its 95 % interval, by the bootstrap over queries."""
    drawn = np.random.default_rng(0).integers(0, len(gains), (RESAMPLES, len(gains)))
    low, high = np.percentile(gains[drawn].mean(1), [2.5, 97.5])
    return [round(float(value), 3) for value in (gains.mean(), low, high)]


def rank(scores: Matrix) -> Matrix:
    """The rank of each document, from 0."""
    return (-scores).argsort(1, kind="stable").argsort(1)


def fused(cosine: Matrix, words: Matrix, scale: str, weight: float) -> Matrix:
    """The scores of one way to put the two together."""
    if scale == "bound":
        return cosine + weight * words
    largest = words / (words.max(1, keepdims=True) + 1e-9)
    if scale == "largest":
        return cosine + weight * largest
    if scale == "tm2c2":  # Bruch et al., 2023: from the least that is possible to the largest that was found
        return (1 - weight) * (cosine + 1) / (cosine.max(1, keepdims=True) + 1) + weight * largest
    if scale == "rank fusion":
        return (1 - weight) / (CONSTANT + rank(cosine)) + weight / (CONSTANT + rank(words))
    return (1 - weight) * _distribution(cosine) + weight * _distribution(words)


def _distribution(scores: Matrix) -> Matrix:
    """Distribution-based scores: three deviations around the mean of the first hundred become 0 to 1."""
    listed = -np.sort(-scores, axis=1)[:, :LISTED]
    mean, spread = listed.mean(1, keepdims=True), listed.std(1, keepdims=True) + 1e-9
    return np.where(scores >= listed[:, -1:], np.clip((scores - mean) / (6 * spread) + 0.5, 0, 1), 0)


SCALES = {"bound": WEIGHTS, "largest": SHARES, "tm2c2": SHARES, "dbsf": SHARES, "rank fusion": SHARES}


def product_row(
    words: Matrix, cosine: Matrix, weight: float, grades: dict[int, dict[int, float]]
) -> dict[str, float | list[float]]:
    """BM25, the cosine and both with the weight that the product has, and the gain over either."""
    lexical, alone, both = (ndcg(each, grades) for each in (words, cosine, cosine + weight * words))
    means = (round(float(part.mean()), 3) for part in (lexical, alone, both))
    return {
        **dict(zip(("bm25", "cosine", "both"), means, strict=True)),
        "weight": weight,
        "n": len(grades),
        "gain": interval(both - alone),
        "over_bm25": interval(both - lexical),
    }


def chosen(rows: dict[str, Any], base: str, scale: str) -> float | None:
    """The weight by the rule above; None where no weight meets it."""
    mean = {}
    for weight in SCALES[scale]:
        gains, over = (
            [rows[f"{name} | {base}"][what][scale][f"{weight:g}"] for name in CHOSEN_BY]
            for what in ("gains", "over_bm25")
        )
        if all(low > 0 for _, low, _ in gains) and all(high > 0 for _, _, high in over):
            mean[weight] = float(np.mean([gain for gain, _, _ in gains]))
    return min((weight for weight, gain in mean.items() if gain > max(mean.values()) - 0.5), default=None)


def table(rows: dict[str, Any], bases: list[str]) -> str:
    """All as Markdown."""
    lines = [
        "| base | scale | weight | counsel: gain | over BM25 | scitldr: gain | over BM25 |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    shown = "{:+.2f} ({:+.2f} to {:+.2f})".format
    for base in bases:
        for scale in SCALES:
            weight = chosen(rows, base, scale)
            cells = [base, scale, "none" if weight is None else f"{weight:g}"]
            for name in CHOSEN_BY if weight is not None else ():
                row = rows[f"{name} | {base}"]
                cells += [shown(*row["gains"][scale][f"{weight:g}"]), shown(*row["over_bm25"][scale][f"{weight:g}"])]
            lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| set, split | base | BM25 | cosine | both | gain | over BM25 |", "|---|---|--:|--:|--:|--:|--:|"]
    for key, row in rows.items():
        if "both" in row:
            cells = [*key.split(" | "), *(f"{row[what]:.2f}" for what in ("bm25", "cosine", "both"))]
            lines.append("| " + " | ".join([*cells, shown(*row["gain"]), shown(*row["over_bm25"])]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Score what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SELFSENT_DATA", ".")))
    parser.add_argument("--base", action="append", default=[], metavar="NAME=MODEL")
    parser.add_argument("--tests", action="store_true", help="score every split with the weights that the product has")
    parser.add_argument("--languages", action="store_true", help="known items in other languages, and across")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    bases = {"bundled": "bundled", "bundled-encoder": "bundled-encoder"} | dict(b.split("=", 1) for b in options.base)
    rows: dict[str, Any] = read_json(options.output).get("rows", {}) if options.output.exists() else {}
    if options.table:
        print(table(rows, sorted({key.split(" | ")[1] for key in rows})))
        return
    for language in LANGUAGES if options.languages else ():
        for kind, (documents, queries) in known_items(options.data, language).items():
            words, grades = bm25(documents, queries), {place: {place: 1.0} for place in range(len(queries))}
            for base, model in bases.items():
                cosine = cosines(base, model, kind.replace(" ", "-"), documents, queries)
                rows[f"{kind} | {base}"] = product_row(words, cosine, as_encoder(model).lexical_weight, grades)
            write_json(options.output, {"weights": SEARCH_WEIGHT, "rows": rows})
    for name in () if options.languages else SPLITS if options.tests else CHOSEN_BY:
        documents, queries, judged = read(options.data / "retrieval", name)
        words = bm25(documents, queries)
        for base, model in bases.items():
            cosine = cosines(base, model, name, documents, queries)
            if name in CHOSEN_BY and (key := f"{name} | {base}") not in rows:
                grades = judged["train"] | judged["dev"]
                alone, lexical = ndcg(cosine, grades), ndcg(words, grades)
                found = {
                    scale: {f"{weight:g}": ndcg(fused(cosine, words, scale, weight), grades) for weight in weights}
                    for scale, weights in SCALES.items()
                }
                rows[key] = {"n": len(alone), "cosine": round(alone.mean(), 3), "bm25": round(lexical.mean(), 3)}
                for what, other in (("gains", alone), ("over_bm25", lexical)):
                    rows[key][what] = {
                        scale: {weight: interval(each - other) for weight, each in by_weight.items()}
                        for scale, by_weight in found.items()
                    }
            for split, grades in judged.items() if options.tests else ():
                key = f"{name} {split} | {base}"
                rows[key] = product_row(words, cosine, as_encoder(model).lexical_weight, grades)
            write_json(options.output, {"weights": SEARCH_WEIGHT, "rows": rows})
    print(json.dumps(list(rows)))


if __name__ == "__main__":
    main()
