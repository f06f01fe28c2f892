"""Titles of groups by a language model."""

import pytest

from selfsent.augment.endpoint import Endpoint
from selfsent.progress import Progress
from selfsent.search.titles import CENTRAL, _prompt, group_titles, title_in
from web import answered, answering


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Lost passwords", "Lost passwords"),
        ('<think>cards?</think>\n\nTitle: **"Lost cards"**.\nBecause', "Lost cards"),
        ("- Rechnungen", "Rechnungen"),
        ("\x1b[31mred\n", "[31mred"),
        ("", ""),
        ("x" * 1000, "x" * 80),
        ("The user wants\na title.\n</think>\n\nLost cards", "Lost cards"),  # a server without the opening tag
        ("<think>a</think>b</think>Lost cards", "Lost cards"),
        ("Here is a title:\n\nLost cards", "Lost cards"),
        (_prompt(["lost card"], ["card"]), ""),  # a small model repeats the question
        (_prompt(["lost card"], ["card"]) + "\nLost cards", "Lost cards"),
        ("texts, and nothing else.\nlost card", "lost card"),
    ],
)
def test_the_title_in_an_answer(answer, title):
    assert title_in(answer, _prompt(["lost card"], ["card"])) == title


def test_a_group_is_asked_about_once_and_the_user_is_told_first(monkeypatch, tmp_path):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    told = []
    progress = Progress()
    progress.notice = told.append

    def reply(number, question, headers):
        assert told
        said = question["messages"][0]["content"]
        return 200, answered("Printers" if "printer jams" in said else ""), {}

    texts = [["the printer jams", "no  paper"] + ["unread"] * CENTRAL, ["reset my password"]]
    with answering(reply) as (url, asked), Endpoint(url, "tiny", tries=1, pause=0.01) as endpoint:
        assert group_titles(texts, [["printer"], ["reset"]], endpoint, progress) == ["Printers", ""]
        assert len(asked) == 2
        assert group_titles(texts[:1], [["printer"]], endpoint, progress) == ["Printers"]
        assert len(asked) == 2
    assert len(told) == 1
    assert f"{url} is asked for 2 titles" in told[0]
    question = next(each["messages"][0]["content"] for _, each, _ in asked if "printer" in str(each))
    assert "- the printer jams\n- no paper\n" in question
    assert question.count("unread") == CENTRAL - 2
