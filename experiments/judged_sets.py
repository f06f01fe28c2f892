"""Old judged collections, as they are handed on, into BEIR's layout: folders that proof.py reads.

    python experiments/judged_sets.py --source DIR --output DIR

The source holds `med/MED.ALL`, `MED.QRY`, `MED.REL`; `cacm/cacm.all`, `query.text`, `qrels.text`; `npl/doc-text`,
`query-text`, `rlv-ass`; `lisa/LISA`, `LISA.QUE`, `LISA.REL`, as far as they are there.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Texts = dict[str, tuple[str, str]]
"""Title and text, by id."""
Answers = dict[str, list[str]]


def read(path: Path) -> str:
    """A file's text; control characters of old systems become spaces."""
    return re.sub(r"[\x00-\x08\x0b-\x1f]", " ", path.read_text(encoding="latin-1").replace("\r\n", "\n"))


def smart(path: Path) -> Texts:
    """SMART's layout: `.I` begins a text, `.T` its title, `.W` its body; other fields are left out."""
    found = {}
    for part in re.split(r"^\.I\s+", read(path), flags=re.MULTILINE)[1:]:
        number, _, rest = part.partition("\n")
        fields = dict(re.findall(r"^\.([A-Z])[^\n]*\n(.*?)(?=^\.[A-Z]\s*$|\Z)", rest, re.MULTILINE | re.DOTALL))
        found[number.strip()] = plain(fields.get("T", "")), plain(fields.get("W", ""))
    return found


def plain(text: str) -> str:
    """A text on one line; if it has capitals alone or none, each sentence begins with one, and has no other."""
    text = re.sub(r" ([.?!])(?= |$)", r"\1", " ".join(text.split()))
    if text.isupper() or text.islower():
        text = re.sub(r"(^|[.?!] +)([a-z])", lambda match: match[1] + match[2].upper(), text.casefold())
    return text


def columns(path: Path, query: int, document: int) -> Answers:
    """Judgements in columns."""
    found: Answers = {}
    for line in read(path).splitlines():
        if line.split():
            found.setdefault(str(int(line.split()[query])), []).append(str(int(line.split()[document])))
    return found


def med(folder: Path) -> tuple[Texts, Texts, Answers]:
    """1,033 abstracts of medicine, 30 questions."""
    return smart(folder / "MED.ALL"), smart(folder / "MED.QRY"), columns(folder / "MED.REL", 0, 1)


def cacm(folder: Path) -> tuple[Texts, Texts, Answers]:
    """3,204 titles of articles about computing, half of them with abstracts; 64 questions."""
    return smart(folder / "cacm.all"), smart(folder / "query.text"), columns(folder / "qrels.text", 0, 1)


def npl(folder: Path) -> tuple[Texts, Texts, Answers]:
    """11,429 short abstracts of electronics, 93 questions without full stops; two spaces after the title."""

    def parts(name: str) -> Iterator[tuple[str, str]]:
        for part in re.split(r"^ */\s*$", read(folder / name), flags=re.MULTILINE):
            number, _, text = part.strip().partition("\n")
            yield number.strip(), text

    def titled(text: str) -> tuple[str, str]:
        title, _, body = text.partition("  ")
        return (plain(title), plain(body)) if body.strip() else ("", plain(text))

    queries: Texts = {number: ("", plain(text)) for number, text in parts("query-text") if number}
    judged = (part.split() for part in re.split(r"^ */\s*$", read(folder / "rlv-ass"), flags=re.MULTILINE))
    documents = {number: titled(text) for number, text in parts("doc-text") if text}
    return documents, queries, {part[0]: part[1:] for part in judged if part}


def lisa(folder: Path) -> tuple[Texts, Texts, Answers]:
    """Abstracts of library science, 35 questions in paragraphs."""
    documents: Texts = {}
    for part in re.split(r"^\*{10,}\s*$", read(folder / "LISA"), flags=re.MULTILINE):
        if match := re.match(r"\s*Document\s+(\d+)\s*\n(.*)", part, re.DOTALL):
            title, *body = re.split(r"\n\s*\n", match[2], maxsplit=1)
            documents[match[1]] = plain(title), plain(" ".join(body))
    questions = re.findall(r"^\s*(\d+)\s*\n(.*?)#", read(folder / "LISA.QUE"), re.MULTILINE | re.DOTALL)
    queries = {number: ("", plain(text)) for number, text in questions}
    judged = re.findall(r"Query (\d+)\s+\d+ Relevant Refs:\s+([\d\s]*?)-1", read(folder / "LISA.REL"))
    return documents, queries, {query: found.split() for query, found in judged}


SETS: dict[str, Callable[[Path], tuple[Texts, Texts, Answers]]] = {"med": med, "cacm": cacm, "npl": npl, "lisa": lisa}


def main() -> None:
    """Convert what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    for name, convert in SETS.items():
        if not (options.source / name).is_dir():
            continue
        documents, queries, answers = convert(options.source / name)
        (options.output / name / "qrels").mkdir(parents=True, exist_ok=True)
        rows = [{"id": key, "title": each[0], "text": each[1]} for key, each in documents.items() if any(each)]
        asked = [{"id": key, "text": plain(" ".join(each))} for key, each in queries.items()]
        kept = {row["id"] for row in rows}
        pairs = [(query, each) for query, found in answers.items() for each in dict.fromkeys(found) if each in kept]
        judged = [{"query": query, "document": each, "grade": 1.0} for query, each in pairs]
        for table, where in ((rows, "corpus"), (asked, "queries"), (judged, "qrels/test")):
            pq.write_table(pa.Table.from_pylist(table), options.output / name / f"{where}.parquet")
        print(f"{name}: {len(rows)} documents, {len(asked)} queries, {len(judged)} judgements", flush=True)


if __name__ == "__main__":
    main()
