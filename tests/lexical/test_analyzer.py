import unicodedata
from hashlib import blake2b

import pytest
from Stemmer import algorithms

from selfsent.errors import SettingsError
from selfsent.lexical import LANGUAGES, Analyzer, analyzer, language_of
from selfsent.lexical.analyzer import fold, lower, split_words, words_of

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
    unstemmed = {"chinese", "hebrew", "japanese", "korean", "thai", "ukrainian", "vietnamese"}
    assert {*algorithms()} - {"porter", "dutch_porter"} == {*LANGUAGES} - {"none"} - unstemmed
    for language in LANGUAGES:
        assert Analyzer(language)("words 123") != []
    with pytest.raises(SettingsError, match=r"no language 'englsh' to find stems in.*english"):
        Analyzer("englsh")


EVERYTHING = (
    "Oﬃce ＲＥＳＥＴ Straße İzmir ΟΔΟΣ Windows™ 20℃ ﾌﾟﾘﾝﾀｰ東京タワー élève dell'arte cœur"
    " שָׁלוֹם צה״ל مُحَمَّدٌ об'єкт ४२ हिन्दी Москва́"
)
WORDS_OF_RULES = {1: "cfff993c61933fe1"}
"""The terms of the text above by the edition of the rules."""


def test_a_change_of_the_rules_of_words_counts_up_their_edition():
    terms = [words_of(EVERYTHING), Analyzer("korean")("프린터에서 서비스입니다"), Analyzer("ukrainian")("принтерами")]
    assert blake2b(repr(terms).encode(), digest_size=8).hexdigest() == WORDS_OF_RULES[analyzer._RULES]


def test_a_fingerprint_knows_language_stop_words_and_snowball(monkeypatch):
    seen = {Analyzer(language).fingerprint for language in LANGUAGES}
    assert len(seen) == len(LANGUAGES)
    assert Analyzer("none").fingerprint == Analyzer().fingerprint
    monkeypatch.setattr("Stemmer.version", lambda: "another")
    assert Analyzer("english").fingerprint not in seen
    assert Analyzer("korean").fingerprint in seen


def test_words_that_are_known_are_forgotten_when_they_are_many():
    analyzer = Analyzer("english", max_cached=2)
    found = [analyzer(f"cars, boats and trains {n}0") for n in range(3)]
    assert found == [["car", "boat", "train", f"{n}0"] for n in range(3)]


def test_scripts_without_spaces_give_pairs_of_signs():
    assert words_of("Das Auto, a B2") == ["das", "auto", "b2"]
    assert words_of("東京タワーはTokyoに 猫") == ["tokyo", "東京", "京タ", "タワ", "ワー", "ーは", "に", "猫"]
    assert words_of("मेरा प्रिंटर") == ["मेरा", "प्रिंटर"]  # with their vowel signs


FOLDED = {
    "The proﬁle of the oﬃce": ["the", "profile", "of", "the", "office"],  # ligatures, as PDFs have them
    "Ｒｅｓｅｔ １２": ["reset", "12"],  # full width
    "Straße STRASSE": ["strasse", "strasse"],
    "İzmir IZMIR": ["izmir", "izmir"],
    "ΟΔΟΣ οδος οδός": ["οδοσ", "οδοσ", "οδόσ"],  # a final sigma is a sigma
    "Windows™ 20℃ don´t": ["windows", "20", "don"],  # what is no part of a word does not join one
    "ﾌﾟﾘﾝﾀｰ プリンター": ["プリ", "リン", "ンタ", "ター"] * 2,  # half width
    "e\u0301le\u0300ve élève": ["élève", "élève"],
    "\u0301a": [],
    "שָׁלוֹם שלום": ["שלום", "שלום"],  # points are for learners
    'צה״ל צה"ל "שלום"': ["צהל", "צהל", "שלום"],  # a quote within a word is its own
    "مُحَمَّدٌ محمد العـــربية ـــ": ["محمد", "محمد", "العربية"],  # vowel signs, and a stroke that lengthens
    "об'єкт об’єкт обʼєкт п'ять 'слово'": ["обєкт"] * 3 + ["пять", "слово"],
    "مۀ لطفاً": ["مۀ", "لطفا"],
    "dell'arte d’un": ["dell", "arte", "un"],
    "cœur COEUR Œuvre": ["coeur", "coeur", "oeuvre"],
    "४२ ٤٢ ۴۲ ๔๒": ["42"] * 4,
    "हिन्दी हिंदी कम्प्यूटर कंप्यूटर यहाँ यहां जन्म": ["हिंदी"] * 2 + ["कंप्यूटर"] * 2 + ["यहां"] * 2 + ["जन्म"],
    "ज़रूरत जरूरत": ["जरूरत"] * 2,  # with a dot below, and without
    "Москва́ Москва": ["москва"] * 2,  # stress, as in encyclopaedias
}
STOPPED = {
    "arabic": ("الطابعة في الطابق لا تستجيب إلى الأمر", ["طابع", "طابق", "استجيب", "امر"]),
    "chinese": ("打印机 一些 安全 问题 应用 因为", ["打印", "印机", "安全", "问题", "应用"]),
    "czech": (
        "Tiskárna ve druhém patře neodpovídá, ale je zapnutá",
        ["tiskárn", "druh", "patř", "neodpovíd", "zapnut"],
    ),
    "finnish": ("Tulostin ei vastaa, mutta se on päällä", ["tulost", "vast", "pääl"]),
    "greek": ("Ο εκτυπωτής και η ΟΘΟΝΗ για το γραφείο", ["εκτυπωτ", "οθον", "γραφει"]),
    "hebrew": ("המדפסת לא עונה כי היא כבויה", ["המדפסת", "עונה", "כבויה"]),
    "hindi": ("प्रिंटर और स्क्रीन", ["प्रिंटर", "स्क्रीन"]),
    "korean": ("프린터는 문서를 문서에서 서버의 RFC에", ["프린터", "문서", "문서", "서버", "rfc"]),
    "persian": ("چاپگر در كتاب و کتاب نیست", ["چاپگر", "کتاب", "کتاب"]),
    "polish": ("Drukarka na piętrze nie odpowiada", ["drukark", "piętrz", "odpowiad"]),
    "romanian": ("Imprimanta şi ecranul și biroul", ["imprim", "ecran", "biro"]),
    "ukrainian": ("Програма для програми, linux", ["прогр", "прогр", "linux"]),
    "vietnamese": ("máy in của tôi không in và", ["máy", "in", "in"]),
}
MARKED = {
    "hindi": "मेरा प्रिंटर नहीं",
    "tamil": "அச்சுப்பொறி வேலை",
    "bengali": "প্রিন্টার কাজ",
    "arabic": "مُحَمَّدٌ الطَّابِعَةُ",
    "hebrew": "שָׁלוֹם עֲלֵיכֶם",
    "chakma": "𑄇𑄨𑄠𑄁 𑄇𑄧𑄘",
    "sinhala with a joiner": "ශ්\u200dරී ලංකා",
}


@pytest.mark.parametrize("text", FOLDED)
def test_words_are_folded(text):
    assert words_of(text) == FOLDED[text]


@pytest.mark.parametrize("language", STOPPED)
def test_words_without_meaning_go_in_every_language(language):
    text, terms = STOPPED[language]
    assert Analyzer(language)(text) == terms


def test_capitals_are_those_of_the_language():
    turkish, other = Analyzer("turkish"), Analyzer()
    assert turkish("IŞIK ILIK İNTERNET I\u0307nternet") == turkish("ışık ılık internet internet")
    assert turkish("SIK") == turkish("sık") != turkish("sik")
    assert turkish.split_at("IŞIK, ışık, İzmir", {*turkish("ışık izmir")}) == [
        *("", "IŞIK", ", ", "ışık", ", ", "İzmir", ""),
    ]
    assert other("IŞIK İNTERNET TITLE") == ["işik", "internet", "title"]
    assert lower("IŞIK, İzmir", "turkish") == "ışık, izmir"
    assert lower("TITLE, İzmir") == "title, izmir"


@pytest.mark.parametrize("language", MARKED)
def test_combining_marks_do_not_end_a_word(language):
    text = MARKED[language]
    assert split_words(text) == text.split()


def test_a_word_that_is_found_is_marked_as_it_is_written():
    marked = Analyzer("none").split_at("The proﬁle of ﾌﾟﾘﾝﾀｰ, Straße.", {"profile", "strasse", "リン"})
    assert marked == ["The ", "proﬁle", " of ﾌﾟ", "ﾘﾝ", "ﾀｰ, ", "Straße", "."]
    assert Analyzer("german")("Die STRASSE, die Straße") == ["strass", "strass"]


def test_every_combining_mark_is_known_and_nothing_else():
    marks = {chr(code) for code in range(0x300, 0xE0000) if unicodedata.category(chr(code)).startswith("M")}
    ranges = analyzer.combining_marks()
    found = {chr(c) for i in range(0, len(ranges), 3) for c in range(ord(ranges[i]), ord(ranges[i + 2]) + 1)}
    assert found == marks


def test_a_word_of_a_million_marks_is_folded_in_linear_time():
    [word] = fold(["a" + "\u0301\u0316" * 1_000_000])  # in one piece it takes hours
    assert len(word) == 2_000_000  # the first accent and the letter are one sign
    assert fold([]) == []


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        *((ENGLISH, "english"), (GERMAN, "german"), (TURKISH, "turkish"), (ARABIC, "arabic")),
        *((["東京タワーに行く"], "japanese"), (["Програма друкує документ, але він порожній"], "ukrainian")),
    ],
)
def test_the_text_tells_its_language(texts, language):
    assert language_of(texts * 20) == language
    assert language_of([*texts, ""]) == language


@pytest.mark.parametrize("texts", [[], [""], [*GERMAN * 50, *ENGLISH * 50], ENGLISH * 4 + TURKISH * 6])
def test_where_that_is_unsure_there_are_no_stems(texts):
    assert language_of(texts) is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("ok", None),
        ("123", None),
        ("???", None),
        ("PLEASE HELP NOW", "english"),
        ("printer broken", None),
        ("the printer does not answer", "english"),
        ("DER DRUCKER ANTWORTET NICHT", "german"),
    ],
)
def test_a_short_query_has_a_language_where_there_is_evidence(text, language):
    assert language_of([text]) == language
