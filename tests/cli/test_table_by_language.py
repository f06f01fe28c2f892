import pytest

GERMAN = "no model is named: bundled-multilingual is taken, as the text is not English"
ENGLISH = "no model is named: bundled is taken, the table that ships for English"
COMMANDS = {
    "search": (("Drucker antwortet nicht",), ("--top", 2)),
    "cluster": ((), ("--clusters", 3)),
    "pairs": ((), ("--top", 3)),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_text_chooses_the_table_where_no_model_is_named(selfsent, german, command):
    words, options = COMMANDS[command]
    how = ("--text-column", "body", *options, "--json", "-")
    chosen = selfsent(command, german, *words, *how).ok()
    assert GERMAN in chosen.err
    named = selfsent(command, "bundled-multilingual", german, *words, *how)
    assert "no model is named" not in named.err
    assert chosen.json == named.json
    assert chosen.json["model"] == "bundled-multilingual"
    assert selfsent(command, "bundled", german, *words, *how).json["model"] == "bundled"


def test_english_has_its_own_table(selfsent, tmp_path):
    path = tmp_path / "tickets.txt"
    path.write_text("\n".join(f"the printer in room {n} does not answer any more" for n in range(30)))
    done = selfsent("search", path, "printer in room 7", "--json", "-")
    assert ENGLISH in done.err
    assert done.json["model"] == "bundled"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cluster", "MODEL"), "the following arguments are required: CORPUS"),
        (("search", "MODEL", "ba"), "the following arguments are required: QUERY"),
        (("search", "tickets.csv"), "the following arguments are required: QUERY"),
        (("cluster", "tickets.csv"), "tickets.csv: no such file or directory"),
    ],
)
def test_what_is_missing_is_told(selfsent, model, words, said):
    assert said in selfsent(*(model if word == "MODEL" else word for word in words)).complaint
