"""A section of docs/benchmarks.md for each benchmark: its table in words that a reader needs no code for."""

from __future__ import annotations

import statistics
import textwrap
from typing import Any

from encode import SAME as NEAR
from time_to_score import STYLES, times_sooner
from train import SAME, fastest


def about(report: dict[str, Any]) -> str:
    """Machine, versions and date."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    processor = f"{machine['processor']} ({machine['capability']}), {machine['threads']} threads"
    return wrapped(f"*{processor}; {versions}; {machine['date']}.*").rstrip()


def wrapped(text: str) -> str:
    """A paragraph."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def spread(values: list[float]) -> str:
    """Mean and standard deviation over the seeds."""
    if len(values) < 2:
        return "".join(f"{value:.2f}" for value in values)
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"


def is_worse(found: dict[str, Any]) -> bool:
    """Whether the fastest of ours ends at a worse loss than the peer."""
    losses = {side: row["held_out_loss"] for side, row in found["rows"].items() if row["held_out_loss"]}
    theirs = min((statistics.mean(loss) for side, loss in losses.items() if side.startswith("theirs")), default=0.0)
    return statistics.mean(losses[fastest(found["rows"], "ours")]) > SAME * theirs + 1e-4


def ratio_of(found: dict[str, Any], side: str) -> str:
    """The ratios, beside the fastest of ours: to the peer's fastest, and to its float32."""
    if "ratio" not in found or side != fastest(found["rows"], "ours"):
        return ""
    plain = f" ({found['ratio_to_float32']:.2f}x)" if "ours bfloat16" in found["rows"] else ""
    return f"**{found['ratio']:.2f}x**{plain}"


def train(report: dict[str, Any]) -> str:
    """Speed and quality of each method, base and batch size."""
    bases, sizes = (
        ", ".join(dict.fromkeys(str(found[key]) for found in report["comparisons"])) for key in ("base", "batch_size")
    )
    products = ", ".join(f"{value:.0f} GFLOP/s in {name}" for name, value in report["gflops"].items())
    seconds = "Seconds of the processor" if report["processor_time"] else "Seconds"
    low = "" if "bfloat16" in report["gflops"] else ", on a processor without bfloat16"
    low = ", on a processor with AMX" if report["machine"]["capability"] == "AMX" else low
    methods = list(dict.fromkeys(found["method"] for found in report["comparisons"]))
    some = f" with {', '.join(methods)}" if len(methods) < 4 else ""
    lines = [
        f"## Training {bases}{some}, batch {sizes}{low}\n",
        wrapped(
            f"{report['sentences']:,} sentences of {report['corpus']}; the median of {report['repetitions']}."
            f" {seconds}. The matrix product reaches {products}."
        ),
        "| method | base | batch | side | sentences/s | of the product | padding | held-out loss | STS-B | ratio |",
        "|---|---|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    for found in report["comparisons"]:
        losses = {
            side: sum(row["held_out_loss"]) / max(1, len(row["held_out_loss"])) for side, row in found["rows"].items()
        }
        for side, row in found["rows"].items():
            loss = f"{losses[side]:.4f}" if row["held_out_loss"] else ""
            quality = spread(row["stsb"])
            ratio = ratio_of(found, side)
            if ratio and is_worse(found):
                ratio = f"{found['ratio']:.2f}x, at a worse loss"
            lines.append(
                f"| {found['method']} | {found['base']} | {found['batch_size']} | {side}"
                f" | {row['sentences_per_second']:.1f} | {row['utilisation']:.0%}"
                f" | {row['waste'][0]:.0%}, {row['waste'][1]:.0%}"
                f" | {loss} | {quality} | {ratio} |"
            )
    return "\n".join([*lines, "", about(report)])


def against_defaults(figures: dict[str, Any]) -> str:
    """The ratio of the setting that counts; in newer files that of every setting, with its cosine where that is low."""
    ratios = []
    for side, ratio in (figures.get("ratios_to_defaults") or {"": figures["ratio_to_defaults"]}).items():
        least = figures["rows"][side]["smallest_cosine"] if side else 1
        low = "" if least >= NEAR else f" at a smallest cosine of {least:.4f}"
        ratios.append(f"{side.removeprefix('ours ')} {ratio:.2f}x{low}".strip())
    return ", ".join(ratios)


def encode(report: dict[str, Any]) -> str:
    """Sentences a second and cosine of each setting."""
    every = any("exported" in side for figures in report["bases"].values() for side in figures["rows"])
    title = "Encoding, with every back end that can be installed" if every else "Encoding"
    title += " with a large encoder" if [*report["bases"]] == ["bert-base"] else ""
    title += f" ({report['machine']['capability']})" if every else ""
    lines = [
        f"## {title}\n",
        f"{report['sentences']:,} sentences of {report['corpus']}.\n",
        "| model | setting | sentences/s | of the matrix product | smallest, mean cosine |",
        "|---|---|--:|--:|--:|",
    ]
    for base, figures in report["bases"].items():
        for setting, row in figures["rows"].items():
            lines.append(
                f"| {base} | {setting} | {row['sentences_per_second']:.1f} | {row['utilisation']:.0%}"
                f" | {row['smallest_cosine']:.6f}, {row['mean_cosine']:.6f} |"
            )
    ratios = ", ".join(
        f"{base} {figures['ratio']:.2f}x ({against_defaults(figures)} against the peer's defaults)"
        for base, figures in report["bases"].items()
    )
    return "\n".join([*lines, "", wrapped(f"**encode: {ratios}**"), about(report)])


def pairs(report: dict[str, Any]) -> str:
    """Seconds of each side."""
    lines = [
        "## The most similar pairs\n",
        f"{report['sentences']:,} distinct sentences of {report['corpus']}, {report['base']}, from loaded model to"
        " answer.\n",
        "| side | seconds |",
        "|---|--:|",
    ]
    lines += [f"| {side} | {sorted(taken)[len(taken) // 2]:.2f} |" for side, taken in report["seconds"].items()]
    common, apart = report["pairs_in_common"], report["largest_difference"]
    named = ", ".join(f"{side} {count} (cosines at most {apart[side]:.0e} apart)" for side, count in common.items())
    same = wrapped(f"Of the {report['top']} best pairs of their float32, this many are found: {named}.")
    return "\n".join(
        [
            *lines,
            f"\n{same}",
            f"**pairs {report['ratio']:.2f}x** ({' against '.join(report['fastest'])})\n",
            about(report),
        ]
    )


def cost(report: dict[str, Any]) -> str:
    """The curves, and their points."""
    lines = [
        "## Cost against size\n",
        wrapped(
            f"Whole commands with {report['model']}, each in a process of its own. `read` is reading, cleaning and"
            " tokenising, with one step of training. `train` is ten steps of `tsdae`, and scoring up to 10,000 held-out"
            " sentences before and after. For the table that ships, see [How long it takes](how-long.md)."
        ),
        "![Seconds, peak memory and bytes on disk against the number of sentences](results/speed/cost.svg)\n",
        "| command | sentences | seconds | peak memory, MB | on disk, MB |",
        "|---|--:|--:|--:|--:|",
    ]
    for row in report["rows"]:
        figures = " | ".join(f"{row[key]:,.1f}" for key in ("seconds", "peak_mb", "disk_mb"))
        lines.append(f"| {row['command']} | {row['sentences']:,} | {figures} |")
    return "\n".join([*lines, "", about(report)])


def fast_paths(report: dict[str, Any]) -> str:
    """What each fast path gains, by kind of processor."""
    lines = [
        "## What each fast path is worth\n",
        wrapped(
            "Seconds without it over seconds with it, of a whole training or encoding. `benchmarks/fast_paths.py`"
            " measures. What gains less than a tenth on every kind of processor can go."
        ),
        "| path | what it is for | where | " + " | ".join(f"a processor {kind}" for kind in report) + " |",
        "|---|---|---|" + "--:|" * len(report),
    ]
    for key in dict.fromkeys(key for part in report.values() for key in part["rows"]):
        what = next(part["rows"][key]["what"] for part in report.values() if key in part["rows"])
        ratios = [f"{part['rows'][key]['ratio']:.2f}" if key in part["rows"] else "" for part in report.values()]
        lines.append(f"| {key.replace(' | ', f' | {what} | ')} | " + " | ".join(ratios) + " |")
    return "\n".join([*lines, "", *map(about, report.values())])


def time_to_score(report: dict[str, Any]) -> str:
    """Score over time from the command, and how much sooner ours is there."""
    lines = [
        "## How soon an encoder is better\n",
        wrapped(
            "Seconds from the command to an encoder trained on neighbours, and its score on documents kept apart"
            " (`context`) and on STS-B. Each point is a whole command. Ours reads, cleans, scores before and after and"
            " draws a map; the peer is a script with the usual loss and the same pairs in a file, in the precision and"
            " at the rate that are best for it. By default ours holds on to the base, which costs some of the corpus'"
            ' own score and guards the others; `--keep-base 0` is the peer\'s loss. "Times sooner" compares the'
            " seconds to the peer's last score: the peer's, to its first point within 0.1 of it, over ours"
            " (`benchmarks/time_to_score.py`)."
        ),
        "![Score over seconds from the command](images/time-to-score.svg)\n",
        "| corpus, base | who | steps | seconds | context | STS-B | times sooner at the peer's last context |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in report["rows"].values():
        name, before = f"{row['corpus']}, {row['base']}", row["untrained"]
        lines.append(f"| {name} | before | | | {before['context']:.2f} | {before['stsb']:.2f} | |")
        for side, label, _ in STYLES:
            for steps, point in row.get(side, {}).items():
                last = steps == list(row[side])[-1] and side != "peer"
                sooner = times_sooner(row, side) if last else float("nan")
                said = "" if not last else "not reached" if sooner != sooner else f"{sooner:.1f}"
                figures = f"{point['seconds']:.0f} | {point['context']:.2f} | {point['stsb']:.2f}"
                lines.append(f"| | {label} | {steps} | {figures} | {said} |")
    return "\n".join([*lines, "", about(report), ""])
