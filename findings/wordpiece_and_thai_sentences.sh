#!/usr/bin/env bash
# tokenizers 0.23.3: a Thai sentence of 101 characters is one unknown word for WordPiece, though it knows every letter.
#
# Expected by most: with all letters in the vocabulary there are no unknown words, and a long text is truncated at most.
# Thai puts no spaces between words. `BertPreTokenizer` splits Chinese into characters, not Thai, so that a sentence is
# one "word"; and `WordPiece` gives up on words of more than `max_input_chars_per_word`, 100 by default. Every longer
# sentence has the same single token, and so the same vector. Lao, Khmer and Burmese fare alike.
#
# Seen: 100 characters -> 100 tokens; 101 characters -> ['[UNK]'], another sentence of 110 -> ['[UNK]']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3
"$folder/venv/bin/python" - <<'PY'
import sys

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

consonants = [chr(code) for code in range(0x0E01, 0x0E2F)]
vocabulary = ["[UNK]", *consonants, *(f"##{each}" for each in consonants)]
tokenizer = Tokenizer(WordPiece({piece: number for number, piece in enumerate(vocabulary)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = BertPreTokenizer()
sentence = "".join(consonants * 3)
tokens = [tokenizer.encode(each).tokens for each in (sentence[:100], sentence[:101], sentence[::-1][:110])]
print("100 characters:", len(tokens[0]), "tokens; 101:", tokens[1], "another sentence of 110:", tokens[2])
if len(tokens[0]) != 100 or "[UNK]" in tokens[0] or tokens[1:] != [["[UNK]"], ["[UNK]"]]:
    sys.exit("the behaviour has changed")
PY
