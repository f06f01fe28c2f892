"""Text in 28 languages for the multilingual table: words, sentences, passages, and translations of English.

    python experiments/multilingual_text.py --clones CLONES --debs DEBS --lists LISTS --data DATA --output OUT

CLONES is a folder of git directories: hermitdave/FrequencyWords (CC BY-SA 4.0), mozilla/voice-web (CC0) and
facebookresearch/LASER, whose sentences are left out: they are the test. DEBS holds Debian's packages
libreoffice-l10n-XX, libreoffice-help-XX (MPL 2.0) and wesnoth-1.16-data (GPL 2 or later), LISTS its translated package
descriptions (Translation-XX.lz4, each under the licence of its package). DATA is the folder of evaluation sets, whose
texts are left out, compared by their letters. So is a fifth of the packages, for known-item search.

OUT gets XX.jsonl for each language: {"text", "english" where it is a translation, "kind"}. A file that is there stays.
"""

from __future__ import annotations

import argparse
import gettext
import html
import json
import re
import subprocess
import tempfile
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from gathering import SOURCES, listed, shown

from selfsent.files import write_text

LANGUAGES: dict[str, tuple[str, str, str]] = SOURCES["languages"]
"""For each language its name among the word lists, Common Voice and Tatoeba's test."""
DEBIAN = {"no": "nb", "zh": "zh-cn"}
"""Names of languages among Debian's packages, where they differ."""
CATALOGUES = {"no": "nb_NO", "zh": "zh_CN"}
WORDS, SENTENCES, MESSAGES, DESCRIPTIONS, PASSAGES = 8_000, 4_000, 2_500, 1_500, 1_000
"""Maximum texts of each kind in a language."""
LONGEST, PASSAGE = 30, (40, 110)
"""Maximum words of a sentence; words of a passage."""
PLAIN = re.compile(r"[<>{}|\\%$_=*#@/]|--|\d{4}|https?:")
"""Signs of markup, placeholders and paths."""
UNSPACED = {"ja", "zh"}
"""Languages without spaces, in which two characters count as a word."""


def length(text: str, language: str) -> float:
    """Words of a text."""
    return len(text) / 2 if language in UNSPACED else len(text.split())


def letters(text: str) -> str:
    """The letters of a text, to compare by."""
    return "".join(filter(str.isalnum, text.casefold()))


def evaluated(clones: Path, data: Path) -> set[str]:
    """The texts of the evaluation sets, compared by their letters."""
    found = set()
    for path in sorted(data.rglob("*.parquet")):
        if not {"paraphrase", "nli", "SentEval", "domain"} & set(path.parts) and path.name != "train.parquet":
            for column in pq.read_table(path).to_pydict().values():
                found |= {letters(text) for text in column if isinstance(text, str)}
    for *_, code in LANGUAGES.values():
        if code:
            for side in (code, "eng"):
                found |= {letters(text) for text in tatoeba(clones, code, side)}
    return found


def tatoeba(clones: Path, code: str, side: str) -> list[str]:
    """One side of LASER's Tatoeba test; nothing where it lacks the language."""
    path = f"data/tatoeba/v1/tatoeba.{code}-eng.{side}"
    return shown(clones / "LASER", path, missing_ok=True).splitlines()


def frequent(clones: Path, name: str) -> Iterator[dict[str, str]]:
    """The most frequent words of subtitles."""
    clone, folder = clones / "FrequencyWords", f"content/2018/{name}"
    short = f"{folder}/{name}_50k.txt"  # absent where the whole list is no longer
    file = short if short in listed(clone, "HEAD", folder) else f"{folder}/{name}_full.txt"
    words = [line.rpartition(" ")[0] for line in shown(clone, file).splitlines()[: 2 * WORDS]]
    for word in [word for word in words if all(unicodedata.category(sign)[0] in "LM" for sign in word)][:WORDS]:
        yield {"text": word, "kind": "word"}


def spoken(clones: Path, name: str) -> Iterator[dict[str, str]]:
    """Sentences that volunteers read aloud."""
    if name:
        clone = clones / "voice-web"
        for file in sorted(listed(clone, "HEAD", f"server/data/{name}/")):
            if file.endswith(".txt"):
                yield from ({"text": line.strip(), "kind": "sentence"} for line in shown(clone, file).splitlines())


def unpack(debs: Path, folder: Path) -> None:
    """The files of Debian packages, a folder for each."""
    for deb in sorted(debs.glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(deb), str(folder / deb.name.split("_")[0])], check=True)


def messages(folder: Path, language: str) -> Iterator[dict[str, str]]:
    """Messages of programs and of a game, beside their English."""
    name = CATALOGUES.get(language, language)
    for path in sorted({*folder.rglob(f"{name}/LC_MESSAGES/*.mo")}):
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        for english, text in catalogue.items():
            if isinstance(english, str) and isinstance(text, str):
                english = english.rpartition("\x04")[2].partition("|")[0]
                for one, other in zip(english.split("\n\n"), text.split("\n\n")):
                    yield {"text": tidy(other), "english": tidy(one), "kind": "message"}


def tidy(text: str) -> str:
    """A message without the marks of its shortcut key, and without markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>|[~_&](?=\w)", "", text)).split())


def helped(folder: Path) -> Iterator[dict[str, str]]:
    """Paragraphs of a help, and pages of them."""
    for path in sorted(folder.rglob("text/**/*.html")):
        whole = path.read_text(encoding="utf-8", errors="replace")
        parts = [tidy(part) for part in re.findall(r"<p [^>]*class=\"paragraph\"[^>]*>(.*?)</p>", whole, re.S)]
        yield from ({"text": part, "kind": "message"} for part in parts)
        yield {"text": " ".join(" ".join(parts).split()[:100]), "kind": "passage"}


def described(lists: Path, language: str) -> Iterator[tuple[str, str, str]]:
    """Package, one line about it and its longer description, in a language."""
    names = [f"Translation-{code}.lz4" for code in {"pt": ("pt", "pt%5fBR"), "no": ("nb",)}.get(language, (language,))]
    for path in sorted(path for name in names for path in lists.glob(f"*_main_i18n_{name}")):
        whole = subprocess.check_output(["lz4", "-dc", str(path)]).decode("utf-8", "replace")
        for entry in whole.split("\n\n"):
            found = re.search(r"^Package: (.*)(?s:.*?)^Description-(?!md5)\S+: (.*)((?:\n .*)*)", entry, re.M)
            if found:
                yield found[1], found[2], " ".join(" ".join(found[3].split("\n")).replace(" . ", " ").split()[:100])


def held_out(package: str) -> bool:
    """Whether the descriptions of a package are kept for known-item search, in all languages."""
    return zlib.crc32(package.encode()) % 5 == 0


def descriptions(lists: Path, language: str) -> Iterator[dict[str, str]]:
    """Descriptions of packages: a line, and what follows it."""
    for package, title, text in described(lists, language):
        if not held_out(package):
            yield {"text": title, "kind": "description"}
            yield {"text": text, "kind": "passage"}


def gathered(language: str, options: argparse.Namespace, unpacked: Path) -> Iterator[dict[str, str]]:
    """All texts of a language."""
    words, voice, _ = LANGUAGES[language]
    yield from frequent(options.clones, words)
    yield from spoken(options.clones, voice)
    code = DEBIAN.get(language, language)
    for place in sorted(unpacked.iterdir()):
        if place.name in ("wesnoth-1.16-data", f"libreoffice-l10n-{code}", f"libreoffice-help-{code}"):
            yield from messages(place, language)
            yield from helped(place)
    yield from descriptions(options.lists, language)


def kept(language: str, options: argparse.Namespace, unpacked: Path, test: set[str]) -> list[dict[str, str]]:
    """Texts of a language that are worth reading, each once, in random order within its kind."""
    most = {
        "word": WORDS, "sentence": SENTENCES, "message": MESSAGES, "description": DESCRIPTIONS,
        "passage": PASSAGES,
    }  # fmt: skip
    found: dict[str, list[dict[str, str]]] = {kind: [] for kind in most}
    seen: set[str] = set()
    for row in gathered(language, options, unpacked):
        text, kind, size = row["text"], row["kind"], length(row["text"], language)
        least, longest = {"word": (0, 1.0e9), "passage": PASSAGE}.get(kind, (2, LONGEST))
        key = letters(text)
        # Untranslated messages are no text of this language, but for names.
        foreign = row.get("english") == text
        if not key or key in seen or key in test or not least <= size <= longest or foreign:
            continue
        if kind in ("message", "sentence", "description") and PLAIN.search(text):
            continue
        seen.add(key)
        found[kind].append(row)
    draw = np.random.default_rng(0)
    rows = []
    for kind, some in found.items():
        order = range(len(some)) if kind == "word" else draw.permutation(len(some))
        rows += [some[row] for row in list(order)[: most[kind]]]
    return rows


def main() -> None:
    """Write the text of every language that has none yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("clones", "debs", "lists", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    test = evaluated(options.clones, options.data)
    with tempfile.TemporaryDirectory() as folder:
        unpack(options.debs, Path(folder))
        for language in LANGUAGES:
            place = options.output / f"{language}.jsonl"
            if not place.is_file():
                rows = kept(language, options, Path(folder), test)
                write_text(place, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
                print(language, dict(Counter(row["kind"] for row in rows)), flush=True)


if __name__ == "__main__":
    main()
