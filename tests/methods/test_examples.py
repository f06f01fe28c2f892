"""The examples in the learners' docstrings run."""

import doctest
import sys

import pytest
import torch

from selfsent.methods import METHODS
from selfsent.models import encoding
from selfsent.models.loading import load_encoder

LEARNERS = sorted({method.learner for method in METHODS.values()}, key=lambda learner: learner.__name__)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_every_learner_has_inputs_and_an_example_that_runs(learner):
    given = {"model": load_encoder("bundled-raw", "mean"), "load_encoder": load_encoder, "pack": encoding.pack}
    given |= {"torch": torch}
    text = learner.__doc__
    assert "| shape |" in text
    (test,) = doctest.DocTestFinder(recurse=False).find(learner, globs=vars(sys.modules[learner.__module__]) | given)
    assert 3 <= len(test.examples) <= 4
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_batch_is_packed_as_the_example_says():
    (test,) = doctest.DocTestFinder(recurse=False).find(encoding.pack, globs=vars(encoding))
    assert doctest.DocTestRunner().run(test) == (0, 3)
