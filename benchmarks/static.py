"""A table of token vectors, trained and run, against sentence-transformers' `StaticEmbedding` and model2vec.

    python benchmarks/static.py --corpus wikipedia-recent.txt.zst --output docs/results/speed/bench_static.json

Training: one pass over the same pairs of neighbouring sentences, from the same random table, with the same loss, batch
and rate; encoding: the same sentences by the same table, also by model2vec if it is installed. The sides alternate on
as many threads as torch uses; medians are compared, and STS-B dev of what each side made stands beside its time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import alternate, machine, medians
from sentence_transformers import SentenceTransformer

import selfsent
from selfsent.encoding import BatchEncoder
from selfsent.files import write_json
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder

BATCH, RATE, SIZE = 1024, 0.02, 256


def pairs_of(corpus: selfsent.Corpus, count: int) -> list[tuple[str, str]]:
    """Sentences and the ones behind them in their documents, drawn at random."""
    documents = np.asarray(corpus.documents)
    first = np.flatnonzero(documents[1:] == documents[:-1])
    chosen = np.sort(np.random.default_rng(0).permutation(first)[:count])
    return list(zip(corpus.texts(chosen), corpus.texts(chosen + 1), strict=True))


def train_theirs(pairs: list[tuple[str, str]], base: Path, output: Path) -> Any:
    """One pass of sentence-transformers' trainer with its multiple-negatives ranking loss."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    torch.manual_seed(0)
    model = SentenceTransformer(str(base), device="cpu")
    told = SentenceTransformerTrainingArguments(
        output_dir=str(output),
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        learning_rate=RATE,
        adam_beta2=0.98,
        dataloader_drop_last=True,
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    data = Dataset.from_dict({"anchor": [one for one, _ in pairs], "positive": [other for _, other in pairs]})
    SentenceTransformerTrainer(model, told, train_dataset=data, loss=MultipleNegativesRankingLoss(model)).train()
    return model


def train_ours(file: Path, base: Path, output: Path) -> Any:
    """The same by `selfsent.train`, reading and tokenising included: nothing is there from the time before."""
    shutil.rmtree(output, ignore_errors=True)
    run = selfsent.train(
        selfsent.read_corpus(file, text_columns=("a", "b"), cache=output / "cache"),
        method="mnrl",
        base=base,
        output=output / "run",
        overwrite=True,
        epochs=1,
        batch_size=BATCH,
        learning_rate=RATE,
        hold_out=0,  # the peer scores nothing either
    )
    return run.model


def dev_score(model: Any) -> float:
    """STS-B dev."""
    return float(selfsent.evaluate(model, task="stsb-dev").scores["stsb-dev"].score)


def main() -> None:
    """Run the comparison and print the ratios last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", required=True, help="text with documents")
    parser.add_argument("--pairs", type=int, default=60_000)
    parser.add_argument("--sentences", type=int, default=50_000, help="that are encoded")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--output", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    corpus = selfsent.read_corpus(options.corpus)
    pairs, texts = pairs_of(corpus, options.pairs), corpus.texts(np.arange(min(options.sentences, len(corpus))))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "pairs.jsonl"
        file.write_text("".join(json.dumps({"a": one, "b": other}) + "\n" for one, other in pairs))
        base = selfsent.make_table(None, folder / "base", tokenizer="bundled-raw", size=SIZE)
        sides: dict[str, Callable[[], Any]] = {
            "train, theirs": lambda: train_theirs(pairs, base, folder / "theirs"),
            "train, ours": lambda: train_ours(file, base, folder / "ours"),
        }
        seconds, made = alternate(sides, options.repetitions)
        peer, model = made["train, ours"], load_encoder(folder / "ours" / "run")
        sizes = (32, 1024)
        runs: dict[str, Callable[[], Any]] = {
            f"encode, theirs, batch {size}": lambda size=size: peer.encode(texts, batch_size=size) for size in sizes
        }
        if find_spec("model2vec"):
            from model2vec import StaticModel

            table: Any = model.sentence_transformer[0]
            other = StaticModel(table.embedding.weight.detach().numpy(), table.tokenizer)
            runs["encode, model2vec"] = lambda: other.encode(texts)
        batches = BatchEncoder(str(folder / "ours" / "run" / "model"))
        runs |= {"encode, ours": lambda: encode(model, texts), "encode, BatchEncoder": lambda: batches.vectors(texts)}
        encoding, vectors = alternate(runs, options.repetitions)
        apart = float(np.abs(vectors["encode, ours"] - vectors[f"encode, theirs, batch {sizes[0]}"]).max())
        scores = {side: dev_score(trained) for side, trained in made.items()}
    taken = medians(seconds | encoding)
    best = min(each for side, each in taken.items() if side.startswith(("encode, theirs", "encode, model2vec")))
    ratios = {"train": taken["train, theirs"] / taken["train, ours"], "encode": best / taken["encode, ours"]}
    print(machine())
    for side, median in taken.items():
        count = 2 * len(pairs) if side.startswith("train") else len(texts)
        speed = f"   {count / median:10,.0f} sentences/s"
        print(f"  {side:28} {median:8.2f} s{speed}" + (f"   STS-B dev {scores[side]:.2f}" if side in scores else ""))
    print(f"  vectors are at most {apart:.1e} apart")
    for what, ratio in ratios.items():
        print(f"{what} {ratio:.2f}x")
    if options.output:
        about = {
            "machine": machine(),
            "corpus": Path(options.corpus).name,
            "pairs": len(pairs),
            "sentences": len(texts),
        }
        figures = {"seconds": seconds | encoding, "stsb_dev": scores, "largest_difference": apart, "ratios": ratios}
        write_json(options.output, {**about, **figures})


if __name__ == "__main__":
    main()
