"""The page of a comparison of methods: one HTML file without scripts that opens anywhere, offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from selfsent.report.differences import differences

Curve = Sequence[tuple[int, float]]
"""Steps and losses."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #6b6b6b; --line: #d9d9d9; --paper: #ffffff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --soft: #a0a0a0; --line: #3d3d3d; --paper: #161616 }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
tr.best td { font-weight: 600 } .soft { color: var(--soft) }
.wide { overflow-x: auto } td.text { overflow-wrap: anywhere }
svg { width: 100%; height: auto } svg text { fill: currentColor; font: 13px system-ui, sans-serif }
"""
_WIDTH, _LEFT, _ROW = 760, 230, 26
BEST, OTHER = "#2a86c4", "#8c8c8c"
"""Legible on white and on black; written into the drawings, so that they keep them wherever they are shown."""


def comparison_page(
    found: Mapping[str, Any],
    about: Mapping[str, Any],
    neighbours: Sequence[Mapping[str, Any]],
    curves: Mapping[str, Curve],
) -> str:
    """The page.

    Args:
        found: what `Selection.to_json` gives.
        about: what was compared, by what to call it; shown below the scores.
        neighbours: the nearest sentences of a few sentences, before and after the chosen method.
        curves: the losses of each method.
    """
    rows = [{"name": "untrained", "score": found["base"]}]
    rows += [{"name": each["name"], "score": each["dev"], **each} for each in found["candidates"]]
    rows.sort(key=lambda row: -row["score"]["score"])
    chosen = next((each for each in found["candidates"] if each["name"] == found["chosen"]), None)
    task = "the next sentence in development documents, MRR@10 × 100" if found["dev"] == "context" else found["dev"]
    parts = [
        f"<p>{_verdict(found, chosen)}</p>",
        f"<h2>To choose by: {escape(task)}</h2>",
        _dots(rows, found["base"], found["chosen"]),
        _scores(rows, found["chosen"]),
    ]
    if chosen and chosen["test"]:
        parts += ["<h2>On documents that nothing was trained on or chosen by</h2>", _test(chosen["test"])]
    if neighbours:
        parts += ["<h2>Nearest sentences, untrained and chosen</h2>", *map(_nearest, neighbours)]
    if drawn := [_curve(name, curve) for name, curve in curves.items() if len(curve) > 1]:
        parts += ["<h2>Losses</h2>", '<p class="soft">Each on its own scale: losses of two methods do not compare.</p>']
        parts += ['<div style="display:flex;flex-wrap:wrap;gap:1rem">', *drawn, "</div>"]
    parts += ["<h2>What was compared</h2>", _list(about)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>selfsent: methods compared</title><style>{_STYLE}</style></head>\n<body>"
        "<h1>Which method suits this text?</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _verdict(found: Mapping[str, Any], chosen: Mapping[str, Any] | None) -> str:
    failed = "".join(f" {escape(name)} failed: {escape(reason)}." for name, reason in found["failures"].items())
    failed += "".join(f" {escape(line)}." for line in found["hurried"])
    if chosen is None:
        return f"No method made the base better: use the base as it is, or give more text or more time.{failed}"
    text = f"<b>{escape(chosen['name'])}</b> is best: {_mean(chosen)}, untrained {found['base']['score']:.2f}."
    if len(chosen["seeds"]) > 1:
        text += f" The model is its run with seed {chosen['seed']}."
    if found["rivals"]:
        names = ", ".join(f"{escape(name)} (p {p:.2f})" for name, p in found["rivals"].items())
        what = "items and seeds" if found["seeds"] > 1 else "items"
        text += f" Not told apart from it by these {what}: {names}."
    return text + failed


def _mean(candidate: Mapping[str, Any]) -> str:
    """`37.65`, or `37.65 ± 0.31 over 3 seeds`."""
    shown, count = f"{candidate['dev']['score']:.2f}", len(candidate["seeds"])
    return shown if candidate["deviation"] is None else f"{shown} ± {candidate['deviation']:.2f} over {count} seeds"


def _dots(rows: Sequence[Mapping[str, Any]], base: Mapping[str, Any], best: str | None) -> str:
    """A dot and its 95 % interval for each, the untrained base as a line through all."""
    ends: list[float] = [value for row in rows for value in (row["score"]["low"], row["score"]["high"])]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return _LEFT + (value - low) / span * (_WIDTH - _LEFT - 60)

    height, middle = _ROW * len(rows) + 8, place(base["score"])
    parts = [
        f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="0" y2="{height}" stroke="{OTHER}" stroke-dasharray="4 3"/>'
    ]
    for number, row in enumerate(rows):
        y, score = _ROW * number + _ROW / 2 + 2, row["score"]
        colour = BEST if row["name"] == best else OTHER
        name = row["name"] if len(row["name"]) <= 24 else row["name"][:23] + "…"
        parts += [
            f'<text x="{_LEFT - 12}" y="{y + 4:.0f}" text-anchor="end">{escape(name)}</text>',
            f'<line x1="{place(score["low"]):.1f}" x2="{place(score["high"]):.1f}" y1="{y:.0f}" y2="{y:.0f}"'
            f' stroke="{colour}" stroke-width="2"/>',
            f'<circle cx="{place(score["score"]):.1f}" cy="{y:.0f}" r="5" fill="{colour}"/>',
            f'<text x="{place(score["high"]) + 8:.1f}" y="{y + 4:.0f}">{score["score"]:.1f}</text>',
        ]
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="scores">{"".join(parts)}</svg>'


def _scores(rows: Sequence[Mapping[str, Any]], best: str | None) -> str:
    lines = [_row(("", "score", "95 %", "against untrained", "p", "steps", "seconds"), head=True)]
    for row in rows:
        score, gain = row["score"], row.get("gain")
        cells = [
            row["name"],
            _mean(row) if gain else f"{score['score']:.2f}",
            f"{score['low']:.2f} to {score['high']:.2f}",
        ]
        if gain:
            steps = [each["steps"] or 0 for each in row["seeds"].values()]
            ends = " to ".join(f"{count:,}" for count in dict.fromkeys((min(steps), max(steps))) if count)
            cells += [
                f"{gain['difference']:+z.2f} [{gain['low']:+z.2f}, {gain['high']:+z.2f}]",
                f"{gain['p']:.3f}",
                ends,
            ]
            cells += [f"{row['seconds']:.0f}" if row["seconds"] else ""]
        else:
            cells += ["", "", "", ""]
        lines.append(_row(cells, best=row["name"] == best))
    if "tfidf" in (base := next(row for row in rows if row["name"] == "untrained"))["score"]:
        lines.append(_row(("TF-IDF, for comparison", f"{base['score']['tfidf']:.2f}", "", "", "", "", "")))
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'


def _test(scores: Mapping[str, Any]) -> str:
    names = {"trained": "chosen", "base": "untrained", "tfidf": "TF-IDF, for comparison"}
    lines = [_row(("", "score", "95 %"), head=True)]
    for key, name in names.items():
        one = scores[key]
        cells = (name, f"{one['score']:.2f}", f"{one['low']:.2f} to {one['high']:.2f}")
        lines.append(_row(cells, best=key == "trained"))
    for other, one in differences(scores, "untrained").items():
        interval = f"{one['low']:+z.2f} to {one['high']:+z.2f}"
        lines.append(_row((f"chosen − {other}", f"{one['score']:+z.2f}", interval)))
    return f"<table>{''.join(lines)}</table>"


def _nearest(entry: Mapping[str, Any]) -> str:
    lines = ["<tr><th>untrained</th><th>chosen</th></tr>"]
    for before, after in zip(entry["before"], entry["after"], strict=True):
        cells = (
            f'<td class="text"><span class="soft">{one["cosine"]:.2f}</span> {escape(one["sentence"])}</td>'
            for one in (before, after)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<p><b>{escape(entry['sentence'])}</b></p><table>{''.join(lines)}</table>"


def _curve(name: str, curve: Curve, width: int = 230, height: int = 90) -> str:
    steps, losses = zip(*curve, strict=True)
    low, high = min(losses), max(losses)
    points = " ".join(
        f"{width * (step - steps[0]) / (steps[-1] - steps[0]):.1f},"
        f"{4 + (height - 8) * (high - loss) / ((high - low) or 1):.1f}"
        for step, loss in curve
    )
    line = f'<polyline points="{points}" fill="none" stroke="{BEST}" stroke-width="1.5"/>'
    return (
        f'<figure style="margin:0;width:{width}px"><svg viewBox="0 0 {width} {height}">{line}</svg>'
        f'<figcaption>{escape(name)}<br><span class="soft">{losses[0]:.3g} to {losses[-1]:.3g} in {steps[-1]:,} steps'
        "</span></figcaption></figure>"
    )


def _list(about: Mapping[str, Any]) -> str:
    lines = (f"<tr><td>{escape(key)}</td><td>{escape(str(value))}</td></tr>" for key, value in about.items())
    return f"<table>{''.join(lines)}</table>"


def _row(cells: Sequence[str], head: bool = False, best: bool = False) -> str:
    kind = "th" if head else "td"
    shown = [f"<{kind}{' class=number' if place else ''}>{escape(cell)}</{kind}>" for place, cell in enumerate(cells)]
    return f"<tr{' class=best' if best else ''}>{''.join(shown)}</tr>"
