import pytest
from Stemmer import algorithms

from selfsent.errors import SettingsError
from selfsent.lexical import LANGUAGES, Analyzer, language_of
from selfsent.lexical.analyzer import words_of

ENGLISH = ["the printer on the second floor does not answer", "what shall we do with the old machine", "it is late"]
GERMAN = ["der Drucker im zweiten Stock antwortet nicht", "was machen wir mit der alten Maschine", "es ist schon spät"]
TURKISH = ["ikinci kattaki yazıcı cevap vermiyor", "eski makineyi ne yapacağız", "artık çok geç oldu"]
ARABIC = ["الطابعة في الطابق الثاني لا تستجيب", "ماذا نفعل بالآلة القديمة", "لقد تأخر الوقت"]


def test_stop_words_go_and_stems_stay():
    assert Analyzer("english")("The printers were NOT printing, it's THE printer") == ["printer", "print", "printer"]
    assert Analyzer("german")("Die Drucker drucken nicht") == ["druck", "druck"]
    assert Analyzer()("The printers") == Analyzer("none")("The printers") == ["the", "printers"]
    assert Analyzer("turkish")("evler evlerde ve") == ["ev", "ev"]


def test_every_stemmer_of_snowball_can_be_chosen():
    assert {*algorithms()} - {"porter", "dutch_porter"} == {*LANGUAGES} - {"none"}
    for language in LANGUAGES:
        assert Analyzer(language)("words 123") != []
    with pytest.raises(SettingsError, match=r"no language 'englsh' to find stems in.*english"):
        Analyzer("englsh")


def test_words_that_are_known_are_forgotten_when_they_are_many(monkeypatch):
    monkeypatch.setattr("selfsent.lexical.analyzer._CACHED", 2)
    analyzer = Analyzer("english")
    found = [analyzer(f"cars, boats and trains {n}0") for n in range(3)]
    assert found == [["car", "boat", "train", f"{n}0"] for n in range(3)]


def test_scripts_without_spaces_give_pairs_of_signs():
    assert words_of("Das Auto, a B2") == ["das", "auto", "b2"]
    assert words_of("東京タワーはTokyoに 猫") == ["tokyo", "東京", "京タ", "タワ", "ワー", "ーは", "に", "猫"]
    assert words_of("मेरा प्रिंटर") == ["मेरा", "प्रिंटर"]  # with their vowel signs


@pytest.mark.parametrize(
    ("texts", "language"), [(ENGLISH, "english"), (GERMAN, "german"), (TURKISH, "turkish"), (ARABIC, "arabic")]
)
def test_the_text_tells_its_language(texts, language):
    assert language_of(texts * 20) == language
    assert language_of([*texts, ""]) == language


@pytest.mark.parametrize(
    "texts", [[], [""], [*GERMAN * 50, *ENGLISH * 50], ["東京タワーに行く"] * 5, ENGLISH * 4 + TURKISH * 6]
)
def test_where_that_is_unsure_there_are_no_stems(texts):
    assert language_of(texts) is None
