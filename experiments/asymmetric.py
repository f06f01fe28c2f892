"""Students in their teacher's space: small encoders whose queries search documents that the teacher encoded.

    python experiments/asymmetric.py --teacher DIR --text TEXT --output docs/results/quality/asymmetric.json
    python experiments/asymmetric.py --teacher DIR --text TEXT --output docs/results/quality/asymmetric.json --tests

TEXT is the folder of plain English sources that the log names; none of those read here holds a text of the sets that
are searched, those of `retrieval/` in the data mirror. Every way of `WAYS` learns the teacher's vectors of the same
texts. Scores are nDCG@10 x 100, by the cosine and with words, of queries and documents by the student and itself, the
student and the teacher, and by the teacher and itself: dev queries of counsel and scitldr choose way and weight of
words; `--tests` scores all four sets with the ways of `--ways`. What is there is not computed again.
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

import numpy as np
import zstandard
from search_training import CHOSEN_BY, SETS, keep, kept

from selfsent import read_corpus, train
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.encoders import as_encoder, as_reranker
from selfsent.evaluation.lexical import Hybrid
from selfsent.evaluation.tasks.beir import read_task

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
    "table, cosine": {"base": "bundled", "objective": "cosine", "epochs": 15},
    "table, contrast": {"base": "bundled", "objective": "contrast", "epochs": 15},
    "encoder, cosine": {"base": "bundled-encoder", "objective": "cosine", "epochs": 1},
    "encoder, contrast": {"base": "bundled-encoder", "objective": "contrast", "epochs": 1, "batch_size": 128},
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
        train(corpus, "distil", how.pop("base"), place, hold_out=0, overwrite=True, map_points=0, **how)
    return str(place)


def both(asking: Encoder, holding: Encoder) -> Encoder:
    """An encoder whose queries are one's and whose documents are another's."""
    found = Encoder(asking, asking.name)
    found._searching = [asking._searching[0], holding._searching[1]]
    return found


def measured(encoder: Encoder, data: Path, splits: list[tuple[str, str]]) -> dict[str, float]:
    """nDCG@10 x 100 by the cosine and by weights of words."""
    tasks, found = [read_task(data / name, split=split) for name, split in splits], {}
    for name, one in (("cosine", encoder), *((f"words {weight:g}", Hybrid(encoder, weight)) for weight in WEIGHTS)):
        values = [100 * metrics[0] for task in tasks for metrics in task._measured(one)]
        found[name] = round(float(np.mean(values)), 3)
    return found


def speed(encoder: Encoder, queries: list[str]) -> dict[str, float]:
    """Queries encoded in a second of one core's time, together and one at a time."""
    found = {}
    for name, size in (("together", len(queries)), ("one at a time", 1)):
        some = queries if size > 1 else queries[:300]
        assert encoder._encode is not None
        encoder._encode(some[:10])
        since = time.process_time()
        for start in range(0, len(some), size):
            encoder._encode(some[start : start + size])
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
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--tests", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    teacher, split = as_reranker(options.teacher).encoder, "test" if options.tests else "dev"
    for way in ("teacher", *options.ways):
        own = teacher
        if way != "teacher":
            own = as_encoder(student_of(way, options.teacher, options.text, options.runs))
        pairs = {"teacher-teacher": own} if own is teacher else {"student-student": own}
        if own is not teacher:
            pairs["student-teacher"] = both(own, teacher)
        for (pair, encoder), name in [(each, name) for each in pairs.items() for name in SETS]:
            row = {"way": way, "pair": pair, "set": name, "split": split}
            if any(row.items() <= other.items() for other in kept(options.output)):
                continue
            if options.tests or name in CHOSEN_BY:
                splits = [(name, each) for each in (("train", "dev") if split == "dev" else ("test",))]
                keep(options.output, row | measured(encoder, options.data, splits))
                print(kept(options.output)[-1], flush=True)
        row = {"way": way, "pair": "speed"}
        if options.tests and not any(row.items() <= other.items() for other in kept(options.output)):
            asked = read_task(options.data / "scitldr", split="test").queries
            keep(options.output, row | speed(as_encoder(options.teacher) if own is teacher else own, list(asked)))


if __name__ == "__main__":
    main()
