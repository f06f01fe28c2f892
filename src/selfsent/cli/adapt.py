"""`selfsent adapt`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selfsent.cli.console import notice, show, shown
from selfsent.cli.options import JSON, Encoding
from selfsent.cli.outputs import as_line, check_outputs, write_outputs
from selfsent.cli.results import LEXICAL_WEIGHT
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.data.vector_files import Vectors
    from selfsent.scorers.scorer import Scorer


@dataclass(kw_only=True)
class Adapt(Encoding):
    """Adapt an encoder that you cannot train, such as an API's, to your search.

    A small map of the query's vector and the weight of words are learned from queries with known answers: an exam drawn
    by selfsent exam, real pairs, or clicks. The vectors of documents stay as they are. Half of the queries choose,
    the other half shows the gain; nothing is changed unless that is ahead by more than chance.
    """

    exam: str = setting(MISSING, "a folder that selfsent exam wrote, or your own in BEIR's layout", positional=True)
    vectors: str | None = setting(None, "a .parquet file with text and embedding, or a .npy file of the corpus' lines")
    queries: str | None = setting(None, "with a .npy file: another one, of the lines of queries", needs="vectors")
    model: str | None = setting(None, "in place of vectors: any model of selfsent evaluate")
    output: str = setting(MISSING, "the .safetensors file to write")
    lexical_weight: float | None = setting(
        None,
        "keep this weight of BM25; 0 for the cosine alone (default: chosen)",
        minimum=0.0,
        maximum=1000.0,
        flags=LEXICAL_WEIGHT,
    )
    json: str | None = JSON

    def run(self) -> None:
        """Learn, show and write the adapter."""
        from selfsent.evaluation.tasks.beir import read_task
        from selfsent.exam.adapt import adapt

        check_outputs({"--output": self.output, "--json": self.json}, [self.exam, self.vectors, self.queries])
        if Path(self.output).suffix != ".safetensors":
            raise SettingsError(f"`output` {self.output} must end in .safetensors")
        if (self.vectors is None) == (self.model is None):
            raise SettingsError("give `vectors`, files of them, or `model`, to compute them")
        folder = Path(self.exam)
        encoder = self._encoder(folder)
        dev, test = (read_task(folder, "adapted", split) for split in ("dev", "test"))
        with shown() as progress:
            found = adapt(encoder, dev, test, self.lexical_weight, progress)
        found.adapter.save(Path(self.output))
        about = {"adapter": found.adapter.name, "lexical_weight": found.adapter.words, "line": found.line}
        about["word_weight"] = about["lexical_weight"]  # deprecated
        for name, scores in (("before", found.before), ("after", found.after)):
            about |= {name: dict(zip(("dev", "test"), (score.to_json() for score in scores), strict=True))}
        if not write_outputs({self.json: lambda: as_line(about)}):
            show(found.line)
        notice(f"written to {self.output}")

    def _encoder(self, folder: Path) -> Scorer:
        """The encoder of the given vectors or model."""
        import numpy as np

        from selfsent.data.vector_files import VectorsFile
        from selfsent.exam.adapt import of_files
        from selfsent.scorers.load_scorer import load_scorer

        def read(path: str) -> Vectors:
            return np.concatenate([part for part, _ in VectorsFile(Path(path)).parts()])

        if self.vectors is not None and Path(self.vectors).suffix == ".npy":
            if self.queries is None:
                raise SettingsError("a .npy file has no texts: give `queries`, a second one with their vectors")
            return of_files(folder, read(self.vectors), read(self.queries), Path(self.vectors).stem)
        if self.queries is not None:
            raise SettingsError("`queries` goes with `vectors` in a .npy file")
        return load_scorer(self.vectors or self.model, **self.bits())
