import subprocess
import sys

import pytest

from selfsent.augment.mlm import MaskAndRefill
from selfsent.augment.registry import AUGMENTERS, parse_augmenter, parse_augmenters
from selfsent.augment.synonym import Synonym
from selfsent.augment.translate import Translate
from selfsent.errors import SettingsError


def test_names_options_and_common_values():
    assert parse_augmenter("synonym") == Synonym()
    assert parse_augmenter("synonym:ratio=0.5:sense=random") == Synonym(ratio=0.5, sense="random")
    common = {"ratio": 0.1, "pick": "best", "pivot": "cat"}
    assert parse_augmenter("mlm:ratio=0.5", common) == MaskAndRefill(0.5, "best")
    assert parse_augmenters("translate:pivot=spa, translate:pivot=cat") == [Translate(), Translate(pivot="cat")]
    assert parse_augmenter("translate:beams=3").beams == 3
    for spec in ("synonym", "mlm:pick=best", "translate:pivot=cat"):
        assert parse_augmenter(spec).spec == spec
    assert parse_augmenter("translate").spec == "translate:pivot=spa"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("thesaurus", "there is no augmenter 'thesaurus'; there are synonym, mlm, translate"),
        ("mlm:pick=worst", "pick is 'worst'; it must be one of sample, best"),
        ("synonym:ration=1", "synonym has no option 'ration=1' .it has ratio, sense, wordnet"),
        ("synonym:ratio", "no option 'ratio'"),
        ("synonym:ratio=2", "ratio is 2.0; it must be at most 1.0"),
        ("synonym:ratio=half", "ratio is 'half'; it must be a number"),
        ("translate:beams=1.5", "beams is 1.5; it must be a whole number"),
        ("translate:engine=google", "there is no engine .google. for translate"),
    ],
)
def test_what_a_user_can_get_wrong(spec, complaint):
    with pytest.raises(SettingsError, match=complaint):
        parse_augmenter(spec)


def test_augmenters_need_no_torch_to_be_named():
    code = (
        "import sys; from selfsent.augment import make, registry; import selfsent.augment.wordnet\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(AUGMENTERS) == {"synonym", "mlm", "translate"}
