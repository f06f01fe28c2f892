"""Whether an encoder can read a text."""

import pytest

import tiny
from selfsent.models.loading import load_encoder
from selfsent.models.reading import PIECES, pieces_of_a_word, reading_notice, unknown_share

ENGLISH = """The printer on the second floor has stopped answering since this morning, and nobody can print letters.
Please send somebody who knows the machine, because our customers are waiting for their invoices and contracts.
I have already switched it off and on again, changed the paper and looked for messages on the small display.
My password does not work any more after the holidays; the window only tells me that the account was locked."""
GERMAN = """Der Drucker im zweiten Stock antwortet seit heute Morgen nicht mehr, und niemand kann Briefe ausdrucken.
Bitte schicken Sie jemanden, der das Gerät kennt, weil unsere Kunden auf ihre Rechnungen und Verträge warten.
Ich habe ihn schon ausgeschaltet und wieder eingeschaltet, Papier gewechselt und auf die Anzeige geschaut.
Mein Kennwort funktioniert nach dem Urlaub nicht mehr; das Fenster sagt nur, dass das Konto gesperrt wurde."""


@pytest.fixture
def encoder(encoder_of):
    return encoder_of("bert", initializer_range=0.5)


@pytest.fixture(scope="module")
def sentences():
    return tiny.make_sentences(70)


def test_notice_of_text_that_the_tokenizer_does_not_know(encoder, sentences):
    assert unknown_share(encoder, sentences) == 0
    assert reading_notice(encoder, sentences) is None
    strange = ["принтер не отвечает", "日本語"]
    assert unknown_share(encoder, strange) == 1
    share = unknown_share(encoder, [*sentences, *strange])
    assert 0 < share < 0.1
    assert reading_notice(encoder, [*sentences, *strange]) is None
    said = reading_notice(encoder, [*sentences[:2], *strange])
    assert "of the tokens are unknown to this encoder: it can hardly read this text, choose another one" in said
    assert unknown_share(encoder, [""]) == 0


@pytest.mark.parametrize("base", ["bundled", "bundled-encoder"])
def test_notice_of_text_of_another_language(base):
    encoder = load_encoder(base)
    assert pieces_of_a_word(encoder, ENGLISH.splitlines()) < 1.3
    assert reading_notice(encoder, ENGLISH.splitlines()) is None
    assert pieces_of_a_word(encoder, GERMAN.splitlines()) > PIECES
    said = reading_notice(encoder, GERMAN.splitlines())
    assert said.startswith("this encoder was probably made for another language: it splits the words")
    assert reading_notice(encoder, GERMAN.splitlines()[:1]) is None  # too few words to tell
    assert pieces_of_a_word(encoder, [GERMAN.upper(), "日本語の文です" * 20]) == 0


def test_a_small_vocabulary_splits_the_words_of_any_language(encoder):
    assert pieces_of_a_word(encoder, GERMAN.lower().splitlines()) > PIECES
    assert reading_notice(encoder, tiny.make_sentences(70)) is None
