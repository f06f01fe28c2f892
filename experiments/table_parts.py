"""What a table of token vectors could have more: bigrams in hashed rows, sizes to choose from, fewer bits.

    python experiments/table_parts.py --sample OUT/sample.txt --teacher DIR --output OUT.json

Tables are distilled as `bundled` is, from --sentences of its sample (experiments/bundled.py), and scored on development
data: whole, cut to their first numbers, and rounded. `bigrams` adds a vector for each pair of neighbouring tokens to
the mean, in rows shared by hash; `sizes` asks the loss of the first 192, 96 and 48 numbers, too (Matryoshka). What is
trained is cut as it is, and after a rotation to its principal directions, which changes no cosine of the whole.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from bundled import rounded
from domain import score_domain
from grid import finished, keep

import selfsent
from selfsent.data.packed import Packed
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.suites import TASKS
from selfsent.methods.distil import DistilLearner
from selfsent.methods.ranking import similarity_loss
from selfsent.models.loading import load_encoder
from selfsent.models.static import StaticEncoder
from selfsent.report.scoring import scored

SIZES = (192, 96, 48)
HASHED = 65_536
BITS = (8, 6, 4)
DOMAINS = ("banking77-dev", "newsgroups-dev", "counsel-topics-dev")


def with_bigrams(encoder: StaticEncoder) -> None:
    """Let the mean of a table with HASHED more rows take the pairs of neighbouring tokens, too."""

    def forward(packed: Packed, leave_out: int = 0) -> Tensor:
        ids, starts = packed.flat_ids, packed.starts
        known = encoder.table.num_embeddings - HASHED
        pairs = (ids[:-1] * 1_000_003 + ids[1:]) % HASHED + known
        sentence = torch.bucketize(torch.arange(len(ids)), starts, right=True) - 1
        inside = sentence[:-1] == sentence[1:]
        both, owner = torch.cat([ids, pairs[inside]]), torch.cat([sentence, sentence[:-1][inside]])
        order = torch.argsort(owner, stable=True)
        begins = torch.searchsorted(owner[order], torch.arange(len(starts)))
        mean = F.embedding_bag(both[order], encoder.table.weight, begins, mode="mean")
        return encoder.after_pooling(mean, leave_out)

    encoder.forward = forward  # type: ignore[method-assign]


def of_all_sizes(learner: DistilLearner, student: Tensor, wanted: Tensor, view: Packed) -> Tensor:
    """The loss of the whole, and the mean of that of its beginnings: their similarities follow the teacher's."""
    whole = DistilLearner.plain(learner, student, wanted, view)  # type: ignore[attr-defined]
    teacher, scale = learner._directions(wanted), learner.options.scale
    parts = [similarity_loss(F.normalize(student[:, :size], dim=-1), teacher, scale) for size in SIZES]
    return whole + sum(parts) / len(parts)


def train(kind: str, options: argparse.Namespace) -> StaticEncoder:
    """A table of one kind; what is trained already is loaded."""
    place = options.runs / kind
    DistilLearner._contrast = of_all_sizes if kind == "sizes" else DistilLearner.plain  # type: ignore[attr-defined]
    begin = options.runs / ("start-bigrams" if kind == "bigrams" else "start")
    if not (begin / "model").is_dir():
        selfsent.make_table(None, begin, tokenizer="bundled-raw", size=384)
        if kind == "bigrams":
            widen(begin / "model")
    if not (place / "model").is_dir():
        told = {"method": "distil", "teacher": options.teacher, "max_length": 256, "sentences": options.sentences}
        if kind == "bigrams":
            usual = StaticEncoder.__init__

            def begun(self: StaticEncoder, sentence_transformer: Any) -> None:
                usual(self, sentence_transformer)
                if self.table.num_embeddings > HASHED:
                    with_bigrams(self)

            StaticEncoder.__init__ = begun  # type: ignore[method-assign]
        selfsent.train(options.sample, base=begin, output=place, resume=True, epochs=options.epochs, **told)
    return load_encoder(place)  # type: ignore[return-value]


def widen(directory: Path) -> None:
    """HASHED rows of zeros behind a table's, in place."""
    model = load_encoder(directory).sentence_transformer
    weight = model[0].embedding.weight.data
    model[0].embedding = torch.nn.EmbeddingBag.from_pretrained(
        torch.cat([weight, weight.new_zeros(HASHED, weight.shape[1])]), freeze=False
    )
    model.save(str(directory), create_model_card=False)


def score(encoder: StaticEncoder, data: str | None) -> dict[str, float]:
    """Its figures on development data."""
    form = scored(encoder, "table")
    found = {"stsb-dev": TASKS["stsb-dev"](form, Store(data)).score}
    found |= {name: score_domain(name, form, data)[0] for name in DOMAINS}
    return {name: round(value, 2) for name, value in found.items()}


def principal(weight: Tensor, sample: list[str], encoder: StaticEncoder) -> Tensor:
    """The table, turned so that the first numbers tell vectors of sentences apart best."""
    vectors = F.normalize(torch.as_tensor(scored(encoder, "table")(sample)).double(), dim=1)
    turned = torch.linalg.eigh(vectors.T @ vectors).eigenvectors.flip(1)
    return (weight.double() @ turned).float()


def variants(encoder: StaticEncoder, sample: list[str]) -> dict[str, Tensor]:
    """What is scored of a trained table: name to weights."""
    weight = encoder.table.weight.detach().clone()
    turned = principal(weight, sample, encoder)
    found = {"whole": weight}
    found |= {f"first {size}": weight[:, :size] for size in SIZES}
    found |= {f"first {size} of the turned": turned[:, :size] for size in SIZES}
    found |= {f"{bits} bits": rounded(weight[:16_384], bits) for bits in BITS}
    return found | {f"{bits} bits, by row": rounded(weight[:16_384], bits, by_row=True) for bits in BITS}


def main() -> None:
    """Do what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sample", type=Path, required=True)
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/table_parts"))
    parser.add_argument("--sentences", type=int, default=150_000)
    parser.add_argument("--epochs", type=float, default=6.0)
    parser.add_argument("--data", help="mirror of the labelled data sets (default: SELFSENT_DATA)")
    options = parser.parse_args()
    DistilLearner.plain = DistilLearner._contrast  # type: ignore[attr-defined]
    with options.sample.open(encoding="utf-8") as lines:
        sample = [line.strip() for _, line in zip(range(20_000), lines, strict=False)]
    for kind in ("shipped", "plain", "sizes", "bigrams"):
        encoder = load_encoder("bundled") if kind == "shipped" else train(kind, options)
        assert isinstance(encoder, StaticEncoder)
        encoder.float()
        if kind == "bigrams":
            with_bigrams(encoder)
        shown = {"whole": encoder.table.weight.detach()} if kind == "bigrams" else variants(encoder, sample)
        for name, weight in shown.items():
            key = f"{kind} | {name}"
            if key in finished(options.output):
                continue
            encoder.table.weight = torch.nn.Parameter(weight.contiguous())
            encoder.sentence_transformer[0].embedding_dim = weight.shape[1]
            keep(options.output, "table_parts", key, {"scores": score(encoder, options.data)})
            print(time.strftime("%H:%M:%S"), key, finished(options.output)[key]["scores"], flush=True)


if __name__ == "__main__":
    main()
