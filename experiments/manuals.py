"""Gather manuals as text for the encoders that ship: public domain, CC BY, and the like of MIT and BSD.

    python experiments/manuals.py --clones CLONES --packages PACKAGES --output OUT

PACKAGES is a folder with Debian packages unpacked (`dpkg -x NAME*.deb PACKAGES/NAME`), CLONES one of git clones, each
in a folder NAME; which of them is read for what stands in `sources`. OUT gets NAME.txt.zst as of `free_text.py`, to be
drawn from by `closed_form.py`, which leaves out what is evaluated on. What is there stays.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from free_text import pages, plain, sentences
from gathering import SOURCES, Document, distinct, files, write_documents

BLOCK = re.compile(
    r"</?(?:p|h[1-6]|li|dd|dt|tr|td|th|table|ul|ol|dl|pre|div|section|title|para|term|br|hr|blockquote)\b[^>]*>", re.I
)
PAUSES = {"SH", "SS", "Sh", "Ss", "PP", "P", "LP", "TP", "IP", "HP", "Pp", "It", "sp", "RS", "RE", "El", "Bl", "br"}
"""Macros of a man page that end a paragraph."""
FIXED, FREE = {"nf", "Bd", "EX", "CS", "DS"}, {"fi", "Ed", "EE", "CE", "DE"}
"""Macros about text as it stands, which is no prose."""


def told(path: Path) -> str:
    """The text of a file."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode("utf-8", "replace")


def roff(text: str) -> Document:
    """The sentences of a man page."""
    text = re.sub(r"^[.']\\\".*$", "", text, flags=re.M)
    text = re.sub(r"\\f\[?[A-Z]{1,2}\]?|\\f.|\\s[-+]?\d+|\\&|\\\||\\c$", "", text, flags=re.M)
    text = re.sub(r"\\\((?:lq|rq|dq|aq)|\\\*[LR]\"?|\\\*\(..", '"', text).replace("\\-", "-").replace("\\ ", " ")
    paragraphs, fixed = [""], False
    for line in re.sub(r"\\\(..", " ", text).splitlines():
        macro, _, rest = line[1:].strip().partition(" ") if line[:1] in {".", "'"} else ("", "", line)
        fixed = macro in FIXED or (fixed and macro not in FREE)
        if macro in PAUSES or not line.strip():
            paragraphs.append("")
        elif not fixed and macro not in {"TH", "Dd", "Dt", "Os", "in", "ta", "ti", "ne", "if", "ie", "el", "de", "so"}:
            paragraphs[-1] += " " + rest.replace('"', "").replace(" Ns", "").replace(" ,", ",").replace(" .", ".")
    return [line for part in paragraphs for line in sentences(part)]


def man(packages: Path, *names: str) -> Iterator[Document]:
    """Man pages of packages."""
    for name in names:
        for path in sorted((packages / name).rglob("man/man*/*.gz")):
            if path.is_file() and not path.is_symlink():
                yield roff(told(path))


def web(packages: Path, *names: str) -> Iterator[Document]:
    """The HTML pages of packages, in documents of some thirty sentences."""
    for name in names:
        for path in sorted((packages / name).rglob("*.html*")):
            if path.is_file() and path.suffix in {".html", ".gz"} and "index" not in path.name:
                text = re.sub(r"<(script|style|pre|head)\b.*?</\1>", " ", told(path), flags=re.S | re.I)
                lines = [line for part in BLOCK.split(text) for line in sentences(plain(part))]
                yield from (lines[first : first + 30] for first in range(0, len(lines), 30))


def markup(clones: Path, name: str, *under: str, end: str = ".md") -> Iterator[Document]:
    """Markdown, reStructuredText and the like of a clone, without titles."""
    for _, text in files(clones / name, "HEAD", *under, end=end):
        text = re.sub(r"\A---\s*\n.*?\n---\s*\n|`{3}.*?`{3}|~~~.*?~~~", "", text, flags=re.S)
        text = re.sub(r"^(?: {4,}|\t|\.\. |\||:\w+:).*$|^[#>=~^+-]+\s*$", "", text, flags=re.M)
        text = re.sub(r":\w+:`([^`<]*)[^`]*`", r"\1", text)
        parts = re.split(r"\n\s*\n|\n(?=[#*-])", text)
        yield [line for part in parts for line in sentences(plain(part).lstrip("#-* "))]


def jargon(packages: Path) -> Iterator[Document]:
    """The Jargon File, in documents of some thirty sentences."""
    text = told(packages / "jargon-text/usr/share/doc/jargon-text/jargon.txt.gz")
    lines = [line for part in re.split(r"\n\s*\n", re.sub(r"[{}]", "", text)) for line in sentences(part)]
    yield from (lines[first : first + 30] for first in range(0, len(lines), 30))


def sources(clones: Path, packages: Path) -> dict[str, Callable[[], list[Document]]]:
    """What is read, by name; licences beside each."""
    return {
        "x-org": lambda: [*man(packages, *SOURCES["x_org"]), *web(packages, *SOURCES["x_org"])],  # MIT
        "tcl-tk": lambda: [*man(packages, "tk8.6-doc", "tcl8.6-doc")],  # BSD-like
        "bsd-man": lambda: [*man(packages, "freebsd-manpages", "openssh-client")],  # BSD
        "jargon": lambda: [*jargon(packages)],  # public domain
        "kicad": lambda: [*web(packages, "kicad-doc-en")],  # CC BY 3.0, or the GPL
        "ntp": lambda: [*web(packages, "ntpsec-doc")],  # NTP, BSD, CC BY 4.0
        "databases": lambda: [*web(packages, "sqlite3-doc", "postgresql-doc-15")],  # PD; BSD-like
        "drivers": lambda: [*pages(clones, "windows-driver-docs", "HEAD", "windows-driver-docs-pr")][::2],  # CC BY 4.0
        "boards": lambda: [  # MIT; CC BY 4.0
            *markup(clones, "micropython", "docs", end=".rst"),
            *markup(clones, "coreboot", "Documentation"),
        ],
        "crypto": lambda: [  # ISC; public domain
            *markup(clones, "libsodium-doc"),
            *markup(clones, "800-63-3"),
        ],
        "graphics": lambda: [  # CC BY 4.0; CC0
            *markup(clones, "Vulkan-Docs", end=".adoc"),
            *markup(clones, "raytracing.github.io", "books", end=".html"),
        ],
    }


def main() -> None:
    """Write every source that is not there yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("clones", "packages", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    for name, found in sources(options.clones, options.packages).items():
        if not (options.output / f"{name}.txt.zst").is_file():
            write_documents(options.output, name, distinct(found(), fewest=2))


if __name__ == "__main__":
    main()
