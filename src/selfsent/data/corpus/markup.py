"""HTML to text: tags go by the names of HTML's elements, and whatever else stands in angle brackets is text."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any

_NAMES = (
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blockquote body "
    "br button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt "
    "em embed fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe "
    "img input ins kbd label legend li link main map mark marquee math menu meta meter nav nobr noembed noframes "
    "noscript object ol optgroup option output p param picture pre progress q rp rt ruby s samp script search "
    "section select slot small source span strike strong style sub summary sup svg table tbody td template "
    "textarea tfoot th thead time title tr track tt u ul var video wbr xmp"
)
"""The elements of the HTML standard (Living Standard, index of elements and 16.2, without elements for frames)."""
_FLAGS = (
    "allowfullscreen async autofocus autoplay border checked compact controls declare default defer disabled "
    "download formnovalidate hidden inert ismap itemscope loop multiple muted nohref nomodule noresize noshade "
    "novalidate nowrap open playsinline readonly required reversed selected"
)
"""Attributes that need no value."""
_ATTRIBUTES = (
    rf"""\s+(?:[^\s"'<>/=&|]+\s*=|(?:{_FLAGS.replace(" ", "|")}|data-[\w-]+)(?=[\s/>]))"""
    r"""(?:"[^"<]*"|'[^'<]*'|[^<>"'])*+"""
)
"""At least one attribute in the form of HTML: `<b && c>` has none. Values hold no other tag."""
_ELEMENT = "|".join(
    f"{first}(?:{'|'.join(name[1:] for name in names)})"
    for first, names in groupby(_NAMES.split(), lambda name: name[0])
)
"""Names of elements, by the first letter: a long list of alternatives is slow."""
_MARKUP = (
    rf"""/?(?:{_ELEMENT})(?:{_ATTRIBUTES}(?:>|["']?[^<>"']*\Z)|[\s/]*>)"""
    r"|/?(?:o|v|w|m|x|st1):\w+(?:\s[^<>]*)?/?>"  # Word's own
    r"|!--|!doctype\b[^<>]*>|\?xml\b[^<>]*>|!\[(?:if|endif)\b[^<>]*>"
)
"""Continuations of the < of markup."""
_TAG = re.compile(f"<(?:{_MARKUP})", re.IGNORECASE)
_TO_THE_END = {"iframe", "noembed", "noframes", "noscript", "script", "style", "template", "textarea", "title", "xmp"}
"""Elements that take all text up to their end tag."""
_DRAWN = re.compile(r"<(svg|math)\b[^<>]*>(?:(?!</?(?:svg|math)\b).)*+</\1\s*>", re.IGNORECASE | re.DOTALL)
_INSIDE = re.compile(r"<[^<>]*>")
ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}[1-4]?|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_NO_ENTITY = re.compile(r"&#\d{100,};?")
_PLAIN = re.compile(
    rf"<(?!{_MARKUP})|&(?!{ENTITY.pattern[1:]})|<(?:(!--)|({'|'.join(_TO_THE_END)})(?=[\s/>]))", re.IGNORECASE
)
"""A < or & that is text, or the start of an element or comment that may take all text to the end."""
_BLOCK = re.compile(
    r"</?(?:address|article|aside|blockquote|dd|div|dl|dt|fieldset|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p"
    r"|pre|section|table|tbody|td|tfoot|th|thead|tr|ul)(?=[\s/>])",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br(?=[\s/>])", re.IGNORECASE)
_AS_IT_IS = re.compile(r"<(?:pre|textarea)(?=[\s/>])", re.IGNORECASE)
_UNSEEN = ["head", "script", "style", "template", "noscript"]
_QUOTED = "blockquote,.gmail_quote,.gmail_attr,.gmail_signature,.moz-cite-prefix,.moz-signature,.yahoo_quoted"
_MOST_TAGS = 10_000
"""Tags of a text that is parsed: the time of a parser of HTML grows with the square of their depth."""


def has_html(text: str) -> bool:
    """Whether a text has a tag, a comment or an entity of HTML."""
    return bool(_TAG.search(text) or ENTITY.search(text))


def without_html(text: str, parser: Callable[[bytes], Any], quoted_too: bool = False) -> str:
    """A text without tags and comments, its entities resolved, a blank line where a block begins or ends.

    Names of HTML's elements alone make a tag: `<jane@example.org>`, `vector<int>`, `<Enter>` and `a<b && c>d` stay.

    Args:
        text: text or a whole page.
        parser: selectolax's `LexborHTMLParser`.
        quoted_too: quoted mail and signatures go, as mail programs mark them.
    """
    if not _TAG.search(text):
        return _unescaped(text) if ENTITY.search(text) else text
    if "</svg" in text.lower() or "</math" in text.lower():  # elements of these are none of HTML
        text = _DRAWN.sub(lambda drawn: _INSIDE.sub(" ", drawn[0]), text)
    if text.count("<") > _MOST_TAGS:
        return _unescaped(_TAG.sub("\n\n", text))
    text = _PLAIN.sub(partial(_escaped, text.lower(), {}), text)
    if (_BLOCK.search(text) or _BREAK.search(text)) and not _AS_IT_IS.search(text):
        # Line ends of the source are spaces in a page, and stay what they are in text with a tag here and there.
        text = " ".join(text.split())
    text = _BREAK.sub(r"\n\g<0>", _BLOCK.sub(r"\n\n\g<0>", text))
    tree = parser(text.encode("utf-8", "replace"))
    tree.strip_tags(_UNSEEN, recursive=True)
    for node in tree.css(_QUOTED) if quoted_too else ():
        node.decompose()
    return str(tree.root.text(deep=True, separator="", strip=False)).strip()


def _escaped(lower: str, ends: dict[str, int], found: re.Match[str]) -> str:
    """A < or & as an entity; the start of a comment or element as it is where its end follows."""
    end = "-->" if found[1] else f"</{found[2].lower()}" if found[2] else ""
    if end and end not in ends:
        ends[end] = lower.rfind(end)
    if end and ends[end] > found.start():
        return found[0]
    return "&amp;" if found[0] == "&" else f"&lt;{found[0][1:]}"


def _unescaped(text: str) -> str:
    """A text with its entities resolved; numbers of thousands of digits, which Python rejects, are replaced."""
    return ENTITY.sub(lambda entity: html.unescape(entity[0]), _NO_ENTITY.sub("\ufffd", text))
