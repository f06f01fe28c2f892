#!/usr/bin/env bash
# bm25s 0.3.16, SQLite 3.54.1's FTS5 (apsw 3.54.1.0) and tantivy 0.27.0: what is left of a Hindi word.
#
# Expected by most: these tokenizers know Unicode, and Hindi has spaces, so words stay words.
# Vowel signs and the virama are combining marks, and each default tokenizer ends a word at other marks:
#   bm25s    finds no word at all in these texts: a word is two of Python's `\w` in a row, and no mark is one
#   FTS5     keeps consonants: a search for the day finds the gift, spelt with the same consonants
#   tantivy  keeps vowel signs and cuts at the virama: the name of the language is two words
#
# Seen, of the words for day, gift and Hindi (U+0926 93F 928, 926 93E 928, 939 93F 928 94D 926 940):
#   bm25s    [[], [], []]
#   FTS5     a search for day finds day and gift
#   tantivy  [1, 1, 2] words
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    apsw==3.54.1.0 bm25s==0.3.16 numpy==2.4.6 tantivy==0.27.0
"$folder/venv/bin/python" - <<'PY'
import sys

import apsw
import bm25s
import tantivy

day, gift, hindi = "\u0926\u093f\u0928", "\u0926\u093e\u0928", "\u0939\u093f\u0928\u094d\u0926\u0940"
words = [day, gift, hindi]
by_bm25s = bm25s.tokenize(words, stopwords=None, return_ids=False, show_progress=False)
print("bm25s  ", by_bm25s)

database = apsw.Connection(":memory:")
database.execute("CREATE VIRTUAL TABLE texts USING fts5(body)")
database.executemany("INSERT INTO texts VALUES (?)", [(each,) for each in words])
by_fts5 = [row[0] for row in database.execute("SELECT body FROM texts WHERE texts MATCH ?", (f'"{day}"',))]
print("FTS5   ", by_fts5)

analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).build()
by_tantivy = [analyzer.analyze(each) for each in words]
print("tantivy", by_tantivy)

if by_bm25s != [[], [], []] or by_fts5 != [day, gift] or [len(each) for each in by_tantivy] != [1, 1, 2]:
    sys.exit("the behaviour has changed")
PY
