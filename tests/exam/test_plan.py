import json
from dataclasses import replace

import numpy as np
import pytest

import tiny
from naive.looks import lower_and_upper
from selfsent.errors import OutputError, SettingsError
from selfsent.evaluation.results import Score
from selfsent.exam import trial as module
from selfsent.exam.plan import Plan, Planned, Row, Tried
from selfsent.exam.price import SAMPLE, Price, price_of, significant
from selfsent.exam.trial import encoders_in, try_plan
from selfsent.models.prompts import Prompts
from selfsent.report.exam_page import exam_page
from selfsent.scorers.load_scorer import load_scorer
from selfsent.scorers.scorer import Scorer
from web import answering

LOTS = 200


def score(value, shift=0.0):
    samples = value + np.linspace(-1, 1, 1000) + shift * np.linspace(1, -1, 1000)
    return Score("exam", value, value - 1, value + 1, 100, "", samples=samples)


def tried(name, value, seconds, dev=None, **how):
    return Tried(Row(name, "bm25"), "bm25", score(dev or value), score(value), Price(seconds, 0, 1, 1), **how)


def test_a_dear_row_must_bring_what_its_price_must_bring():
    cheap, dear = tried("table + words", 70, 100), tried("MiniLM + words", 73.1, 6000)
    # The price is 10 times what does not matter: the gain must be above 1 point, or 4.
    assert Planned([cheap, dear]).taken is dear
    kept = Planned([cheap, dear], worth=4)
    assert kept.taken is cheap
    assert kept.sentence == (
        "Take table + words; MiniLM + words finds 3.1 points (3.1 to 3.1) more at 60 times the price."
    )
    assert Planned([cheap, dear]).sentence == (
        "Take MiniLM + words; it finds 3.1 points (3.1 to 3.1) more than table + words, at 60 times the price."
    )


def test_prices_that_do_not_matter_and_rows_that_take_no_part():
    rows = [tried("bm25", 60, 1), tried("words", 61, 500), tried("slow", 60.5, 5000), tried("read", 99, 2, read=True)]
    found = Planned(rows)
    assert found.taken is rows[1]
    assert found.efficient == ["bm25", "words"]
    assert found.sentence == "Take words; it finds 1.0 points (1.0 to 1.0) more than bm25, at 500 times the price."
    assert Planned([Tried(Row("x", "bm25"), line="left out: broken")]).sentence.startswith("No verdict")
    assert Planned(rows, doubts=("Doubtful: ...",)).sentence.endswith(" the price. Doubtful: ...")


def test_no_dearer_row_is_taken_or_named_where_a_cheaper_one_scores_as_high():
    """On dev the dear ones are ahead, on test the cheap one has as much: the sentence is about efficient rows alone."""
    cheap, dear = tried("cheap", 61, 1, dev=60), tried("dear", 61, 500, dev=62)
    best, strong = tried("best on dev", 62, 9000, dev=66), tried("strong", 63, 4000, dev=61)
    found = Planned([dear, cheap, best, strong], worth=9)
    assert found.taken is cheap
    assert found.efficient == ["cheap", "strong"]
    assert found.sentence == "Take cheap; strong finds 2.0 points (2.0 to 2.0) more at 4,000 times the price."
    # Ahead on dev by what its price must bring, and below a cheaper one on test.
    found = Planned([cheap, best, strong])
    assert found.taken is strong
    assert found.sentence == (
        "Take strong; it finds 2.0 points (2.0 to 2.0) more than cheap, at 4,000 times the price."
    )
    assert Planned([cheap, dear]).sentence == "Take cheap: nothing that is cheaper or dearer finds more."


def test_the_interval_of_the_sentence_holds_for_all_efficient_rows():
    rows = [tried("bm25", 60, 1), tried("words", 61, 2), tried("dear", 80, 9000, dev=60)]
    rows[2] = replace(rows[2], test=score(80, shift=10))
    low, high = lower_and_upper((19 + 10 * np.linspace(1, -1, 1000)).tolist(), looks=2)
    assert f"dear finds 19.0 points ({low:.1f} to {high:.1f}) more" in Planned(rows).sentence


def test_a_row_that_is_ahead_by_chance_alone_is_not_said_to_find_more():
    ahead, other = tried("words", 61, 500, dev=62), tried("bm25", 60, 1)
    ahead = replace(ahead, test=score(61, shift=50))
    said = Planned([other, ahead]).sentence
    assert said.startswith("Take words; it is not ahead of bm25 beyond chance (+1.0 points, -")
    assert said.endswith("at 500 times the price.")


@pytest.fixture
def exam(tmp_path):
    """An exam of 200 documents, each asked for once in either half by a word that it alone has."""
    documents = {f"d{n}": f"The lot{n} is by the wall{n % 7} of owner{n}." for n in range(LOTS)}
    queries = {f"q{n}": f"{'lot' if n % 2 else 'owner'}{n // 2}" for n in range(2 * LOTS)}
    judged = [(f"q{n}", f"d{n // 2}", 1) for n in range(2 * LOTS)]
    return tiny.write_search_set(tmp_path / "exam", documents, queries, {"dev": judged[::2], "test": judged[1::2]})


@pytest.fixture
def prices(monkeypatch):
    """Fixed prices, and how many queries each model was asked."""
    known, asked = {"bm25": 10, "tfidf": 5, "noise": 100, "bm25+rerank:noise": 200}, {}

    class Noise:
        def encode(self, texts):
            return np.random.default_rng(0).normal(size=(len(texts), 4)).astype(np.float32)

    def loaded(model, candidates=None, prompts=None):
        found = load_scorer(Noise() if model == "noise" else model, name=model)
        inner = found.query_document_vectors

        def counted(queries, texts, search=False):
            asked[model] = asked.get(model, 0) + len(queries)
            return inner(queries, texts, search)

        found.query_document_vectors = counted
        return found

    monkeypatch.setattr(module, "loaded", loaded)
    monkeypatch.setattr(module, "encoders_in", lambda model: [])
    monkeypatch.setattr(module, "price_of", lambda load, *_: Price(known[load.args[0]], 0, 1, 1))
    monkeypatch.setattr(module, "with_scan", lambda price, *_: price)
    return asked


def test_a_dear_row_is_stopped_where_it_cannot_win_and_a_cheap_one_is_not(exam, prices):
    rows = [Row("words", "bm25"), Row("noise", "noise"), Row("after", "bm25+rerank:noise", after="noise")]
    found = try_plan(Plan([*rows, Row("TF-IDF", "tfidf")]), exam, train=None)
    words, noise, after, tfidf = found.tried
    assert words.test.score == 100
    assert noise.test is None
    assert noise.dev.n == 50
    assert noise.line.startswith("stopped after 50 queries: ")
    assert "points behind words" in noise.line
    assert after.line == "left out, as noise was"
    assert tfidf.test is not None
    assert prices == {"bm25": 2 * LOTS, "noise": 50, "tfidf": 2 * LOTS}
    page = exam_page(found)
    assert found.sentence in page
    assert "stopped after 50 queries" in page
    saved = json.loads((exam / "plan/plan.json").read_text())
    assert saved["take"] == "TF-IDF"  # as good as words, and cheaper


def test_rows_that_were_tried_are_read_again(exam, prices):
    plan = Plan([Row("words", "bm25"), Row("noise", "noise")])
    first = try_plan(plan, exam, train=None)
    prices.clear()
    again = try_plan(Plan([Row("other name", "bm25"), plan.rows[1], Row("TF-IDF", "tfidf")]), exam, train=None)
    assert prices == {"tfidf": 2 * LOTS}
    assert again.tried[0].test.score == first.tried[0].test.score
    assert again.tried[1].dev.score == first.tried[1].dev.score
    for path in (exam / "plan/rows").iterdir():
        path.write_text("{")
    assert try_plan(plan, exam, train=None).tried[0].test.score == 100


def test_training_reads_what_is_not_asked_for(exam, prices):
    row = Row("trained", "TRAINED", {"base": "bundled"})
    assert "0 texts are not asked for, and a training needs 200" in try_plan(Plan([row]), exam, None).tried[0].line
    more = [{"_id": f"x{n}", "title": "", "text": f"Another text{n} here."} for n in range(250)]
    with (exam / "corpus.jsonl").open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in more)
    seen = []

    def train(source, options, output):
        seen.append(([json.loads(line)["text"] for line in source.open()], dict(options)))
        raise SettingsError("enough of that")

    assert "left out: enough of that" in try_plan(Plan([row]), exam, train).tried[0].line
    assert seen == [([each["text"] for each in more], {"base": "bundled"})]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "has no rows"),
        ([Row("a", "bm25"), Row("a", "tfidf")], "two rows of the plan are called a"),
        ([Row("a", "bm25", after="b")], "comes after b, which is no row before it"),
        ([Row("a", "TRAINED")], "TRAINED in `model` goes with `train`"),
    ],
)
def test_plans_that_are_wrong(rows, said):
    with pytest.raises(SettingsError, match=said):
        Plan(rows)


def test_a_text_is_encoded_once_so_that_its_seconds_are_not_in_the_price_of_a_query(monkeypatch):
    seconds, encoded = [0.0], []

    def encode(texts):
        encoded.extend(texts)
        seconds[0] += 0.01 * len(texts)
        return np.ones((len(texts), 4), np.float32)

    monkeypatch.setattr("selfsent.exam.price.clock_of", lambda scorer: lambda: seconds[0])
    texts = [f"text {n}" for n in range(400)]
    price = price_of(lambda: Scorer(encode, "slow"), [], [f"query {n}" for n in range(40)], texts)
    assert price.query == pytest.approx(10)
    assert price.encoding == pytest.approx(1000, rel=0.01)
    assert len([each for each in encoded if each.startswith("text ")]) <= SAMPLE


def test_encoders_and_prices():
    assert encoders_in("bundled+words+passages:60") == ["bundled"]
    assert encoders_in("bm25+rerank:bundled") == ["bundled"]
    texts = [f"A text of six words, number {n}." for n in range(300)]
    price = price_of(lambda: load_scorer("bundled+words"), ["bundled"], ["a query", "another"], texts)
    # Vectors of 16 bits; the sizes of a table are in its own files.
    size = load_scorer("bundled")(["a"]).shape[1]
    assert price.memory > 100_000 * size * 2 / 1e6
    assert price.index > 100_000 * (size * 2 + 25) / 1e6
    assert price.encoding > 0
    assert [significant(value) for value in (0.0567, 60.4, 1999)] == ["0.057", "60", "2,000"]


def test_a_full_disk_ends_the_exam_and_other_faults_leave_out_their_row(exam, prices):
    rows = [Row("words", "bm25"), Row("cut", "bm25", candidates=3), Row("TF-IDF", "tfidf")]
    (exam / "plan").write_text("a file where results go")
    with pytest.raises(OutputError):
        try_plan(Plan(rows), exam, None)
    (exam / "plan").unlink()

    def broken(model, candidates=None, prompts=None):
        raise SettingsError("it is broken")

    working, module_loaded = module.loaded, {"bm25": broken}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "loaded", lambda model, *a: module_loaded.get(model, working)(model, *a))
        found = try_plan(Plan(rows), exam, None)
    assert [each.line for each in found.tried[:2]] == ["left out: it is broken"] * 2
    assert found.lines == ["words: left out: it is broken", "cut: left out: it is broken"]
    assert found.taken.row.name == "TF-IDF"


def test_an_api_is_asked_for_each_text_once_and_its_row_says_so(exam, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def reply(number, question, headers):
        rows = np.random.default_rng(0).normal(size=(len(question["input"]), 4)).tolist()
        body = {"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]}
        return 200, json.dumps(body).encode(), {}

    def texts_in(asked):
        return [text for _, question, _ in asked for text in question["input"] if text.startswith("The lot")]

    with answering(reply) as (url, asked):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        found = try_plan(Plan([Row("mine", "api:small")]), exam, train=None).tried[0]
        assert found.price.needs == "API"
        assert found.price.cells[-1] == "API"
        first = len(texts_in(asked))
        assert set(texts_in(asked)) == {f"The lot{n} is by the wall{n % 7} of owner{n}." for n in range(LOTS)}
        again = try_plan(Plan([Row("mine + words", "api:small+words")]), exam, train=None).tried[0]
        assert again.test is not None
        # What the price is measured with is sent again, the other texts are kept.
        assert first - LOTS == len(texts_in(asked)) - first
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/other")
        before = len(texts_in(asked))
        try_plan(Plan([Row("mine", "api:small")]), exam, train=None)
        assert len(texts_in(asked)) - before == first


def test_a_row_has_prompts_of_its_own(exam, monkeypatch):
    given = []
    monkeypatch.setattr(module, "load_scorer", lambda model, prompts=None: given.append(prompts) or load_scorer("bm25"))
    monkeypatch.setattr(module, "price_of", lambda load, *_: Price(1, 0, 1, 1))
    monkeypatch.setattr(module, "with_scan", lambda price, *_: price)
    rows = [Row("own", "bm25"), Row("none", "bm25", prompts={}), Row("e5", "bm25", prompts={"query": "query: "})]
    found = try_plan(Plan(rows), exam, None)
    assert given == [None, Prompts(), Prompts(query="query: ")]
    assert [row.get("prompts") for row in found.to_json()["rows"]] == [None, {}, {"query": "query: "}]
