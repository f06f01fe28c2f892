"""The page of claims says what the raw figures say, names commands that there are, and decides by the protocol."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
import yaml

from selfsent.recipes.document import read_document
from selfsent.recipes.recipe import variants_of
from selfsent_papers.outline import recipe_file

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "experiments" / "claims.py"))


def test_the_page_is_what_the_script_makes_of_the_raw_figures(script):
    text, figures = script["made"]()
    assert text in (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert script["older_made"](figures) in (ROOT / "docs" / "results" / "claims.md").read_text(encoding="utf-8")
    assert rounded(figures) == rounded(script["read_json"](script["RUN_HERE"] / "claims.json")["rows"])


def rounded(value):
    """The last digits depend on the version of scipy."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return (
        [rounded(each) for each in value]
        if isinstance(value, list | tuple)
        else (round(value, 6) if isinstance(value, float) else value)
    )


def test_each_command_names_a_recipe_and_one_of_its_variants(script):
    runs = [shlex.split(claim["run"]) for each in script["claims"]().values() for claim in each]
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    runs += [shlex.split(found)[:3] for found in re.findall(r"selfsent train ((?!RECIPE)\w+ --variant [^`\n]*)", page)]
    assert len(runs) > 50
    for recipe, flag, variant in runs:
        assert flag == "--variant"
        assert variant in variants_of(read_document(recipe_file(recipe)))


def test_each_claim_is_decided_by_rows_that_are_declared_or_says_why_not(script):
    groups = yaml.safe_load((ROOT / "experiments" / "protocol.yaml").read_text(encoding="utf-8"))["groups"]
    every = [claim for each in script["claims"]().values() for claim in each]
    assert len({claim["id"] for claim in every}) == len(every)
    for claim in every:
        assert sum(name in claim for name in ("decide", "here", "undeclared")) == 1
        for each in claim.get("decide", ()):
            group = groups[each["group"]]
            assert set(each["rows"]) <= {*group["rows"], "untrained"}
            assert each["test"] in [*group["test"], "mean"]
    read = {each["group"] for claim in every for each in claim.get("decide", ())}
    assert read == groups.keys()


def found(difference, seeds=None, pairs=None, holm=0.01, **more):
    """A comparison with its intervals."""
    ends = [
        dict(zip(("low", "high"), each or (difference - 1, difference + 1), strict=True)) for each in (seeds, pairs)
    ]
    rows = {"rows": ["a", "b"], "stands_for": ["a", "b"]}
    return {**rows, "difference": difference, "seeds": ends[0], "pairs": ends[1], "holm": holm, **more}


@pytest.mark.parametrize(
    ("comparison", "said"),
    [
        (found(3.0), "holds"),
        (found(-3.0), "fails"),
        (found(3.0, holm=0.06), "undecided"),
        (found(3.0, pairs=(-0.1, 6.1)), "undecided"),
        (found(0.0, rows=["a", "untrained"], stands_for=["untrained", "untrained"], holm=1.0), "fails"),
        (found(0.0, stands_for=["untrained", "untrained"], holm=1.0), "undecided"),
        (found(0.2, (-0.5, 0.9), (-0.9, 0.9), level=True), "holds"),
        (found(0.2, (-0.5, 0.9), (-1.2, 0.9), level=True), "undecided"),
        (found(4.0, (2.0, 6.0), (1.5, 6.5), level=True), "fails"),
        ({"rows": ["a", "b"]}, "not run"),
    ],
)
def test_a_verdict_needs_seeds_and_pairs_and_holm(script, comparison, said):
    assert script["verdict"](comparison) == said


def test_comparisons_that_were_not_run_count_in_the_correction(script):
    comparisons = [{"seeds": {"p": 0.01}}, {}, {}, {"seeds": {"p": 0.2}}]
    script["corrected"](comparisons)
    assert [each.get("holm") for each in comparisons] == [pytest.approx(0.04), None, None, pytest.approx(0.6)]


def test_a_claim_holds_where_all_of_its_comparisons_do(script):
    assert script["of_all"](["holds", "holds"]) == "holds"
    assert script["of_all"](["holds", "undecided"]) == "undecided"
    assert script["of_all"](["holds", "undecided", "not run"]) == "not run"
    assert script["of_all"](["not run", "fails"]) == "fails"


def test_a_curve_is_read_at_one_step_or_at_its_last_never_at_its_best(script):
    row = {"steps": 6000, "curve": [{"t": 9.0}, {"t": 1.0}, {"t": 3.0}]}
    assert [script["score"](row, ["t"], step) for step in (2000, 4000, "last")] == [9.0, 1.0, 3.0]


def test_the_price_is_arithmetic(script):
    # Two models of 36,000 steps, each a twentieth of a second: an hour. Batches of 10,000 sentences: by the operations.
    assert script["price"](2, 36000, 8, 2) == pytest.approx(1)
    assert script["price"](1, 3600, 10_000, 2) == pytest.approx(6 * 85e6 * 25 * 20_000 / (0.3 * 312e12))


def test_a_mean_of_several_pairs_of_languages(script):
    pairs = ["STS17 EN-AR", "STS17 EN-TR", "STS17 EN-ES"]
    assert script["published"]("BSL", 3, "mBERT", "multi", pairs) == pytest.approx((16.7 + 16.0 + 21.5) / 3)


def test_a_claim_that_is_none_or_has_no_runs_is_one_line(script):
    with pytest.raises(SystemExit, match="there is no claim 'nothing'; there are infomax-over-average"):
        script["run"]("nothing", {}, None, ROOT / "runs", 1)
    with pytest.raises(SystemExit, match="checkpoints has no runs: no DistilBERT"):
        script["run"]("checkpoints", {}, None, ROOT / "runs", 1)
