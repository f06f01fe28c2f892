"""Students in their teacher's space: small encoders whose queries search documents that the teacher encoded.

    python experiments/asymmetric.py --teacher DIR --text TEXT --output docs/results/quality/asymmetric.json

TEXT is the folder of plain English sources that the log names; none of those read here holds a text of the sets that
are searched, those of `retrieval/` in the data mirror, read as `exam.py` does: of scitldr a sample of 1,200 documents.
Every way of `WAYS` learns the teacher's vectors of the same texts. Scores are nDCG@10 x 100, by the cosine and words,
of queries and documents by the student and itself, by the student and the teacher, and by the teacher and itself. Dev
queries of counsel and scitldr choose way and weight; tests are scored once. What is there is not computed again.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import time
import warnings
from pathlib import Path
from typing import Any

import zstandard
from search_training import keep, kept

from exam import SETS, Store, ndcg, read
from selfsent import read_corpus, train
from selfsent.lexical import BM25, Analyzer
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder

SOURCES = {
    "wikipedia": 30_000,
    "wikipedia-recent": 6_000,
    "medical-medquad": 12_000,
    "short-sentences": 8_000,
    "dialogue": 6_000,
    "nltk-mix": 6_000,
    "tech-docs": 6_000,
    "novels-eltec": 3_000,
    "law-dc-code": 3_000,
}
"""Sources of text, and how many texts are taken of each."""
PASSAGES, LONGEST_PASSAGE, LONGEST = 0.25, 4, 128
"""Share of passages, most sentences of one, and tokens that are read."""
WAYS: dict[str, dict[str, Any]] = {
    "table, cosine": {"base": "bundled", "objective": "cosine", "epochs": 5},
    "table, contrast": {"base": "bundled", "objective": "contrast", "epochs": 5},
    "encoder, map alone": {"base": "bundled-encoder", "sentences": 8_000, "steps": 1, "learning_rate": 1e-9},
    "encoder, cosine": {"base": "bundled-encoder", "objective": "cosine", "sentences": 40_000, "batch_size": 128},
    "encoder, contrast": {"base": "bundled-encoder", "objective": "contrast", "sentences": 40_000, "batch_size": 128},
}
WEIGHTS = (0.5, 1.0, 1.5)
"""Of the words: that of transformers, of tables, and between."""


def texts(folder: Path) -> list[str]:
    """The training texts: sentences, and passages of two to four, drawn from the sources."""
    draw, found = random.Random(0), dict[str, None]()
    for source, wanted in SOURCES.items():
        with (folder / f"{source}.txt.zst").open("rb") as raw:
            lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(raw), encoding="utf-8").read()
        pieces = list[str]()
        for document in lines.split("\n\n"):
            left = document.split("\n")
            while left := list(filter(None, left)):
                size = draw.randint(2, LONGEST_PASSAGE) if draw.random() < PASSAGES else 1
                pieces.append(" ".join(left[:size]))
                left = left[size:]
        found |= dict.fromkeys(draw.sample(pieces, wanted))
    return draw.sample(list(found), len(found))


def student_of(way: str, teacher: str, folder: Path, runs: Path) -> str:
    """The model of a way, trained unless it is there."""
    place, source = runs / way.replace(", ", "-"), runs / "texts.txt"
    if not (place / "model" / "README.md").is_file():
        if not source.is_file():
            runs.mkdir(parents=True, exist_ok=True)
            source.write_text("\n".join(texts(folder)) + "\n", encoding="utf-8")
        how = {"teacher": teacher, "space": "teacher", "max_length": LONGEST, **WAYS[way]}
        corpus = read_corpus(str(source), split_sentences=False)
        train(corpus, "distil", how.pop("base"), place, hold_out=0, overwrite=True, **how)
    return str(place)


def opened(name: str, model: str, runs: Path) -> Store:
    """The vectors of an encoder; a transformer reads the first 95 words of a text, and computes in bfloat16."""
    (runs / "vec").mkdir(parents=True, exist_ok=True)
    return Store(name.replace(", ", "-"), model, runs / "vec")


def measured(asking: Store, holding: Store, found: Any) -> list[dict[str, float]]:
    """nDCG@10 x 100 of each group of splits, by the cosine and by weights of words."""
    documents, groups = found
    texts, rows = [f"{each['title']} {each['text']}".strip() or "-" for each in documents], []
    for queries, grades in groups:
        bm25 = BM25(queries, Analyzer("english"))
        bm25.add(texts)
        cosines, words = asking(queries) @ holding(texts).T, (bm25.queries @ bm25.texts.T).toarray()
        scores = {"cosine": cosines} | {f"words {weight:g}": cosines + weight * words for weight in WEIGHTS}
        rows.append({name: round(float(ndcg(each, grades).mean()), 3) for name, each in scores.items()})
    return rows


def speed(model: str, queries: list[str]) -> dict[str, float]:
    """Queries encoded in a second of one core's time."""
    encoder, found = load_encoder(model), {}
    for name, size in (("together", len(queries)), ("one at a time", 1)):
        some = queries if size > 1 else queries[:200]
        encode(encoder, some[:10])
        since = time.process_time()
        for start in range(0, len(some), size):
            encode(encoder, some[start : start + size])
        found[name] = round(len(some) / (time.process_time() - since))
    return found


def main() -> None:
    """Fill the output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SELFSENT_DATA", ".")) / "retrieval")
    parser.add_argument("--runs", type=Path, default=Path("runs/asymmetric"))
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    teacher = opened("minilm", options.teacher, options.runs)
    for way in ("teacher", *options.ways):
        model = options.teacher if way == "teacher" else student_of(way, options.teacher, options.text, options.runs)
        own = teacher if way == "teacher" else opened(way, model, options.runs)
        pairs = {"teacher-teacher": (own, own)}
        if own is not teacher:
            pairs = {"student-teacher": (own, teacher), "student-student": (own, own)}
        for (pair, sides), name in [(each, name) for each in pairs.items() for name in options.sets]:
            row = {"way": way, "pair": pair, "set": name}
            if any(row.items() <= other.items() for other in kept(options.output)):
                continue
            for splits, scores in zip(SETS[name], measured(*sides, read(options.data / name, SETS[name])), strict=True):
                keep(options.output, row | {"split": "test" if "test" in splits else "dev"} | scores)
                print(kept(options.output)[-1], flush=True)
        row = {"way": way, "pair": "speed"}
        if not any(row.items() <= other.items() for other in kept(options.output)):
            keep(options.output, row | speed(model, list(read(options.data / "counsel", SETS["counsel"])[1][0][0])))


if __name__ == "__main__":
    main()
