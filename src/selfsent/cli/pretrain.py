"""`selfsent pretrain` and `selfsent table`: bases from text alone."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from functools import partial

from selfsent.cli.console import CommandProgress, show
from selfsent.cli.options import CORPUS, FILES, HOLD_OUT, Reading, Resumable
from selfsent.pretraining.options import DEFAULTS, Options, TableOptions
from selfsent.settings import Settings, setting


@dataclass(kw_only=True)
class Pretrain(Reading, Resumable):
    """Train a vocabulary and a small encoder from scratch.

      selfsent pretrain books.txt --output runs/base
      selfsent pretrain books.txt --layers 4 --hidden-size 256 --budget 2h --output runs/base

    The encoder has BERT's shape and learns by masked language modelling. It is in DIR/model: selfsent train CORPUS
    --base DIR.
    """

    also = ("encoder", Options, None), ("settings (one pass if nothing says how long)", Settings, DEFAULTS)

    main_options = "output text_column vocabulary_size layers hidden_size budget hold_out tokenizer resume overwrite"

    corpus: tuple[str, ...] = CORPUS
    tokenizer: str | None = setting(None, "encoder whose tokenizer is used instead of a new one")
    keep: int | None = setting(None, "checkpoints kept (default: two while it runs, none afterwards)")
    hold_out: int | None = HOLD_OUT

    def run(self) -> None:
        """Pretrain, and print the path of the encoder."""
        self.check_corpus(self.corpus)
        from selfsent.pretraining.pretrain import pretrain

        given = self.values("tokenizer", "resume", "overwrite", "keep", "hold_out") | self.changes
        with self.resumable():
            corpus = partial(self.read, self.corpus, summarise=True)
            result = pretrain(corpus, self.output, progress=CommandProgress(), **given)
        show(f"The same as a page, with curves: {result.directory / 'report.html'}")
        show(f"The model is in {result.directory / 'model'}")


@dataclass(kw_only=True)
class Table(Reading):
    """Make an untrained table of token vectors, with a vocabulary of your text.

    It has a random vector for each token, and is a base to train from, for text in any language. Train it on text with
    documents: selfsent train CORPUS --base DIR. Or after a teacher, on any text: selfsent train CORPUS --base DIR
    --method distil --teacher ENCODER
    """

    also = (("table", TableOptions, None),)

    corpus: tuple[str, ...] = setting((), f"{FILES}; none with --tokenizer", positional=True, nargs="*")
    output: str = setting(MISSING, "the table is in OUTPUT/model")
    tokenizer: str | None = setting(None, "encoder whose vocabulary is taken instead of a new one")
    overwrite: bool = setting(False, "throw away what is in OUTPUT")

    def run(self) -> None:
        """Make the table, and print its path."""
        if self.corpus:
            self.check_corpus(self.corpus)
        from selfsent.pretraining.pretrain import make_table

        corpus = partial(self.read, self.corpus, summarise=True) if self.corpus else None
        given = self.values("tokenizer", "overwrite") | self.changes
        path = make_table(corpus, self.output, progress=CommandProgress(), **given)
        show(f"The table is in {path}")
