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


@pytest.mark.parametrize(
    ("lemma", "part", "form", "expected"),
    [
        ("road", "noun", "s", "roads"),
        ("city", "noun", "s", "cities"),
        ("day", "noun", "s", "days"),
        ("crate", "noun", "s", "crates"),
        ("wish", "noun", "s", "wishes"),
        ("child", "noun", "s", "children"),
        ("carry", "verb", "s", "carries"),
        ("take", "verb", "s", "takes"),
        ("carry", "verb", "past", "carried"),
        ("hope", "verb", "past", "hoped"),
        ("hope", "verb", "ing", "hoping"),
        ("see", "verb", "ing", "seeing"),
        ("die", "verb", "ing", "dying"),
        ("stop", "verb", "ing", "stopping"),
        ("stop", "verb", "participle", "stopped"),
        ("take", "verb", "past", "took"),
        ("take", "verb", "participle", "taken"),
        ("sing", "verb", "past", "sang"),
        ("sing", "verb", "participle", "sung"),
        ("read", "verb", "past", "read"),
        ("have", "verb", "s", "has"),
        ("have", "verb", "ing", "having"),
        ("have", "verb", "past", "had"),
        ("do", "verb", "s", "does"),
        ("do", "verb", "past", "did"),
        ("undo", "verb", "s", "undoes"),
        ("go", "verb", "s", "goes"),
        ("go", "verb", "past", "went"),
        ("go", "verb", "participle", "gone"),
        ("lie", "verb", "past", "lay"),
        ("echo", "verb", "s", "echoes"),
        ("radio", "verb", "s", "radios"),
        ("disco", "verb", "s", "discos"),
        ("quiz", "noun", "s", "quizzes"),
        ("whiz", "verb", "s", "whizzes"),
        ("topaz", "noun", "s", "topazes"),
        ("waltz", "verb", "s", "waltzes"),
        ("buzz", "verb", "s", "buzzes"),
        ("stomach", "noun", "s", "stomachs"),
        ("monarch", "noun", "s", "monarchs"),
        ("epoch", "noun", "s", "epochs"),
        ("march", "noun", "s", "marches"),
        ("begin", "verb", "past", "began"),
        ("begin", "verb", "participle", "begun"),
        ("come", "verb", "past", "came"),
        ("come", "verb", "participle", "come"),
        ("become", "verb", "participle", "become"),
        ("run", "verb", "past", "ran"),
        ("run", "verb", "participle", "run"),
        ("welcome", "verb", "participle", "welcomed"),
        ("beat", "verb", "past", "beat"),
        ("beat", "verb", "participle", "beaten"),
        ("outbid", "verb", "past", "outbid"),
        ("show", "verb", "past", "showed"),
        ("show", "verb", "participle", "shown"),
        ("prove", "verb", "past", "proved"),
        ("win", "verb", "past", "won"),
        ("cling", "verb", "participle", "clung"),
        ("big", "adj", "er", "bigger"),
        ("large", "adj", "est", "largest"),
        ("happy", "adj", "er", "happier"),
        ("eager", "adj", "est", "most eager"),
        ("road", "noun", "base", "road"),
    ],
)
def test_forms_of_a_lemma(lemma, part, form, expected):
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
    assert [article_before(word) for word in ("apple", "unit", "hour", "house", "unusual", "European", "umbrella")] == [
        "an",
        "a",
        "an",
        "a",
        "an",
        "a",
        "an",
    ]
    assert with_capitals_of("road", "Street") == "Road"
    assert with_capitals_of("road", "STREET") == "ROAD"
    assert with_capitals_of("road", "street") == "road"
    assert with_capitals_of("inek", "İnek") == "İnek"
    assert with_capitals_of("ışık", "Işık") == "Işık"
    assert with_capitals_of("inek", "İNEK") == "İNEK"
    assert with_capitals_of("çilek", "İNCİ") == "ÇİLEK"
    assert with_capitals_of("ılık", "ILIK") == "ILIK"
