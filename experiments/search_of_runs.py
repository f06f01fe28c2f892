"""What runs say of search: five corpora, trained on by default, as `selfsent train` scores them at its end.

python experiments/search_of_runs.py --data DIR --runs DIR --output docs/results/quality/search_of_runs.json

DIR of the data holds `retrieval/<set>/corpus.parquet`. Runs that are finished are not trained again. The same from the
command line: `selfsent train python:stdlib --output DIR`, `selfsent train corpus.parquet --text-columns title,text` ...
"""

from __future__ import annotations

import argparse
from pathlib import Path

import selfsent
from selfsent.files import write_json

PAIRS, DOCUMENTS = {"text_columns": ("title", "text")}, {"text_column": "text", "split_sentences": True}
CORPORA = {"cranfield": PAIRS, "cisi": PAIRS, "counsel": DOCUMENTS, "scitldr": DOCUMENTS}


def main() -> None:
    """Train what is not there yet, and write the scores of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    found = {}
    for name in ("stdlib", *CORPORA):
        output = options.runs / name
        if not (output / "scores.json").is_file():
            source = "python:stdlib" if name == "stdlib" else options.data / "retrieval" / name / "corpus.parquet"
            corpus = selfsent.read_corpus(source, **CORPORA.get(name, {}))
            selfsent.train(corpus, output=output, overwrite=True, map_points=0)
        run = selfsent.load_run(output)
        found[name] = {"method": run.record["asked"]["method"], "search": run.search, "context": run.scores}
    write_json(options.output, found)


if __name__ == "__main__":
    main()
