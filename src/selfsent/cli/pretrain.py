"""`selfsent pretrain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from selfsent.cli.console import Told, show
from selfsent.cli.options import CORPUS, HOLD_OUT, NEAR_DUPLICATES, Reading, Resumable
from selfsent.pretraining.options import DEFAULTS, Options
from selfsent.settings import Settings, setting


@dataclass(kw_only=True)
class Pretrain(Reading, Resumable):
    """Train a vocabulary and a small encoder from scratch.

    Train a vocabulary and a BERT-shaped encoder from scratch, with masked language modelling.

    The encoder is in DIR/model: selfsent train CORPUS --base DIR.
    """

    also: ClassVar = (
        ("encoder", Options, None),
        ("settings (one pass over the text if nothing says how long)", Settings, DEFAULTS),
    )

    corpus: tuple[str, ...] = CORPUS
    drop_near_duplicates: bool = NEAR_DUPLICATES
    tokenizer: str | None = setting(
        None, "use the tokenizer of this encoder instead of training one", metavar="ENCODER"
    )
    sources: tuple[str, ...] = setting(
        (), "name and licence of a source, for the card; may be repeated", flags=("--source",), repeat=True
    )
    prompts: tuple[str, ...] = setting(
        (), "a sentence with a [MASK] for the card, instead of those it has", flags=("--prompt",), repeat=True
    )
    keep: int = setting(2, "checkpoints kept")
    hold_out: int | None = HOLD_OUT

    def run(self) -> None:
        """Pretrain, then print what the encoder has learnt."""
        self.check_corpus(self.corpus)
        from selfsent.pretraining.card import fills_table
        from selfsent.pretraining.pretrain import pretrain

        names = ("tokenizer", "sources", "resume", "overwrite", "keep", "hold_out")
        given = {name: getattr(self, name) for name in names} | self.changes
        given |= {"prompts": self.prompts} if self.prompts else {}
        with self.resumable():
            result = pretrain(lambda: self.read(self.corpus, tell=True), self.output, progress=Told(), **given)
        show(fills_table(result.record["fills"]))
        show(f"The same as a page, with curves: {result.directory / 'report.html'}")
        show(f"The model is in {result.directory / 'model'}")
