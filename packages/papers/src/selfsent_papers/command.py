"""`selfsent recipes`: reproducible tables of the papers, and their inputs."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from selfsent.cli.console import show
from selfsent.cli.options import WithData
from selfsent.display import counted, table_of
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(kw_only=True)
class Recipes(WithData):
    """List the recipes of the papers' tables, what they need, and what of it is here.

    List the recipes that ship: which tables of the papers they repeat, what they need, and what of it is here. With
    the name of one: its variants, and where to get what is missing.

    Print one as YAML, to change it: selfsent recipes show NAME > mine.yaml. Run one: selfsent train NAME --output
    DIR. Put several runs beside the papers' rows, averages over their tasks included: selfsent recipes beside DIR
    ... Which kinds of words similarities hang on (TSDAE's figures 4 and 7): selfsent recipes words MODEL ...
    --pairs twitterpara --plot words.svg
    """

    name: tuple[str, ...] = setting(
        (), "recipes; or show NAME; beside DIR ...; words MODEL ...", positional=True, nargs="*"
    )
    pairs: str | None = setting(None, "words: a task, or a file with the columns sentence1, sentence2, score")
    plot: str | None = setting(None, "words: draw them, .png or .svg")
    json: bool = setting(False, "everything, as JSON on standard output")

    def run(self) -> None:
        """Print the recipes."""
        from selfsent_papers import outline, reproduction

        what, *names = self.name or ("",)
        if (self.pairs or self.plot) and what != "words":
            raise SettingsError("--pairs and --plot go with words: selfsent recipes words MODEL ... --pairs FILE")
        if what == "show":
            if not names:
                raise SettingsError("show needs the names of recipes: selfsent recipes show NAME > mine.yaml")
            if self.json or self.data:
                raise SettingsError("show prints a recipe as it is: leave --json and --data out")
            for name in names:
                sys.stdout.write(outline.recipe_file(name).read_text(encoding="utf-8"))
            return
        if what == "beside":
            if not names:
                raise SettingsError("beside needs the directories of runs: selfsent recipes beside DIR ...")
            if self.data:
                raise SettingsError("beside reads runs and no data sets: leave --data out")
            rows = reproduction.join_runs(names)
            if self.json:
                _write([row.to_json() for row in rows])
            for table in reproduction.tables(rows) if not self.json else ():
                show(table)
            return
        if what == "words":
            self._words(names)
            return
        mirror = self.data or os.environ.get("SELFSENT_DATA")
        outlines = [outline.outline(name, mirror) for name in self.name or outline.shipped()]
        if self.json:
            _write(outlines)
            return
        for each in outlines:
            show(f"{each['name']}: {each['title']}")
            if self.name:
                show(_variants(each["variants"]))
            show("\n".join(_summary(each)))
            for need in each["needs"] if self.name else ():
                if not need["here"]:
                    show(f"Not here: {need['name']}: {need['where'] or 'no file of this name'}")
        if not self.name:
            show("selfsent recipes NAME says more of one, selfsent train NAME --output DIR runs it.")

    def _words(self, models: list[str]) -> None:
        """Print, and draw, which kinds of words matter to models."""
        if not models or not self.pairs:
            raise SettingsError("words needs models and pairs: selfsent recipes words MODEL ... --pairs twitterpara")
        from selfsent.scorers.load_scorer import check_model, load_scorer
        from selfsent_papers import words

        if self.plot:
            words.check_plot(self.plot)
        for model in models:
            check_model(model)
        words.tag(["words"])  # the tagger is there
        left, right = words.relevant_pairs(self.pairs, self.data)
        found = {model: words.word_importance(load_scorer(model), left, right) for model in models}
        if self.json:
            _write({model: dataclasses.asdict(each) for model, each in found.items()})
        else:
            show(words.words_table(found))
        if self.plot:
            words.draw_words(found, self.plot)


def _write(plain: Any) -> None:
    sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=1) + "\n")


def _summary(outline: dict[str, Any]) -> list[str]:
    """Summary lines of a recipe."""
    from selfsent.evaluation.suites import SUITES

    lines = [f"  repeats: {', '.join(outline['repeats']) or 'no table'}"]
    lines += [f"  {counted(len(outline['variants']), 'variant')}"]
    parts: dict[str, list[str]] = {"here": [], "on the hub": [], "missing": []}
    for need in outline["needs"]:
        parts["here" if need["here"] else "on the hub" if need["hub"] else "missing"].append(need["name"])
    for kind, names in parts.items():
        for suite, about in SUITES.items():  # all tasks of a suite as the suite
            if about.tasks and set(about.tasks) <= set(names):
                names = [suite if name == about.tasks[0] else name for name in names if name not in about.tasks[1:]]
        lines += [f"  {kind}: {', '.join(names)}"] if names else []
    return [*lines, ""]


def _variants(variants: dict[str, Any]) -> Table:
    from rich.box import SIMPLE

    cells = []
    for name, about in variants.items():
        how, rows = about["encoder"] or ", then ".join(about["methods"]), "\n".join([*about["rows"], *about["shows"]])
        cells.append([name, how, rows])
    headings = ["variant", "how", "published rows"]
    return table_of(headings, cells, left=(0, 1, 2), box=SIMPLE, pad_edge=False)
