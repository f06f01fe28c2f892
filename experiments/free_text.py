"""Gather the text of the encoders that ship: CC0, CC BY and the public domain alone, less what is evaluated on.

    python experiments/free_text.py --clones CLONES --text TEXT --data DATA --output OUT

CLONES is a folder of git clones of the repositories below, each in a folder NAME. TEXT is the folder of plain English
sources that the log names, of which the free parts are taken: Topical-Chat and Taskmaster of `dialogue`, Tatoeba and
Common Voice of `short-sentences`, 18F and PEPs of `tech-docs`, the presidents' speeches of `nltk-mix`. DATA is the
folder of evaluation sets: what equals a text of theirs, or shares four fifths of its words, is left out. OUT gets
NAME.txt.zst for each source: a sentence a line, an empty line behind each document, whose first line is its title in
the sources of `TITLED`. What is there stays.

OpenStax's books were CC BY 4.0 until 2025; the commits named here are of that time, with that licence beside the text.
"""

from __future__ import annotations

import argparse
import html
import io
import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import zstandard

OPENSTAX = {
    "american-government": "dd9a37728e80",
    "anatomy-physiology": "6bc3d51a784f",
    "astronomy": "51cdcce0873a",
    "business-ethics": "21122d7c873e",
    "chemistry-bundle": "0da3cc749045",
    "college-physics-bundle": "640c19ddd1a1",
    "college-success": "695b838a0a0d",
    "entrepreneurship": "9c67d18c5faa",
    "introduction-anthropology": "6cb07defded1",
    "introduction-business": "9d3b8c44e456",
    "introduction-philosophy": "ec2804507cf9",
    "introduction-political-science": "91f18d924899",
    "introduction-sociology": "29a2b97e9520",
    "introductory-statistics-bundle": "0132dbf622a6",
    "microbiology": "b575f6711aaa",
    "principles-economics-bundle": "d0e5fcf6df93",
    "principles-finance": "e1283a2ffc06",
    "principles-marketing": "deb6e19777dc",
    "psychology": "2fbf5482e97a",
    "university-physics-bundle": "aa8a43ef55af",
    "us-history": "292ce0459687",
    "world-history": "dbe4cb6de157",
}
"""Books of openstax/osbooks-NAME, and their last commit before the licence became CC BY-NC-SA."""
SHARED = {
    "medical-medquad": None,
    "novels-100english": None,
    "novels-eltec": None,
    "law-dc-code": None,
    "dialogue": [(0, 1705), (7845, None)],
    "short-sentences": [(0, 2713)],
    "tech-docs": [(0, 359), (409, None)],
    "nltk-mix": [(2442, 2596), (3572, 4026)],
}
"""Sources of TEXT, and the documents of them that are free."""
TITLED = ("openstax", "arxiv", "digital-gov", "factbook", "iis-docs", "medical-medquad")
"""Sources whose documents begin with a title or a question."""
ABBREVIATIONS = re.compile(r"(?:\b(?:Dr|Mr|Mrs|Ms|St|vs|No|Fig|Eq|al|etc|e\.g|i\.e|U\.S|cf|approx|Inc|Co|[A-Z]))\.$")
"""After which a sentence goes on."""

Document = list[str]


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


def files(clone: Path, commit: str, *under: str, end: str = "") -> Iterator[tuple[str, str]]:
    """Paths and texts of a commit's files below folders, but for those that the clone lacks."""
    git = ["git", "-C", str(clone)]
    names = subprocess.check_output([*git, "ls-tree", "-r", "--name-only", commit, *under], text=True).splitlines()
    wanted = [name for name in names if name.endswith(end)]
    asked = "".join(f"{commit}:{name}\n" for name in wanted)
    told = io.BytesIO(
        subprocess.run([*git, "cat-file", "--batch"], input=asked.encode(), capture_output=True, check=True).stdout
    )
    for name in wanted:
        head = told.readline().split()
        if head[-1] != b"missing":
            yield name, told.read(int(head[-1])).decode("utf-8", "replace")
            told.readline()


def shown(clone: Path, path: str) -> str:
    """The text of a file in a clone's newest commit."""
    return subprocess.check_output(["git", "-C", clone, "show", f"HEAD:{path}"], text=True)


def openstax(clones: Path) -> Iterator[Document]:
    """Sections with their titles, and terms with their meanings."""
    for book, commit in OPENSTAX.items():
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
        documents = file.read().split("\n\n")
    for first, last in SHARED[name] or [(0, None)]:
        yield from (part.splitlines() for part in documents[first:last])


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
        **{name: lambda name=name: shared(options.text, name) for name in SHARED},
    }
    evaluated, seen = Evaluated(options.data), set()
    for name, documents in sources.items():
        place, kept, gone = options.output / f"{name}.txt.zst", 0, 0
        if place.is_file():
            with zstandard.open(place, "rt", encoding="utf-8") as file:
                seen |= {words(line) for line in file}
            continue
        options.output.mkdir(parents=True, exist_ok=True)
        with zstandard.open(place.with_suffix(".part"), "wt", encoding="utf-8") as file:
            for document in documents():
                lines = []
                for number, line in enumerate(document):
                    title = number == 0 and name in TITLED
                    if words(line) in seen and not title:
                        continue
                    if evaluated.holds(line):
                        gone += 1
                        continue
                    seen.add(words(line))
                    lines.append(line)
                if len(lines) > (name in TITLED):
                    kept += len(lines)
                    file.write("".join(f"{line}\n" for line in lines) + "\n")
        place.with_suffix(".part").rename(place)
        print(name, kept, "lines,", gone, "as in evaluation sets", flush=True)


if __name__ == "__main__":
    main()
