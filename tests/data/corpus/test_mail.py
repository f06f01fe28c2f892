import pytest
import quotequail

from selfsent.data.corpus.cleaners import MAIL, without_mail

GMAIL = "It works.\n\nOn Mon, Jan 1, 2024 at 10:00 AM Ann Smith <\nann@example.org> wrote:\n\n> Is it on?\n> Ann\n"
INLINE = "Hello,\n\nOn Monday, Ann wrote:\n> Is it on?\nYes, it is.\n> Which one?\nThe third.\n-- \nBob\nRoom 3"
OUTLOOK = "It smokes.\n\nFrom: Ann Smith\nSent: Monday\nTo: Bob\nSubject: printer\n\nIs it on?\nAnn"
ORIGINAL = "It smokes.\n\n-----Original Message-----\nFrom: Ann\nSent: Monday\n\nIs it on?"
FORWARDED = (
    "---------- Forwarded message ---------\nFrom: Bob <bob@example.org>\nDate: Mon\nSubject: printer\n\n"
    "The printer is dead.\nHelp: it smokes.\n\nSent from my iPhone"
)
GERMAN = "Danke, er geht.\n\nAm 01.01.2024 um 10:00 schrieb Ann Smith:\n> Ist er an?\n> Ann"


def clean(text):
    return without_mail(text, quotequail.quote)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (GMAIL, "It works."),
        (INLINE, "Hello,\n\nYes, it is.\nThe third."),
        (OUTLOOK, "It smokes."),
        (ORIGINAL, "It smokes."),
        (FORWARDED, "The printer is dead.\nHelp: it smokes."),
        (GERMAN, "Danke, er geht."),
        (GMAIL.replace("\n", "\r\n"), "It works."),
        ("It works.\n--\nBob\n\nOn Monday, Ann wrote:\n> Is it on?\nI forgot: thanks.", "It works.\nI forgot: thanks."),
        ("> only\n> quoted", ""),
    ],
)
def test_what_others_said_and_signatures_go(text, wanted):
    assert clean(text) == wanted


@pytest.mark.parametrize("text", [GMAIL, INLINE, OUTLOOK, ORIGINAL, FORWARDED, GERMAN])
def test_a_look_finds_them(text):
    assert MAIL.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "The printer on floor 3: it does not answer.\nNote: urgent\nFrom: here",
        "Error in line 3:\nINFO: started\nWARN: paper",
        "above\n--\n" + "one of many lines\n" * 20,
        "- ink\n- paper\n\n",
        "a -> b",
    ],
)
def test_other_text_stays_as_it_is(text):
    assert clean(text) == text
    assert not MAIL.search(text)


def test_what_stands_between_rules_is_no_signature():
    assert clean("a\n--\nb\n--\nc") == "a\n--\nb\n--\nc"


@pytest.mark.parametrize(
    "unit", ["> a\nb\n", "INFO: x\n", "From: a\nTo: b\n", "--\n", "On a\nb wrote:\n", "a:\n", "\n"]
)
def test_hostile_lines_take_no_square(unit):
    clean(unit * (100_000 // len(unit)))
