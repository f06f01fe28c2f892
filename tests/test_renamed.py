"""Old public names work, and say what replaces them."""

import importlib
import json
import re

import pytest

from selfsent.progress import Progress
from selfsent.renamed import callbacks_as_progress, renamed_arguments


@renamed_arguments(word_weight="lexical_weight")
def scored(cosine, lexical_weight=0.5):
    return cosine, lexical_weight


def test_an_old_argument_is_taken_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"scored\(word_weight=\) is deprecated: use lexical_weight="):
        assert scored(1, word_weight=2.0) == (1, 2.0)


def test_the_new_one_is_taken_without(recwarn):
    assert scored(1, lexical_weight=2.0) == scored(1, 2.0) == (1, 2.0)
    assert not recwarn


def test_both_at_once_are_refused():
    with pytest.raises(TypeError, match="word_weight and lexical_weight"):
        scored(1, word_weight=1.0, lexical_weight=2.0)


@callbacks_as_progress
def worked(rows, progress=Progress(), size=1):  # noqa: B008
    progress.notice(f"{rows} rows")
    progress.count("working", size, rows)
    return rows, size


def test_callbacks_are_taken_for_progress():
    done, lines = [], []
    with pytest.warns(DeprecationWarning, match=r"worked\((advance|notice)=\) is deprecated: use progress="):
        assert worked(9, advance=done.append, notice=lines.append) == (9, 1)
    with pytest.warns(DeprecationWarning, match=r"worked\(advance=\) is deprecated"):
        assert worked(9, done.append, 4) == (9, 4)
    assert (done, lines) == ([1, 4], ["9 rows"])
    with pytest.raises(TypeError, match=r"worked\(\) got advance and progress"):
        worked(9, Progress(), advance=done.append)


def test_progress_is_taken_without_a_warning(recwarn):
    done = []
    progress = Progress()
    progress.count = lambda what, count, total: done.append((what, count, total))
    assert worked(9, progress, 4) == worked(9, progress=progress, size=4) == (9, 4)
    assert done == 2 * [("working", 4, 9)]
    assert not recwarn


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("api", "mine"),
        ("search.exact", "search"),
        ("search.vectors", "encode_to_file"),
        ("search.vectors", "encode_corpus"),
        ("search.pairs", "most_similar_pairs"),
        ("search.pairs", "approximate_pairs"),
        ("augment.make", "augment"),
        ("augment.make", "with_augmentations"),
        ("exam.queries", "make_queries"),
        ("index.index", "Index.upsert"),
    ],
)
def test_public_functions_take_callbacks(module, name):
    found = importlib.import_module(f"selfsent.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    with pytest.raises(TypeError, match="got advance and progress"):
        found(advance=print, progress=Progress())


def test_the_old_module_of_scorers_is_read():
    from selfsent.evaluation import encoders
    from selfsent.scorers import load_scorer, scorer

    with pytest.warns(DeprecationWarning, match="use selfsent.scorers.load_scorer.load_scorer"):
        assert encoders.as_encoder is load_scorer.load_scorer
    with pytest.warns(DeprecationWarning, match="use selfsent.scorers.scorer.Scorer"):
        assert encoders.Encoder is scorer.Scorer
    with pytest.raises(AttributeError):
        _ = encoders.another


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("selfsent.evaluation.adapt", "selfsent.exam.adapt", "Adapter"),
        ("selfsent.evaluation.exam", "selfsent.exam.draw", "draw_exam"),
        ("selfsent.evaluation.exam", "selfsent.exam.exam", "is_exam"),
        ("selfsent.evaluation.exam", "selfsent.exam.texts", "texts_of"),
        ("selfsent.evaluation.exam_models", "selfsent.exam.compare", "compare_on_exam"),
        ("selfsent.evaluation.warranty", "selfsent.exam.warranty", "warranty"),
    ],
)
def test_modules_that_moved_are_read_at_their_old_place(old, new, name):
    with pytest.warns(DeprecationWarning, match=f"{re.escape(old)}.{name} is deprecated: use {re.escape(new)}.{name}"):
        found = getattr(importlib.import_module(old), name)
    assert found is getattr(importlib.import_module(new), name)
    with pytest.raises(AttributeError):
        _ = importlib.import_module(old).another


def test_old_names_of_hits_and_pairs_are_read():
    from selfsent.search import Hit, Pair

    hit, pair = Hit(3, 0.6, 0.9, 0.25, "t7", 2), Pair(0.5, 1, 2, 0.25)
    assert hit == (3, 0.6, 0.9, 0.25, "t7", 2)
    with pytest.warns(DeprecationWarning, match=r"Hit.cosine is deprecated: use Hit.dense_score"):
        assert hit.cosine == hit.dense_score == 0.9
    with pytest.warns(DeprecationWarning, match=r"Hit.words is deprecated: use Hit.lexical_score"):
        assert hit.words == hit.lexical_score == 0.25
    with pytest.warns(DeprecationWarning, match=r"Pair.words is deprecated: use Pair.lexical_score"):
        assert pair.words == pair.lexical_score == 0.25
    with pytest.warns(DeprecationWarning, match=r"score\(word_weight=\) is deprecated"):
        assert pair.score(word_weight=1.0) == pair.score(1.0) == 0.375


def test_a_request_may_use_the_old_name_of_the_weight():
    from selfsent.errors import SettingsError
    from selfsent.serving.limits import Limits
    from selfsent.serving.requests import SearchRequest, parse

    assert parse(SearchRequest, b'{"query": "a", "word_weight": 2}', Limits()).lexical_weight == 2
    assert parse(SearchRequest, b'{"query": "a", "lexical_weight": 2}', Limits()).lexical_weight == 2
    with pytest.raises(SettingsError, match="there is no 'word_weight'"):
        parse(SearchRequest, b'{"query": "a", "word_weight": 2, "lexical_weight": 1}', Limits())


def test_the_old_names_of_augmentations_are_read(tmp_path):
    from selfsent import read_corpus
    from selfsent.augment import make
    from selfsent.data.corpus.table import DESCRIPTION, Corpus
    from selfsent.integrity import signed
    from selfsent.pipeline import Request
    from selfsent.run_record import upgraded
    from selfsent.training.run_config import RunConfig

    with pytest.warns(DeprecationWarning, match="with_views is deprecated: use with_augmentations"):
        assert make.with_views is make.with_augmentations
    with pytest.warns(DeprecationWarning, match=r"views=\) is deprecated: use augmentations="):
        assert RunConfig(views="synonym").augmentations == ("synonym",)
    with pytest.warns(DeprecationWarning, match=r"views=\) is deprecated: use augmentations="):
        assert Request.of("simcse", None, views=["mlm"]).run_config.augmentations == ("mlm",)
    assert upgraded({"config": {"bsl": {"views": "mlm"}}}) == {"config": {"bsl": {"augmentations": "mlm"}}}
    corpus = read_corpus(["ba de", "ko mi"], cache=tmp_path)
    path = corpus.directory / DESCRIPTION
    description = json.loads(path.read_text(encoding="utf-8")) | {"view_columns": ["view1", "view2"]}
    path.write_text(json.dumps(signed(description)), encoding="utf-8")
    found = Corpus(corpus.directory)
    assert found.input_columns == ("view1", "view2")
    with pytest.warns(DeprecationWarning, match=r"use Corpus\.input_columns"):
        assert found.view_columns == found.input_columns
