"""`selfsent label`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selfsent.cli.console import doing, notice, show
from selfsent.cli.options import CORPUS, Reading
from selfsent.display import counted, shortened
from selfsent.errors import DataError, SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.comparison.hits import HitsToJudge
    from selfsent.comparison.label import PairsToJudge

_KEYS = "u takes the last answer back, s skips, q goes: then Enter"
_PAIRS_HELP = f"0 to 5 (5: they mean the same), or y or n; {_KEYS}"
_HITS_HELP = f"does the text answer the query? y or n; {_KEYS}"


@dataclass(kw_only=True)
class Label(Reading):
    """Judge pairs of your own sentences, or, with --queries, what a search finds for real queries.

      selfsent label tickets.csv --text-column body --output pairs.tsv
      selfsent label tickets.csv --text-column body --id-column id --queries asked.txt --output judged.csv

    You are asked, one by one, about what is most worth judging. Pairs (for compare --dev FILE and evaluate --pairs
    FILE) are spread over all similarities, first those that the models see differently. Hits (for evaluate --queries
    FILE) are the ten best of each model, first those whose answer moves the models' scores apart most. Every answer is
    written at once: stop with q, and start the same command again to go on.
    """

    corpus: tuple[str, ...] = CORPUS
    models: tuple[str, ...] = setting(
        (),
        "models to compare, as selfsent evaluate takes them (default: bundled,tfidf; of hits bundled+words,bm25)",
    )
    queries: str | None = setting(
        None, "file of real queries, one a line, or a table with the column query: judge hits", needs="id_column"
    )
    id_column: str | None = setting(None, "column of the corpus with ids, for --queries", needs="queries")
    output: str | None = setting(None, "file of the answers (default: pairs.tsv; with --queries judged.csv)")
    count: int = setting(100, "pairs or hits in all", minimum=2)
    seed: int = setting(0, "draw other pairs")

    def run(self) -> None:
        """Draw, ask and write."""
        if not sys.stdin.isatty():
            problem = "label asks you about texts, one by one, and standard input is no terminal"
            advice = "run it in one, or write a file yourself: text, text, score, separated by tabs; or query,id"
            raise SettingsError(f"{problem}: {advice}")
        if self.queries and self.passages:
            raise SettingsError(
                "--queries judges whole texts: for passages name models such as bundled+words+passages:120"
            )
        self.check_corpus(self.corpus)
        from selfsent.scorers.load_scorer import check_model

        for model in self.models:
            check_model(model)
        if self.queries:
            self._judge_hits(self.queries, self.id_column or "")
        else:
            self._judge_pairs()

    def _judge_pairs(self) -> None:
        from selfsent.comparison.label import PairsToJudge, draw_pairs, spread_sentences
        from selfsent.scorers.load_scorer import load_scorer

        output = self.output or "pairs.tsv"
        PairsToJudge(Path(output), [])  # check the file before loading models
        sentences = spread_sentences(self.read(self.corpus), self.seed)
        with doing() as now:
            now("comparing sentences")
            encoders = [load_scorer(model) for model in self.models or ("bundled", "tfidf")]
            drawn = draw_pairs(sentences, encoders, 2 * self.count, self.seed)  # some may be skipped
        left = PairsToJudge(Path(output), [(sentences[a], sentences[b]) for a, b in drawn])
        notice(_PAIRS_HELP)
        _ask(left, self.count, _PAIRS_HELP)
        notice(f"{counted(len(left), 'pair')} in {output}")
        if len(set(left.answers.values())) > 1:
            notice(f"choose by them: selfsent compare ... --dev {output}")

    def _judge_hits(self, queries: str, id_column: str) -> None:
        from selfsent.comparison.hits import HitsToJudge, hits_to_judge
        from selfsent.data.judgements import Judgements, plain, written
        from selfsent.evaluation.datasets.own_files import read_rows
        from selfsent.scorers.load_scorer import load_scorer
        from selfsent.search.tables import describe

        output, models = self.output or "judged.csv", self.models or ("bundled+words", "bm25")
        judgements = Judgements(Path(output))
        asked = list(dict.fromkeys(map(plain, read_rows(Path(queries), ("query",), None, self.clean or None)["query"])))
        table = self.read(self.corpus, split_sentences=False, metadata_columns=(id_column,))
        texts, names = table.texts(), [written(row[id_column]) for row in describe(table, range(len(table)))]
        if not any(names):
            raise DataError(f"{table.source}: the column {id_column} is empty: judgements name texts by their ids")
        with doing() as now:
            now(f"searching {counted(len(texts), 'text')} for {counted(len(asked), 'query', 'queries')}")
            hits = hits_to_judge(asked, texts, [load_scorer(model) for model in models])
        left = HitsToJudge(judgements, asked, texts, names, hits)
        notice(_HITS_HELP)
        _ask(left, self.count, _HITS_HELP)
        answered = counted(judgements.queries, "query has", "queries have")
        notice(f"{counted(len(judgements), 'judgement')} in {output}; {answered} an answer")
        if judgements.queries > 1:
            notice(f"score by them: selfsent evaluate {' '.join(models)} --queries {output} --documents ...")


def _ask(left: PairsToJudge | HitsToJudge, count: int, help_: str) -> None:
    """Ask until so many are judged, nothing is left, or the user goes."""
    while (texts := left.next) and len(left) < count:
        show(f"\n{len(left) + 1} of {count}")
        for text in texts:
            show(f"  {shortened(text)}")
        try:
            key = input("> ").strip().lower()
        except EOFError:
            return
        if key == "q":
            return
        if key == "s":
            left.skip()
        elif key == "u":
            show("  taken back" if left.undo() else "  there is nothing to take back")
        elif key in left.keys:
            left.answer(key)
        else:
            show(f"  {help_}")
