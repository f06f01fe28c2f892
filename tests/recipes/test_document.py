from itertools import pairwise

import pytest

from selfsent.errors import SettingsError
from selfsent.recipes import read_document


def document(tmp_path, text):
    (tmp_path / "recipe.yaml").write_text(text)
    return read_document(tmp_path / "recipe.yaml")


def test_sections_know_their_lines_and_numbers_are_numbers(tmp_path):
    read = document(tmp_path, "title: a\nall:\n  rate: 2e-5\n  windows: 1,3,5\n  steps: [1, 2]\n")
    assert read == {"title": "a", "all": {"rate": 2e-5, "windows": "1,3,5", "steps": [1, 2]}}
    assert read.section("all").lines == {"rate": 3, "windows": 4, "steps": 5}
    with pytest.raises(SettingsError, match=r"recipe.yaml line 4: no$"):
        read.section("all").fail("no", "windows")


def test_a_section_over_another_replaces_adds_and_takes_away(tmp_path):
    read = document(tmp_path, "a: {x: 1, y: 2}\nb: 3\nc: {z: 1}\nnew: {a: {y: 5, w: 6}, b: null, c: null}\n")
    merged = read.over(read.section("new"))
    assert merged["a"] == {"x": 1, "y": 5, "w": 6}
    assert not {"b", "c"} & merged.keys()
    assert read["a"] == {"x": 1, "y": 2}
    later = read.section("new").over(read.section("c"), drop=False)
    assert (later["z"], later["b"]) == (1, None)
    assert document(tmp_path, "a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n")["b"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [1\nb: 2", "line 2: this is no YAML"),
        ("- a\n- b", "line 1: a recipe begins with key: value"),
        ("a: 1\nb: 2\na: 3", "line 3: 'a' is a duplicate"),
        ("a: 1\nyes: 2", "line 2: the key True is no name"),
        ("a: !!python/object/apply:os.getcwd []", "line 1: this is no YAML"),
        ("a: !!bool x", "this is no YAML: a value that is not what its tag says"),
        ("a: \x07", "this is no YAML"),
        ("", "begins with key"),
        ("stages: &a\n  b: *a\n", "line 1: this contains itself"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text, complaint, tmp_path):
    with pytest.raises(SettingsError) as caught:
        document(tmp_path, text)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read_document(tmp_path / "nothing.yaml")
    (tmp_path / "latin.yaml").write_bytes("title: caf\xe9".encode("latin-1"))
    with pytest.raises(SettingsError, match="is not UTF-8"):
        read_document(tmp_path / "latin.yaml")


def test_a_few_lines_that_stand_for_billions_are_refused(tmp_path):
    names = "abcdefghij"
    lists = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lists += [f"{b}: &{b} [{', '.join(['*' + a] * 10)}]" for a, b in pairwise(names)]
    merges = ["a: &a {k: 1, l: 2}"]
    merges += [f"{b}: &{b} {{<<: [{', '.join(['*' + a] * 10)}]}}" for a, b in pairwise(names)]
    for lines in (lists, merges):
        (tmp_path / "bomb.yaml").write_text("\n".join([*lines, "stages: *j"]))
        with pytest.raises(SettingsError, match=r"bomb\.yaml line \d+: .* or more than 100,000 values"):
            read_document(tmp_path / "bomb.yaml")
