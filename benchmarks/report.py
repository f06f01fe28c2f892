"""Write docs/benchmarks.md, and docs/results/speed.md with every table, from the raw figures in docs/results/speed/.

python benchmarks/report.py
"""

from __future__ import annotations

import argparse
import statistics
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from encode import SAME as NEAR
from harness import spread
from time_to_score import STYLES, times_sooner
from train import SAME, fastest

from selfsent.files import read_json, write_text

Report = dict[str, Any]
HEAD = """# Benchmarks

How much faster is selfsent than sentence-transformers 6.2, at the same quality? (With static embeddings: than the
faster of it and model2vec.) Ratios of medians, lowest and highest; above 1 selfsent is faster. [Every
table](results/speed.md) has the figures; `make bench` measures them again.
"""
HOW = """## How it was measured

* **Same model, sentences and machine; both sides in turn**, from text to weights or vectors.
* **The peer may choose** its fastest setting that keeps the quality of its own float32.
* **Same quality.** Training: a held-out loss no worse, and STS-B at most a point below. What misses either is left
  out here and marked in the tables (`tsdae` from all-MiniLM-L6-v2). Encoding: a smallest cosine of {near} to the peer's
  float32.
* **Static embeddings**: their rows are older than
  [those of the log](log/speed.md#2026-11-28-which-rows-of-a-table-need-a-step-and-what-else-is-left-of-its-seconds),
  which were measured by seconds of the processor after tables did without torch.
* **Single runs** of training, among them all in batches of 128, are in the tables alone. No GPU was measured.

Reading, training and encoding against the size of the corpus: [How long it takes](how-long.md).
"""
TABLES = """# Every table of the benchmarks

The figures behind [Benchmarks](../benchmarks.md). Ratios to the peer's float32 stand in brackets. STS-B and held-out
loss are means over as many seeds as there are runs.
"""
STSB = 1.0
"""Points of STS-B that a faster side may lose."""
FEWEST = 2
"""Runs of each side that a ratio of training on the page has: single ones lay far apart."""


def wrapped(text: str) -> str:
    """A paragraph."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def table(headings: str, rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; a heading that ends in `:` is that of a column of numbers."""
    names = headings.split("|")
    lines = ["| " + " | ".join(name.removesuffix(":") for name in names) + " |"]
    lines += ["|" + "|".join("--:" if name.endswith(":") else "---" for name in names) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)]) + "\n"


def kind(report: Report) -> str:
    """The machine in a few words."""
    machine = report["machine"]
    threads = "1 thread" if machine["threads"] == 1 else f"{machine['threads']} threads"
    return f"{machine['processor']} ({machine['capability']}), {threads}"


def about(report: Report) -> str:
    """Machine, versions and date."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    processor = f"{machine['processor']} ({machine['capability']}), {machine['threads']} threads"
    return wrapped(f"*{processor}; {versions}; {machine['date']}.*")


def worse(found: Report) -> str:
    """By what the fastest of ours ends worse than the peer: held-out loss, STS-B, or nothing."""
    ours = found["rows"][fastest(found["rows"], "ours")]
    theirs = [row for side, row in found["rows"].items() if side.startswith("theirs")]
    losses = [statistics.mean(row["held_out_loss"]) for row in theirs if row["held_out_loss"]]
    if losses and statistics.mean(ours["held_out_loss"]) > SAME * min(losses) + 1e-4:
        return "loss"
    scores = [statistics.mean(row["stsb"]) for row in theirs if row["stsb"]]
    return "STS-B" if scores and statistics.mean(ours["stsb"]) < max(scores) - STSB else ""


def ratio_of(found: Report, side: str) -> str:
    """The ratios of the fastest of ours: to the peer's fastest, and to its float32."""
    if "ratio" not in found or side != fastest(found["rows"], "ours"):
        return ""
    if worse(found):
        return f"{found['ratio']:.2f}x, at a worse {worse(found)}"
    plain = f" ({found['ratio_to_float32']:.2f}x)" if "ours bfloat16" in found["rows"] else ""
    return f"**{found['ratio']:.2f}x**{plain}"


def train(report: Report) -> list[str]:
    """Speed and quality of each method, base and batch size."""
    bases, sizes, methods = (
        list(dict.fromkeys(str(found[key]) for found in report["comparisons"]))
        for key in ("base", "batch_size", "method")
    )
    sides = [side for found in report["comparisons"] for side in found["rows"]]
    low = "" if any("bfloat16" in side for side in sides) else ", on a processor without bfloat16"
    low = ", on a processor with AMX" if report["machine"]["capability"] == "AMX" else low
    some = f" with {', '.join(methods)}" if len(methods) < 4 else ""
    said = f"{report['sentences']:,} sentences of {report['corpus']}; the median of {report['repetitions']}."
    said += f" {'Seconds of the processor' if report['processor_time'] else 'Seconds'}."
    rows = []
    for found in report["comparisons"]:
        for side, row in found["rows"].items():
            cells = [found["method"], found["base"], found["batch_size"], side, f"{row['sentences_per_second']:.1f}"]
            cells += [f"{statistics.mean(row['held_out_loss']):.4f}" if row["held_out_loss"] else ""]
            rows.append([*cells, spread(row["stsb"]), ratio_of(found, side)])
    headings = "method|base|batch:|side|sentences/s:|held-out loss:|STS-B:|ratio:"
    return [
        f"## Training {', '.join(bases)}{some}, batch {', '.join(sizes)}{low}\n",
        wrapped(f"{said}"),
        table(headings, rows),
    ]


def against_defaults(figures: Report) -> str:
    """The ratio of the setting that counts; in newer files that of every setting, with its cosine where that is low."""
    ratios = []
    for side, ratio in (figures.get("ratios_to_defaults") or {"": figures["ratio_to_defaults"]}).items():
        least = figures["rows"][side]["smallest_cosine"] if side else 1
        low = "" if least >= NEAR else f" at a smallest cosine of {least:.4f}"
        ratios.append(f"{side.removeprefix('ours ')} {ratio:.2f}x{low}".strip())
    return ", ".join(ratios)


def encode(report: Report) -> list[str]:
    """Sentences a second and cosine of each setting."""
    every = any("exported" in side for figures in report["bases"].values() for side in figures["rows"])
    title = "Encoding, with every back end that can be installed" if every else "Encoding"
    title += " with a large encoder" if [*report["bases"]] == ["bert-base"] else ""
    title += f" ({report['machine']['capability']})" if every else ""
    rows = []
    for base, figures in report["bases"].items():
        for setting, row in figures["rows"].items():
            cosines = f"{row['smallest_cosine']:.6f}, {row['mean_cosine']:.6f}"
            rows.append([base, setting, f"{row['sentences_per_second']:.1f}", cosines])
    ratios = ", ".join(
        f"{base} {figures['ratio']:.2f}x ({against_defaults(figures)} against the peer's defaults)"
        for base, figures in report["bases"].items()
    )
    return [
        f"## {title}\n",
        f"{report['sentences']:,} sentences of {report['corpus']}.\n",
        table("model|setting|sentences/s:|smallest, mean cosine:", rows),
        wrapped(f"**encode: {ratios}**"),
    ]


def pairs(report: Report) -> list[str]:
    """Seconds of each side."""
    apart = report["largest_difference"]
    named = ", ".join(
        f"{side} {count} (cosines at most {apart[side]:.0e} apart)" for side, count in report["pairs_in_common"].items()
    )
    about = f"{report['sentences']:,} distinct sentences of {report['corpus']}, {report['base']}, from loaded model to"
    return [
        "## The most similar pairs\n",
        f"{about} answer.\n",
        table("side|seconds:", ([side, f"{statistics.median(s):.2f}"] for side, s in report["seconds"].items())),
        wrapped(f"Of the {report['top']} best pairs of their float32, this many are found: {named}."),
        f"**pairs {report['ratio']:.2f}x** ({' against '.join(report['fastest'])})\n",
    ]


def cost(report: Report) -> list[str]:
    """The curves, and their points."""
    said = (
        f"Whole commands with {report['model']}, each in a process of its own. `read` is reading, cleaning and"
        " tokenising, with one step of training. `train` is ten steps of `tsdae`, and scoring up to 10,000 held-out"
        " sentences before and after. For the table that ships, see [How long it takes](../how-long.md)."
    )
    rows = (
        [row["command"], f"{row['sentences']:,}", *(f"{row[key]:,.1f}" for key in ("seconds", "peak_mb", "disk_mb"))]
        for row in report["rows"]
    )
    return [
        "## Cost against size\n",
        wrapped(said),
        "![Seconds, peak memory and bytes on disk against the number of sentences](speed/cost.svg)\n",
        table("command|sentences:|seconds:|peak memory, MB:|on disk, MB:", rows),
    ]


def said_sooner(row: Report, side: str) -> str:
    """How many times sooner a side of ours is at the peer's last score."""
    times = times_sooner(row, side)
    return "not reached" if times != times else f"{times:.1f}"


def time_to_score(report: Report) -> list[str]:
    """Score over time from the command, and how much sooner ours is there."""
    said = (
        "Seconds from the command to an encoder trained on neighbours, and its score on documents kept apart"
        " (`context`) and on STS-B. Each point is a whole command. Ours reads, cleans and scores before and after (from"
        " all-MiniLM it also drew a map, which no run does any more); the peer is a script with the usual loss and the"
        " same pairs in a file, in the precision and at the rate that are best for it. By default ours holds on to the"
        " base, which costs some of the corpus'"
        ' own score and guards the others; `--keep-base 0` is the peer\'s loss. "Times sooner" compares the'
        " seconds to the peer's last score: the peer's, to its first point within 0.1 of it, over ours"
        " (`benchmarks/time_to_score.py`)."
    )
    rows: list[list[object]] = []
    for row in report["rows"].values():
        before = row["untrained"]
        rows.append([f"{row['corpus']}, {row['base']}", "before", "", "", f"{before['context']:.2f}"])
        rows[-1] += [f"{before['stsb']:.2f}", ""]
        for side, label, _ in STYLES:
            for steps, point in row.get(side, {}).items():
                last = steps == list(row[side])[-1] and side != "peer"
                cells = [f"{point['seconds']:.0f}", f"{point['context']:.2f}", f"{point['stsb']:.2f}"]
                rows.append(["", label, steps, *cells, said_sooner(row, side) if last else ""])
    headings = "corpus, base|who|steps:|seconds:|context:|STS-B:|times sooner at the peer's last context:"
    picture = "![Score over seconds from the command](../images/time-to-score.svg)\n"
    return ["## How soon an encoder is better\n", wrapped(said), picture, table(headings, rows)]


_TRAIN = (
    "bench_train train_bfloat16_minilm_8 train_bfloat16_minilm_8_ct train_bfloat16_minilm_8_ct_inbatch"
    " train_bfloat16_minilm_8_tsdae train_bfloat16_minilm_8_mlm train_bfloat16_minilm_32 train_bfloat16_minilm_128"
    " train_bfloat16_minilm_128_ct train_bfloat16_bundled_8 train_amx_bundled_8 train_amx_minilm_8"
    " train_bfloat16_bundled_128 train_avx2_bundled_32"
).split()
_EVERY = ("bench_encode_backends", "bench_encode_amx")
_ENCODE = ("bench_encode", "bench_encode_base", *_EVERY)
_STATIC = ("bench_static", "bench_static_300k")
SECTIONS: dict[str, Callable[[Report], list[str]]] = {
    "time_to_score": time_to_score,
    **dict.fromkeys(_TRAIN, train),
    **dict.fromkeys(_ENCODE, encode),
    "bench_pairs": pairs,
    "cost": cost,
}


def overview(reports: dict[str, Report]) -> str:
    """The lowest and the highest ratio of each task, base and machine: over methods, or over benchmarks."""
    found: dict[tuple[str, str, str], list[tuple[float, int]]] = {}

    def add(what: str, base: str, report: Report, ratio: float, runs: int) -> None:
        found.setdefault((what, base, kind(report)), []).append((ratio, runs))

    def there(names: Iterable[str]) -> list[tuple[str, Report]]:
        return [(name, reports[name]) for name in names if name in reports]

    trained = [(one, report) for _, report in there(_TRAIN) for one in report["comparisons"]]
    for one, report in sorted(trained, key=lambda pair: (pair[0]["batch_size"], pair[0]["base"])):
        if "ratio" in one and not worse(one) and report["repetitions"] >= FEWEST:
            add(f"training, batches of {one['batch_size']}", one["base"], report, one["ratio"], report["repetitions"])
    for name, report in there(_ENCODE):
        what = "encoding, every back end tried" if name in _EVERY else "encoding"
        for base, one in report["bases"].items():
            add(what, base, report, one["ratio"], min(len(row["seconds"]) for row in one["rows"].values()))
    for what, figure in (("training static embeddings", "train"), ("encoding with them", "encode")):
        for _, report in there(_STATIC):
            add(what, "bundled", report, report["ratios"][figure], min(map(len, report["seconds"].values())))
    for _, report in there(["bench_pairs"]):
        runs = min(map(len, report["seconds"].values()))
        add("most similar pairs", report["base"], report, report["ratio"], runs)
    for _, report in there(["words"]):
        taken = {side: (statistics.median(times), len(times)) for side, times in report["seconds"].items()}
        for kind_of, what in (("once", "words: texts read, 100 queries"), ("one by one", "words: an index asked")):
            for peer in report["peers"]:
                (theirs, runs), (mine, _) = taken[f"{kind_of}, {peer}"], taken[f"{kind_of}, ours"]
                add(what, f"beside {peer}", report, theirs / mine, runs)
    rows, processors = [], dict[str, dict[str, None]]()
    for (what, base, machine), ratios in found.items():
        counts = sorted({runs for _, runs in ratios})
        runs_of = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
        low, high = min(ratios)[0], max(ratios)[0]
        ratio = f"{low:.2f} to {high:.2f}" if len(ratios) > 1 else f"{low:.2f}"
        processor, _, rest = machine.partition(" (")
        rows.append([what, base, ratio, runs_of, rest.replace(")", "")])
        processors.setdefault(processor, {})[rest.partition(")")[0]] = None
    named = "; ".join(f"{', '.join(able)}: {processor}" for processor, able in processors.items())
    return table("what|base|ratio:|runs:|machine", rows) + f"\n{named}.\n"


def sooner(report: Report) -> list[str]:
    """How much sooner ours has the peer's last score, and the curves."""
    rows = []
    for row in report["rows"].values():
        for side, label, _ in STYLES:
            if side != "peer" and row.get(side):
                last = [*row[side].values()][-1]["stsb"], [*row["peer"].values()][-1]["stsb"]
                cells = [said_sooner(row, side), *(f"{score:.2f}" for score in last)]
                rows.append([row["corpus"], row["base"], label, *cells])
    headings = "corpus|base|ours|times sooner:|STS-B, ours:|STS-B, peer:"
    return [
        "## How soon an encoder is better\n",
        wrapped(
            "Whole commands, trained on neighbouring sentences, up to the peer's last score on held-out documents. By"
            " default ours stays near its base, which guards other scores; `--keep-base 0` is the peer's loss."
        ),
        table(headings, rows),
        "![Score over seconds from the command](images/time-to-score.svg)\n",
    ]


def main() -> None:
    """Write the page from what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("docs/results/speed"))
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks.md"))
    options = parser.parse_args()
    if not options.results.is_dir():
        raise SystemExit(f"there is no {options.results}: run it in the root of the repository")
    reports = {path.stem: read_json(path) for path in options.results.glob("*.json")}
    page = [HEAD, overview(reports), *(sooner(reports["time_to_score"]) if "time_to_score" in reports else [])]
    write_text(options.output, "\n".join([*page, HOW.format(near=NEAR)]))
    tables = [TABLES]
    for name in filter(reports.__contains__, SECTIONS):
        tables += [*SECTIONS[name](reports[name]), about(reports[name]), f"Raw: `docs/results/speed/{name}.json`.\n"]
    write_text(options.results.with_suffix(".md"), "\n".join(tables))


if __name__ == "__main__":
    main()
