"""Write docs/benchmarks.md from the raw figures of the benchmarks.

    python benchmarks/report.py

Every table counts only with its raw JSON in docs/results/speed/, written by the benchmark it belongs to.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sections import cost, encode, fast_paths, is_worse, pairs, time_to_score, train

from selfsent.files import read_json, write_text

HEAD = """# Benchmarks

How fast is selfsent beside sentence-transformers? A ratio above 1 means that selfsent is faster. Both sides have the
same model, the same sentences and the same machine, and the same quality: the same loss on held-out sentences, or the
same vectors. A range goes over methods.
"""

HOW = """## How to read the tables

Both sides run in turn, and medians count. `make bench` measures training, encoding and pairs again, and writes this
page.

* **The peer may choose.** A ratio is held against the peer's fastest setting that keeps the quality of its own float32.
  Ratios to its float32 stand in brackets.
* **Training** goes from text to weights. Both sides are scored alike: the loss on held-out sentences, and Spearman on
  STS-B, over as many seeds. Where ours ends at a worse loss than theirs, the table says so, and the ratio is left out
  of the overview above.
* **Of the product** is the share of what the processor reaches in a product of large matrices. For both sides,
  only the operations that ours needs are counted.
* **Padding** is the share of slots that hold no token, in the linear layers and in attention.
* **Encoding** has the smallest and the mean cosine to the peer's float32 vectors. The matrix product is that of the
  setting's own precision.
"""
STATIC = "bench_static_300k.json"


def kind(report: dict[str, Any]) -> str:
    """The machine in a few words."""
    machine = report["machine"]
    threads = "1 thread" if machine["threads"] == 1 else f"{machine['threads']} threads"
    return f"{machine['processor']} ({machine['capability']}), {threads}"


def training_rows(results: Path) -> list[tuple[str, str, str, str]]:
    """The ratios in training: of each batch size and machine a row, of each base the range over methods."""
    found: dict[tuple[int, str], dict[str, list[float]]] = {}
    for path in [results / name for name, section in SECTIONS.items() if section is train]:
        report = read_json(path) if path.is_file() else {"comparisons": []}
        for one in report["comparisons"]:
            if "ratio" in one and not is_worse(one):
                ratios = found.setdefault((one["batch_size"], kind(report)), {})
                ratios.setdefault(one["base"], []).append(one["ratio"])
    rows = []
    for (size, where), bases in sorted(found.items()):
        shown = ", ".join(f"{base} {min(ratios):.2f} to {max(ratios):.2f}" for base, ratios in bases.items())
        rows.append((f"training, batches of {size}", "its trainer", shown, where))
    return rows


def overview(results: Path) -> str:
    """What, peer, ratio and machine, a line each."""

    def encoding(*names: str) -> tuple[str, str]:
        reports = [read_json(results / name) for name in names]
        bases = {base: one["ratio"] for report in reports for base, one in report["bases"].items()}
        return ", ".join(f"{base} {ratio:.2f}" for base, ratio in bases.items()), kind(reports[0])

    table, pair = read_json(results / STATIC), read_json(results / "bench_pairs.json")
    rows = [
        *training_rows(results),
        ("training a table of token vectors", "its trainer", f"{table['ratios']['train']:.2f}", kind(table)),
        ("encoding", "its `encode`", *encoding("bench_encode.json", "bench_encode_base.json")),
        ("encoding, without `--int8`", "the same, OpenVINO too", *encoding("bench_encode_backends.json")),
        ("encoding with AMX", "OpenVINO and torch.compile too", *encoding("bench_encode_amx.json")),
        ("encoding with a table", "its `encode`", f"{table['ratios']['encode']:.2f}", kind(table)),
        (f"most similar pairs, {pair['base']}", "`paraphrase_mining`", f"{pair['ratio']:.2f}", kind(pair)),
    ]
    lines = ["| what | peer in sentence-transformers | ratio | machine |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


SECTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "time_to_score.json": time_to_score,
    "bench_train.json": train,
    "train_bfloat16_minilm_8.json": train,
    "train_bfloat16_minilm_8_ct.json": train,
    "train_bfloat16_minilm_8_ct_inbatch.json": train,
    "train_bfloat16_minilm_8_tsdae.json": train,
    "train_bfloat16_minilm_8_mlm.json": train,
    "train_bfloat16_minilm_32.json": train,
    "train_bfloat16_minilm_128.json": train,
    "train_bfloat16_minilm_128_ct.json": train,
    "train_bfloat16_bundled_8.json": train,
    "train_amx_bundled_8.json": train,
    "train_amx_minilm_8.json": train,
    "train_bfloat16_bundled_128.json": train,
    "train_avx2_bundled_32.json": train,
    "bench_encode.json": encode,
    "bench_encode_base.json": encode,
    "bench_encode_backends.json": encode,
    "bench_encode_amx.json": encode,
    "bench_pairs.json": pairs,
    "cost.json": cost,
    "fast_paths.json": fast_paths,
}


def main() -> None:
    """Write the page from what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("docs/results/speed"))
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks.md"))
    options = parser.parse_args()
    if not options.results.is_dir():
        raise SystemExit(f"there is no {options.results}: run it in the root of the repository")
    soon = "time_to_score.json"
    parts = [HEAD, overview(options.results), SECTIONS[soon](read_json(options.results / soon)), HOW]
    for name, section in SECTIONS.items():
        path = options.results / name
        if path.is_file() and name != soon:
            parts.append(f"{section(read_json(path))}\n\nRaw figures: `docs/results/speed/{name}`.\n")
    write_text(options.output, "\n".join(parts))


if __name__ == "__main__":
    main()
