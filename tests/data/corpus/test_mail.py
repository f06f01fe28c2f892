"""What mail programs write above the mail that they quote, in every language that is known."""

import unicodedata
from pathlib import Path

import pytest

from selfsent.data.corpus.cleaners import Cleaners
from selfsent.data.corpus.mail import LANGUAGES, has_mail, without_mail

INTRODUCTIONS = {
    "English": [
        "On Mon, Jan 1, 2024 at 10:00 AM Ann Smith <ann@example.org> wrote:",
        "On Mon, Jan 1, 2024\nat 10:00 AM Ann\nSmith <\nann@example.org\n> wrote:",
    ],
    "German": [
        "Am Mo., 3. März 2025 um 10:12 Uhr schrieb Bo Ek <bo@example.org>:",
        "Bo Ek schrieb am 03.03.2025 um 10:12:",
    ],
    "French": ["Le lun. 3 mars 2025 à 10:12, Bo Ek <bo@example.org> a écrit :"],
    "Spanish": ["El lun, 3 mar 2025 a las 10:12, Bo Ek (<bo@example.org>) escribió:"],
    "Italian": ["Il giorno lun 3 mar 2025 alle ore 10:12 Bo Ek <bo@example.org> ha\nscritto:"],
    "Portuguese": [
        "Em seg., 3 de mar. de 2025 às 10:12, Bo Ek <bo@example.org> escreveu:",
        "Bo Ek <bo@example.org> escreveu (segunda, 3/03/2025 à(s) 10:12):",
    ],
    "Dutch": [
        "Op ma 3 mrt 2025 om 10:12 schreef Bo Ek <bo@example.org>:",
        "Op 3 maart 2025 om 10:12 heeft Bo Ek het volgende geschreven:",
    ],
    "Danish": ["Den man. 3. mar. 2025 kl. 10.12 skrev Bo Ek <bo@example.org>:"],
    "Norwegian": [
        "man. 3. mars 2025 kl. 10:12 skrev Bo Ek <bo@example.org>:",
        "man. 3. mars 2025 kl. 10:12 skrev Bo Ek\n<bo@example.org>:",
    ],
    "Swedish": ["Den mån 3 mars 2025 kl 10:12 skrev Bo Ek <bo@example.org>:", "3 mars 2025 kl. 10:12 skrev Bo Ek:"],
    "Finnish": [
        "ma 3. maalisk. 2025 klo 10.12 Bo Ek (bo@example.org) kirjoitti:",
        "Bo Ek <bo@example.org> kirjoitti 3.3.2025 kello 10.12:",
        "ma 3. maalisk. 2025 klo 10.12 Bo Ek\n(bo@example.org) kirjoitti:",
    ],
    "Polish": [
        "pon., 3 mar 2025 o 10:12 Bo Ek <bo@example.org> napisał(a):",
        "W dniu 3.03.2025 o 10:12, Bo Ek pisze:",
        "Wiadomość napisana przez Bo Ek w dniu 3 mar 2025, o godz. 10:12:",
    ],
    "Czech": [
        "po 3. 3. 2025 v 10:12 odesílatel Bo Ek <bo@example.org> napsal:",
        "Dne 03. 03. 25 v 10:12 Bo Ek napsal(a):",
    ],
    "Turkish": ["Bo Ek <bo@example.org>, 3 Mar 2025 Pzt, 10:12 tarihinde şunu yazdı:"],
    "Russian": [
        "пн, 3 мар. 2025 г. в 10:12, Bo Ek <bo@example.org>:",
        "03.03.2025 10:12, Bo Ek пишет:",
        "Понедельник, 3 марта 2025, 10:12 +03:00 от Bo Ek <bo@example.org>:",
    ],
    "Japanese": ["2025年3月3日(月) 10:12 Bo Ek <bo@example.org>:", "2025/03/03 10:12、Bo Ek <bo@example.org>のメール:"],
}
HEADERS = {
    "English": "From: X\nSent: 3. 3. 2025 10:12\nTo: Y\nSubject: P",
    "German": "Von: X\nGesendet: 3. 3. 2025 10:12\nAn: Y\nBetreff: P",
    "French": "De : X\nEnvoyé : 3. 3. 2025 10:12\nÀ : Y\nObjet : P",
    "Spanish": "De: X\nEnviado el: 3. 3. 2025 10:12\nPara: Y\nAsunto: P",
    "Italian": "Da: X\nInviato: 3. 3. 2025 10:12\nA: Y\nOggetto: P",
    "Portuguese": "De: X\nEnviada em: 3. 3. 2025 10:12\nPara: Y\nAssunto: P",
    "Dutch": "Van: X\nVerzonden: 3. 3. 2025 10:12\nAan: Y\nOnderwerp: P",
    "Danish": "Fra: X\nSendt: 3. 3. 2025 10:12\nTil: Y\nEmne: P",
    "Norwegian": "Fra: X\nSendt: 3. 3. 2025 10:12\nTil: Y\nEmne: P",
    "Swedish": "Från: X\nSkickat: 3. 3. 2025 10:12\nTill: Y\nÄmne: P",
    "Finnish": "Lähettäjä: X\nLähetetty: 3. 3. 2025 10:12\nVastaanottaja: Y\nAihe: P",
    "Polish": "Od: X\nWysłano: 3. 3. 2025 10:12\nDo: Y\nTemat: P",
    "Czech": "Od: X\nOdesláno: 3. 3. 2025 10:12\nKomu: Y\nPředmět: P",
    "Turkish": "Gönderen: X\nGönderildi: 3. 3. 2025 10:12\nKime: Y\nKonu: P",
    "Russian": "От: X\nОтправлено: 3. 3. 2025 10:12\nКому: Y\nТема: P",
    "Japanese": "差出人: X\n送信日時: 3. 3. 2025 10:12\n宛先: Y\n件名: P",
}
STAYS = [
    "Hello, please change my booking 77.\nFrom: Berlin\nTo: Paris\nThe train should leave on Friday.",
    "Die Lieferung ist falsch.\n\nVon: Lager Nord\nAn: Filiale 12\n\nBitte holen Sie sie ab.",
    "see below\nFrom: Monday\nDate: to be told\nTo: Friday\nthe lift is closed",
    "In release 2024 the vendor wrote:\nuse it",
    "On the other hand, the vendor wrote:\nuse the old one",
    "Das Handbuch schrieb:\nnicht drucken",
    "above\n________________________________\nbelow",
    "Original message:\nPaper jam in tray 2",
    "サーバーから送信されたメールが\n届かない",
]


@pytest.mark.parametrize("above", ["It works.\n\n", "It works in 2025, thanks\n"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_quoted_mail_goes_with_its_introduction(language, form, above):
    for introduction in INTRODUCTIONS[language]:
        mail = unicodedata.normalize(form, f"{above}{introduction}\n\nThe printer is dead.")
        assert without_mail(mail) == unicodedata.normalize(form, above.strip()), introduction
        assert has_mail(mail)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_quoted_mail_goes_with_its_headers(language):
    bold = "\n".join(f"*{line.replace(':', ':*', 1)}" for line in HEADERS[language].split("\n"))
    for headers in (HEADERS[language], bold, "_" * 32 + "\n" + HEADERS[language]):
        assert without_mail(f"It works.\n\n{headers}\n\nThe printer is dead.") == "It works."
        assert without_mail(f"{headers}\n\nThe printer is dead.") == "The printer is dead."


def test_headers_are_told_by_an_address_or_a_time_too():
    for headers in ("Fra: Bo <bo@example.org>\nTil: Anna", "From: Bo\nDate: Monday, 10:12"):
        assert without_mail(f"It works.\n\n{headers}\n\nThe printer is dead.") == "It works."


@pytest.mark.parametrize("text", STAYS)
def test_what_only_looks_like_mail_stays(text):
    assert Cleaners("mail")([text]) == [text]
    assert not has_mail(text)


def test_the_guide_names_the_languages():
    guide = (Path(__file__).parents[3] / "docs" / "clean.md").read_text()
    assert all(language in guide for language in LANGUAGES)
