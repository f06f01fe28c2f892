import json
import re

import numpy as np
import pytest

from selfsent.errors import SettingsError
from selfsent.report import maps
from selfsent.report.pages import render

EMPTY = {"headline": "", "unit": "text", "over": "", "outliers": "", "parents": False, "titled": False}


def clouds(count=40, size=16):
    """Three far clouds, and which of them each row is of."""
    rng = np.random.default_rng(0)
    centres = 10 * np.eye(3, size)
    member = np.arange(count) % 3
    return (centres[member] + rng.normal(scale=0.1, size=(count, size))).astype(np.float32), member


def share_of_own(layout, member):
    """How often the nearest dot is of the same cloud."""
    distance = ((layout[:, None] - layout[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    return (member[distance.argmin(1)] == member).mean()


def test_what_is_near_stays_near():
    vectors, member = clouds()
    assert share_of_own(maps.lay_out(vectors), member) == 1


@pytest.mark.parametrize("vectors", [np.zeros((30, 8)), np.ones((6, 1)), np.eye(4), np.repeat(np.eye(3), 20, 0)])
def test_equal_rows_and_few_numbers_have_places(vectors):
    assert np.isfinite(maps.lay_out(vectors.astype(np.float32))).all()


def test_what_the_page_is_told():
    vectors, member = clouds(30)
    long = "x" * (maps.LONGEST + 50)
    texts = [long, *(f"text {row}" for row in range(29))]
    found = maps.map_of(texts, vectors, {"cloud": [f"c{m}" for m in member]}, "texts", 99)
    assert found["caption"] == "30 of 99 texts, drawn at random; the search box finds 30 of them"
    assert len(found["data"]["texts"][0]) == maps.LONGEST
    places = np.array(found["data"]["places"])
    assert places.shape == (2, 30)
    assert places.min() == 0
    assert places.max() == maps.SIDE
    grouping = found["data"]["colours"][0]
    assert [grouping["groups"][of] for of in grouping["of"]] == [f"c{m}" for m in member]


def test_too_many_groups_share_a_colour():
    vectors, _ = clouds(60)
    names = ["often"] * 20 + [str(row) for row in range(40)]
    grouping = maps.map_of(names, vectors, {"x": names}, "texts", 60)["data"]["colours"][0]
    assert len(grouping["groups"]) == maps.GROUPS
    assert (grouping["groups"][0], grouping["groups"][-1]) == ("often", "others")
    assert max(grouping["of"]) == maps.GROUPS - 1


def test_sizes_are_those_of_all_texts_where_these_are_given():
    vectors, _ = clouds(4)
    names, sizes = ["a", "a", "b", "b", "c"], {"a": 10, "b": 70, "c": 3}
    found = maps.map_of(names, vectors, {"x": names}, "texts", 83, sizes={"x": sizes})["data"]
    grouping = found["colours"][0]
    assert (grouping["groups"], grouping["sizes"], grouping["of"]) == (["b", "a", "c"], [70, 10, 3], [1, 1, 0, 0, 2])
    assert len(found["places"][0]) == 4
    assert len(found["texts"]) == 5


def test_the_texts_come_back_from_the_page_as_they_were():
    hostile = [
        "</script><script>alert(1)</script>",
        "\u2028\u2029\u202e<!--",
        "\x1b[31m'\"&amp;\\u003c",
        "{{ 7 * 7 }}",
    ] * 2
    drawn = maps.map_of(hostile, np.eye(8, dtype=np.float32), {"group": hostile}, "texts", 8)
    page = render("clusters.html", map=drawn, groups=[], about=[], **EMPTY)
    (found,) = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert json.loads(found)["texts"] == hostile
    assert page.count("<script") == 2


@pytest.mark.parametrize("count", [-1, 3, 10_001])
def test_numbers_that_no_map_has(count):
    with pytest.raises(SettingsError, match="map_points is"):
        maps.check_points(count)
