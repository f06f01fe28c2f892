import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from naive.metrics import average_precision, cosine, ranking_average_precision
from selfsent.evaluation.datasets.publishers import USEB
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks import useb

WORDS = [f"w{number}" for number in range(12)]


def sentences(count, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 4)) for _ in range(count)]


@pytest.fixture
def put(tmp_path):
    def write(path, content):
        (tmp_path / USEB / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / USEB / path).write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path

    return write


def similarities(model, left, right):
    return [cosine(a, b) for a, b in zip(model.encode(left), model.encode(right), strict=True)]


def test_hand_made_ranking():
    assert useb.precision_of_ranking(np.array([1, 0, 1]), 2) == pytest.approx((1 + 2 / 3) / 2)
    assert useb.precision_of_ranking(np.array([1, 0, 1]), 4) == pytest.approx((1 + 2 / 3) / 4)
    assert useb.precision_of_ranking(np.array([0, 0]), 0) == 0


def test_twitterpara_is_average_precision_without_debatable_pairs(put, model):
    left, right = sentences(40, 0), sentences(40, 1)
    votes = np.random.default_rng(2).integers(0, 6, 40).tolist()
    url = "".join(f"{a}\t{b}\t({v},6)\tx\n" for a, b, v in zip(left[:25], right[:25], votes[:25], strict=True))
    pit = "".join(f"1\tt\t{a}\t{b}\t{v}\tx\n" for a, b, v in zip(left[25:], right[25:], votes[25:], strict=True))
    put("twitterpara/Twitter_URL_Corpus_test.txt", url)
    score = evaluate(model, task="twitterpara", data=put("twitterpara/test.data", pit)).scores["twitterpara"]
    found, expected = similarities(model, left, right), []
    for part in (range(25), range(25, 40)):
        clear = [row for row in part if votes[row] != 3]
        labels = [int(votes[row] > 3) for row in clear]
        expected.append(average_precision(labels, [found[row] for row in clear]))
        assert expected[-1] == pytest.approx(average_precision_score(labels, [found[row] for row in clear]))
    assert [score.metrics["twitterurl"], score.metrics["pit"]] == pytest.approx([100 * value for value in expected])
    assert score.score == pytest.approx(50 * sum(expected))
    assert score.n == sum(vote != 3 for vote in votes)
    assert set(score.details) == {"spearman_twitterurl", "spearman_pit"}


def test_askubuntu_averages_over_queries(put, model):
    titles = sentences(30, 3)
    put("askubuntu/text_tokenized.txt", "".join(f"{n}\t{t}\tbody\n" for n, t in enumerate(titles)))
    lines, expected = [], []
    for query, gold in ((0, {5, 7}), (1, {12}), (2, set())):
        candidates = range(5, 25)
        scores = " ".join(str(100 - c) for c in candidates)
        lines.append(f"{query}\t{' '.join(map(str, gold))}\t{' '.join(map(str, candidates))}\t{scores}\n")
        found = similarities(model, [titles[query]] * 20, [titles[c] for c in candidates])
        ranked = [c for _, c in sorted(zip(found, candidates, strict=True), key=lambda pair: -pair[0])]
        if gold:
            expected.append(ranking_average_precision([int(c in gold) for c in ranked]))
    score = evaluate(model, task="askubuntu", data=put("askubuntu/test.txt", "".join(lines))).scores["askubuntu"]
    assert score.score == pytest.approx(100 * np.mean(expected))
    assert score.n == 2


def test_askubuntu_ties_keep_bm25_order(put):
    put("askubuntu/text_tokenized.txt", "".join(f"{n}\ttitle {n}\tbody\n" for n in range(5)))
    root = put("askubuntu/test.txt", "0\t4\t1 2 3 4\t1 2 3 4\n")
    constant = as_encoder(lambda texts: np.ones((len(texts), 3)))
    assert evaluate(constant, task="askubuntu", data=root).scores["askubuntu"].score == 100


def test_scidocs_counts_untitled_relevant_candidates_and_breaks_ties_by_descending_id(put):
    corpus = {name: {"title": f"title {name}"} for name in ("q", "a", "b", "c")} | {"x": {"title": ""}}
    test = {"cite": {"q": {"a": 1, "b": 0, "c": 0, "x": 1}}, "coread": {"q": {"a": 0, "b": 0, "c": 1}}}
    root = put("scidocs/data.json", {"corpus": corpus, "test": test})
    constant = as_encoder(lambda texts: np.ones((len(texts), 3)))
    score = evaluate(constant, task="scidocs", data=root).scores["scidocs"]
    assert score.metrics["cite"] == pytest.approx(100 * (1 / 3) / 2)  # order c, b, a; two relevant, one of them ranked
    assert score.metrics["coread"] == pytest.approx(100)
    assert score.score == pytest.approx((score.metrics["cite"] + 100) / 2)


def test_cqadupstack_ranks_a_forum_without_its_queries(put, model, monkeypatch):
    monkeypatch.setattr(useb, "DEPTH", 6)
    texts = {"gis": sentences(30, 5), "tex": sentences(25, 6)}
    gold = {"gis": {"0": ["4", "9"], "1": ["20"]}, "tex": {"3": ["7", "8", "9"]}}
    corpus = {forum: {str(n): text for n, text in enumerate(posts)} for forum, posts in texts.items()}
    put("cqadupstack/corpus.json", corpus)
    root = put("cqadupstack/retrieval_split.json", {"test": gold})
    score = evaluate(model, task="cqadupstack", data=root).scores["cqadupstack"]
    forums = []
    for forum, posts in texts.items():
        pool, precisions = [n for n in range(len(posts)) if str(n) not in gold[forum]], []
        for query, relevant in gold[forum].items():
            found = similarities(model, [posts[int(query)]] * len(pool), [posts[n] for n in pool])
            best = sorted(zip(found, pool, strict=True), key=lambda pair: -pair[0])[:6]
            labels = [int(str(n) in relevant) for _, n in best]
            precisions.append(average_precision_score(labels, [s for s, _ in best]) if 1 in labels else 0)
        forums.append(np.mean(precisions))
    assert score.score == pytest.approx(100 * np.mean(forums), abs=1e-4)
    assert score.n == 3


def test_the_suite_averages_four_tasks(put, model):
    put("twitterpara/Twitter_URL_Corpus_test.txt", "a\tb\t(5,6)\tx\nc\td\t(1,6)\tx\n")
    result = evaluate(model, suite="useb", data=put("twitterpara/test.data", "1\tt\ta\tb\t5\tx\n1\tt\tc\td\t0\tx\n"))
    assert result.average_label == "average of 1 of 4"
    assert result.averaged == ("askubuntu", "cqadupstack", "twitterpara", "scidocs")
