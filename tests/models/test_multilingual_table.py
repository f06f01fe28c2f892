"""The multilingual table that ships: one space for translations, and the default where a text is not English."""

import numpy as np
import pytest

import tiny
from selfsent.data.vector_files import unit
from selfsent.models.bases import BUNDLED, MULTILINGUAL, resolve, table_for
from selfsent.models.encoding import encode
from selfsent.models.opening import open_encoder
from selfsent.models.reading import reading_notice

SENTENCES = {
    "de": ("Der Drucker antwortet nicht", "Morgen regnet es in Berlin", "Das Kind spielt mit dem Hund"),
    "es": ("La impresora no responde", "Mañana llueve en Berlín", "El niño juega con el perro"),
    "tr": ("Yazıcı yanıt vermiyor", "Yarın Berlin'de yağmur yağacak", "Çocuk köpekle oynuyor"),
    "ru": ("Принтер не отвечает", "Завтра в Берлине будет дождь", "Ребёнок играет с собакой"),
    "zh": ("打印机没有反应", "明天柏林会下雨", "孩子和狗玩"),
    "en": ("The printer does not answer", "Tomorrow it rains in Berlin", "The child plays with the dog"),
}
"""Three sentences in each language, in the same order."""


@pytest.fixture(scope="module")
def table():
    return open_encoder(resolve(MULTILINGUAL))


@pytest.mark.parametrize("language", [name for name in SENTENCES if name != "en"])
def test_a_translation_is_the_nearest_sentence(language, table):
    own, english = (unit(encode(table, list(SENTENCES[name]))) for name in (language, "en"))

    assert (own @ english.T).argmax(1).tolist() == [0, 1, 2]


def test_the_peer_reads_the_same_vectors(table):
    texts = [text for some in SENTENCES.values() for text in some] + ["İNTERNET", "ﬁle", "", "😀 !!!"]
    peer = tiny.peer(resolve(MULTILINGUAL)).float().encode(texts)

    np.testing.assert_allclose(encode(table, texts), peer, atol=1e-6)


def test_a_turkish_capital_is_its_small_letter(table):
    capitals, small = encode(table, ["İNTERNET", "internet"])

    np.testing.assert_allclose(capitals, small)


@pytest.mark.parametrize(
    ("language", "name"),
    [("de", MULTILINGUAL), ("ja", MULTILINGUAL), ("en", BUNDLED), ("sw", BUNDLED), (None, BUNDLED)],
)
def test_the_table_for_a_language(language, name):
    assert table_for(language) == name


def test_a_text_that_bundled_cannot_read_names_the_table_that_can(table):
    texts = [text for text in SENTENCES["de"] for _ in range(20)]

    assert f"{MULTILINGUAL} knows this one" in reading_notice(open_encoder(resolve(BUNDLED)), texts)
    assert reading_notice(table, texts) is None
