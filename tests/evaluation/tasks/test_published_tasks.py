import json

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import average_precision_score

from naive.metrics import average_precision, cosine, ranking_average_precision
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import PAIR, DataSet, Rows, Store
from selfsent.evaluation.suites import TASKS, evaluate
from selfsent.evaluation.tasks.published import cross_validate, finds_its_row, folds, score_pairs
from selfsent.scorers.load_scorer import load_scorer

RNG = np.random.default_rng(0)
YEAR = DataSet("toy", "org/toy", 12, columns={**PAIR, "subset": "subset"}, optional=("subset",))
ENGLISH, GERMAN = [f"word{n} house tree" for n in range(10)], [f"word{n} haus" for n in range(10)]
CONSTANT = load_scorer(lambda texts: np.full((len(texts), 7), 0.3))


def sentences(count, seed, words=10):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice([f"w{number}" for number in range(words)], 4)) for _ in range(count)]


def similarities(model, left, right):
    return np.array([cosine(a, b) for a, b in zip(model.encode(left), model.encode(right), strict=True)])


@pytest.fixture
def toy(write):
    pairs = {"sentence1": sentences(12, 0), "sentence2": sentences(12, 1), "score": RNG.uniform(0, 5, 12).tolist()}
    return pairs, Store(write("org/toy/test.parquet", **pairs, subset=["a"] * 8 + ["b"] * 4)).load(YEAR)


def test_sts_is_spearman_over_all_pairs(toy, model):
    pairs, rows = toy
    score = score_pairs(rows, load_scorer(model))
    similarity, gold = similarities(model, pairs["sentence1"], pairs["sentence2"]), np.array(pairs["score"])
    each = [scipy.stats.spearmanr(similarity[part], gold[part])[0] for part in (slice(0, 8), slice(8, 12))]
    assert score.score == pytest.approx(100 * scipy.stats.spearmanr(similarity, gold)[0])
    assert score.metrics["pearson"] == pytest.approx(100 * scipy.stats.pearsonr(similarity, gold)[0], abs=1e-4)
    assert score.metrics["mean"] == pytest.approx(50 * sum(each))
    assert score.metrics["wmean"] == pytest.approx(100 * (8 * each[0] + 4 * each[1]) / 12)
    assert score.low < score.score < score.high
    assert score.signature == f"toy|spearman|cos|all|n:12|data:{rows.fingerprint}|pool:custom|v:1"
    plain = Rows("toy", {name: rows[name] for name in PAIR}, "")  # without sub-sets there is no mean
    assert list(score_pairs(plain, load_scorer(model)).metrics) == ["pearson"]
    constant = score_pairs(rows, CONSTANT)
    assert (constant.score, constant.low, constant.high) == (0, 0, 0)


@pytest.mark.full
def test_minilm_on_stsb(mirror, minilm):
    score = evaluate(str(minilm), task="stsb", data=mirror).scores["stsb"]
    assert (score.score, score.n, score.warnings) == (pytest.approx(82.03, abs=0.02), 1379, ())
    assert "pool:mean" in score.signature


@pytest.fixture
def arguments(write):
    pairs = {"sentence1": sentences(45, 2), "sentence2": sentences(45, 3), "score": [float(n % 3) for n in range(45)]}
    pairs["topic"] = ["a"] * 20 + ["b"] * 10 + ["c"] * 15
    return pairs, write("argument-similarity/ukp_aspect/all.parquet", **pairs)


def test_correlations_of_arguments_are_averaged_over_topics(arguments, model):
    pairs, root = arguments
    result = evaluate(model, suite="afs", data=root)
    assert (result.average, set(result.absent)) == (None, {"afs"})
    score = result.scores["ukp-aspect"]
    similarity = similarities(model, pairs["sentence1"], pairs["sentence2"])
    gold, topic = np.array(pairs["score"]), np.array(pairs["topic"])
    rank = [scipy.stats.spearmanr(similarity[topic == t], gold[topic == t])[0] for t in "abc"]
    linear = [scipy.stats.pearsonr(similarity[topic == t], gold[topic == t])[0] for t in "abc"]
    assert score.score == pytest.approx(100 * np.mean(rank))
    assert score.metrics["pearson"] == pytest.approx(100 * np.mean(linear), abs=1e-4)
    assert score.metrics["spearman b"] == pytest.approx(100 * rank[1])
    assert "mean over topic" in score.signature


@pytest.mark.parametrize(("split", "count"), [("10-fold", 10), ("cross-topic", 3)])
def test_a_trainer_never_sees_the_pairs_it_is_scored_on(arguments, model, split, count):
    pairs, root = arguments
    rows = Store(root).load(TASKS["ukp-aspect"].datasets[0])
    parts = folds(rows, split)
    assert (len(parts), sorted(np.concatenate(list(parts.values())))) == (count, list(range(45)))
    everything, trained_on = list(zip(pairs["sentence1"], pairs["sentence2"], strict=True)), []

    def trainer(chosen, scores):
        assert scores == [pairs["score"][everything.index(pair)] for pair in chosen]
        trained_on.append(set(chosen))
        return model

    score = cross_validate(rows, trainer, split)
    assert sum(len(set(everything) - seen) for seen in trained_on) == 45
    assert split in score.signature
    if split == "cross-topic":
        whole = evaluate(model, task="ukp-aspect", data=root).scores["ukp-aspect"]
        assert score.score == pytest.approx(whole.score)


def test_too_little_data_for_folds_is_an_error(write, model):
    columns = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [0.0, 1.0], "topic": ["t", "t"]}
    root = write("argument-similarity/ukp_aspect/all.parquet", **columns)
    rows = Store(root).load(TASKS["ukp-aspect"].datasets[0])
    for split in ("10-fold", "cross-topic"):
        with pytest.raises(DataError, match="ukp-aspect has"):
            cross_validate(rows, lambda pairs, scores: model, split)


def test_tatoeba_is_the_mean_accuracy_of_both_directions(write, model):
    def noisy(texts):
        return model.encode(texts) + 2.5 * np.random.default_rng(2).normal(size=(len(texts), model.size))

    def nearest(queries, answers):
        best = [max(range(10), key=lambda n: cosine(query, answers[n])) for query in queries]
        return 10 * sum(found == row for row, found in enumerate(best))

    vectors = noisy([*ENGLISH, *GERMAN])
    there, back = nearest(vectors[:10], vectors[10:]), nearest(vectors[10:], vectors[:10])
    assert len({there, back, 100.0}) == 3  # else the test could not tell the directions apart
    root = write("parallel/en-de/tatoeba_test.parquet", en=ENGLISH, de=GERMAN)
    score = TASKS["tatoeba-de"](load_scorer(noisy), Store(root))
    assert score.metrics == pytest.approx({"en to de": there, "de to en": back})
    assert score.score == pytest.approx((there + back) / 2)
    assert "tatoeba-de|accuracy|cos|mean of both directions|n:10" in score.signature
    assert "1000 as published" in score.warnings[0]


def test_an_encoder_that_tells_nothing_apart_finds_one_sentence():
    assert finds_its_row(np.ones((300, 4), np.float32), np.ones((300, 4), np.float32)).sum() == 1


def test_cross_lingual_stsb_takes_the_second_sentence_from_the_other_language(write, model):
    first, second, gold = ENGLISH[:6], ENGLISH[4:], [0.0, 1.0, 5.0, 2.0, 3.0, 4.0]
    other, file = [text.replace("house", "haus") for text in second], "PhilipMay/stsb_multi_mt/{}/test.parquet"
    write(file.format("en"), sentence1=first, sentence2=second, similarity_score=gold)
    root = write(file.format("de"), sentence1=second, sentence2=other, similarity_score=gold)
    score = TASKS["stsb-en-de"](load_scorer(model), Store(root))
    assert score.score == pytest.approx(100 * scipy.stats.spearmanr(similarities(model, first, other), gold)[0])
    assert "stsb-en-de|spearman|cos|sentence1 in English|n:6" in score.signature
    write(file.format("de"), sentence1=second, sentence2=other, similarity_score=gold[::-1])
    with pytest.raises(DataError, match="does not hold the pairs of stsb-multi-en-test in the same order"):
        TASKS["stsb-en-de"](load_scorer(model), Store(root))


@pytest.fixture
def put(tmp_path):
    def write(path, content):
        path = tmp_path / "kwang2049/useb/data-eval" / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path

    return write


def test_twitterpara_is_average_precision_without_debatable_pairs(put, model):
    left, right, votes = sentences(40, 0), sentences(40, 1), np.random.default_rng(2).integers(0, 6, 40).tolist()
    url = "".join(f"{a}\t{b}\t({v},6)\tx\n" for a, b, v in zip(left[:25], right[:25], votes[:25], strict=True))
    pit = "".join(f"1\tt\t{a}\t{b}\t{v}\tx\n" for a, b, v in zip(left[25:], right[25:], votes[25:], strict=True))
    put("twitterpara/Twitter_URL_Corpus_test.txt", url)
    result = evaluate(model, suite="useb", data=put("twitterpara/test.data", pit))
    assert result.average_label == "average of 1 of 4"
    score, found, expected = result.scores["twitterpara"], similarities(model, left, right), []
    for part in (range(25), range(25, 40)):
        clear = [row for row in part if votes[row] != 3]
        labels = [int(votes[row] > 3) for row in clear]
        expected.append(average_precision(labels, [found[row] for row in clear]))
    assert [score.metrics["twitterurl"], score.metrics["pit"]] == pytest.approx([100 * value for value in expected])
    assert score.score == pytest.approx(50 * sum(expected))
    assert score.n == sum(vote != 3 for vote in votes)


def test_askubuntu_averages_over_queries(put, model):
    titles, lines, expected = sentences(30, 3), [], []
    put("askubuntu/text_tokenized.txt", "".join(f"{n}\t{t}\tbody\n" for n, t in enumerate(titles)))
    for query, gold in ((0, {5, 7}), (1, {12}), (2, set())):
        candidates = range(5, 25)
        scores = " ".join(str(100 - c) for c in candidates)
        lines.append(f"{query}\t{' '.join(map(str, gold))}\t{' '.join(map(str, candidates))}\t{scores}\n")
        found = similarities(model, [titles[query]] * 20, [titles[c] for c in candidates])
        ranked = [c for _, c in sorted(zip(found, candidates, strict=True), key=lambda pair: -pair[0])]
        expected += [ranking_average_precision([int(c in gold) for c in ranked])] if gold else []
    score = evaluate(model, task="askubuntu", data=put("askubuntu/test.txt", "".join(lines))).scores["askubuntu"]
    assert score.score == pytest.approx(100 * np.mean(expected))
    assert score.n == 2
    root = put("askubuntu/test.txt", "0\t4\t1 2 3 4\t1 2 3 4\n")  # ties keep BM25's order
    assert evaluate(CONSTANT, task="askubuntu", data=root).scores["askubuntu"].score == 100


def test_scidocs_counts_untitled_relevant_candidates_and_breaks_ties_by_descending_id(put):
    corpus = {name: {"title": f"title {name}"} for name in ("q", "a", "b", "c")} | {"x": {"title": ""}}
    test = {"cite": {"q": {"a": 1, "b": 0, "c": 0, "x": 1}}, "coread": {"q": {"a": 0, "b": 0, "c": 1}}}
    root = put("scidocs/data.json", {"corpus": corpus, "test": test})
    score = evaluate(CONSTANT, task="scidocs", data=root).scores["scidocs"]
    # The order is c, b, a; two are relevant to `cite`, one of them ranked.
    assert score.metrics == pytest.approx({"cite": 100 / 6, "coread": 100})
    assert score.score == pytest.approx((100 / 6 + 100) / 2)


def test_cqadupstack_ranks_a_forum_without_its_queries(put, model):
    texts = {"gis": sentences(140, 5, words=90), "tex": sentences(125, 6, words=90)}
    many = [str(n) for n in range(4, 140, 9)]  # some of them beyond the hundredth place
    gold = {"gis": {"0": many, "1": ["20"]}, "tex": {"3": ["7", "8", "9"]}}
    corpus = {forum: {str(n): text for n, text in enumerate(posts)} for forum, posts in texts.items()}
    put("cqadupstack/corpus.json", corpus)
    root = put("cqadupstack/retrieval_split.json", {"test": gold})
    score = evaluate(model, task="cqadupstack", data=root).scores["cqadupstack"]
    forums = []
    for forum, posts in texts.items():
        pool, precisions = [n for n in range(len(posts)) if str(n) not in gold[forum]], []
        for query, relevant in gold[forum].items():
            found = similarities(model, [posts[int(query)]] * len(pool), [posts[n] for n in pool])
            best = sorted(zip(found, pool, strict=True), key=lambda pair: -pair[0])[:100]
            labels = [int(str(n) in relevant) for _, n in best]
            precisions.append(average_precision_score(labels, [s for s, _ in best]) if 1 in labels else 0)
        forums.append(np.mean(precisions))
    assert score.score == pytest.approx(100 * np.mean(forums), abs=1e-4)
    assert score.n == 3
