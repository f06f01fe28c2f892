import pytest

import tiny


@pytest.fixture
def pages(tmp_path):
    texts = ["<p>ba de <b>fi</b> go</p>", "ko mi la<br>nu po", "ri sa te mo", "<img src=x>"]
    return tiny.write_table(tmp_path / "pages.jsonl", [{"text": text} for text in texts])


def test_markup_is_noticed_and_taken_out(selfsent, model, pages):
    raw = selfsent("search", model, pages, "ba de fi go", "--top", 1)
    assert "75% of the texts hold HTML: add --clean html" in raw.err.splitlines()
    clean = selfsent("search", model, pages, "ba de fi go", "--top", 1, "--clean", "html")
    assert clean.out.endswith("  ba de fi go\n")
    assert "add --clean" not in clean.err
    assert clean.err.splitlines()[:2] == ["4 rows (1 empty)", "3 texts rid of HTML (1 of them empty then)"]
