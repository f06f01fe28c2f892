"""Quoted and forwarded mail, its headers, and signatures, in the languages of `LANGUAGES`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LONGEST_SIGNATURE = 12
"""Maximum number of lines of a signature; text below a rule that is longer, or between rules, is kept."""
_MOST_LINES, _LONGEST, _MOST_HEADERS = 6, 400, 40
"""Maximum numbers: lines of the introduction of a quoted mail, its characters, and lines of headers."""


@dataclass(frozen=True)
class Words:
    """Words of mail programs in a language; words of one kind are separated by `|`.

    Args:
        sender: the header with the author.
        sent: the header with the time, named by the sending alone.
        date: the header with the time, named by a word that forms have, too.
        to: headers with recipients, copies included.
        subject: the header with the subject.
        wrote: the verb of an introduction such as `On Monday, Ann wrote:`, a pattern.
        begins: its first word.
        forwarded: words between dashes, or before a colon, above a mail that is forwarded or answered.
        phone: signatures of phones, a pattern.
    """

    sender: str
    sent: str
    date: str
    to: str
    subject: str
    wrote: str
    begins: str
    forwarded: str
    phone: str = ""


LANGUAGES = {
    "English": Words(
        *("From", "Sent|Received", "Date", "To|Cc|Bcc|Reply-To", "Subject", "wrote", "On"),
        "Original Message|Original Appointment|Forwarded Message|Begin forwarded message",
        "sent from my|sent from outlook|get outlook for",
    ),
    "German": Words(
        *("Von", "Gesendet", "Datum", "An|Kopie|Blindkopie|Antwort an", "Betreff", "schrieb", "Am"),
        "Ursprüngliche Nachricht|Originalnachricht|Original-Nachricht|Weitergeleitete Nachricht"
        "|Anfang der weitergeleiteten Nachricht|Anfang der weitergeleiteten E-Mail",
        "gesendet von mein|von meinem .{1,40} gesendet",
    ),
    "French": Words(
        *("De|Expéditeur", "Envoyé|Envoyé le", "Date", "À|A|Pour|Copie|Copie à|Répondre à", "Objet|Sujet"),
        *("a écrit", "Le"),
        "Message d'origine|Message d’origine|Message original|Message transféré|Début du message transféré"
        "|Début du message réexpédié",
        "envoyé depuis mon|envoyé de mon",
    ),
    "Spanish": Words(
        *("De", "Enviado|Enviado el|Enviados", "Fecha", "Para|CC|CCO|Responder a", "Asunto", "escribió", "El"),
        *("Mensaje original|Mensaje reenviado|Inicio del mensaje reenviado", "enviado desde mi"),
    ),
    "Italian": Words(
        *("Da", "Inviato", "Data", "A|Per|Cc|Ccn|Rispondi a", "Oggetto", "ha scritto", "Il"),
        *("Messaggio originale|Messaggio inoltrato|Inizio messaggio inoltrato", "inviato da"),
    ),
    "Portuguese": Words(
        *("De", "Enviado|Enviada|Enviado em|Enviada em", "Data", "Para|Cc|Responder para", "Assunto", "escreveu"),
        "Em|No dia",
        "Mensagem original|Mensagem encaminhada|Mensagem reencaminhada|Início da mensagem reencaminhada"
        "|Início da mensagem encaminhada",
        "enviado do meu|enviado a partir do meu",
    ),
    "Dutch": Words(
        *(
            "Van",
            "Verzonden",
            "Datum",
            "Aan|Kopie|Antwoord aan",
            "Onderwerp",
            "schreef|heeft .{1,200} geschreven",
            "Op",
        ),
        "Oorspronkelijk bericht|Origineel bericht|Doorgestuurd bericht|Begin doorgestuurd bericht",
        "verzonden vanaf mijn|verstuurd vanaf mijn",
    ),
    "Danish": Words(
        *("Fra", "Sendt", "Dato", "Til|Kopi|Cc|Svar til", "Emne", "skrev", "Den"),
        "Oprindelig meddelelse|Original meddelelse|Videresendt meddelelse|Videresendt besked"
        "|Start på videresendt besked",
        "sendt fra min",
    ),
    "Norwegian": Words(
        *("Fra", "Sendt", "Dato", "Til|Kopi|Svar til", "Emne", "skrev", "På|Den"),
        "Opprinnelig melding|Videresendt melding|Videresendt e-post|Start på videresendt melding",
        "sendt fra min",
    ),
    "Swedish": Words(
        *("Från", "Skickat", "Datum", "Till|Kopia|Svara till", "Ämne", "skrev", "Den"),
        "Ursprungligt meddelande|Originalmeddelande|Vidarebefordrat meddelande|Vidarebefordrat brev",
        "skickat från min",
    ),
    "Finnish": Words(
        *("Lähettäjä", "Lähetetty", "Päiväys|Päivämäärä|Pvm", "Vastaanottaja|Vastaanottajat|Kopio", "Aihe"),
        *("kirjoitti", "", "Alkuperäinen viesti|Välitetty viesti|Edelleenlähetetty viesti"),
        "lähetetty .{0,20}(?:puhelimesta|iphonesta|ipadista)",
    ),
    "Polish": Words(
        *(
            "Od",
            "Wysłano|Wysłane",
            "Data",
            "Do|DW|UDW|Kopia",
            "Temat",
            r"napisał(?:a|\(a\))?|pisze|napisana przez",
            "W dniu|Dnia",
        ),
        "Wiadomość oryginalna|Oryginalna wiadomość|Wiadomość przekazana|Treść przekazanej wiadomości"
        "|Początek przekazywanej wiadomości",
        "wysłane? z (?:mojego|iphone|ipad|telefonu)",
    ),
    "Czech": Words(
        *("Od", "Odesláno", "Datum", "Komu|Kopie", "Předmět", r"napsal(?:a|\(a\))?", "Dne"),
        "Původní zpráva|Původní e-mail|Přeposlaná zpráva|Začátek přeposlané zprávy",
        "odesláno z(?:e)? (?:mého|iphon|ipad|mobil)",
    ),
    "Turkish": Words(
        *("Gönderen|Kimden", "Gönderildi|Gönderilme|Gönderme Tarihi", "Tarih", "Kime|Alıcı|Bilgi", "Konu"),
        *("yazdı", "", "Orijinal Mesaj|Orijinal İleti|Özgün İleti|İletilen ileti|Yönlendirilen ileti"),
        r".{1,30}['’]\w{1,6} gönderildi[ \t]*$",
    ),
    "Russian": Words(
        *("От|От кого", "Отправлено", "Дата", "Кому|Копия", "Тема", r"пишет|написала?|написал\(а\)", ""),
        "Исходное сообщение|Оригинальное сообщение|Пересылаемое сообщение|Пересланное сообщение"
        "|Начало переадресованного сообщения",
        "отправлено (?:с|из) (?:мо|iphone|ipad|мобил|почты)",
    ),
    "Japanese": Words(
        *("差出人|送信者|送信元", "送信日時|受信日時", "日時|日付", "宛先|CC|To", "件名", "は書きました|のメール", ""),
        *("元のメッセージ|転送メッセージ|転送されたメッセージ", r".{1,20}から送信[ \t]*$"),
    ),
}
"""Words by language; `docs/clean.md` names the languages."""


def _all(kind: str) -> list[str]:
    """The words of a kind in all languages, each once."""
    return list(dict.fromkeys(word for words in LANGUAGES.values() for word in getattr(words, kind).split("|") if word))


def _any(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


_ROLES = {name.casefold(): role for role in ("to", "date", "sent", "subject", "sender") for name in _all(role)}
"""Headers of a mail by their role: a word with two senses has the later role."""
_MOBILE = f"(?:{'|'.join(words.phone for words in LANGUAGES.values() if words.phone)})"
_RULE = re.compile(r"[ \t]*(?:--|__)[ \t]*$")
_SIGNATURE = re.compile(rf"{_RULE.pattern}|[ \t]*{_MOBILE}", re.IGNORECASE)
_NAMED = re.compile(r"[ \t]*\**([^\W\d_][^:：\n*]{0,24}?)\**[ \t]?[:：]\**(.*)")
"""A line that may be a header, and its value."""
_HEADER = re.compile(r"[ \t]*\**[^\W\d_][-\w ]{1,20}\**[ \t]?[:：]")
"""A line of the headers of a mail, known or not."""
_SENDER = rf"\**(?:{_any(_all('sender'))})\**[ \t]?[:：]"
_MAY_BE = re.compile(rf"^[ \t]*(?:>|{_SENDER}|{_MOBILE})|[:：>_-][ \t]*$", re.IGNORECASE | re.MULTILINE)
_ADDRESS = r"[^\s<>()@:]{1,64}@[^\s<>()@]{1,64}"
_TIME = r"(?<!\d)\d{1,2}[:.h]\d{2}(?!\d)"
_DAY = r"(?<!\d)(?:(?:19|20)\d{2}(?!\d)|\d{1,2}[./-] ?\d{1,2}(?!\d))"
"""A year, or a day with its month."""
_HAS_ADDRESS, _HAS_TIME, _HAS_DAY = re.compile(_ADDRESS), re.compile(_TIME), re.compile(_DAY)
_DATED = re.compile(rf"{_TIME}|{_DAY}")
_BEGINS = re.compile(rf"[ \t]*(?:{_any(_all('begins'))})[ \t]", re.IGNORECASE)
_VERBS = "|".join(dict.fromkeys(words.wrote for words in LANGUAGES.values()))
_WROTE = re.compile(rf"(?<!\w)(?:{_VERBS})(?!\w)|は書きました|のメール", re.IGNORECASE)
_DATE_AND_ADDRESS = re.compile(rf"(?=.*(?<!\d)\d{{4}}(?!\d))(?=.*{_TIME}).*{_ADDRESS}[)>]?[ \t]?[:：]")
"""An introduction without a verb, as Gmail writes it in many languages."""
_OLD_GMAIL = re.compile(rf"\d{{4}}/\d{{1,2}}/\d{{1,2}} .*<{_ADDRESS}>")
_FORWARDED = re.compile(rf"-{{2,}} ?(?:{_any(_all('forwarded'))}) ?-{{2,}}", re.IGNORECASE)
_BELOW = re.compile(rf"(?:{_any(_all('forwarded'))}) ?[:：]", re.IGNORECASE)
"""The same without dashes, as Apple Mail has it: headers follow."""
_DEEPER = re.compile(r"^[ \t]*>>.*\n?", re.MULTILINE)
_LINE = re.compile(r"_{20,}|-{20,}")
"""A line of signs, as Outlook draws above the headers of the mail that it quotes."""
_END = (":", "：", ">", "_", "-")
"""Ends of introductions."""


def without_mail(text: str) -> str:
    """A text without quoted and forwarded mail, its headers, and signatures.

    A mail that is forwarded, or quoted without marks, is kept without its headers where nothing is written above it.

    Args:
        text: the body of a mail as plain text.
    """
    text = text.replace("\r\n", "\n")
    if not _MAY_BE.search(text):
        return text
    lines = text.split("\n")
    kept: list[str] = []
    written, ruled, at = False, False, 0
    while at < len(lines):
        if _quoted(lines, at):
            at += 1
        elif not ruled and (end := _end_of_signature(lines, at)):
            at = end
        elif begin := _after_introduction(lines, at):
            # Answers are between and below quoted lines; quoted mail without marks goes on to the end.
            if written and not _quoted(lines, _next_filled(lines, begin)):
                break
            at = begin
        else:
            written = written or bool(lines[at].strip())
            ruled = ruled or bool(_RULE.match(lines[at]))
            kept.append(lines[at])
            at += 1
    return "\n".join(kept).strip() if len(kept) < len(lines) else text


def has_mail(text: str) -> bool:
    """Whether a text has what `without_mail` takes out; lines that begin with >> alone may be a program's."""
    text = _DEEPER.sub("", text.replace("\r\n", "\n"))
    return without_mail(text) != text


def quoted_mail(text: str) -> str:
    r"""The mail quoted first, line by line, as its author wrote it: without nested quotes.

    Args:
        text: the body of a mail as plain text.

    Returns:
        Its lines without their marks; empty if none begins with >.

    Examples:
        >>> quoted_mail("> > Closed?\n> No, the valve is stuck.\n\nThen turn it.")
        'No, the valve is stuck.'
    """
    lines = text.replace("\r\n", "\n").split("\n")
    begin = next((at for at in range(len(lines)) if _quoted(lines, at)), len(lines))
    end = next((at for at in range(begin, len(lines)) if not _quoted(lines, at)), len(lines))
    inner = "\n".join(line.lstrip()[1:].lstrip(" ") for line in lines[begin:end])
    return without_mail(inner) if inner else ""


def _next_filled(lines: Sequence[str], at: int) -> int:
    """The line itself, or the next one that is not blank."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def _quoted(lines: Sequence[str], at: int) -> bool:
    return at < len(lines) and lines[at].lstrip().startswith(">")


def _end_of_signature(lines: Sequence[str], at: int) -> int | None:
    """The line after a signature that begins at a line; None if none does."""
    if not _SIGNATURE.match(lines[at]):
        return None
    end = at + 1
    while end < len(lines) and not _quoted(lines, end) and not _after_introduction(lines, end):
        if end - at == _LONGEST_SIGNATURE or _RULE.match(lines[end]):
            return None
        end += 1
    return end


def _after_introduction(lines: Sequence[str], at: int) -> int | None:
    """The line after the introduction of a quoted mail, headers included; None if no introduction begins here."""
    if end := _end_of_introduction(lines, at):
        return _after_headers(lines, end)
    return _after_own_headers(lines, at + 1 if _LINE.fullmatch(lines[at].strip()) else at)


def _end_of_introduction(lines: Sequence[str], at: int) -> int | None:
    """The line after an introduction such as `On Monday, Ann wrote:`, which begins at a line; None if none does.

    It may go over some lines. What stands before it is told from it by the first word, or the date, of what follows.
    """
    first = lines[at].strip()[: _LONGEST + 1]
    begins = bool(_BEGINS.match(first))
    if not (begins or first.endswith(_END) or _DATED.search(first)):
        return None
    for last in range(at, min(at + _MOST_LINES, len(lines))):
        line = lines[last].strip()
        if not line:
            return None
        if line.endswith(_END) and _introduces(lines, at, last + 1):
            rest = (later for later in range(at + 1, last + 1) if _is_start(lines, later, last + 1, begins))
            return None if any(_introduces(lines, later, last + 1) for later in rest) else last + 1
        if line.endswith(("!", "?", ":", "：")) or (line.endswith(".") and not _DATED.search(line)):
            return None
    return None


def _is_start(lines: Sequence[str], at: int, end: int, begins: bool) -> bool:
    """Whether an introduction rather starts at this line: by its first word, or else by its day and time."""
    if begins or _BEGINS.match(lines[at]):
        return bool(_BEGINS.match(lines[at]))
    text = _joined(lines, at, end)
    return bool(_HAS_TIME.search(text) and _HAS_DAY.search(text))


def _joined(lines: Sequence[str], at: int, end: int) -> str:
    return unicodedata.normalize("NFC", " ".join(line.strip() for line in lines[at:end])[: _LONGEST + 1])


def _introduces(lines: Sequence[str], at: int, end: int) -> bool:
    """Whether lines as a whole are an introduction."""
    text = _joined(lines, at, end)
    if not text or len(text) > _LONGEST:
        return False
    if _FORWARDED.fullmatch(text) or _OLD_GMAIL.fullmatch(text) or _DATE_AND_ADDRESS.fullmatch(text):
        return True
    if text[-1] not in ":：":
        return False
    if _BELOW.fullmatch(text):
        return _after_own_headers(lines, _next_filled(lines, end)) is not None
    if not _WROTE.search(text):
        return False
    begins, timed, day = _BEGINS.match(text), _HAS_TIME.search(text), _HAS_DAY.search(text)
    if (timed and day) or (begins and (timed or day or _HAS_ADDRESS.search(text))):
        return True
    # Without a date it may be any sentence: the next lines tell.
    return bool(begins or _HAS_ADDRESS.search(text)) and _quoted(lines, _next_filled(lines, end))


def _role(line: str) -> tuple[str, str]:
    """Role of the header in a line, empty if it is unknown, and its value."""
    found = _NAMED.match(line)
    if not found:
        return "", ""
    return _ROLES.get(unicodedata.normalize("NFC", found[1]).strip().casefold(), ""), found[2]


def _after_own_headers(lines: Sequence[str], at: int) -> int | None:
    """The line after headers that need no introduction: a sender, and a subject, a time or an address."""
    if at >= len(lines) or _role(lines[at])[0] != "sender":
        return None
    end = _after_headers(lines, at)
    headers = [_role(line) for line in lines[at:end]]
    roles = {role for role, _ in headers if role}
    timed = any(role == "date" and _HAS_TIME.search(value) for role, value in headers)
    addressed = any(role in ("sender", "to") and _HAS_ADDRESS.search(value) for role, value in headers)
    return end if len(roles) > 1 and (timed or addressed or roles & {"sent", "subject"}) else None


def _after_headers(lines: Sequence[str], at: int) -> int:
    """The line after the headers of a mail; the line itself if none begin here or after blank lines."""
    begin = end = _next_filled(lines, at)
    while end < min(len(lines), begin + _MOST_HEADERS) and (
        _HEADER.match(lines[end]) or _role(lines[end])[0] or (end > begin and lines[end][:1] in (" ", "\t"))
    ):
        end += 1
    return end if end > begin else at
