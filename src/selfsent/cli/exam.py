"""`selfsent exam`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from selfsent import naming
from selfsent.cli.console import StatusLine, doing, notice, show, with_flags
from selfsent.cli.options import FILES, JSON, Encoding, Reading
from selfsent.cli.outputs import as_line, check_outputs, write_outputs
from selfsent.display import listed
from selfsent.errors import OutputError, SettingsError
from selfsent.settings import setting
from selfsent.version import __version__

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus


@dataclass(kw_only=True)
class Exam(Reading, Encoding):
    """Draw queries with known answers from your own texts, and see which model finds them.

      selfsent exam tickets.csv --text-column body --title-column subject --output exam/
      selfsent exam exam/ --models bundled,bm25,runs/tickets
      selfsent exam tickets.csv --text-column body --plan standard --encoder sentence-transformers/all-MiniLM-L6-v2

    A title must find its text, a question at the beginning what follows it, a sentence the document without it, and
    with --clean mail what a mail quotes the answer to it. Some of the words that both share are left out, as people who
    search do not know them. The exam is a folder in BEIR's layout, to read, to mend, and for evaluate --retrieval.

    A plan tries what people decide about a search, from cheap to dear, and says what to take for its score and price;
    `selfsent index build --exam exam/` builds that. Given again, it goes on where it stopped.
    """

    main_options = "text_column title_column pairs id_column output models plan encoder queries trained overwrite json"

    corpus: str = setting("", f"{FILES}; or an exam, to compare models on it as it is", positional=True)
    output: str | None = setting(None, "the folder to write")
    title_column: str | None = setting(None, "column with titles, such as subject")
    pairs: tuple[str, ...] = setting((), "column with what is asked, and column with its answer: ask nothing else")
    id_column: str | None = setting(None, "column with the ids of the documents")
    queries: int = setting(1000, "queries at most", minimum=2)
    seed: int = setting(0, "draw other queries", minimum=0)
    trained: str | None = setting(
        None, "a run on this corpus: read it as the run did, and ask only of what it has not read", flags=("--run",)
    )
    overwrite: bool = setting(False, "throw away the exam in OUTPUT, and what was mended in it")
    models: tuple[str, ...] = setting(
        (),
        "compare these, as for evaluate, or vectors:FILE; NAME=MODEL names one (default without OUTPUT: the table that"
        " ships for the language, bm25 and tfidf)",
    )
    plan: str | None = setting(
        None,
        "try whole configurations: standard, programs, or a YAML file like them (OUTPUT is exam then, if not given)",
    )
    encoder: str | None = setting(None, "a transformer to try in the plan; NAME=MODEL names it", needs="plan")
    json: str | None = JSON

    def run(self) -> None:
        """Draw, write, and compare."""
        from selfsent.exam.exam import is_exam
        from selfsent.scorers.load_scorer import check_model

        check_outputs({"--json": self.json}, [self.corpus])
        given = Path(self.corpus)
        if self.plan is not None:
            self._check_plan()
            self.output = self.output or (None if is_exam(given) else "exam")
        if self.output is not None and is_exam(given):
            raise SettingsError(f"{given} is an exam already: leave out output")
        models = [(name, model.removeprefix("vectors:")) for name, model in map(naming.name_given, self.models)]
        for _, model in models:
            check_model(model)
        with TemporaryDirectory() as temporary:
            folder = given if is_exam(given) else Path(self.output or Path(temporary) / "exam")
            if folder != given:
                self._write(folder)
            if self.plan is not None:
                self._try(folder)
                return
            if not models and (self.json or self.output is None or is_exam(given)):
                models = [(None, self._table_for(folder)), (None, "bm25"), (None, "tfidf")]
            if models:
                self._compare(folder, models)

    def _write(self, folder: Path) -> None:
        """Draw the exam and write it."""
        from selfsent.exam.draw import draw_exam
        from selfsent.exam.exam import is_exam
        from selfsent.exam.texts import texts_of, unread

        old = read_record_of(folder) if self.plan is not None and not self.overwrite and is_exam(folder) else None
        if folder.exists() and old is None and not (is_exam(folder) and self.overwrite) and not _is_empty(folder):
            what = "overwrite=True replaces it; as the corpus it is taken as is" if is_exam(folder) else "name another"
            raise OutputError(f"{folder} exists already: {what}")
        if self.pairs and (len(self.pairs) != 2 or self.title_column or self.text_column):
            raise SettingsError("`pairs` names two columns, of queries and of answers, in place of the other columns")
        if self.trained:
            self._read_as(Path(self.trained))
        asked, texts = self.pairs or (self.title_column, self.texts)
        mails = self.text_column if "mail" in naming.names(self.clean) and not self.pairs else ()
        metadata = tuple(dict.fromkeys(name for name in (asked, self.id_column, *mails) if name is not None))
        corpus = self._read(texts, split_sentences=False, metadata_columns=metadata)
        with doing() as now:
            now("drawing queries")
            found = texts_of(corpus, asked, self.id_column, mails)
            kept = unread(Path(self.trained), found) if self.trained else None
            drawn = draw_exam(found, self.queries, paired=bool(self.pairs), seed=self.seed, kept=kept)
        about = {"source": corpus.source, "corpus": corpus.fingerprint, "seed": self.seed, "run": self.trained}
        if old is not None:
            if any(old.get(key) != value for key, value in {**about, "made_of": drawn.summary}.items()):
                raise OutputError(f"{folder} is an exam of something else: overwrite=True replaces it, or name another")
            notice(f"{folder} has this exam already: going on")
            return
        about |= {"reading": self.values("text_column", "title_column", "pairs", "id_column", "clean")}
        drawn.write(folder, **about, version=__version__)
        if line := corpus.report.advice():
            notice(line)
        notice(f"{drawn.summary}{f', in {folder}' if self.output else ''}")
        if drawn.warning:
            notice(drawn.warning)

    def _check_plan(self) -> None:
        """Reject what does not go with a plan, and a plan that is wrong, before anything is read."""
        from selfsent.cli.exam_plan import read_plan
        from selfsent.models.bases import BUNDLED

        if self.models:
            raise SettingsError("`plan` says which models to compare: leave out `models`, or write them into the plan")
        read_plan(self.plan or "", BUNDLED, self.encoder)

    def _try(self, folder: Path) -> None:
        """Try the plan on the exam in a folder, write the page and show the table."""
        from selfsent.cli.exam_plan import plan_file, read_plan
        from selfsent.exam.plan import FOLDER
        from selfsent.exam.trial import try_plan
        from selfsent.files import write_text
        from selfsent.report.exam_page import exam_page

        plan = read_plan(self.plan or "", self._table_for(folder), self.encoder)
        with doing() as now:
            found = try_plan(plan, folder, _train, StatusLine(now), **self.bits())
        page = folder / FOLDER / "page.html"
        write_text(page, exam_page(found))
        write_text(page.with_name("plan.yaml"), plan_file(self.plan or "").read_text(encoding="utf-8"))
        if write_outputs({self.json: lambda: as_line(found.to_json())}):
            return
        show(found.short_table())
        show(found.sentence)
        notice(f"the page: {page}; to build it: selfsent index build --exam {folder} --output DIR")

    def _table_for(self, folder: Path) -> str:
        """The table that ships for the language of an exam's documents."""
        from selfsent.data.corpus import read_corpus

        [documents] = sorted(folder.glob("corpus.*"))[:1] or [folder / "corpus.jsonl"]
        return self.table_for(read_corpus(str(documents), split_sentences=False, min_rows=1))

    def _read_as(self, run: Path) -> None:
        """Take from a run how it read its corpus, as far as nothing else is given, and tell it."""
        from selfsent.data.corpus.batch import TITLES
        from selfsent.run_record import read_record

        known = read_record(run.parent if run.name == "model" else run).get("reading", {})
        if self.text_column or self.pairs or not known:
            return
        first, *others = known.get("text_columns") or naming.names(known.get("text_column"))
        if known.get("text_columns") and first.lower() not in TITLES:
            self.pairs = (first, others[0])
        elif others and first.lower() in TITLES:
            self.title_column, self.text_column = self.title_column or first, tuple(others[:1])
        else:
            self.text_column = (first, *others)
            beside = known.get("title")
            self.title_column = self.title_column or beside
        self.document_column = self.document_column or known.get("document_column")
        self.clean = self.clean or tuple(known.get("clean") or ())
        what = f"{listed(self.text_column)}, by {self.title_column}" if self.title_column else listed(self.text_column)
        what = f"{self.pairs[1]}, by {self.pairs[0]}" if self.pairs else what
        notice(f"as {run} read the table: asking for {what}, of what it has not read")

    def _read(self, texts: Any, **how: Any) -> Corpus:
        from selfsent.data.corpus import read_corpus

        return read_corpus(self.corpus, **{**self.reading(), "text_column": texts, **how})

    def _compare(self, folder: Path, models: list[tuple[str | None, str]]) -> None:
        """Compare models on the exam in a folder."""
        from selfsent.exam.compare import compare_on_exam
        from selfsent.scorers.lexical import WITH_WORDS, without_words
        from selfsent.scorers.load_scorer import load_scorer

        bits = self.bits()
        with doing() as now:
            shown = naming.short_names([model for _, model in models])
            # A hybrid adds its own suffix.
            shown = [
                name.removesuffix(WITH_WORDS) if without_words(m) else name
                for name, (_, m) in zip(shown, models, strict=True)
            ]
            named = [(name or short, model) for (name, model), short in zip(models, shown, strict=True)]
            encoders = [partial(load_scorer, model, name=name, **bits) for name, model in named]
            found = compare_on_exam(folder, encoders, StatusLine(now))
        if write_outputs({self.json: lambda: as_line(found.to_json())}):
            return
        show(found.table())
        show(with_flags(found.verdict))


def _train(source: Path, options: Mapping[str, Any], output: Path) -> None:
    """Train as a row of a plan says."""
    from selfsent.api import train

    more = dict(options)
    method, base = more.pop("method", None), more.pop("base", None)
    train(str(source), method, base, str(output), hold_out=0, overwrite=True, quiet=True, **more)


def read_record_of(folder: Path) -> dict[str, Any]:
    """How an exam was drawn.

    Raises:
        OutputError: its record is damaged.
    """
    from selfsent.exam.exam import RECORD

    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(f"{folder / RECORD} cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
