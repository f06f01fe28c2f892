import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfsent.corpus import split_sentences


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
        ["今天天气很好。", "我们去公园吧！", "好吗？", "「好。」", "走"],
        ["यह एक वाक्य है।", "यह दूसरा है।"],
        ["هل تعمل الطابعة؟", "لا تعمل."],
        ["Das kostet z.B. 3,50 Euro.", "Übrigens nicht mehr."],
    ],
)
def test_split(sentences):
    joiner = "" if sentences[0][0] in "今" else " "
    assert split_sentences(joiner.join(sentences)) == sentences


def test_lower_case_goes_on():
    assert split_sentences("What?! she asked. ok then") == ["What?! she asked. ok then"]


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
    assert "".join("".join(split_sentences(unit * 100_000)).split()) == "".join((unit * 100_000).split())
