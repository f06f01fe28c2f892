"""Old public names work, and say what replaces them."""

import pytest

from selfsent.renamed import renamed_arguments


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


def test_the_old_module_of_scorers_is_read():
    from selfsent.evaluation import encoders, load_scorer, scorer

    with pytest.warns(DeprecationWarning, match="use selfsent.evaluation.load_scorer.load_scorer"):
        assert encoders.as_encoder is load_scorer.load_scorer
    with pytest.warns(DeprecationWarning, match="use selfsent.evaluation.scorer.Scorer"):
        assert encoders.Encoder is scorer.Scorer
    with pytest.raises(AttributeError):
        _ = encoders.another
