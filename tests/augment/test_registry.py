import subprocess
import sys

import pytest

from selfsent.augment.mlm import MaskAndRefill
from selfsent.augment.registry import MAKERS, parse_maker, parse_makers
from selfsent.augment.synonym import Synonym
from selfsent.augment.translate import Translate
from selfsent.errors import SettingsError


def test_names_options_and_common_values():
    assert parse_maker("synonym") == Synonym()
    assert parse_maker("synonym:ratio=0.5:sense=random") == Synonym(ratio=0.5, sense="random")
    assert parse_maker("mlm:ratio=0.5", {"ratio": 0.1, "pick": "best", "pivot": "cat"}) == MaskAndRefill(0.5, "best")
    assert parse_makers("translate:pivot=spa, translate:pivot=cat") == [Translate(), Translate(pivot="cat")]
    assert parse_maker("translate:pipelines=3").pipelines == 3
    for spec in ("synonym", "mlm:pick=best", "translate:engine=apertium:pivot=cat", "pairs"):
        assert parse_maker(spec).spec == spec
    assert parse_maker("translate").spec == "translate:engine=apertium:pivot=spa"
    assert Translate(engine="command", there="a", back="b").spec == "translate:engine=command:there=a:back=b"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("synonyms", "there is no maker 'synonyms'; did you mean 'synonym'?"),
        ("thesaurus", "there is no maker 'thesaurus'; there are synonym, mlm, translate, pairs"),
        ("mlm:pick=worst", "pick is 'worst'; it must be one of sample, best"),
        ("synonym:ration=1", "synonym has no option 'ration=1' .it has ratio, sense, wordnet"),
        ("synonym:ratio", "no option 'ratio'"),
        ("pairs:a=1", "it has none"),
        ("synonym:ratio=2", "ratio is 2.0; it must be at most 1.0"),
        ("synonym:ratio=half", "'half' is not a number"),
        ("translate:beams=1.5", "'1.5' is not a whole number"),
        ("translate:engine=google", "engine is 'google'; it must be one of apertium, marian, command"),
        ("translate:engine=command", "give --there and --back"),
        ("translate:there=x", "belong to --engine marian or command"),
    ],
)
def test_what_a_user_can_get_wrong(spec, said):
    with pytest.raises(SettingsError, match=said):
        parse_maker(spec)


def test_makers_of_text_need_no_torch():
    code = (
        "import sys; from selfsent.augment import make, registry, columns; import selfsent.augment.wordnet\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(MAKERS) == {"synonym", "mlm", "translate", "pairs"}
