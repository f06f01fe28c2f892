"""`selfsent augment`."""

from __future__ import annotations

import time
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from selfsent.augment.registry import AUGMENTERS, parse_augmenter
from selfsent.cli.console import notice, show, shown
from selfsent.cli.options import CORPUS, Reading
from selfsent.cli.outputs import check_outputs
from selfsent.display import counted, shortened
from selfsent.errors import SettingsError, guess
from selfsent.settings import PairOptions, setting

_SHOWN = 300
"""Characters of a text in the sample."""


def _augmenter(text: str) -> str:
    """The spec of an augmenter; a corpus after --with would be parsed as one, too."""
    if text.partition(":")[0] not in AUGMENTERS:
        hint = guess(text, AUGMENTERS)
        raise SettingsError(f"there is no augmenter {text!r}; {hint} (a CORPUS goes in front of --with)")
    return text


@dataclass(kw_only=True)
class Augment(PairOptions, Reading):
    """Make views of sentences: synonyms, guesses, translations there and back.

    Writes a parquet file with two views of every sentence: columns text, view1, view2, maker1 and maker2. With one
    augmenter, view1 is the sentence itself; two make a view each. Give --with again for further rows:

      selfsent augment sentences.txt --with synonym --output views.parquet
      selfsent augment sentences.txt --with translate:pivot=spa translate:pivot=cat --output views.parquet
      selfsent train views.parquet --text-columns view1,view2 --method bootstrap --columns --output runs/bsl

    Was the command interrupted? Give it again, and it goes on where it stopped.
    """

    main_options = "pairings output text_column overwrite seed"
    also = tuple((f"options of {name}", each, None) for name, each in AUGMENTERS.items())

    corpus: tuple[str, ...] = CORPUS
    pairings: tuple[tuple[str, ...], ...] = setting(
        MISSING,
        "NAME[:OPTION=VALUE]..., one or two: "
        + ", ".join(f"{name} ({each.about})" for name, each in AUGMENTERS.items()),
        flags=("--with",),
        nargs="+",
        repeat=True,
        metavar="AUGMENTER",
        parse=_augmenter,
    )
    output: str = setting(MISSING, "a .parquet file")
    overwrite: bool = setting(False, "throw away the file, and what an interruption left")
    seed: int = setting(0, "seed of everything random")

    def run(self) -> None:
        """Make the views, then show how they differ, and some of them."""
        from selfsent.augment.make import augment, check_output, check_pairings

        pairings = [[parse_augmenter(spec, self.changes) for spec in specs] for specs in self.pairings]
        check_pairings(pairings)
        check_output(Path(self.output), self.overwrite)
        check_outputs({"--output": self.output}, [*self.corpus, *self.exclude])
        for augmenter in (each for pairing in pairings for each in pairing):
            augmenter.identity()  # raises at once if a file or package is missing
        self.check_corpus(self.corpus)
        corpus = self.read(self.corpus, summarise=True)
        begun = time.monotonic()
        given: dict[str, Any] = {"seed": self.seed, "overwrite": self.overwrite}
        try:
            with shown("augmenting") as progress:
                made = augment(corpus, pairings, self.output, progress=progress, **given)
        except KeyboardInterrupt:
            again = "--overwrite begins anew" if self.overwrite else "the same command goes on from here"
            raise KeyboardInterrupt(f"stopped and kept; {again}") from None
        for row in made.sample():
            sides = (f"{row['maker' + side]:>12}  {shortened(row['view' + side], _SHOWN)}" for side in "12")
            show("\n".join(sides) + "\n")
        for name, share in made.unchanged.items():
            show(f"{name}: {share:.1%} unchanged")
        rate = f" ({made.made / max(time.monotonic() - begun, 1e-9):,.0f} views/s)" if made.made else ""
        notice(f"{counted(made.rows, 'pair')} of views in {made.path}{rate}")
