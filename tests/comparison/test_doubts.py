import numpy as np
import pytest

from selfsent.comparison.verdict import Opinion, doubt
from selfsent.evaluation.results import Score
from selfsent.evaluation.stats.resampling import Difference


def opinion(low, high, aimed=False):
    return Opinion(Score("title", 50, 48, 52, 9, "s", samples=np.zeros(3)), Difference(0, low, high, 0.5), aimed)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, "^$"),
        (
            {"title": opinion(1, 2), "crops": opinion(-1, 1)},
            "^The judges agree: title finds new better than old, and no",
        ),
        ({"title": opinion(1, 2), "crops": opinion(-2, -1)}, "do not agree: title finds .*crops finds it worse: label"),
        ({"title": opinion(1, 2, True)}, "^Only judges that it was trained for.*title‡ finds.*label a hundred pairs"),
        ({"title": opinion(-1, 2)}, "^No judge tells new from old: label a hundred pairs"),
    ],
)
def test_what_is_said_of_a_choice(found, said):
    import re

    assert re.search(said, doubt(found, "new", "old"))
