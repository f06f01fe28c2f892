import re

import pytest

from selfsent.augment.synonym import Synonym
from selfsent.errors import SettingsError

TEXTS = [
    "The big dogs stop at the old road.",
    "She quickly took the box to a city.",
    "The child may begin to walk.",
    "They walk to the new box, and take a walk.",
]


def test_capitals_and_parts_of_speech(wordnet, views):
    everything = Synonym(ratio=1.0, wordnet=str(wordnet))
    made = views(everything, TEXTS)
    assert re.fullmatch(r"The large dogs halt at the (aged|unfashionable) route\.", made[0])
    assert re.fullmatch(r"She (rapidly|fast) took the (crate|carton) to a town\.", made[1])
    assert made[2] == "The kid may start to stroll."
    assert re.fullmatch(r"They stroll to the fresh (crate|carton), and carry a stroll\.", made[3])
    assert views(everything, ["The end", "They end"]) == ["The goal", "They goal"]
    assert set(views(everything, ["A HAPPY DOG"] * 20)) == {"A GLAD HOUND", "A EAGER HOUND"}


def test_what_is_left_alone(wordnet, views):
    everything = Synonym(ratio=1.0, wordnet=str(wordnet))
    kept = [
        "It is I who was there.",  # stop words
        "Old friends of Mr Road met Box there.",  # of capitals, only the first word's is no name
        "road.example.org/box @dog #box box_dog box2",
        "She didn't'box.",
        "ro\u0301ad naïve box\u0301",
        "An owl and an apple.",  # a synonym of two words, and none
        "They exist.",  # be would have to be are
        "children stopped, taken",  # inflected
        '<box> a <b class="big box">road</b> and <box',
    ]
    made = views(everything, kept)
    assert made[0] == kept[0]
    assert made[1].split(maxsplit=1)[1] == "friends of Mr Road met Box there."
    assert made[2:] == kept[2:]
    assert views(everything, ["The dog's box"])[0].startswith("The hound's ")


def test_the_share_of_words_and_the_senses(wordnet, views):
    text = "big dog road box child happy dog road child big"
    made = views(Synonym(ratio=0.3, wordnet=str(wordnet)), [text] * 200)
    changed = [sum(a != b for a, b in zip(text.split(), view.split(), strict=True)) for view in made]
    assert set(changed) == {3}
    assert len(set(made)) > 50
    first = views(Synonym(ratio=1.0, wordnet=str(wordnet)), ["The child"] * 100)
    assert set(first) == {"The kid"}
    random = views(Synonym(ratio=1.0, sense="random", wordnet=str(wordnet)), ["The child"] * 100)
    assert set(random) == {"The kid", "The nestling"}
    assert views(Synonym(ratio=0.01, wordnet=str(wordnet)), ["The old road"])[0] != "The old road"


def test_key_and_row_alone_decide(wordnet, views):
    maker = Synonym(sense="random", wordnet=str(wordnet))
    texts = TEXTS * 10
    whole = views(maker, texts, key=5)
    assert views(maker, texts, key=5, size=7) == whole
    assert views(maker, texts[::-1], key=5, rows=range(len(texts) - 1, -1, -1)) == whole[::-1]
    assert views(maker, texts, key=6) != whole


def test_no_wordnet(tmp_path):
    with pytest.raises(SettingsError, match="`wordnet`"):
        Synonym(wordnet=str(tmp_path)).identity()
