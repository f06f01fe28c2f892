import pytest
from hypothesis import given, settings, strategies as st

from selfsent.data.corpus import split_sentences
from selfsent.data.corpus.read import check_corpus
from selfsent.data.corpus.sentences import split_texts
from selfsent.errors import CorpusError


@pytest.mark.parametrize(
    "sentences",
    [
        ["It works.", "Does it?", "Yes!", "Really..."],
        ["Dr. Smith met Mr. J. R. Jones at 3.30 p.m. on Jan. 5.", "They talked."],
        ["Pi is 3.14 or so.", "See Fig. 2 and No. 7, e.g. the U.S. Army one."],
        ["He lives in the U.S. now.", "She does too."],
        ["They left the U.S.", "The rest stayed."],
        ['"Stop!" she said.', '"Why?"', "He ran (fast.)", "[Then] he fell."],
        ["Visit example.com today.", "Version 2.0 is out."],
        ["1. First point follows.", "2. Second point follows."],
        ["So do I.", "Then it ended."],
        ["No sentence end at all"],
        ["What?! she asked. ok then"],
        ["今天天气很好。", "我们去公园吧！", "好吗？", "「好。」", "走"],
        ["यह एक वाक्य है।", "यह दूसरा है।"],
        ["هل تعمل الطابعة؟", "لا تعمل."],
        ["Das kostet z.B. 3,50 Euro.", "Übrigens nicht mehr."],
        ["Am 3. Mai gibt es z. B. Kuchen, Eis u. a. Dinge.", "Ggf. Torte.", "Es war 1945.", "Mai kam."],
        ["Schůzka je 12. 3. 2025 v Praze.", "Dne 5.4. 2025 ne.", "Es war 3.", "Danach kam 5."],
        ["Vgl. Art. 5 Abs. 2 GG.", "Il sig. Rossi abita qui.", "डॉ. शर्मा आए।"],
        ["「助けて。」と言った。", "「うん。」", "「そう。」"],
        ["См. рис. 3.", "Это т. е. Москва.", "Да."],
        ["Bkz. Ankara, örn. Çankaya.", "Np. Kraków, tzw. Stare Miasto.", "Sra. López fala."],
        ["It was option b.", "Then plan C. was left.", "See 3.", "May came."],
    ],
)
def test_split(sentences):
    joiner = "" if sentences[0][0] in "今「" else " "
    assert split_sentences(joiner.join(sentences)) == sentences


def test_blank_lines_end_a_sentence_and_line_breaks_do_not():
    assert split_sentences("A title\n \nOne line\ngoes on. Next.") == ["A title", "One line\ngoes on.", "Next."]


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("aB1 .!?\"'()\n。…")))
def test_nothing_is_lost_or_made_up(text):
    parts = split_sentences(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part == part.strip() != "" for part in parts)


@pytest.mark.parametrize("unit", [".", '."', "1. ", "A. ", "(", "。」", "\n \n", "\n", ". a"])
def test_hostile_repetition_is_linear(unit):
    assert "".join("".join(split_sentences(unit * 30_000)).split()) == "".join((unit * 30_000).split())


def test_a_long_run_of_stops_within_a_word_is_linear():
    assert split_sentences("a" + "." * 300_000 + "a. B") == ["a" + "." * 300_000 + "a.", "B"]


def test_many_texts_are_split_one_by_one():
    texts = ["One. Two", "", "three. four. \n\n Five.", "In room 12. The end. Am 3. Mai.", "1. Six."]
    expected = [["One.", "Two"], [], ["three. four.", "Five."], ["In room 12.", "The end.", "Am 3. Mai."], ["1. Six."]]
    assert list(split_texts(texts)) == expected == list(map(split_sentences, texts))


LONG = "text\n" + "".join(f"One {n} here. Two {n} here.\n" for n in range(6))


class TestSplittingByALook:
    """`split_sentences=None`: texts are split where most hold several sentences and nothing else makes documents."""

    def test_long_texts_are_split_unless_they_have_documents(self, read, write):
        assert len(read(write("long.csv", LONG + "Just one.\n"), split_sentences=None)) == 13
        short = "text\n" + "".join(f"One {n} here.\n" for n in range(6)) + "This is one. This is two.\n"
        corpus = read(write("short.csv", short), split_sentences=None)
        assert (len(corpus), corpus.documents) == (7, None)
        table = "text,thread\n" + "".join(f"One {n} here. Two {n} here.,{n % 3}\n" for n in range(6))
        assert len(read(write("x.csv", table), document_column="thread", split_sentences=None)) == 6
        lines = "A line. And more.\nB line. And more too.\n\nC line. And even more.\n"
        assert len(read(write("x.txt", lines), split_sentences=None)) == 3

    def test_nothing_is_lost_of_what_comes_only_once(self, read):
        texts = (f"One {n} here. Two {n} here." for n in range(3000))
        corpus = read(texts, split_sentences=None)
        assert (len(corpus), corpus.report.documents) == (6000, 3000)
        assert corpus.texts()[:2] == ["One 0 here.", "Two 0 here."]

    def test_what_was_found_is_not_looked_for_again(self, read, write, monkeypatch):
        path = write("long.csv", LONG)
        assert len(read(path)) == 6  # another table of the same file does not decide
        assert len(read(path, split_sentences=None)) == 12
        monkeypatch.setattr("selfsent.data.corpus.sources.Source.batches", lambda self: pytest.fail("read again"))
        assert len(read(path, split_sentences=None)) == 12
        assert len(read(path)) == 6

    def test_a_check_reports_what_reading_would(self, write, tmp_path):
        cache = tmp_path / "cache"
        path = write("long.csv", LONG)
        lines = "".join(f'{{"text": "One {n} here. Two {n} here."}}\n' for n in range(6))
        with pytest.raises(CorpusError, match="line 7"):
            check_corpus(write("bad.jsonl", lines + '{"text": '), split_sentences=None, cache=cache)
        with pytest.raises(CorpusError, match="gone"):
            check_corpus(path, split_sentences=None, cache=cache, exclude=tmp_path / "gone.txt")
