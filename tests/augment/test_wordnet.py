from pathlib import Path

import pytest

from selfsent.augment.wordnet import WordNet
from selfsent.errors import SettingsError

DEBIAN = Path("/usr/share/wordnet")


def test_senses_and_counts(wordnet):
    known = WordNet(wordnet)
    assert known.senses("child", "noun") == (("child", "kid"), ("child", "nestling"))
    assert known.senses("big", "adj") == (("big", "large"),)
    assert known.senses("child", "verb") == ()
    assert known.count("walk", "verb") == 6
    assert known.count("road", "noun") == 0


def test_every_line_of_the_index_is_found(wordnet):
    known = WordNet(wordnet)
    for part in ("noun", "verb", "adj", "adv"):
        for line in (wordnet / f"index.{part}").read_text().splitlines()[1:]:
            lemma = line.split()[0]
            assert any(lemma in [word.lower() for word in words] for words in known.senses(lemma, part))


def test_a_directory_without_it(tmp_path):
    with pytest.raises(SettingsError, match=f"WordNet is not in {tmp_path}.*wordnet-base.*`wordnet`"):
        WordNet(tmp_path)


@pytest.mark.skipif(not (DEBIAN / "index.noun").exists(), reason="needs Debian's wordnet-base")
def test_the_real_one():
    known = WordNet()
    assert "large" in known.senses("big", "adj")[0]
    assert known.count("dog", "noun") > 40
    lines = (DEBIAN / "index.verb").read_text().splitlines()[29::500]
    assert all(known.senses(line.split()[0], "verb") for line in lines)
