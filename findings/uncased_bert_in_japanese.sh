#!/usr/bin/env bash
# tokenizers 0.23.3: the normalizer of uncased BERT makes Japanese glass (garasu) a crow (karasu).
#
# Expected by most: `lowercase=True` does nothing to a script without upper case; and accents are accents.
# `BertNormalizer()` drops accents wherever it lowers letters (`strip_accents=None` follows `lowercase`), and drops all
# nonspacing marks of decomposed text. In Japanese they are the marks that voice a consonant, in Thai vowels, in Hindi
# the virama. Besides, Korean stays decomposed: three characters are eight.
#
# Seen: garasu -> karasu, papa (dad) -> haha (mother), Korean 3 characters -> 8, Thai 5 -> 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3
"$folder/venv/bin/python" - <<'PY'
import sys

from tokenizers.normalizers import BertNormalizer

normal = BertNormalizer().normalize_str
glass, crow, dad, mother = "\u30ac\u30e9\u30b9", "\u30ab\u30e9\u30b9", "\u30d1\u30d1", "\u30cf\u30cf"
korean, learn = "\ud55c\uad6d\uc5b4", "\u0e40\u0e23\u0e35\u0e22\u0e19"
print(glass, "->", normal(glass), "|", dad, "->", normal(dad))
print(f"Korean {len(korean)} characters -> {len(normal(korean))}, Thai {len(learn)} -> {len(normal(learn))}")
kept = BertNormalizer(strip_accents=False).normalize_str(glass)
print("with strip_accents=False:", kept)

same = normal(glass) == crow and normal(dad) == mother and kept == glass
if not same or len(normal(korean)) != 8 or len(normal(learn)) != 4:
    sys.exit("the behaviour has changed")
PY
