import json

import pytest

from selfsent.data.corpus import cleaners
from selfsent.data.corpus.cleaners import Cleaners, look
from selfsent.errors import SettingsError


def cleaned(names, text):
    return Cleaners(names)([text])[0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("<p>The <b>printer</b> is dead.</p><p>Help!</p>", "The printer is dead.\n\n\n\nHelp!"),
        ("Fish &amp; chips&nbsp;&lt;3 &#8364;&#x20ac;", "Fish & chips\xa0<3 €€"),
        ("<div>One<br/>two\n three</div>", "One\ntwo three"),
        ("<ul><li>ink<li>paper</ul>", "ink\n\npaper"),
        ("<style>p {margin: 0}</style><p>Text<script>alert('<p>')</script></p>", "Text"),
        ("<p>log:</p><pre>one\ntwo</pre>", "log:\n\n\n\none\ntwo"),
        ("a <b>word</b>\nand the next line", "a word\nand the next line"),
        ("<p>cut off <a href='http://exam", "cut off"),
        ("<P CLASS=x>loud</P>", "loud"),
        ("<p>\ud800</p>", "?"),
    ],
)
def test_html_becomes_text(text, wanted):
    assert cleaned("html", text) == wanted


@pytest.mark.parametrize(
    "text", ["if a < b and c > d", "List<String> x", "<init>", "write to <bob@example.org>", "AT&T"]
)
def test_what_only_looks_like_html_stays(text):
    assert cleaned("html", text) == text


def test_with_mail_the_quoted_parts_of_a_page_go():
    page = "<div>It works.</div><div class=gmail_quote><blockquote>Did it help?</blockquote></div>"
    assert cleaned("html", page).split() == ["It", "works.", "Did", "it", "help?"]
    assert cleaned("mail,html", page) == "It works."


@pytest.mark.parametrize("unit", ["<div>", "<p ", "<!--", "&amp;", "</p>", "<a href='", "<script>", "<li>x<ul>"])
def test_hostile_html_takes_no_square(unit):
    cleaned("html", unit * (400_000 // len(unit)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("see https://example.org/a?b=c#d, please", "see , please"),
        ("http://example.org", ""),
        ("<https://example.org/>", ""),
        ("www.example.org or ftp://x.org/a.", " or ."),
        ("the [manual](https://example.org/manual)", "the [manual]"),
        ("read the www. and http:// things", "read the www. and http:// things"),
        ("bob@example.org", "bob@example.org"),
    ],
)
def test_urls_go(text, wanted):
    assert cleaned("urls", text) == wanted


@pytest.mark.parametrize(
    "unit", ["http://", "www.", "https://a.", "(http://a)", "www.a....", "<http://a", "http://a,,"]
)
def test_hostile_urls_take_no_square(unit):
    cleaned("urls", unit * (400_000 // len(unit)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("one\n=====\ntwo", "one\n \ntwo"),
        ("one\n  * * *\r\ntwo", "one\n \ntwo"),
        ("---\ntext", " \ntext"),
        ("======== text ========", " text  "),
        ("red -=-=-=- car _____", "red  car  "),
        ("+-----+~~~~#####\nJoe", " \nJoe"),
        ("a\n════════\n――――――\nb", "a\n \n \nb"),
        ("well - - - - - or not", "well  or not"),
        ("*****", " "),
    ],
)
def test_separators_go(text, wanted):
    assert cleaned("separators", text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "- ink\n- paper\n-- \nJoe",
        "what the **** is C++ -- or f*** it ---- yes",
        "snake_case and __init__",
        "# Title\n| a | b |\n|---|---|",
        "wait..... what?!?!?!",
        "2 - -1 = 3",
    ],
)
def test_signs_in_a_text_stay(text):
    assert cleaned("separators", text) == text


@pytest.mark.parametrize("unit", ["=", "= ", "= =a", "- \n", "-\t \t", "* * * * a", "    ", "----a"])
def test_hostile_separators_take_no_square(unit):
    cleaned("separators", unit * (400_000 // len(unit)) + "a")


def test_each_cleaner_counts_what_it_changed_and_emptied():
    both = Cleaners(["urls", "html"])
    assert both.names == ("html", "urls")
    both(["<b>ink</b>", "https://example.org", "ink", "<p></p>", "", "<p>see https://example.org</p>"])
    assert both.counts() == {"html": (3, 1), "urls": (2, 1)}


def test_an_unknown_cleaner_and_one_that_is_not_installed(monkeypatch):
    with pytest.raises(SettingsError, match=r"there is no cleaner 'htm'; did you mean 'html'\?"):
        Cleaners("htm")

    def missing(name):
        raise ImportError(name)

    cleaners._needed.cache_clear()
    monkeypatch.setattr(cleaners, "import_module", missing)
    with pytest.raises(SettingsError, match=r'needs selectolax: pip install "selfsent\[clean\]"'):
        Cleaners("html")
    assert Cleaners("urls").names == ("urls",)


def test_a_look_finds_what_the_cleaners_take_out():
    seen, signs = look(["<p>One</p>", "> a\n> b", "http://example.org", "plain", "", ">>> a\n>>> b", "a\n***\nb"])
    assert (seen, signs) == (6, {"html": 1, "mail": 1, "urls": 1, "separators": 1})


def test_a_new_cleaner_changes_no_key_of_the_others():
    assert Cleaners("urls,html,mail").options() == ["clean", 1, "html", "mail", "urls"]
    assert Cleaners("separators,urls").names == ("urls", "separators")


def test_separators_go_behind_mail_which_needs_them():
    mail = "It works.\n-----Original Message-----\nFrom: Joe\nSent: today\n\nIs it on?\n=====\n"
    assert cleaned("separators,mail", mail).split() == ["It", "works."]


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


class TestReading:
    def test_texts_are_cleaned_before_they_are_split_and_compared(self, read, tickets):
        corpus = read(tickets, clean="html,mail,urls", split_sentences=True)
        assert corpus.texts() == [
            "The printer is dead.",
            "It smokes.",
            "Please help",
            "It prints again.",
            "Nothing to clean.",
        ]
        report = corpus.report
        assert (report.empty, report.duplicates) == (1, 1)
        assert {name: tuple(counts) for name, counts in report.rid_of.items()} == {
            "html": (2, 0),
            "mail": (1, 0),
            "urls": (1, 1),
        }
        said = "2 texts rid of HTML, 1 text rid of quoted mail or signatures, 1 text rid of URLs (1 of them empty then)"
        assert report.summary().splitlines()[1] == said
        assert report.advice() is None

    def test_each_choice_has_a_table_of_its_own(self, read, tickets):
        raw, clean = read(tickets), read(tickets, clean=["html"])
        assert raw.fingerprint != clean.fingerprint
        assert raw.directory != clean.directory
        assert read(tickets, clean="html").directory == clean.directory
        assert read(tickets, clean="html").report == clean.report

    def test_the_report_advises_what_was_not_asked_for(self, read, tickets):
        said = "40% of the texts hold HTML, 20% quoted mail or signatures, 20% URLs: add --clean html,mail,urls"
        assert read(tickets).report.advice() == said
        assert read(tickets, clean="html").report.advice("clean: ") == (
            "20% of the texts hold quoted mail or signatures, 20% URLs: add clean: mail,urls"
        )

    def test_plain_text_gets_no_advice(self, read):
        assert read([f"sentence {n}" for n in range(99)] + ["<p>one page</p>"]).report.advice() is None

    def test_what_is_left_out_is_cleaned_alike(self, read, tickets, write):
        banned = write("test.csv", "text\n<i>Nothing to clean.</i>\n")
        corpus = read(tickets, clean="html", exclude=str(banned))
        assert "Nothing to clean." not in corpus.texts()

    def test_whether_texts_are_split_is_decided_by_what_is_left(self, read, write):
        page = "<style>a. B. C. D.</style>"
        source = write("pages.jsonl", "".join(json.dumps({"text": f"{page}One {n} here"}) + "\n" for n in range(9)))
        assert read(source, split_sentences=None).documents is not None
        assert read(source, split_sentences=None, clean="html").documents is None
