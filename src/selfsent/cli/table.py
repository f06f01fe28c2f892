"""`selfsent table`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import ClassVar

from selfsent.cli.console import Told, show
from selfsent.cli.options import Reading
from selfsent.pretraining.options import TableOptions
from selfsent.settings import setting


@dataclass(kw_only=True)
class Table(Reading):
    """Make an untrained table of token vectors, with a vocabulary of your text.

    Learn a vocabulary on your text, and make a table with a random vector for each token: a base to train from, for
    text in any language.

    Train it on text with documents: selfsent train CORPUS --base DIR. Or after a teacher, on any text: selfsent
    train CORPUS --base DIR --method distil --teacher ENCODER
    """

    also: ClassVar = (("table", TableOptions, None),)

    corpus: tuple[str, ...] = setting(
        (), "as for selfsent train; none with --tokenizer", positional=True, nargs="*", metavar="CORPUS"
    )
    output: str = setting(MISSING, "the table is in DIR/model", metavar="DIR")
    tokenizer: str | None = setting(
        None, "take the vocabulary of this encoder instead of learning one", metavar="ENCODER"
    )
    overwrite: bool = setting(False, "throw away what is in DIR")

    def run(self) -> None:
        """Make the table, and say where it is."""
        if self.corpus:
            self.check_corpus(self.corpus)
        from selfsent.pretraining.table import make_table

        corpus = (lambda: self.read(self.corpus, tell=True)) if self.corpus else None
        given = {"tokenizer": self.tokenizer, "overwrite": self.overwrite, "progress": Told(), **self.changes}
        show(f"The table is in {make_table(corpus, self.output, **given)}")
