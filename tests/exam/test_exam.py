from collections import Counter
from unittest.mock import Mock

import numpy as np
import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.data.corpus.clean import letters
from selfsent.errors import DataError, RunError, SettingsError
from selfsent.evaluation.results import Result
from selfsent.evaluation.side_by_side import Comparison
from selfsent.evaluation.tasks.beir import read_task
from selfsent.exam.compare import chosen_weight, compare_on_exam, rankings_of, verdict
from selfsent.exam.doubts import doubts, templated
from selfsent.exam.draw import draw_exam
from selfsent.exam.exam import Text, is_exam
from selfsent.exam.texts import texts_of, unread
from selfsent.models.texts_read import TextsRead
from selfsent.progress import Progress
from selfsent.scorers.lexical import Hybrid, LexicalScorer
from selfsent.scorers.scorer import PairScorer, Scorer
from selfsent.stats.resampling import Difference

PARTS = ("engine", "mirror", "pedal", "window", "bumper", "clutch", "radio", "heater", "wiper", "tank")


def made(count, titles=True):
    """Documents of four sentences that share a name of their own; each sentence has a word that no other has."""
    return [
        Text(
            str(number),
            (f"The {PARTS[number % 10]} of lot{number} overhauled by owner{number}",) * titles,
            tuple(f"Sentence u{number * 4 + k} tells how {PARTS[k]} lot{number} was mended." for k in range(4)),
        )
        for number in range(count)
    ]


def exam_words(text):
    return text.lower().strip(".").split()


def by_name(exam):
    return {text.name: text for text in exam.documents}


def test_what_is_asked_is_taken_out_of_its_answer_alone():
    before = {text.name: text for text in made(60)}
    exam = draw_exam(list(before.values()), 60, dropped=0)
    assert Counter(query.kind for query in exam.queries) == {"title": 30, "sentence": 30}
    changed = set()
    for query in exam.queries:
        (answer,) = query.answers
        after = exam.documents[answer]
        whole, changed = before[after.name], changed | {after.name}
        if query.kind == "title":
            assert (query.text, after.titles, after.sentences) == (whole.titles[0], (), whole.sentences)
        else:
            kept = tuple(sentence for sentence in whole.sentences if sentence != query.text)
            assert (len(kept), after.titles, after.sentences) == (3, whole.titles, kept)
    assert len(changed) == len(exam.queries) == 60


def test_what_a_mail_quotes_must_find_the_answer_and_the_mail_it_is_from():
    asked = ("Ben wrote a long letter about valves.", "Where is the stuck valve of lot9?", "Thanks to all of you here.")
    mails = [
        Text("asks", (), asked),
        Text("answers", (), ("It is behind the tank of the old truck.",), (asked[1],)),
        Text("apart", (), ("We never send invoices by letter post.",), ("Why is there no invoice in my mail?",)),
        Text("short", (), ("The key hangs beside the green door.",)),
        Text("answers short", (), ("I have looked there.",), ("The key hangs beside the green door.",)),
        Text("thanks", (), ("You are welcome.",), ("Thank you!",)),
    ]
    exam = draw_exam(mails, 60, dropped=0, seed=1)
    names = [text.name for text in exam.documents]
    found = {query.text: {names[answer] for answer in query.answers} for query in exam.queries if query.kind == "quote"}
    assert found == {asked[1]: {"asks", "answers"}, "Why is there no invoice in my mail?": {"apart"}}
    assert by_name(exam)["asks"].sentences == (asked[0], asked[2])


def test_quotes_are_read_from_mails_as_they_were():
    when = "On Mon, Jan 5, 2026,"
    mail = f"No invoice is sent by mail.\n\n{when} Ann wrote:\n> {when} Ben wrote:\n> > Hi\n> Why is there no invoice?"
    table = {"body": [mail, "A mail without any quote in it."]}
    corpus = read_corpus(table, text_column="body", clean="mail", metadata_columns="body")
    one, other = texts_of(corpus, mails=("body",))
    assert (one.sentences, one.quoted) == (("No invoice is sent by mail.",), ("Why is there no invoice?",))
    assert other.quoted == ()
    assert all(text.quoted == () for text in texts_of(corpus))


def test_a_share_of_the_shared_words_is_left_out():
    whole, half, none = (draw_exam(made(400), 400, dropped=share) for share in (0, 0.5, 1))
    assert whole.documents == half.documents == none.documents
    shared = {"whole": 0, "half": 0}
    for before, some, without in zip(whole.queries, half.queries, none.queries, strict=True):
        body = {*exam_words(whole.documents[before.answers[0]].body)}
        words = exam_words(before.text)
        # As written from the rule: words of the answer go, others stay, stop words among them.
        assert exam_words(without.text) == [
            word for word in words if word not in body or word in ("the", "how", "was", "of", "by")
        ]
        assert not {*exam_words(some.text)} - {*words}
        shared["whole"] += sum(word in body for word in words)
        shared["half"] += sum(word in body for word in exam_words(some.text))
    assert 0.4 < 0.5 * shared["half"] / (0.5 * shared["whole"]) < 0.75


def test_queries_stay_different_when_words_are_left_out():
    texts = [Text(t.name, (f"The pedal of lot{t.name} overhauled",), t.sentences) for t in made(60)]
    exam = draw_exam(texts, 60, dropped=1)
    assert len({query.text for query in exam.queries}) == len(exam.queries) == 60


def test_near_copies_of_the_answer_are_right_and_lose_the_sentence_too():
    texts = made(40, titles=False)
    copy = Text("copy", (), texts[5].sentences)
    exam = draw_exam([*texts, copy], 41)
    twins = [query for query in exam.queries if len(query.answers) == 2]
    assert len(twins) == 1
    assert {exam.documents[row].name for row in twins[0].answers} == {"5", "copy"}
    assert len(exam.queries) == 40  # one for both
    assert by_name(exam)["5"].sentences == by_name(exam)["copy"].sentences


def test_a_sentence_that_two_documents_hold_is_no_query():
    greeting = "Thank you very much for your patience with us."
    texts = [Text(t.name, (), (greeting, *t.sentences[:2])) for t in made(50)]
    exam = draw_exam(texts, 50)
    assert len(exam.queries) == 50
    assert all("patience" not in query.text for query in exam.queries)


def test_a_sentence_of_a_template_is_no_query_whatever_its_numbers():
    texts = [
        Text(t.name, (), (f"Your number with our company is {n}.", *t.sentences[:2])) for n, t in enumerate(made(50))
    ]
    exam = draw_exam(texts, 50)
    assert len(exam.queries) == 50
    assert all("company" not in query.text for query in exam.queries)
    assert all(text.sentences[0].startswith("Your number") for text in exam.documents)


def test_templates_make_a_verdict_doubtful(tmp_path):
    plain = made(60, titles=False)
    forms = [Text(t.name, (), (f"Your number {n} is known to us.", *t.sentences[:3])) for n, t in enumerate(plain)]
    for name, texts, share in (("plain", plain, 0), ("forms", forms, 1 / 3)):
        draw_exam(texts, 60).write(tmp_path / name)
        assert templated(read_task(tmp_path / name, "exam", "dev").documents) == pytest.approx(share)
        found = compare_on_exam(tmp_path / name, [lambda: LexicalScorer("bm25"), lambda: LexicalScorer("tfidf")])
        assert ("Doubtful: 33% of the sentences are those of a template" in found.verdict) == (share > 0)
    assert doubts(["One cat. Two dogs.", "One cat. Four dogs.", "Five hens. Two dogs."], 50.0) == ()  # held by two


def test_an_exam_in_which_little_is_found_is_doubtful(tmp_path):
    draw_exam(made(60), 60).write(tmp_path / "e")
    models = [lambda: LexicalScorer("bm25"), lambda: LexicalScorer("tfidf")]
    assert "Doubtful" not in compare_on_exam(tmp_path / "e", models).verdict
    queries = tiny.rows_of(tmp_path / "e" / "queries.jsonl")
    unheard = [query | {"text": query["text"] if n < 6 else "unheard of"} for n, query in enumerate(queries)]
    tiny.write_table(tmp_path / "e" / "queries.jsonl", unheard)
    found = compare_on_exam(tmp_path / "e", models)
    best = max(result.scores["exam"].score for result in found.comparison.results)
    assert 5 < best < 35
    assert f"Doubtful: even the best ranking scores {best:.0f}, so" in found.verdict


def test_outputs_that_are_not_finite_are_told(tmp_path):
    draw_exam(made(60), 60).write(tmp_path / "e")
    odd = Scorer(lambda texts: np.array([[len(text), np.nan if "lot7" in text else 1] for text in texts]), "odd")
    told = Progress()
    told.notice = Mock()
    compare_on_exam(tmp_path / "e", [lambda: odd, lambda: LexicalScorer("bm25")], told)
    assert odd.broken
    assert [each.args[0] for each in told.notice.call_args_list] == ["odd", *odd.warnings, "bm25"]


def test_equal_titles_have_all_their_texts_as_answers():
    texts = [Text(t.name, ("Printer", "Bill")[n % 2 :][:1], t.sentences[:2]) for n, t in enumerate(made(10))]
    exam = draw_exam(texts, 10)
    assert sorted((q.text, len(q.answers)) for q in exam.queries) == [("Bill", 5), ("Printer", 5)]
    assert not any(text.titles for text in exam.documents)


def test_a_question_at_the_beginning_finds_the_rest():
    texts = [Text(t.name, (), (f"How is lot{t.name} to be mended?", *t.sentences[:1])) for t in made(20)]
    exam = draw_exam(texts, 20)
    assert {query.kind for query in exam.queries} == {"question"}
    assert not any("?" in text.body for text in exam.documents)


def test_pairs_are_asked_alone_and_both_answers_count():
    corpus = read_corpus(
        {
            "q": ["where is it?", "where is it?", "who are you?", None],
            "a": ["It is here. Look.", "It is there.", "Nobody, sir.", "Left alone."],
        },
        text_column="a",
        metadata_columns="q",
    )
    exam = draw_exam(texts_of(corpus, "q"), paired=True)
    answers = {q.text: sorted(exam.documents[row].body for row in q.answers) for q in exam.queries}
    assert answers == {"where is it?": ["It is here. Look.", "It is there."], "who are you?": ["Nobody, sir."]}
    assert {query.kind for query in exam.queries} == {"pair"}


def test_the_same_table_gives_the_same_exam_and_another_seed_another():
    texts = made(60)
    assert draw_exam(texts, 30) == draw_exam(texts[::-1], 30)
    assert draw_exam(texts, 30) != draw_exam(texts, 30, seed=1)


def test_written_and_read_again(tmp_path):
    exam = draw_exam(made(80), 80)
    exam.write(tmp_path / "exam", seed=0)
    assert is_exam(tmp_path / "exam")
    assert not is_exam(tmp_path)
    halves = [read_task(tmp_path / "exam", "exam", split) for split in ("dev", "test")]
    assert sorted(len(half.queries) for half in halves) == [40, 40]
    assert not {*halves[0].queries} & {*halves[1].queries}
    asked = dict(zip(halves[1].queries, halves[1].grades, strict=True))
    for query in exam.queries:
        if query.text in asked:
            documents = {halves[1].documents[row] for row in asked[query.text]}
            assert documents == {" ".join([*t.titles, t.body]) for t in (exam.documents[row] for row in query.answers)}
    kinds = [row["kind"] for row in tiny.rows_of(tmp_path / "exam/queries.jsonl")]
    assert kinds == [query.kind for query in exam.queries]


def test_nothing_to_ask():
    single = [Text(str(n), (), (f"One sentence about {n}.",)) for n in range(9)]
    for texts, paired in ((single, False), (single, True), (made(1), False)):
        with pytest.raises(DataError, match="nothing can be asked"):
            draw_exam(texts, paired=paired)


def test_few_queries_say_how_wide_an_interval_is():
    assert "±16 points" in draw_exam(made(48)).warning
    assert draw_exam(made(60)).warning == ""
    with pytest.raises(SettingsError, match="queries is 1"):
        draw_exam(made(9), 1)


def test_documents_that_a_run_has_read_are_not_asked(tmp_path):
    texts = made(200, titles=False)
    (tmp_path / "modules.json").write_text("[]")
    TextsRead.of_texts(text.body for text in texts[:160]).save(tmp_path)
    kept = unread(tmp_path, texts)
    exam = draw_exam(texts, kept=kept)
    asked = {exam.documents[row].name for query in exam.queries for row in query.answers}
    assert asked == {str(number) for number in range(160, 200)}
    with pytest.raises(DataError, match="which the run kept apart"):  # of each document a part was read
        draw_exam(texts, kept={letters(text.sentences[0]) for text in texts})
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="no run"):
        unread(tmp_path / "none", texts)


def test_what_a_run_has_read_and_would_answer_as_well_is_left_out():
    twins = [Text(f"copy of {text.name}", text.titles, (*text.sentences[:3], "Sent again.")) for text in made(30)]
    kept = {letters(sentence) for text in made(30) for sentence in text.sentences}
    exam = draw_exam([*made(60), *twins], kept=kept)
    assert {text.name for text in exam.documents} == {str(number) for number in range(60)}
    assert all(len(query.answers) == 1 for query in exam.queries)


def counting(texts):
    """Vectors by the letters of a text."""
    return np.array(
        [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz0123456789"] for text in texts]
    )


def test_the_weight_is_chosen_on_dev_and_compared_on_test(tmp_path):
    draw_exam(made(120), 120).write(tmp_path / "e")
    dev, test = (read_task(tmp_path / "e", "exam", split) for split in ("dev", "test"))
    encoder = Scorer(counting, "letters")
    alone, words = rankings_of(encoder, dev, test)
    weight = float(words.name.removeprefix("letters+words at "))
    assert weight == chosen_weight(encoder, dev)
    assert words.dev.score == dev.score(Hybrid(encoder, weight)).score > alone.dev.score
    assert words.test.score == test.score(Hybrid(encoder, weight)).score
    found = compare_on_exam(
        tmp_path / "e",
        [lambda: encoder, lambda: LexicalScorer("bm25"), lambda: Scorer(lambda t: np.ones((len(t), 3)), "blind")],
    )
    scores = {result.model: result.scores["exam"].score for result in found.comparison.results}
    assert scores.keys() == {"letters", words.name, "bm25", "blind", "blind+words at 0.5"}
    assert scores["letters"] == alone.test.score
    assert found.verdict.startswith(f"On half of the queries {next(iter(scores))} was best.")
    shown = [str(cell) for cell in found.table().columns[0].cells]
    assert shown == sorted(scores, key=scores.__getitem__, reverse=True)
    with pytest.raises(SettingsError, match="joined has no vectors"):
        rankings_of(PairScorer(lambda pairs: np.ones(len(pairs)), "joined"), dev, test)


@pytest.mark.parametrize("unread", [80, 20])
def test_a_model_that_has_read_answers_is_scored_apart(tmp_path, unread):
    texts = made(200)
    exam = draw_exam(texts, 200)
    exam.write(tmp_path / "e")
    known = [texts[number].body for number in range(200 - unread)]
    knows = Scorer(counting, "knows")
    knows.texts_read = TextsRead.of_texts(known)
    found = compare_on_exam(
        tmp_path / "e", [lambda: knows, lambda: Scorer(counting, "new"), lambda: LexicalScorer("bm25")]
    )
    assert "knows" not in " ".join(result.model for result in found.comparison.results)
    assert "knows" not in found.verdict
    (apart,) = found.apart
    assert (apart.name, apart.read, apart.asked) == ("knows", 200 - unread, 200)
    assert f"knows has read {200 - unread} of the 200 texts asked about: no part in the verdict" in apart.line
    if unread == 20:
        assert apart.ranking is None
        return
    test = read_task(tmp_path / "e", "exam", "test")
    names = [text.name for text in exam.documents]
    left = test.without({row for row, name in enumerate(names) if int(name) < 200 - unread})
    answers = [int(names[query.answers[0]]) for query in exam.queries]
    asked = [number for number, split in zip(answers, exam.splits, strict=True) if split == "test" and number >= 120]
    assert apart.ranking.test.n == len(left.queries) == len(asked)
    assert apart.ranking.test.score == left.score(apart.ranking.of(knows)).score
    assert (apart.best, apart.over.score) == ("bm25", left.score(LexicalScorer("bm25")).score)
    with pytest.raises(SettingsError, match="two models"):
        compare_on_exam(tmp_path / "e", [lambda: LexicalScorer("bm25")])
    alone = compare_on_exam(tmp_path / "e", [lambda: knows])
    assert alone.comparison is None
    assert alone.verdict.startswith("No verdict: every model has read what is asked about.")
    one = compare_on_exam(tmp_path / "e", [lambda: knows, lambda: LexicalScorer("bm25")])
    assert one.verdict.startswith("bm25 alone has not read what is asked about")


def test_another_weight_is_taken_only_if_it_is_ahead_by_more_than_chance():
    task = draw_exam(made(120), 120).task
    encoder = Scorer(counting, "letters")

    def scores(own):
        encoder.lexical_weight = own
        return {weight: task.score(Hybrid(encoder, weight)) for weight in (0, 0.2, 0.5, 1, 1.5, 3, own)}

    found = scores(0.0)
    best = max(found, key=lambda weight: found[weight].score)
    assert found[best].minus(found[0.0]).low > 0
    assert chosen_weight(encoder, task) == best > 0
    for own in np.linspace(0.1, 3, 30):
        found = scores(own)
        best = max(found, key=lambda weight: found[weight].score)
        if found[best].score > found[own].score and found[best].minus(found[own]).low <= 0:
            break
    assert found[best].score > found[own].score
    assert chosen_weight(encoder, task) == own


def test_the_verdict_names_who_is_behind_ahead_and_undecided():
    results = tuple(Result(name, {}) for name in "abcde")
    low_high = ((-3, -1), (-1, 1), (-3, -0.1), (0.1, 3))
    differences = {"exam": tuple(Difference((low + high) / 2, low, high, 0.5) for low, high in low_high)}
    assert verdict(Comparison(results, results, differences)) == (
        "On half of the queries a was best. On the other half it is ahead of b and d. On the other half it is behind e:"
        " take that."
    )
    undecided = {"exam": differences["exam"][:3]}
    assert verdict(Comparison(results[:4], results[:4], undecided)).endswith(
        "ahead of b and d. Undecided between it and c: take the cheaper one, or ask more queries."
    )


def test_a_verdict_that_leaves_nothing_open():
    results = tuple(Result(name, {}) for name in "ab")
    found = Comparison(results, results, {"exam": (Difference(-2.0, -3.0, -1.0, 0.002),)})
    assert verdict(found) == "On half of the queries a was best. On the other half it is ahead of b."
