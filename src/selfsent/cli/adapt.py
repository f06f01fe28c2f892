"""`selfsent adapt`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selfsent.cli.console import notice, show, shown
from selfsent.cli.options import FILES, JSON, Encoding, Reading, full_name
from selfsent.cli.outputs import as_line, check_outputs, write_outputs
from selfsent.cli.results import LEXICAL_WEIGHT
from selfsent.display import counted
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.data.vector_files import Vectors
    from selfsent.scorers.scorer import Scorer


@dataclass(kw_only=True)
class Adapt(Reading, Encoding):
    """Adapt an encoder that you cannot train, such as an API's, to your search.

    A small map of the query's vector and the weight of words are learned from queries with known answers: an exam drawn
    by selfsent exam, real pairs, or clicks. The vectors of documents stay as they are. Half of the queries choose,
    the other half shows the gain; nothing is changed unless that is ahead by more than chance.

      selfsent adapt --from all-minilm --to all-mpnet --sample tickets.csv --output mpnet.safetensors

    With --from and --to, a map from the queries of a new encoder to the vectors that an old one made of your texts, so
    that these need not be encoded again at once; an exam says what that costs. selfsent index map takes the file.
    """

    main_options = "vectors model queries old new sample text_column output lexical_weight json"

    exam: str = setting(
        "",
        "a folder that selfsent exam wrote, or your own in BEIR's layout (default with --sample: drawn from it)",
        positional=True,
        nargs="?",
    )
    vectors: str | None = setting(None, "a .parquet file with text and embedding, or a .npy file of the corpus' lines")
    queries: str | None = setting(None, "with a .npy file: another one, of the lines of queries", needs="vectors")
    model: str | None = setting(None, "in place of vectors: any model of selfsent evaluate")
    old: str | None = setting(
        None, "the encoder of the texts, any model of selfsent evaluate", flags=("--from",), needs="new"
    )
    new: str | None = setting(None, "the encoder of queries to come", flags=("--to",), needs="old")
    sample: tuple[str, ...] = setting(
        (),
        f"texts to learn a map from, some thousands: {FILES} (default: those of EXAM)",
        nargs="+",
        needs="new",
        metavar="CORPUS",
    )
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

        sources = [self.exam, self.vectors, self.queries, *self.sample]
        check_outputs({"--output": self.output, "--json": self.json}, sources)
        if Path(self.output).suffix != ".safetensors":
            raise SettingsError(f"`output` {self.output} must end in .safetensors")
        if not self.sample:
            self.refuse_unread("--sample")
        if not (self.exam or self.sample):
            self.parser.error("the following arguments are required: EXAM")
        if self.new:
            self._swap()
            return
        if (self.vectors is None) == (self.model is None):
            raise SettingsError("give `vectors`, files of them, or `model`, to compute them")
        folder = Path(self.exam)
        encoder = self._encoder(folder)
        dev, test = (read_task(folder, "adapted", split) for split in ("dev", "test"))
        with shown("learning the adapter") as progress:
            found = adapt(encoder, dev, test, self.lexical_weight, progress)
        found.adapter.save(Path(self.output))
        about = {"adapter": found.adapter.name, "lexical_weight": found.adapter.words, "line": found.line}
        about["word_weight"] = about["lexical_weight"]  # deprecated
        for name, scores in (("before", found.before), ("after", found.after)):
            about |= {name: dict(zip(("dev", "test"), (score.to_json() for score in scores), strict=True))}
        if not write_outputs({self.json: lambda: as_line(about)}):
            show(found.line)
        notice(f"written to {self.output}")

    def _swap(self) -> None:
        """Learn, show and write the map between two encoders."""
        from selfsent.evaluation.tasks.beir import read_task
        from selfsent.exam.draw import draw_exam
        from selfsent.exam.swap import swap
        from selfsent.exam.texts import texts_of
        from selfsent.index.query_map import Mapped

        if self.vectors or self.queries or self.model:
            raise SettingsError("`old` and `new` name the encoders: leave out `vectors`, `queries` and `model`")
        corpus = self.read(self.sample, split_sentences=False, metadata_columns=()) if self.sample else None
        if self.exam:
            dev, test = (read_task(Path(self.exam), "adapted", split) for split in ("dev", "test"))
        else:
            assert corpus is not None
            drawn = draw_exam(texts_of(corpus))
            dev, test = drawn.halves
            notice(drawn.summary)
            if drawn.warning:
                notice(drawn.warning)
        # Documents of a drawn exam are texts of the sample, and are encoded once.
        texts = dev.documents if corpus is None or not self.exam else _drawn(corpus)
        (old, space), (new, fingerprint) = (self._scorer(name) for name in (self.old, self.new))
        about = Mapped("", full_name(str(self.new)), fingerprint, full_name(str(self.old)), space)
        with shown("learning the map") as progress:
            found = swap(old, new, texts, dev, test, self.lexical_weight, about=about, progress=progress)
        found.query_map.save(Path(self.output))
        size = min(found.query_map.matrix.shape)
        if len(texts) < 2 * size:
            notice(f"{counted(len(texts), 'text')} are few to learn a map of {size} directions from: give more")
        if not write_outputs({self.json: lambda: as_line(found.to_json())}):
            show(found.table())
            show(found.line)
        notice(f"written to {self.output}")

    def _scorer(self, name: str | None) -> tuple[Scorer, str]:
        """An encoder and its fingerprint, which is empty where no encoder is loaded."""
        from selfsent.scorers.load_scorer import is_directory_or_id, load_scorer, scorer_of

        if name is None or not is_directory_or_id(name):
            return load_scorer(name), ""
        seen = list[str]()
        return scorer_of(self.load(name, None, seen), name), seen[0]

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


def _drawn(corpus: Corpus) -> list[str]:
    """Texts of a corpus, drawn at random where there are many."""
    import numpy as np

    from selfsent.exam.draw import MAX_DOCUMENTS

    return corpus.texts(np.sort(np.random.default_rng(0).permutation(len(corpus))[:MAX_DOCUMENTS]))
