"""Near-copies: the precision that `dedup --precision` states beside the true one, and recall beside semhash and rensa.

    python -m pip install semhash rensa
    python benchmarks/dedup.py --text TEXT --data DATA --wordnet /usr/share/wordnet [SET ...]

Copies of four strengths are planted among texts that share few runs of five words, one copy a text: other signs and
capitals; letters mistyped in a twelfth of the words and the end cut; words replaced through WordNet and the end cut;
more of it, cut at both ends. Sets of labelled paraphrases are searched as they are: rows of one origin are copies, no
others. A row that goes is right if the row that is kept for it has the same origin. In sets of labelled pairs, of which
other pairs are unknown, precision and recall are those of the labelled pairs above the threshold.

semhash gets the vectors of `bundled`, since its own model cannot be loaded without a network; rensa gets sets of words
and 128 permutations. Their threshold is the one with the most recall at dedup's true precision, as only labels tell it.
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
from selfsent.data.corpus.clean import letters
from selfsent.display import table_of
from selfsent.files import read_json, write_json
from selfsent.models.opening import open_encoder
from selfsent.search import encode_corpus
from selfsent.search.dedup import Deduplicated, deduplicate
from selfsent.search.differences import is_guarded
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
LONG = 10
"""Words of a caption that is not written twice by chance."""
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


def origins(data: Path, name: str) -> Rows:
    """Paraphrases by origin: back-translations of 700 of 2,500 sentences, or five captions of 300 of 2,500 pictures."""
    if name == "wmt":
        table = pq.read_table(data / "paraphrase/wmt_backtranslation.parquet").to_pylist()
        drawn = random.Random(0)
        drawn.shuffle(table)
        by = {row["sentence1"]: row["sentence2"] for row in table}
        chosen = list(by.items())[:2500]
        rows = [(one, number) for number, (one, _) in enumerate(chosen)]
        return rows + [(other, number) for number, (_, other) in enumerate(chosen[:700])]
    groups: dict[str, list[str]] = {}
    for row in pq.read_table(data / "paraphrase/captions.parquet").to_pylist():
        groups.setdefault(row["image"], []).append(row["caption"])
    chosen_groups = random.Random(0).sample(sorted(groups), 2500)
    sizes = ((number, image, 5 if number < 300 else 1) for number, image in enumerate(chosen_groups))
    # Some pictures are in both collections that the set was made of: those that share the letters of a caption.
    owner: dict[str, int] = {}
    rows, joined = [], {}
    for number, image, size in sizes:
        known = [owner[letters(text)] for text in groups[image] if letters(text) in owner]
        joined[number] = known[0] if known else number
        for text in groups[image]:
            if len(text.split()) >= LONG:
                owner.setdefault(letters(text), joined[number])
        rows += [(text, joined[number]) for text in groups[image][:size]]
    return rows


def labelled(data: Path, name: str) -> tuple[list[str], list[str], list[bool]]:
    """Both sides of labelled pairs, and whether they are paraphrases; debatable ones are left out."""
    if name == "paws":
        rows = pq.read_table(data / "paraphrase/paws-x-en/validation.parquet").to_pylist()
        pairs = [(row["sentence1"], row["sentence2"], row["label"] == 1) for row in rows]
    else:
        rows = pq.read_table(data / "kwang2049/useb/data-eval/twitterpara/test.parquet").to_pylist()
        rows = [row for row in rows if (row["subset"] == "twitterurl") == (name == "twitterurl")]
        shares = ((row, row["score"] / row["max_score"]) for row in rows)
        pairs = [(row["sentence1"], row["sentence2"], share > 0.5) for row, share in shares if abs(share - 0.5) > 0.1]
    one, other, label = zip(*pairs, strict=True)
    return list(one), list(other), list(label)


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


def by_semhash(texts: Sequence[str], vectors: Any, threshold: float) -> list[int]:
    """The row that semhash keeps for each."""
    from semhash import SemHash

    class Given:
        def encode(self, inputs: Any, **options: Any) -> Any:
            raise NotImplementedError

    records = [{"text": text, "row": str(row)} for row, text in enumerate(texts)]
    index = SemHash.from_embeddings(vectors, records, Given(), columns=["text"])
    kept = list(range(len(texts)))
    for each in index.self_deduplicate(threshold).filtered:
        kept[int(each.record["row"])] = int(each.duplicate_of["row"])
    return kept


def by_rensa(texts: Sequence[str], threshold: float) -> list[int]:
    """The row that rensa keeps for each: of those that it names, the one with the largest estimate."""
    from rensa import RMinHash, RMinHashDeduplicator

    index, hashes, kept = RMinHashDeduplicator(threshold=threshold, num_perm=128, use_lsh=False), [], []
    for row, text in enumerate(texts):
        made = RMinHash(num_perm=128, seed=42)
        made.update(re.findall(r"\w+", text.lower()))
        hashes.append(made)
        near = [int(name) for name in index.get_duplicates(made)]
        kept.append(max(near, key=lambda one: made.jaccard(hashes[one])) if near else row)
        if not near:
            index.add(str(row), made)
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
    """Of a set with origins: dedup at each precision and level, and the others at its precision."""
    texts, origin = [text for text, _ in rows], [number for _, number in rows]
    corpus = read_corpus(texts, metadata_columns=(), min_rows=1, cache=cache)
    copies = len(rows) - len({*origin})
    found: dict[str, Any] = {"texts": len(rows), "copies": copies, "dedup": {}, "others": {}}
    vectors = None
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
        vectors = similarity.vectors if vectors is None else vectors
    assert vectors is not None
    encoded = vectors[np.asarray(corpus.input_rows.corpus_rows)]
    sweep = {
        "semhash": (np.arange(0.5, 1.0, 0.04), lambda at: by_semhash(texts, encoded, at)),
        "rensa": (np.arange(0.2, 1.0, 0.1), lambda at: by_rensa(texts, at)),
    }
    for name, (thresholds, run) in sweep.items():
        each = {round(float(at), 2): judged(run(float(at)), origin, copies) for at in thresholds}
        found["others"][name] = each
    return found


def measured_pairs(one: list[str], other: list[str], label: list[bool], cache: str) -> dict[str, Any]:
    """Of a set of labelled pairs: precision and recall among them at the thresholds of dedup."""
    texts = list(dict.fromkeys([*one, *other]))
    corpus = read_corpus(texts, metadata_columns=(), min_rows=1, cache=cache)
    row = dict(zip(texts, np.asarray(corpus.input_rows.corpus_rows).tolist(), strict=True))
    first, second = (np.array([row[text] for text in side]) for side in (one, other))
    true = np.array(label)
    use = first != second
    first, second, true = first[use], second[use], true[use]
    one, other = ([text for text, each in zip(side, use, strict=True) if each] for side in (one, other))
    found: dict[str, Any] = {"texts": len(texts), "pairs": len(true), "copies": int(true.sum()), "dedup": {}}
    for level, similarity in similarities(corpus).items():
        scores = similarity(first, second)
        curve = {}
        for at in np.arange(0.5, 1.0, 0.05):
            above = scores >= at
            curve[round(float(at), 2)] = 100 * float(true[above].mean()) if above.any() else None
        neighbours = neighbours_of_sample(similarity)
        for wanted in WANTED:
            told = stated(similarity, neighbours, wanted)
            above = scores >= told["threshold"] - 1e-6
            for place in np.flatnonzero(above):
                above[place] = not is_guarded(one[place], other[place], told["guard"])
            told |= {"precision": 100 * float(true[above].mean()) if above.any() else 100.0, "gone": int(above.sum())}
            told["recall"] = 100 * float(true[above].sum() / true.sum())
            found["dedup"][f"{level} {wanted}"] = told
        found[f"precision by threshold, {level}"] = curve
    return found


def best_at(others: dict[str, dict[str, float]], precision: float) -> float | None:
    """The largest recall at that precision or more."""
    return max((each["recall"] for each in others.values() if each["precision"] >= precision), default=None)


def shown(results: dict[str, Any]) -> None:
    """The results as a table."""
    rows = []
    for name, found in results.items():
        for which, told in found["dedup"].items():
            cells = [f"{told[each]:.1f}" for each in ("stated", "low", "high", "precision", "recall")]
            peers = [best_at(found["others"][peer], told["precision"]) for peer in found.get("others", ())]
            rows.append(
                [name, which, f"{told['threshold']:g}", *cells, *("-" if r is None else f"{r:.1f}" for r in peers)]
            )
    heads = ["set", "level, wanted", "threshold", "stated", "low", "high", "true", "recall", "semhash", "rensa"]
    show(table_of(heads, rows, left=(0, 1)))


def main() -> None:
    """Measure the sets that are named, or all; results of other sets stay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="folder of files of sentences")
    parser.add_argument("--data", type=Path, required=True, help="folder of evaluation sets")
    parser.add_argument("--wordnet", default="/usr/share/wordnet")
    parser.add_argument("sets", nargs="*")
    given = parser.parse_args()
    plants = {f"{name}, {share}" for name in (*TEXTS, "tickets") for share in SHARES}
    known = [*sorted(plants), "wmt", "captions", "twitterurl", "pit", "paws"]
    results = read_json(RESULTS)
    for name in given.sets or known:
        with tempfile.TemporaryDirectory() as cache:
            if name in plants:
                source, share = name.split(", ")
                texts = tickets() if source == "tickets" else apart(documents(given.text, TEXTS[source]))
                rows, strengths = planted(texts, SHARES[share], given.wordnet)
                results[name] = measured(rows, strengths, cache)
            elif name in ("wmt", "captions"):
                results[name] = measured(origins(given.data, name), {}, cache)
            else:
                results[name] = measured_pairs(*labelled(given.data, name), cache)
        write_json(RESULTS, results)
    shown(results)


if __name__ == "__main__":
    main()
