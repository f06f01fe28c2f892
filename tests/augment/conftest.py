from pathlib import Path

import numpy as np
import pytest

from selfsent.augment.augmenter import Sentences

SENSES = {
    "noun": [
        ["road", "route"],
        ["dog", "hound"],
        ["apple"],
        ["box", "crate", "carton"],
        ["walk", "stroll"],
        ["city", "Rome", "town"],
        ["child", "kid"],
        ["child", "nestling"],
        ["end", "goal"],
        ["owl", "night_bird"],
        ["bin", "basket"],
    ],
    "verb": [
        ["take", "carry"],
        ["stop", "halt"],
        ["walk", "stroll"],
        ["begin", "start"],
        ["read", "study"],
        ["end", "cease"],
        ["exist", "be"],
    ],
    "adj": [["big(a)", "large"], ["happy", "glad", "eager"], ["old", "aged", "unfashionable"], ["new", "fresh"]],
    "adv": [["quickly", "rapidly", "fast"]],
}
COUNTS = {"walk%1:04:00::": 5, "walk%2:38:00::": 6, "child%1:18:00::": 9, "end%1:09:00::": 9, "end%2:30:00::": 2}


def write_wordnet(directory):
    """A tiny dictionary in WordNet's own format."""
    directory = Path(directory)
    for part, senses in SENSES.items():
        letter, offsets, data = part[0] if part != "adv" else "r", {}, "  1 A licence stands here.\n"
        for words in senses:
            for word in words:
                offsets.setdefault(word.partition("(")[0].lower(), []).append(len(data))
            listed = " ".join(f"{word} 0" for word in words)
            data += f"{len(data):08d} 00 {letter} {len(words):02x} {listed} 000 | a gloss; it is not read\n"
        lines = ["  1 A licence stands here.\n"]
        lines += [
            f"{w} {letter} {len(o)} 0 {len(o)} 0 {' '.join(f'{x:08d}' for x in o)}  \n"
            for w, o in sorted(offsets.items())
        ]
        (directory / f"data.{part}").write_text(data)
        (directory / f"index.{part}").write_text("".join(lines))
    (directory / "cntlist.rev").write_text("".join(f"{key} 1 {count}\n" for key, count in COUNTS.items()))
    return directory


@pytest.fixture(scope="session")
def wordnet(tmp_path_factory):
    """The directory of a tiny WordNet."""
    return write_wordnet(tmp_path_factory.mktemp("wordnet"))


class Views:
    """What a maker, or its change once it was started, makes of sentences."""

    def __call__(self, maker, texts, **options):
        return self.through(maker.start(), texts, **options)

    def through(self, change, texts, key=0, size=None, rows=None):
        """Views of sentences in these rows, made in chunks of a size."""
        made, rows = [], np.arange(len(texts)) if rows is None else np.asarray(rows)
        for begin in range(0, len(texts), size or len(texts)):
            part = slice(begin, begin + (size or len(texts)))
            made += change(Sentences(list(texts[part]), rows[part]), key)
        return made


@pytest.fixture(scope="session")
def views():
    return Views()
