"""Which linear map behind an encoder, fitted on unlabelled text of a domain, helps there, and which does no harm?

    python experiments/maps.py experiments/judges.yaml --text text --bases bundled,minilm --base minilm=DIR \
        --output docs/results/quality/maps.json
    python experiments/maps.py experiments/judges.yaml --output docs/results/quality/maps.json --table

Domains, labelled tasks and judges are those of experiments/judges.py. Each text is encoded once by the base, or, with
--method, by what that trained of it, and every map is fitted on the vectors of the training sentences. The vectors are
kept in --runs.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from grid import finished, keep, train_row
from judges import Place, load

from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.encoders import as_encoder
from selfsent.recipes import read_document

SIZE = {"sentences": 8000, "judged": 1000, "labelled": 1000, "pairs": 0}
Map = Callable[[np.ndarray], np.ndarray]


def power(fit: np.ndarray, strength: float, ridge: float = 0.0, *, centre: bool = True) -> Map:
    """(u - mean) (C + ridge * mean variance)^(-strength / 2): strength 0 centres, 1 whitens."""
    mean = centre * fit.mean(0)
    variances, directions = np.linalg.eigh(np.cov(fit.T))
    variances = np.maximum(variances, 1e-9 * variances.max()) + ridge * variances.mean()
    return lambda u: (u - mean) @ (directions * variances ** (-strength / 2)) @ directions.T


def diagonal(fit: np.ndarray, strength: float) -> Map:
    """(u - mean) / deviation ^ strength, dimension by dimension: strength 1 is z-scores."""
    mean, deviation = fit.mean(0), np.maximum(fit.std(0), 1e-6 * fit.std(0).max())
    return lambda u: (u - mean) / deviation**strength


def without_top(fit: np.ndarray, count: int) -> Map:
    """The vectors less their mean and their largest directions (Mu and Viswanath 2018)."""
    mean = fit.mean(0)
    top = np.linalg.eigh(np.cov(fit.T))[1][:, -count:]
    return lambda u: (u - mean) - (u - mean) @ top @ top.T


MAPS: dict[str, Callable[[np.ndarray], Map]] = {
    "untrained": lambda fit: lambda u: u,
    "centred": lambda fit: power(fit, 0.0),
    "z-scores, 0.5": lambda fit: diagonal(fit, 0.5),
    "z-scores": lambda fit: diagonal(fit, 1.0),
    "whitened, 0.1": lambda fit: power(fit, 0.1),
    "whitened, 0.2": lambda fit: power(fit, 0.2),
    "whitened, 0.25": lambda fit: power(fit, 0.25),
    "whitened, 0.25, not centred": lambda fit: power(fit, 0.25, centre=False),
    "whitened, 0.25, on 1,000": lambda fit: power(fit[:: max(1, len(fit) // 1000)], 0.25),
    "whitened, 0.25, ridge 0.1": lambda fit: power(fit, 0.25, 0.1),
    "whitened, 0.1, ridge 0.1": lambda fit: power(fit, 0.1, 0.1),
    "whitened, 0.1, ridge 0.1, on 1,000": lambda fit: power(fit[:: max(1, len(fit) // 1000)], 0.1, 0.1),
    "whitened, 0.1, ridge 0.1, on 100": lambda fit: power(fit[:: max(1, len(fit) // 100)], 0.1, 0.1),
    "whitened, 0.3": lambda fit: power(fit, 0.3),
    "whitened, 0.4": lambda fit: power(fit, 0.4),
    "whitened, 0.5": lambda fit: power(fit, 0.5),
    "whitened, 0.75": lambda fit: power(fit, 0.75),
    "whitened": lambda fit: power(fit, 1.0),
    "whitened, ridge 0.1": lambda fit: power(fit, 1.0, 0.1),
    "whitened, ridge 1": lambda fit: power(fit, 1.0, 1.0),
    "whitened, ridge 3": lambda fit: power(fit, 1.0, 3.0),
    "without the first": lambda fit: without_top(fit, 1),
    "without the first three": lambda fit: without_top(fit, 3),
}


def mapped(base: Encoder, name: str, each: Map) -> Encoder:
    """The base with a map behind it."""
    return Encoder(lambda texts: each(base(texts).astype(np.float64)), name)


def table(rows: dict[str, Any]) -> str:
    """Gains over the untrained base: each base and map, by task; those for choosing first."""
    lines = []
    for base in dict.fromkeys(row["base"] for row in rows.values()):
        of_base = [row for row in rows.values() if row["base"] == base]
        cells: dict[str, dict[str, float]] = {}
        for row in of_base:
            scores = {**{t: s[0] for t, s in row["labelled"].items()}, "context": row["context"]}
            for task, score in scores.items():
                column = task if task in row["tasks"] else f"{task}, {row['domain']}"
                cells.setdefault(column, {})[row["map"]] = score
        names = sorted((n for n in cells if len([v for v in cells[n].values() if v is not None]) > 1), key=_order)
        lines += [f"\n| {base} | {' | '.join(names)} |", "|---|" + "--:|" * len(names)]
        for title in (title for title in MAPS if any(row["map"] == title for row in of_base)):
            gains = [
                f"{cells[n][title]:.2f}" if title == "untrained" else f"{cells[n][title] - cells[n]['untrained']:+.2f}"
                for n in names
            ]
            lines.append(f"| {title} | {' | '.join(gains)} |")
    return "\n".join(lines)


def _order(name: str) -> tuple[bool, bool, bool, str]:
    return ("-dev" not in name, "stsb" in name, "context" in name, name)


def main() -> None:
    """Do what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/maps"))
    parser.add_argument("--data", help="mirror of the labelled data sets (default: SELFSENT_DATA)")
    parser.add_argument("--text", type=Path, default=Path(), metavar="DIR", help="where the text of the domains is")
    parser.add_argument("--base", action="append", default=[], metavar="NAME=DIR", help="the directory of a named base")
    parser.add_argument("--bases", default="bundled", help="names of bases, between commas")
    parser.add_argument("--method", help="train by it first, with its defaults, where the domain has documents")
    parser.add_argument("--maps", help="names of maps, between semicolons (default: all)")
    parser.add_argument("--sentences", type=int, default=SIZE["sentences"], help="to train and to fit on, at most")
    parser.add_argument("--start", type=float, help="strength of a whitening of the base before it is trained")
    parser.add_argument("--table", action="store_true", help="print what the output holds, and run nothing")
    options = parser.parse_args()
    if options.table:
        print(table(finished(options.output)))
        return
    warnings.simplefilter("ignore")
    recipe, named = read_document(options.recipe), dict(given.split("=", 1) for given in options.base)
    wanted = options.maps.split(";") if options.maps else list(MAPS)
    size = {**SIZE, "sentences": options.sentences}
    options.runs.mkdir(parents=True, exist_ok=True)
    for base in options.bases.split(","):
        directory, title = named.get(base, base), base
        title += f", whitened {options.start}" if options.start is not None else ""
        title += f", {options.method}" if options.method else ""
        title += f", {options.sentences:,} sentences" if options.sentences != SIZE["sentences"] else ""
        for domain in recipe["domains"]:
            todo = [name for name in wanted if f"{domain} | {title} | {name}" not in finished(options.output)]
            if not todo:
                continue
            without_pairs = {k: v for k, v in recipe["domains"][domain].items() if k != "pairs"}
            place = Place(without_pairs, "bundled", size, options)
            if options.method and place.corpus.documents is None:
                continue
            vectors = options.runs / f"{title}, {domain}.npz"
            model = directory
            if not vectors.is_file() and options.method:
                if options.start is not None:
                    row = {"method": "whitening", "base": model, "strength": options.start}
                    model, _ = train_row(row, 0, place.corpus, place.train, options.runs / "start")
                row = {"method": options.method, "base": model, "whiten": 0.0}
                model, _ = train_row(row, 0, place.corpus, place.train, options.runs / "model")
            encoder = as_encoder(str(vectors)) if vectors.is_file() else load(model)
            fit = encoder(place.corpus.texts(place.train)).astype(np.float64)
            for name in todo:
                candidate = mapped(encoder, name, MAPS[name](fit))
                context = place.judges["context"].score(candidate).score if "context" in place.judges else None
                row = {"base": title, "domain": domain, "map": name, "fitted_on": len(fit)}
                row |= {"tasks": place.domain["tasks"], "labelled": place.labelled(candidate), "context": context}
                keep(options.output, options.recipe.name, f"{domain} | {title} | {name}", row)
                print(row, flush=True)
            if not vectors.is_file():
                encoder.write(vectors)


if __name__ == "__main__":
    main()
