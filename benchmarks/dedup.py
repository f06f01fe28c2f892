"""Near-copies: the precision that `dedup --precision` states beside the true one, and recall.

    python benchmarks/dedup.py --text TEXT --data DATA --wordnet /usr/share/wordnet [SET ...]

Copies of four strengths are planted among texts that share few runs of five words, one copy a text: other signs and
capitals; letters mistyped in a twelfth of the words and the end cut; words replaced through WordNet and the end cut;
more of it, cut at both ends. Back-translations are searched as they are: rows of one origin are copies, no others. A
row that goes is right if the row that is kept for it has the same origin.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from selfsent import read_corpus
from selfsent.augment.augmenter import Sentences
from selfsent.augment.synonym import Synonym
from selfsent.cli.console import show
from selfsent.data.corpus import Corpus
from selfsent.display import table_of
from selfsent.files import read_json, write_json
from selfsent.models.opening import open_encoder
from selfsent.search import encode_corpus
from selfsent.search.dedup import Deduplicated, deduplicate
from selfsent.search.precision import neighbours_of_sample, threshold_for
from selfsent.search.similarity import Similarity, encoding_of

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "quality" / "dedup.json"
WANTED = (0.95, 0.99)
SHARES = {"few": 0.1, "many": 0.4}
"""Planted copies, as a share of the texts."""
TEXTS = {
    "newsgroups": "forum-newsgroups",
    "bbc": "news-bbc",
    "counsel": "forum-counsel",
    "abstracts": "science-abstracts",
}
MOST = 2000
Rows = list[tuple[str, int]]
"""Texts with the number of their origin."""


def documents(text: Path, name: str) -> list[str]:
    """The documents of a file of sentences, each on a line."""
    raw = subprocess.run(["zstd", "-dc", text / f"{name}.txt.zst"], capture_output=True, check=True).stdout.decode()
    found = (" ".join(block.split("\n")) for block in raw.split("\n\n") if block.strip())
    return list(dict.fromkeys(found))[:MOST]


def apart(texts: Sequence[str]) -> list[str]:
    """Those that share less than a tenth of their runs of five words with one before."""
    seen: dict[str, list[int]] = {}
    kept: list[str] = []
    for text in texts:
        words = re.findall(r"\w+", text.lower())
        runs = {" ".join(words[at : at + 5]) for at in range(len(words) - 4)}
        shared = Counter(other for run in runs for other in seen.get(run, ()))
        if shared and max(shared.values()) >= max(2, len(runs) / 10):
            continue
        for run in runs:
            seen.setdefault(run, []).append(len(kept))
        kept.append(text)
    return kept


def tickets(count: int = MOST) -> list[str]:
    """Made-up tickets of six templates; no two are equal."""
    drawn = random.Random(0)
    slots: dict[str, Callable[[], str]] = {
        "device": lambda: drawn.choice("printer scanner laptop monitor keyboard projector phone headset".split()),
        "does": lambda: drawn.choice("print|scan|log in|start|connect|open mail|save files|charge".split("|")),
        "system": lambda: drawn.choice("SAP Jira Confluence Outlook Teams Salesforce VPN Git Workday".split()),
        "day": lambda: drawn.choice("Monday Tuesday Wednesday Thursday Friday yesterday".split()),
        "user": lambda: (
            drawn.choice("anbe cado elfa guha ivjo kalu mone".split()) + drawn.choice("ri to vik sal".split())
        ),
        "number": lambda: str(drawn.randint(1, 400)),
        "code": lambda: str(drawn.randint(10, 99)),
        "building": lambda: drawn.choice("ABCDEFGH"),
        "end": lambda: " ".join(drawn.sample(ENDS, 2)).strip(),
    }
    made: dict[str, None] = {}
    while len(made) < count:
        template = drawn.choice(TEMPLATES)
        made[re.sub(r"\{(\w+)\}", lambda slot: slots[slot[1]](), template).strip()] = None
    return list(made)


TEMPLATES = (
    "The {device} in room {number} shows error {code} when I try to {does}. {end}",
    "Hello, my {device} does not {does} since {day}. The user name is {user}. {end}",
    "Please reset the password of {user}, account {number}{code}. {end}",
    "I need access to {system} for {user} until {day}. {end}",
    "{system} is very slow in building {building} since {day}, about {number} people are affected. {end}",
    "New hire {user} starts on {day} and needs a {device}, a phone and access to {system}. {end}",
)
ENDS = (
    "",
    "Thanks!",
    "It is urgent.",
    "Please call me back.",
    "I have restarted it twice already.",
    "My colleague has the same problem.",
    "Nothing else has changed on my side.",
    "We have a customer meeting soon.",
)


def copy(text: str, strength: int, drawn: random.Random, row: int, wordnet: str) -> str:
    """A copy of a text, of strength 1 to 4."""
    words = text.split()
    if strength == 1:
        return text.upper() if drawn.random() < 0.3 else f"{text.rstrip('.!').replace(',', ' ,')} !"
    if strength == 2:
        for place in drawn.sample(range(len(words)), max(1, len(words) // 12)):
            word = words[place]
            at = drawn.randrange(len(word))
            words[place] = word[:at] + drawn.choice("abcdefghijklmnopqrstuvwxyz") + word[at + 1 :]
        return " ".join(words[: max(3, int(0.93 * len(words)))])
    ratio, first, last = (0.2, 0, 0.85) if strength == 3 else (0.35, 0.15, 0.75)
    change = Synonym(ratio=ratio, wordnet=wordnet).start()
    words = change(Sentences([text], np.array([row])), 1)[0].split()
    return " ".join(words[int(first * len(words)) : max(4, int(last * len(words)))])


def planted(texts: Sequence[str], share: float, wordnet: str) -> tuple[Rows, dict[str, int]]:
    """Texts with copies among them, in random order, and the strength of each copy."""
    drawn = random.Random(0)
    rows, strengths = [(text, number) for number, text in enumerate(texts)], {}
    for place, number in enumerate(drawn.sample(range(len(texts)), int(share * len(texts)))):
        made = copy(texts[number], 1 + place % 4, drawn, number, wordnet)
        rows.append((made, number))
        strengths[made] = 1 + place % 4
    drawn.shuffle(rows)
    return rows, strengths


def back_translations(data: Path) -> Rows:
    """Sentences by origin: 2,500, and a back-translation of 700 of them."""
    table = pq.read_table(data / "paraphrase/wmt_backtranslation.parquet").to_pylist()
    random.Random(0).shuffle(table)
    chosen = list({row["sentence1"]: row["sentence2"] for row in table}.items())[:2500]
    rows = [(one, number) for number, (one, _) in enumerate(chosen)]
    return rows + [(other, number) for number, (_, other) in enumerate(chosen[:700])]


def judged(kept: Sequence[int], origin: Sequence[int], copies: int) -> dict[str, float]:
    """True precision and recall, in percent, of the row that is kept for each row."""
    gone = [(row, one) for row, one in enumerate(kept) if row != one]
    right = sum(origin[row] == origin[one] for row, one in gone)
    return {"precision": 100 * right / len(gone) if gone else 100.0, "recall": 100 * right / copies, "gone": len(gone)}


def kept_for(found: Deduplicated, count: int) -> list[int]:
    """The row that is kept for each row."""
    kept = list(range(count))
    for family in found.families:
        for other in family.others:
            kept[other] = family.kept
    return kept


def similarities(corpus: Corpus) -> dict[str, Similarity]:
    """By level."""
    model = open_encoder("bundled")
    by_vectors = Similarity(corpus, encode_corpus(model, corpus), encode=encoding_of(model))
    return {"near": Similarity(corpus), "meaning": by_vectors}


def stated(similarity: Similarity, neighbours: Any, wanted: float) -> dict[str, Any]:
    """What dedup states, in percent."""
    told = threshold_for(wanted, neighbours, similarity)
    interval = {name: 100 * getattr(told, name) for name in ("low", "high")}
    about = {"threshold": told.threshold, "stated": 100 * told.precision, **interval, "reached": told.reached}
    return {**about, "edits": dict(told.found), "reordered": told.reordered, "guard": list(told.guard)}


def measured(rows: Rows, strengths: dict[str, int], cache: str) -> dict[str, Any]:
    """Of a set with origins: dedup at each precision and level."""
    texts, origin = [text for text, _ in rows], [number for _, number in rows]
    corpus = read_corpus(texts, metadata_columns=(), min_rows=1, cache=cache)
    copies = len(rows) - len({*origin})
    found: dict[str, Any] = {"texts": len(rows), "copies": copies, "dedup": {}}
    for level, similarity in similarities(corpus).items():
        neighbours = neighbours_of_sample(similarity)
        for wanted in WANTED:
            told = stated(similarity, neighbours, wanted)
            done = deduplicate(corpus, level, told["threshold"], guard=told["guard"], similarity=similarity)
            kept = kept_for(done, len(rows))
            told |= judged(kept, origin, copies)
            if strengths:
                right = Counter(
                    strengths.get(texts[row]) or strengths.get(texts[one])
                    for row, one in enumerate(kept)
                    if row != one and origin[row] == origin[one]
                )
                told["by strength"] = {each: 100 * right[each] / (copies / 4) for each in (1, 2, 3, 4)}
            found["dedup"][f"{level} {wanted}"] = told
    return found


def shown(results: dict[str, Any]) -> None:
    """The results as a table."""
    rows = []
    for name, found in results.items():
        for which, told in found["dedup"].items():
            cells = [f"{told[each]:.1f}" for each in ("stated", "low", "high", "precision", "recall")]
            rows.append([name, which, f"{told['threshold']:g}", *cells])
    heads = ["set", "level, wanted", "threshold", "stated", "low", "high", "true", "recall"]
    show(table_of(heads, rows, left=(0, 1)))


def main() -> None:
    """Measure the sets that are named, or all; results of other sets stay."""
    plants = {f"{name}, {share}" for name in (*TEXTS, "tickets") for share in SHARES}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="folder of files of sentences")
    parser.add_argument("--data", type=Path, required=True, help="folder of evaluation sets")
    parser.add_argument("--wordnet", default="/usr/share/wordnet")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("sets", nargs="*", metavar="SET", help="default: all")
    given = parser.parse_args()
    known = [*sorted(plants), "wmt"]
    if odd := {*given.sets} - {*known}:
        parser.error(f"{min(odd)!r} is none of the sets: {'; '.join(known)}")
    results = read_json(given.output)
    for name in given.sets or known:
        with tempfile.TemporaryDirectory() as cache:
            if name in plants:
                source, share = name.split(", ")
                texts = tickets() if source == "tickets" else apart(documents(given.text, TEXTS[source]))
                rows, strengths = planted(texts, SHARES[share], given.wordnet)
                results[name] = measured(rows, strengths, cache)
            else:
                results[name] = measured(back_translations(given.data), {}, cache)
        write_json(given.output, results)
    shown(results)


if __name__ == "__main__":
    main()
