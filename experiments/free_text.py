"""Gather the text of the encoders that ship: CC0, CC BY and the public domain alone, less what is evaluated on.

    python experiments/free_text.py --clones CLONES --text TEXT --data DATA --output OUT

CLONES is a folder of git clones of the repositories below, each in a folder NAME. TEXT is the folder of plain English
sources that the log names, of which the free parts are taken: Topical-Chat and Taskmaster of `dialogue`, Tatoeba and
Common Voice of `short-sentences`, 18F and PEPs of `tech-docs`, the presidents' speeches of `nltk-mix`. DATA is the
folder of evaluation sets: what equals a text of theirs, or shares four fifths of its words, is left out. OUT gets
NAME.txt.zst for each source: a sentence a line, an empty line behind each document, whose first line is its title in
the sources that `titled` names. What is there stays.

OpenStax's books were CC BY 4.0 until 2025; the commits named in sources.yaml are of that time, with that licence beside
the text.
"""

from __future__ import annotations

import argparse
import html
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import zstandard
from gathering import SOURCES, TITLED, Document, documents, files, shown, write_documents

ABBREVIATIONS = re.compile(r"(?:\b(?:Dr|Mr|Mrs|Ms|St|vs|No|Fig|Eq|al|etc|e\.g|i\.e|U\.S|cf|approx|Inc|Co|[A-Z]))\.$")
"""After which a sentence goes on."""


def sentences(text: str) -> Document:
    """The sentences of a paragraph that are worth reading."""
    parts: Document = []
    for part in re.split(r"(?<=[.!?])[\"')]*\s+(?=[A-Z\"'(])", " ".join(text.split())):
        if parts and ABBREVIATIONS.search(parts[-1]):
            parts[-1] += " " + part
        else:
            parts.append(part)
    return [part for part in parts if readable(part)]


def readable(line: str) -> bool:
    """Whether a line has three words, mostly letters, no address and a bearable length."""
    letters = sum(map(str.isalpha, line)) + line.count(" ")
    return line.count(" ") > 1 and len(line) <= 1000 and "http" not in line and letters >= 0.8 * len(line)


def plain(markup: str) -> str:
    """XML, HTML or markdown without its marks."""
    text = re.sub(r"<m:math.*?</m:math>|<!--.*?-->|\{\{.*?\}\}|`{3}.*?`{3}", " ", markup, flags=re.S)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>]+>", " ", text))
    text = html.unescape(re.sub(r"[*_`]+", "", text)).translate(str.maketrans("‘’“”", "''\"\""))
    return re.sub(r"\s+([,.;:?!)])", r"\1", " ".join(text.replace("()", " ").split()))


def openstax(clones: Path) -> Iterator[Document]:
    """Sections with their titles, and terms with their meanings."""
    for book, commit in SOURCES["openstax"].items():
        for _, text in files(clones / f"osbooks-{book}", commit, "modules", end=".cnxml"):
            module = plain(re.search(r"<title>(.*?)</title>", text, re.S).group(1))
            told = re.sub(r"<metadata.*?</metadata>|<exercise.*?</exercise>", "", text, flags=re.S)
            for section in re.split(r"<section\b", told):
                found = re.search(r"^[^<]*<title>(.*?)</title>", section.partition(">")[2], re.S)
                own = plain(found.group(1)) if found else module
                title = module if own == module else f"{module}: {own}"
                paragraphs = [plain(part) for part in re.findall(r"<para\b[^>]*>(.*?)</para>", section, re.S)]
                yield [title, *(line for part in paragraphs for line in sentences(part))]
            for term, meaning in re.findall(r"<term[^>]*>([^<]*)</term>\s*<meaning[^>]*>(.*?)</meaning>", text, re.S):
                yield [plain(term), plain(meaning)]


def arxiv(clones: Path) -> Iterator[Document]:
    """Titles and abstracts of a tenth of the papers of 2025 and 2026 (arXiv's metadata are CC0)."""
    seen = set()
    for path, text in files(clones / "daily-arXiv-ai-enhanced", "data", "data", end=".jsonl"):
        for line in text.splitlines() if "enhanced" not in path else ():
            paper = json.loads(line)
            if paper["id"].endswith("0") and paper["id"] not in seen and "$" not in paper["summary"]:
                seen.add(paper["id"])
                yield [" ".join(paper["title"].split()), *sentences(paper["summary"])]


def pages(clones: Path, name: str, commit: str, *under: str) -> Iterator[Document]:
    """Markdown pages with their titles."""
    for _, text in files(clones / name, commit, *under, end=".md"):
        found = re.match(r"---\s*\n(.*?)\n---\s*\n(.*)", text, re.S)
        title = found and re.search(r"^title: *[\"']?(.*?)[\"']?\s*$", found.group(1), re.M)
        if title:
            paragraphs = re.split(r"\n\s*\n|\n(?=[#*-])", re.sub(r"`{3}.*?`{3}", "", found.group(2), flags=re.S))
            lines = [line for part in paragraphs for line in sentences(plain(part).lstrip("#- "))]
            yield [plain(title.group(1)), *lines]


def factbook(clones: Path) -> Iterator[Document]:
    """What the World Factbook says about countries, field by field."""
    for path, text in files(clones / "cache.factbook.json", "HEAD", end=".json"):
        if "/" in path:
            country = json.loads(text)
            for category in country.get("categories", ()):
                for field in category.get("fields", ()):
                    yield [f"{country['name']}: {field['name']}", *sentences(plain(field.get("content", "")))]


def captions(clones: Path) -> Iterator[Document]:
    """The captions of a picture of COCO's (2017, validation), and sentences about pairs of pictures of NLVR2."""
    of: dict[int, Document] = defaultdict(list)
    for one in json.loads(shown(clones / "evaluate", "annotations/captions_val2017.json"))["annotations"]:
        of[one["image_id"]].append(" ".join(one["caption"].split()))
    yield from of.values()
    for part in ("dev", "test1", "test2"):
        for line in shown(clones / "nlvr", f"nlvr2/data/{part}.json").splitlines():
            yield [json.loads(line)["sentence"]]


def queries(clones: Path) -> Iterator[Document]:
    """What is asked of a voice assistant (CLINC150), a topic a document."""
    of: dict[str, Document] = defaultdict(list)
    for part in json.loads(shown(clones / "oos-eval", "data/data_full.json")).values():
        for line, topic in part:
            of[topic].append(line)
    yield from of.values()


def shared(text: Path, name: str) -> Iterator[Document]:
    """The free documents of a source."""
    with zstandard.open(text / f"{name}.txt.zst", "rt", encoding="utf-8") as file:
        parts = file.read().split("\n\n")
    for first, last in SOURCES["shared"][name]:
        yield from (part.splitlines() for part in parts[first:last])


def words(line: str) -> tuple[str, ...]:
    """The lower-cased words of a line."""
    return tuple(re.findall(r"\w+", line.lower()))


class Evaluated:
    """The texts of the evaluation sets."""

    def __init__(self, data: Path) -> None:
        lines: set[tuple[str, ...]] = set()
        for path in sorted(data.rglob("*.parquet")):
            if not {"parallel", "paraphrase", "nli"} & set(path.parts):
                for column in pq.read_table(path).to_pydict().values():
                    lines |= {words(line) for line in column if isinstance(line, str)}
        self.exact = {line for line in lines if len(line) > 2}
        self.common = Counter(word for line in self.exact for word in set(line))
        self.sets = [frozenset(line) for line in self.exact if 4 <= len(line) <= 100]
        self.of: dict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(self.sets):
            for word in self.rarest(line):
                self.of[word].append(number)

    def rarest(self, line: frozenset[str]) -> list[str]:
        """The words that are rarest in these texts: who shares four fifths of all shares one of them."""
        order = sorted((self.common[word], word) for word in line)
        return [word for _, word in order[: len(line) // 5 + 1]]

    def holds(self, line: str) -> bool:
        """Whether a line, or what stands in it behind a colon, is one of them, or nearly."""
        return self._near(line) or self._near(line.partition(": ")[2])

    def _near(self, line: str) -> bool:
        told = words(line)
        if told in self.exact:
            return True
        mine = frozenset(told)
        near = {number for word in self.rarest(mine) for number in self.of.get(word, ())}
        return any(len(mine & self.sets[number]) >= 0.8 * len(mine | self.sets[number]) for number in near)


def kept(
    found: Iterable[Document], titled: bool, evaluated: Evaluated, seen: set[tuple[str, ...]]
) -> Iterator[Document]:
    """Documents without the lines that are evaluated on, and those of documents before; a title may repeat."""
    for document in found:
        lines = []
        for number, line in enumerate(document):
            is_title = titled and number == 0
            if (is_title or words(line) not in seen) and not evaluated.holds(line):
                seen.add(words(line))
                lines.append(line)
        if len(lines) > titled:
            yield lines


def main() -> None:
    """Write every source that is not there yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("clones", "text", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    clones = options.clones
    sources = {
        "captions": lambda: captions(clones),
        "queries": lambda: queries(clones),
        "openstax": lambda: openstax(clones),
        "arxiv": lambda: arxiv(clones),
        "digital-gov": lambda: pages(clones, "digitalgov.gov", "HEAD", "content/news", "content/resources"),
        "factbook": lambda: factbook(clones),
        "iis-docs": lambda: pages(clones, "iis-docs", "HEAD", "iis"),
        **{name: lambda name=name: shared(options.text, name) for name in SOURCES["shared"]},
    }
    evaluated, seen = Evaluated(options.data), set[tuple[str, ...]]()
    for name, found in sources.items():
        if (options.output / f"{name}.txt.zst").is_file():
            seen |= {words(line) for document in documents(options.output, name) for line in document}
        else:
            write_documents(options.output, name, kept(found(), name in TITLED, evaluated, seen))


if __name__ == "__main__":
    main()
