import json

import numpy as np
import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.data.token_table import build_table
from selfsent.errors import Damaged

SENTENCES = tiny.make_sentences(40)


@pytest.fixture
def table(tmp_path):
    corpus, tokenizer = read_corpus(SENTENCES, cache=tmp_path), tiny.make_tokenizer()

    def of():
        return build_table(corpus, tokenizer, "text")

    of.directory = lambda: next(corpus.directory.glob("tokens-*"))
    return of


def tokens(table):
    return table[np.arange(len(table))]


@pytest.mark.parametrize("name", ["ids.npy", "starts.npy", "offsets.npy", "tokens.json"])
@pytest.mark.parametrize("change", ["a bit", "cut short", "gone"])
def test_a_damaged_table_is_named_and_made_again(table, name, change):
    expected = tokens(table())
    file = table.directory() / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    if change == "gone":
        file.unlink()
    else:
        file.write_bytes(bytes(data) if change == "a bit" else bytes(data)[:-3])
    with pytest.warns(Damaged, match=r"tokens-\w+ is damaged, and is made again"):
        found = tokens(table())
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.lengths, expected.lengths)
    assert len(list(table.directory().parent.glob("tokens-*"))) == 1


def test_a_table_of_an_older_version_without_checksums_is_opened(table):
    expected = tokens(table())
    about = table.directory() / "tokens.json"
    old = {name: value for name, value in json.loads(about.read_text()).items() if name not in ("sums", "checksum")}
    about.write_text(json.dumps(old))
    assert np.array_equal(tokens(table()).ids, expected.ids)
    assert json.loads(about.read_text()) == old
