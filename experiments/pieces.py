"""How many pieces do words fall into, in English of many kinds and in other languages, by several vocabularies?

python experiments/pieces.py --text DIR --data DIR --tokenizer NAME=DIR ... --output docs/results/quality/pieces.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from transformers import AutoTokenizer

from selfsent import read_corpus
from selfsent.files import write_json
from selfsent.models.loading import load_encoder
from selfsent.models.reading import LOOKED_AT, pieces_of_a_word
from selfsent.training.run_directory import versions

LANGUAGES = ("ar", "de", "es", "fr", "tr")


def texts(options: argparse.Namespace) -> dict[str, list[str]]:
    """Some sentences of each corpus, drawn at random."""
    sources: dict[str, dict[str, Any]] = {
        path.name.partition(".")[0]: {"source": path} for path in sorted(options.text.glob("*.txt*"))
    }
    for language in LANGUAGES:
        file = options.data / "parallel" / f"en-{language}" / "train.parquet"
        sources[language] = {"source": file, "text_column": language}
    found = {}
    for name, how in sources.items():
        corpus = read_corpus(**how)
        rows = np.random.default_rng(0).choice(len(corpus), min(len(corpus), LOOKED_AT), replace=False)
        found[name] = corpus.texts(np.sort(rows))
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="a folder of texts in English")
    parser.add_argument("--data", type=Path, required=True, help="the mirror of the data sets, with parallel/")
    parser.add_argument("--tokenizer", action="append", default=[], metavar="NAME=DIR", help="more vocabularies")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    encoders: dict[str, Any] = {name: load_encoder(name) for name in ("bundled", "bundled-encoder")}
    for given in options.tokenizer:
        name, _, place = given.partition("=")
        encoders[name] = SimpleNamespace(tokenizer=AutoTokenizer.from_pretrained(place))
    corpora = texts(options)
    rows = {
        name: {corpus: round(pieces_of_a_word(cast(Any, encoder), lines), 3) for corpus, lines in corpora.items()}
        for name, encoder in encoders.items()
    }
    write_json(options.output, {"versions": versions(), "rows": rows})
    for name, found in rows.items():
        english = [value for corpus, value in found.items() if corpus not in LANGUAGES]
        others = "  ".join(f"{language} {found[language]:.2f}" for language in LANGUAGES)
        print(f"{name}: English {min(english):.2f} to {max(english):.2f}  {others}")


if __name__ == "__main__":
    main()
