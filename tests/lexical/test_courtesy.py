import pytest

from selfsent.lexical import Analyzer
from selfsent.lexical.courtesy import says_nothing, without_courtesies


@pytest.mark.parametrize(
    ("language", "text", "left"),
    [
        ("english", "Hi team, please reset my PIN. Many thanks and kind regards", ", reset my pin."),
        ("english", "this kind of hipster text", "this kind of hipster text"),
        ("german", "Guten Tag, bitte den Drucker prüfen. Mit freundlichen Grüßen", ", den drucker prüfen."),
        ("french", "Bonjour, s’il vous plaît, l'imprimante. Merci d'avance", ", , l'imprimante."),
        ("russian", "Добрый день! Принтер не работает. Заранее спасибо", "! принтер не работает."),
        (None, "Hello, bitte", ", bitte"),
    ],
)
def test_courtesies_of_the_language_and_of_english_go(language, text, left):
    assert " ".join(without_courtesies(text, language).split()) == left


def test_a_text_says_nothing_where_courtesies_stand_beside_stop_words_and_numbers_alone():
    english = Analyzer("english")
    nothing = ["Hello, please help. Thank you!", "hi 42", "Dear all, with this. Regards"]
    something = ["my screen is black", "hi, the vpn drops", "to be or not to be", "42", ""]
    assert [says_nothing(text, english) for text in nothing + something] == [True] * 3 + [False] * 5
