#!/usr/bin/env bash
# model2vec 0.10.0 and sentence-transformers 6.2.0: one folder of static embeddings, two vectors for a text with a word
# that the table does not know.
#
# Expected by most: a folder that `StaticModel.save_pretrained` wrote, which both packages open, gives the same vectors
# in both; for known words it does. model2vec leaves unknown words out of the mean. sentence-transformers averages the
# row of `[UNK]` with the others, whatever is in it. All texts of unknown words alone (Chinese in an English table) are
# zeros in the one, and in the other one vector: copies of each other, and near to any query with such a word.
#
# Seen: cosine of a text's two vectors: known words 1.00; three known and one unknown 0.88; one and one 0.65;
#       two texts of unknown words: with each other 0.00 in model2vec, 1.00 in sentence-transformers.
#       For a known word and an unknown one, the first hit of three is the text with that word in model2vec, and a text
#       of another unknown word in sentence-transformers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check model2vec==0.10.0 sentence-transformers==6.2.0 \
    transformers==5.23.0 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - "$folder/table" <<'PY'
import sys

import numpy as np
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers

words = ["[PAD]", "[UNK]", "printer", "is", "broken", "screen", "flickers"]
tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
rows = np.random.default_rng(0).normal(size=(len(words), 64)).astype(np.float32)
StaticModel(rows, tokenizer, normalize=True).save_pretrained(sys.argv[1])
by_model2vec, by_sentence_transformers = StaticModel.from_pretrained(sys.argv[1]), SentenceTransformer(sys.argv[1])


def cosine(first, second):
    return round(float(first @ second / max(np.linalg.norm(first) * np.linalg.norm(second), 1e-9)), 2)


texts = ["printer is broken", "printer is broken Xerox", "printer Xerox"]
between = [cosine(by_model2vec.encode(text), by_sentence_transformers.encode(text)) for text in texts]
print("both:", dict(zip(texts, between)))
encoders = {"model2vec": by_model2vec, "sentence-transformers": by_sentence_transformers}
copies = {name: cosine(*encoder.encode(["Xerox", "Kyocera"])) for name, encoder in encoders.items()}
print("texts of unknown words:", copies)
first = {}
for name, encoder in encoders.items():
    query, *others = encoder.encode(["printer Xerox", "screen flickers", "printer is broken", "Kyocera Kyocera"])
    scores = [cosine(query, other) for other in others]
    first[name] = int(np.argmax(scores))
    print(name, "scores", scores)
same = between[0] == 1.0 and between[1] < 0.95 and between[2] < 0.8
if not same or list(copies.values()) != [0.0, 1.0] or list(first.values()) != [1, 2]:
    sys.exit("the behaviour has changed")
PY
