"""Encoding with a table on one thread: ours, sentence-transformers and model2vec, all words new and all words known.

    python benchmarks/table_encode.py --corpus wikipedia.txt.zst --peer ../peer/bin/python \
        --output docs/results/speed/table_encode.json

Sentences of ten words, from text to vectors, by `bundled`. Every side is a process of its own, the sides alternate, and
medians of seconds of the processor are compared: of the first call behind loading ("cold", our checks of the tokenizer
included), and of the best of three more ("warm").
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from selfsent import read_corpus
from selfsent.files import write_json
from selfsent.models.bases import resolve

WORDS, SIDES = 10, ("ours", "sentence-transformers", "sentence-transformers, batch 1024", "model2vec")
CHILD = """
import json, sys, time
side, table, file, output = sys.argv[1:]
texts = json.load(open(file))
if side == "ours":
    from pathlib import Path
    from selfsent.models.encoding import encode
    from selfsent.models.table import Table
    model = Table.read(Path(table))
    run = lambda: encode(model, texts)
elif side == "model2vec":
    from model2vec import StaticModel
    model = StaticModel.from_pretrained(table)
    run = lambda: model.encode(texts, use_multiprocessing=False)
else:
    import torch
    from sentence_transformers import SentenceTransformer
    torch.set_num_threads(1)
    model = SentenceTransformer(table, device="cpu", local_files_only=True)
    size = 1024 if "1024" in side else 32
    run = lambda: model.encode(texts, batch_size=size, show_progress_bar=False)
seconds = []
for _ in range(4):
    start = time.process_time()
    vectors = run()
    seconds.append(time.process_time() - start)
import numpy as np
np.save(output, np.asarray(vectors[:1000], np.float32))
print(json.dumps({"cold": seconds[0], "warm": min(seconds[1:])}))
"""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> None:
    """Measure, and write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--sentences", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", default=sys.executable, help="a Python that has model2vec")
    parser.add_argument("--output", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    import numpy as np

    corpus = read_corpus(options.corpus)
    words = itertools.chain.from_iterable(text.split() for batch in corpus.batches() for text in batch)
    chosen = list(itertools.islice(words, WORDS * options.sentences))
    texts = [" ".join(chosen[start : start + WORDS]) for start in range(0, len(chosen), WORDS)]
    table, environment = str(resolve("bundled")), {**os.environ, **ONE_THREAD, "TOKENIZERS_PARALLELISM": "false"}
    seconds: dict[str, dict[str, list[float]]] = {side: {"cold": [], "warm": []} for side in SIDES}
    vectors: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        file, output = Path(name) / "texts.json", Path(name) / "vectors.npy"
        file.write_text(json.dumps(texts))
        for _ in range(options.rounds):
            for side in SIDES:
                python = options.peer if side == "model2vec" else sys.executable
                own = {"PYTHONPATH": ""} if side == "model2vec" else {}
                command = [python, "-c", CHILD, side, table, str(file), str(output)]
                done = subprocess.run(command, env=environment | own, check=True, capture_output=True, text=True)
                for state, taken in json.loads(done.stdout.splitlines()[-1]).items():
                    seconds[side][state].append(taken)
                vectors[side] = np.load(output)
    medians = {
        side: {state: statistics.median(taken) for state, taken in each.items()} for side, each in seconds.items()
    }
    ratios = {
        side: {state: medians[side][state] / medians["ours"][state] for state in ("cold", "warm")} for side in SIDES[1:]
    }
    apart = float(np.abs(vectors["ours"] - vectors["sentence-transformers"]).max())
    for side, each in medians.items():
        print(f"{side:36s} cold {each['cold']:.2f} s, warm {each['warm']:.2f} s", ratios.get(side, ""))
    print(f"vectors are at most {apart:.1e} from those of sentence-transformers")
    if options.output:
        about = {
            "sentences": len(texts),
            "words": len(chosen),
            "distinct_words": len({*chosen}),
            "rounds": options.rounds,
        }
        figures = {"seconds": seconds, "medians": medians, "ratios": ratios, "largest_difference": apart}
        write_json(options.output, {**about, "corpus": Path(options.corpus).name, **figures})


if __name__ == "__main__":
    main()
