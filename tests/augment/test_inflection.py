import pytest

from selfsent.augment.inflection import article_before, form_of, inflected, with_capitals_of

IRREGULAR = {
    "noun": {"child": ["children"]},
    "verb": {
        "take": ["taken", "taking", "took"],
        "sing": ["sang", "sung"],
        "stop": ["stopped", "stopping"],
        "have": ["had", "has"],
        "do": ["did", "done"],
        "go": ["gone", "went"],
        "lie": ["lain", "lay", "lying"],
        "begin": ["began", "beginning", "begun"],
        "come": ["came"],
        "become": ["became"],
        "run": ["ran", "running"],
        "beat": ["beaten"],
        "outbid": ["outbidden"],
        "show": ["shown"],
        "prove": ["proven"],
        "win": ["won"],
        "cling": ["clung"],
    },
    "adj": {"big": ["bigger", "biggest"]},
    "adv": {},
}


FORMS = {
    ("noun", "s"): "road roads, city cities, day days, crate crates, wish wishes, child children, quiz "
    "quizzes, topaz topazes, stomach stomachs, monarch monarchs, epoch epochs, march marches",
    ("verb", "s"): "carry carries, take takes, have has, do does, undo undoes, go goes, echo echoes, radio "
    "radios, disco discos, whiz whizzes, waltz waltzes, buzz buzzes",
    ("verb", "past"): "carry carried, hope hoped, take took, sing sang, read read, have had, do did, go went, lie "
    "lay, begin began, come came, run ran, beat beat, outbid outbid, show showed, prove proved, "
    "win won",
    ("verb", "ing"): "hope hoping, see seeing, die dying, stop stopping, have having",
    ("verb", "participle"): "stop stopped, take taken, sing sung, go gone, begin begun, come come, become become, run "
    "run, welcome welcomed, beat beaten, show shown, cling clung",
    ("adj", "er"): "big bigger, happy happier",
    ("adj", "est"): "large largest, eager most eager",
    ("noun", "base"): "road road",
}


@pytest.mark.parametrize(("part", "form"), FORMS)
def test_forms_of_a_lemma(part, form):
    for lemma, expected in (pair.split(" ", 1) for pair in FORMS[part, form].split(", ")):
        assert inflected(lemma, part, form, IRREGULAR) == expected


@pytest.mark.parametrize(
    ("word", "lemma", "part", "before", "expected"),
    [
        ("roads", "road", "noun", "the", "s"),
        ("walks", "walk", "verb", "she", "s"),
        ("passes", "pass", "verb", "she", "s"),
        ("walked", "walk", "verb", "she", "past"),
        ("walked", "walk", "verb", "has", "participle"),
        ("taken", "take", "verb", "well", "participle"),
        ("walking", "walk", "verb", "is", "ing"),
        ("older", "old", "adj", "an", "er"),
        ("oldest", "old", "adj", "the", "est"),
        ("road", "road", "noun", "the", "base"),
    ],
)
def test_the_form_of_a_word(word, lemma, part, before, expected):
    assert form_of(word, lemma, part, before) == expected


def test_articles_and_capitals():
    words = ("apple", "unit", "hour", "house", "unusual", "European", "umbrella")
    assert [article_before(word) for word in words] == ["an", "a", "an", "a", "an", "a", "an"]
    pairs = "Street Road, STREET ROAD, street road", "İnek İnek, İNEK İNEK", "Işık Işık", "İNCİ ÇİLEK", "ILIK ILIK"
    for word, found in zip(("road", "inek", "ışık", "çilek", "ılık"), pairs, strict=True):
        for pattern, expected in (pair.split() for pair in found.split(", ")):
            assert with_capitals_of(word, pattern) == expected
