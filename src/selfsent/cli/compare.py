"""`selfsent compare`."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from selfsent.cli import console
from selfsent.cli.console import show
from selfsent.cli.flags import add_method_options, add_options
from selfsent.cli.options import CORPUS, HOLD_OUT, SENTENCES, UNSET, Resumable, TrainingText, WithData
from selfsent.errors import SettingsError
from selfsent.settings import Settings, setting
from selfsent.training.run_config import ModelOptions


@dataclass(kw_only=True)
class Compare(TrainingText, Resumable, WithData):
    """Train with several methods for the same time, and choose the best encoder without labels.

      selfsent compare tickets.csv --text-column body --budget 5m --output runs/compared
      selfsent compare tickets.csv --text-column body --methods "neighbours, simcse --pick-words 16 --no-mlp"

    All see the same sentences, from one base or several. The best encoder is chosen on documents that none was trained
    on, and scored on others that nothing was chosen by. TF-IDF and BM25 are scored for comparison.

    A method may have settings and options of its own; selfsent methods NAME lists them.
    """

    main_options: ClassVar = "text_column document_column text_columns methods base budget dev output resume overwrite"

    also: ClassVar = (("settings of each method; each has the whole --budget (default: 2m)", Settings, UNSET),)

    corpus: tuple[str, ...] = CORPUS
    methods: str | None = setting(None, "NAME[,NAME] (default: all that need no labels; with --resume those in OUTPUT)")
    base: tuple[str, ...] = setting(("bundled",), "one base or several", flags=("--bases", "--base"))
    output: str = setting("comparison", "runs in OUTPUT/methods, the best in OUTPUT/model")
    dev: str | None = setting(
        None,
        "what to choose by: context, a task such as stsb-dev, or a file of selfsent label (default: context, for which"
        " the corpus needs documents)",
    )
    sentences: int | None = SENTENCES
    hold_out: int | None = HOLD_OUT

    def run(self) -> None:
        """Train and choose, then print the scores of all candidates and of the chosen one."""
        self.check_corpus(self.corpus)
        methods = None if self.methods is None else _methods(self.methods)
        from rich.text import Text

        from selfsent import comparison

        given = self.values("dev", "resume", "overwrite", "data") | self.changes
        with self.resumable():
            one = comparison.Comparison(methods, self.base, self.output, console.CommandProgress(), **given)
            one.read(self.read(self.corpus, summarise=True), self.sentences, self.hold_out)
            found = one.run()
        show(found.table())
        if tests := found.test_table():
            show("")
            show(tests)
        for line in found.remarks:
            show(console.with_flags(line))
        headline, advice = found.conclusion
        show("")
        show(Text(headline, style="bold"))
        show(console.with_flags(advice))
        if found.chosen:
            show(f"The model is in {Path(self.output) / 'model'}")
        show(f"The same as a page, with neighbours and losses: {Path(self.output) / comparison.PAGE}")


def _methods(text: str) -> dict[str, dict[str, Any]]:
    """Comma-separated methods with their options, by their text.

    Raises:
        SettingsError: no such method, or a duplicate.
    """
    found: dict[str, dict[str, Any]] = {}
    for part in text.split(","):
        try:
            words = shlex.split(part)
        except ValueError as error:
            raise SettingsError(f"--methods {part.strip()!r}: {error}") from None
        if not words:
            raise SettingsError(f"--methods {text!r} has an empty name")
        name = " ".join(words)
        if name in found:
            raise SettingsError(f"--methods names {name!r} twice")
        found[name] = _method(words)
    return found


def _method(words: list[str]) -> dict[str, Any]:
    from selfsent.cli.main import Parser
    from selfsent.methods import get_method, whose_option

    method = get_method(words[0])
    heads = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    heads.add_argument("--head")
    parser = Parser(prog=f"selfsent compare --methods {method.name}", add_help=False)
    parser.see = f"selfsent methods {method.name}"
    add_options(parser, ModelOptions)
    add_options(parser, Settings, UNSET)
    add_method_options(parser, method, heads.parse_known_args(words[1:])[0].head)
    given, unknown = parser.parse_known_args(words[1:])
    parser.refuse(unknown, whose_option)
    console.FLAGS.update(parser.flags())
    return {"method": method.name, **vars(given)}
