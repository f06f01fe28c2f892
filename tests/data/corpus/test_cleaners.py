import json

import pytest

from selfsent.data.corpus import cleaners
from selfsent.data.corpus.cleaners import SIGNS, Cleaners, look
from selfsent.data.corpus.mail import quoted_mail, without_mail
from selfsent.errors import SettingsError

HTML = {
    "<p>The <b>printer</b> is dead.</p><p>Help!</p>": "The printer is dead.\n\n\n\nHelp!",
    "Fish &amp; chips&nbsp;&lt;3 &#8364;&#x20ac;": "Fish & chips\xa0<3 €€",
    "<div>One<br/>two\n three</div>": "One\ntwo three",
    "<ul><li>ink<li>paper</ul>": "ink\n\npaper",
    "<style>p {margin: 0}</style><p>Text<script>alert('<p>')</script></p>": "Text",
    "<p>log:</p><pre>one\ntwo</pre>": "log:\n\n\n\none\ntwo",
    "a <b>word</b>\nand the next line": "a word\nand the next line",
    "<p>cut off <a href='http://exam": "cut off",
    "<P CLASS=x>loud</P>": "loud",
    "<p>\ud800</p>": "?",
    "<p class=MsoNormal><o:p>&nbsp;</o:p>Hi <st1:place w:st='on'>Rome</st1:place></p>": "Hi Rome",
    "<table border><tr><td nowrap>ink</td></tr></table>": "ink",
    "<img src='a>b' alt=x>text": "text",
    "<svg width=1><path d='M0'/><text>Label</text></svg><p>x</p>": "Label \n\nx",
    # Names of HTML's elements alone are markup, and only in the form of a tag.
    "Error in <b>login</b>: if (a<b && c>d) write to Jane <jane@example.org>": (
        "Error in login: if (a<b && c>d) write to Jane <jane@example.org>"
    ),
    "<p>Use vector<int> and <Enter>, see <https://example.org/a></p>": (
        "Use vector<int> and <Enter>, see <https://example.org/a>"
    ),
    "the <script> tag is <b>blocked</b> here": "the <script> tag is blocked here",
    "a <title> is missing, <i>see</i> below": "a <title> is missing, see below",
    "look <!-- here <b>now</b>": "look <!-- here now",
    "<b>see</b> /a?b=1&copy=2": "see /a?b=1&copy=2",
    f"bad &amp; &#{'9' * 5000}; row": "bad & \ufffd row",
}
URLS = {
    "see https://example.org/a?b=c#d, please": "see , please",
    "http://example.org": "",
    "<https://example.org/>": "",
    "www.example.org or ftp://x.org/a.": " or .",
    "the [manual](https://example.org/manual)": "the [manual]",
}
SEPARATORS = {
    "one\n=====\ntwo": "one\n \ntwo",
    "one\n  * * *\r\ntwo": "one\n \ntwo",
    "---\ntext": " \ntext",
    "======== text ========": " text  ",
    "red -=-=-=- car _____": "red  car  ",
    "a\n════════\n――――――\nb": "a\n \n \nb",
    "well - - - - - or not": "well  or not",
}
STAYS = {
    "html": [
        *("if a < b and c > d", "List<String> x", "<init>", "write to <bob@example.org>", "AT&T", "if a<b then retry"),
        *("<s and >", "a<b && c>d", "if a <b", "/a?b=1&copy=2"),
    ],
    "urls": ["read the www. and http:// things", "bob@example.org"],
    "separators": [
        *("- ink\n- paper\n-- \nJoe", "what the **** is C++ -- or f*** it ---- yes", "snake_case and __init__"),
        *("# Title\n| a | b |\n|---|---|", "wait..... what?!?!?!", "2 - -1 = 3"),
    ],
    "mail": [
        "The printer on floor 3: it does not answer.\nNote: urgent\nFrom: here",
        "Error in line 3:\nINFO: started\nWARN: paper",
        "above\n--\n" + "one of many lines\n" * 20,
        *("- ink\n- paper\n\n", "a -> b", "a\n--\nb\n--\nc"),
    ],
}
GMAIL = "It works.\n\nOn Mon, Jan 1, 2024 at 10:00 AM Ann Smith <\nann@example.org> wrote:\n\n> Is it on?\n> Ann\n"
MAILS = {
    GMAIL: "It works.",
    "Hello,\n\nOn Monday, Ann wrote:\n> Is it on?\nYes, it is.\n> Which one?\nThe third.\n-- \nBob\nRoom 3": (
        "Hello,\n\nYes, it is.\nThe third."
    ),
    "It smokes.\n\nFrom: Ann Smith\nSent: Monday\nTo: Bob\nSubject: printer\n\nIs it on?\nAnn": "It smokes.",
    "It smokes.\n\n-----Original Message-----\nFrom: Ann\nSent: Monday\n\nIs it on?": "It smokes.",
    "---------- Forwarded message ---------\nFrom: Bob <bob@example.org>\nDate: Mon\nSubject: printer\n\n"
    "The printer is dead.\nHelp: it smokes.\n\nSent from my iPhone": "The printer is dead.\nHelp: it smokes.",
    "Danke, er geht.\n\nAm 01.01.2024 um 10:00 schrieb Ann Smith:\n> Ist er an?\n> Ann": "Danke, er geht.",
    GMAIL.replace("\n", "\r\n"): "It works.",
    "It works.\n--\nBob\n\nOn Monday, Ann wrote:\n> Is it on?\nI forgot: thanks.": "It works.\nI forgot: thanks.",
    "> only\n> quoted": "",
}
HOSTILE = {
    "html": ["<div>", "<p ", "<!--", "&amp;", "</p>", "<a href='", "<script>", "<li>x<ul>"],
    "urls": ["http://", "www.", "https://a.", "(http://a)", "www.a....", "<http://a", "http://a,,"],
    "separators": ["=", "= ", "= =a", "- \n", "-\t \t", "* * * * a", "    ", "----a"],
    "mail": ["> a\nb\n", "INFO: x\n", "From: a\nTo: b\n", "--\n", "On a\nb wrote:\n", "a:\n", "\n"],
}


def cleaned(names, text):
    return Cleaners(names)([text])[0]


@pytest.mark.parametrize(
    ("name", "texts"), [("html", HTML), ("urls", URLS), ("separators", SEPARATORS), ("mail", MAILS)]
)
def test_what_goes(name, texts):
    assert {text: cleaned(name, text) for text in texts} == texts


@pytest.mark.parametrize("name", STAYS)
def test_what_only_looks_like_it_stays(name):
    assert [cleaned(name, text) for text in STAYS[name]] == STAYS[name]


@pytest.mark.parametrize(("name", "unit"), [(name, unit) for name, units in HOSTILE.items() for unit in units])
def test_hostile_text_takes_no_square(name, unit):
    cleaned(name, unit * ((100_000 if name == "mail" else 400_000) // len(unit)) + "a")


def test_mail_is_recognised():
    assert all(map(SIGNS["mail"], MAILS))
    assert not any(map(SIGNS["mail"], STAYS["mail"]))
    assert without_mail(GMAIL) == "It works."


@pytest.mark.parametrize(
    ("mail", "quoted"),
    [
        ("> One\r\n>two\r\n\r\nYes.\r\n> Three\r\n", "One\ntwo"),  # the first passage alone
        ("Yes.\n  > On Mon, Jan 5, 2026, Ben wrote:\n  > > Hi\n  > Closed?\n  > -- \n  > Ann", "Closed?"),
        (">> only deeper\n", ""),
        ("a > b\n", ""),
        ("", ""),
    ],
)
def test_what_a_mail_quotes_first(mail, quoted):
    assert quoted_mail(mail) == quoted


def test_cleaners_work_together():
    page = "<div>It works.</div><div class=gmail_quote><blockquote>Did it help?</blockquote></div>"
    assert cleaned("html", page).split() == ["It", "works.", "Did", "it", "help?"]
    assert cleaned("mail,html", page) == "It works."
    mail = "It works.\n-----Original Message-----\nFrom: Joe\nSent: today\n\nIs it on?\n=====\n"
    assert cleaned("separators,mail", mail).split() == ["It", "works."]
    both = Cleaners(["urls", "html"])
    assert both.names == ("html", "urls")
    both(["<b>ink</b>", "https://example.org", "ink", "<p></p>", "", "<p>see https://example.org</p>"])
    assert both.counts() == {"html": (3, 1), "urls": (2, 1)}
    linked = Cleaners("urls,html")
    assert linked(['<a href="https://example.org/a">the page</a>']) == ["the page"]
    assert linked.counts() == {"html": (1, 0), "urls": (1, 0)}
    assert Cleaners("urls,html,mail").options() == ["clean", 2, "html", "mail", "urls"]  # the key of cached tables


def test_an_unknown_cleaner_and_one_that_is_not_installed(monkeypatch):
    with pytest.raises(SettingsError, match=r"there is no cleaner 'htm'; did you mean 'html'\?"):
        Cleaners("htm")

    def missing(name):
        raise ImportError(name)

    cleaners.html_parser.cache_clear()
    monkeypatch.setattr(cleaners, "import_module", missing)
    with pytest.raises(SettingsError, match=r'needs selectolax: .* -e "\.\[clean\]"'):
        Cleaners("html")
    assert Cleaners("urls").names == ("urls",)


def test_a_look_finds_what_the_cleaners_take_out():
    seen, signs = look(["<p>One</p>", "> a\n> b", "http://example.org", "plain", "", ">>> a\n>>> b", "a\n***\nb"])
    assert (seen, signs) == (6, {"html": 1, "mail": 1, "urls": 1, "separators": 1})


@pytest.fixture
def tickets(write):
    rows = [
        "<p>The printer is dead. It smokes.</p><p>Please help</p>",
        "<div>The printer is dead.</div>",
        "It prints again.\n\nOn Monday, Ann wrote:\n> Is it on?",
        "https://example.org/picture",
        "Nothing to clean.",
    ]
    return write("tickets.jsonl", "".join(json.dumps({"text": row}) + "\n" for row in rows))


def test_texts_are_cleaned_before_they_are_split_and_compared(read, tickets, write):
    corpus = read(tickets, clean="html,mail,urls", split_sentences=True)
    rows = ["The printer is dead.", "It smokes.", "Please help", "It prints again.", "Nothing to clean."]
    assert corpus.texts() == rows
    report = corpus.report
    assert (report.empty, report.duplicates, report.advice()) == (1, 1, None)
    said = "2 texts rid of HTML, 1 text rid of quoted mail or signatures, 1 text rid of URLs (1 of them empty then)"
    assert report.summary().splitlines()[1] == said
    excluded = write("test.csv", "text\n<i>Nothing to clean.</i>\n")
    assert "Nothing to clean." not in read(tickets, clean="html", exclude=str(excluded)).texts()


def test_each_choice_has_a_table_of_its_own_and_the_report_advises_the_others(read, tickets):
    raw, clean = read(tickets), read(tickets, clean=["html"])
    assert raw.fingerprint != clean.fingerprint
    again = read(tickets, clean="html")
    assert (again.directory, again.report) == (clean.directory, clean.report)
    said = "40% of the texts hold HTML, 20% quoted mail or signatures, 20% URLs: add clean=html,mail,urls"
    assert raw.report.advice() == said
    said = "20% of the texts hold quoted mail or signatures, 20% URLs: add clean: mail,urls"
    assert clean.report.advice("clean: ") == said
    assert read([f"sentence {n}" for n in range(99)] + ["<p>one page</p>"]).report.advice() is None


def test_whether_texts_are_split_is_decided_by_what_is_left(read, write):
    page = "<style>a. B. C. D.</style>"
    source = write("pages.jsonl", "".join(json.dumps({"text": f"{page}One {n} here"}) + "\n" for n in range(9)))
    assert read(source, split_sentences=None).documents is not None
    assert read(source, split_sentences=None, clean="html").documents is None
