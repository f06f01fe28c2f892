"""`selfsent label`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selfsent.cli.console import notice, show
from selfsent.cli.options import CORPUS, Reading
from selfsent.display import counted, shortened
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.comparison.label import Judgements

_HELP = "0 to 5 (5: they mean the same), or y or n; u takes the last answer back, s skips, q goes: then Enter"


@dataclass(kw_only=True)
class Label(Reading):
    """Judge pairs of your own sentences, for compare --dev FILE and evaluate --pairs FILE.

    You are asked about those pairs, one by one, that are most worth judging: spread over all similarities, first those
    that the models see differently. Every answer is written at once: stop with q, and
    start the same command again to go on.
    """

    corpus: tuple[str, ...] = CORPUS
    models: tuple[str, ...] = setting(("bundled", "tfidf"), "models to compare, as selfsent evaluate takes them")
    output: str = setting("pairs.tsv", "tab-separated")
    count: int = setting(100, "pairs in all", minimum=2)
    seed: int = setting(0, "draw other pairs")

    def run(self) -> None:
        """Draw, ask and write."""
        if not sys.stdin.isatty():
            problem = "label asks you about pairs of sentences, and standard input is no terminal"
            advice = "run it in one, or write a file of text, text, score, separated by tabs, yourself"
            raise SettingsError(f"{problem}: {advice}")
        self.check_corpus(self.corpus)
        from selfsent.comparison.label import Judgements, draw_pairs, spread_sentences
        from selfsent.scorers.load_scorer import check_model, load_scorer

        for model in self.models:
            check_model(model)
        sentences = spread_sentences(self.read(self.corpus), self.seed)
        Judgements(Path(self.output), [])  # check the file before loading models
        encoders = [load_scorer(model) for model in self.models]
        drawn = draw_pairs(sentences, encoders, 2 * self.count, self.seed)  # some may be skipped
        judgements = Judgements(Path(self.output), [(sentences[a], sentences[b]) for a, b in drawn])
        notice(_HELP)
        _ask(judgements, self.count)
        notice(f"{counted(len(judgements.answers), 'pair')} in {self.output}")
        if len(set(judgements.answers.values())) > 1:
            notice(f"choose by them: selfsent compare ... --dev {self.output}")


def _ask(judgements: Judgements, count: int) -> None:
    from selfsent.comparison.label import KEYS

    while (pair := judgements.next) and len(judgements.answers) < count:
        show(f"\n{len(judgements.answers) + 1} of {count}")
        for text in pair:
            show(f"  {shortened(text)}")
        try:
            key = input("> ").strip().lower()
        except EOFError:
            return
        if key == "q":
            return
        if key == "s":
            judgements.skip()
        elif key == "u":
            show("  taken back" if judgements.undo() else "  there is nothing to take back")
        elif key in KEYS:
            judgements.answer(key)
        else:
            show(f"  {_HELP}")
