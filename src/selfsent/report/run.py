"""A finished run, read from its directory, and its display."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from selfsent.display import text_of
from selfsent.errors import RunError
from selfsent.models.saved import is_cross_encoder, load_sentence_transformer
from selfsent.report.run_page import run_page
from selfsent.report.scores import scores_table
from selfsent.report.warranted import warranty_table
from selfsent.run_record import upgraded
from selfsent.training.run_directory import RunDirectory


@dataclass(repr=False)
class Run:
    """A finished run.

    Args:
        directory: of the run.
        record: the content of its `run.json`, with everything that decides the result under `config`.
        scores: before and after, if the corpus has documents: base, trained, TF-IDF and the paired difference, at
            finding the next sentence.
        neighbours: for three held-out sentences, the nearest sentences before and after.
        search_scores: as `scores`, at search, for documents and pairs; `asked` describes the queries.
    """

    directory: Path
    record: dict[str, Any]
    scores: dict[str, Any] | None = None
    neighbours: list[dict[str, Any]] = field(default_factory=list)
    search_scores: dict[str, Any] | None = None

    def __fspath__(self) -> str:
        """The directory, so that a run can be passed as a model."""
        return str(self.directory)

    def __str__(self) -> str:
        """Scores and neighbours as text."""
        where = f"The model is in {self.directory / 'model'}"
        tables = [text_of(scores_table(each)) for each in (self.search_scores, self.scores) if each]
        if "warranty" in self.record:
            tables.append(text_of(warranty_table(self.record["warranty"])))
        return "\n".join([*tables, where])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Scores, neighbours and curves, for notebooks."""
        metrics = RunDirectory(self.directory).metrics()
        return run_page(self.record, self.scores, self.neighbours, metrics, fragment=True, search=self.search_scores)

    @cached_property
    def model(self) -> Any:
        """The trained model, an ordinary SentenceTransformer, or a CrossEncoder.

        Raises:
            RunError: no model, as in the directory of a cross-validation.
        """
        directory = self.directory / "model"
        if not directory.is_dir():
            raise RunError(f"{self.directory} holds no model")
        if is_cross_encoder(directory):
            from sentence_transformers import CrossEncoder as Ordinary

            return Ordinary(str(directory), local_files_only=True)
        return load_sentence_transformer(directory)


def load_run(output: str | Path) -> Run:
    """A finished run, read from its directory.

    Raises:
        RunError: no finished run.
    """
    path = Path(output)
    try:
        record = upgraded(json.loads((path / "run.json").read_text(encoding="utf-8")))
        report = json.loads((path / "scores.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise RunError(f"{path} holds no finished run") from None
    return Run(path, record, report["scores"], report["neighbours"], report.get("search"))
