import pytest

from selfsent.makers.inflection import article_before, form_of, inflected, with_capitals_of

IRREGULAR = {
    "noun": {"child": ["children"]},
    "verb": {"take": ["taken", "taking", "took"], "sing": ["sang", "sung"], "stop": ["stopped", "stopping"]},
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
