"""How fast each cleaner is on one core, and the parsers that it could have used.

`python benchmarks/clean.py [--output FILE]`

The texts are made here: pages of about 1,300 characters, and mails with a quoted one of about 400.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

from selfsent.data.corpus.cleaners import Cleaners, look

WORDS = ("printer", "office", "update", "network", "cable", "answer", "monday", "help", "since", "the", "does", "not")
COUNT = 5000


def sentence(draw: random.Random) -> str:
    """Twelve words."""
    return " ".join(draw.choices(WORDS, k=12)).capitalize() + "."


def page(draw: random.Random) -> str:
    """A page of sixteen sentences."""
    one = "<p>{} <b>{}</b>&nbsp;<a href='https://example.org/a?b=c'>{}</a><br>{}</p>"
    body = "".join(one.format(*(sentence(draw) for _ in range(4))) for _ in range(4))
    return f"<html><head><style>p {{margin: 0}}</style></head><body><div style='font-family: Arial'>{body}</div></body>"


def mail(draw: random.Random) -> str:
    """An answer above a mail."""
    own = "\n".join(sentence(draw) for _ in range(2))
    quoted = "\n".join(f"> {sentence(draw)}" for _ in range(3))
    return f"{own}\n\nAnn\n-- \nAnn Smith\n\nOn Mon, Jan 1, 2024 at 10:00 AM Bob <bob@example.org> wrote:\n{quoted}\n"


class StandardParser(HTMLParser):
    """Collects the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        """Keep it."""
        self.found.append(data)


def by_standard_library(texts: list[str]) -> None:
    """The text between tags."""
    for text in texts:
        parser = StandardParser()
        parser.feed(text)
        parser.close()


def by_lxml(texts: list[str]) -> None:
    """The text between tags."""
    from lxml import html

    for text in texts:
        "".join(html.fromstring(text).itertext())


def by_quotequail(texts: list[str]) -> None:
    """What is quoted, over whole texts."""
    import quotequail

    for text in texts:
        quotequail.unwrap(text)


def rate(run: Callable[[list[str]], object], texts: list[str]) -> dict[str, float]:
    """Texts and characters per second of the processor, the best of three."""
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        run(texts)
        seconds.append(time.process_time() - begun)
    return {"texts/s": round(len(texts) / min(seconds)), "MB/s": round(sum(map(len, texts)) / min(seconds) / 1e6, 1)}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    draw = random.Random(0)
    pages, mails = [page(draw) for _ in range(COUNT)], [mail(draw) for _ in range(COUNT)]
    plain = [f"{sentence(draw)} {sentence(draw)}" for _ in range(COUNT)]
    linked = [f"{text} See https://example.org/a?b=c" for text in plain]
    found = {
        "html": rate(Cleaners("html"), pages),
        "html, text without": rate(Cleaners("html"), plain),
        "html, by html.parser": rate(by_standard_library, pages),
        "html, by lxml": rate(by_lxml, pages),
        "mail": rate(Cleaners("mail"), mails),
        "mail, text without": rate(Cleaners("mail"), plain),
        "mail, by quotequail.unwrap": rate(by_quotequail, mails),
        "urls": rate(Cleaners("urls"), linked),
        "urls, text without": rate(Cleaners("urls"), plain),
        "all, text without": rate(Cleaners("html,mail,urls"), plain),
        "the look, per text read": rate(lambda texts: [look(texts * 2)], plain),
    }
    for name, figures in found.items():
        print(f"{name:28} {figures['texts/s']:>10,} texts/s {figures['MB/s']:>8} MB/s")
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
