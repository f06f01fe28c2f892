import pytest

import tiny

ESCAPE = "\x1b[2J\x1b]8;;http://example.org\x07"
TURN = "\u202e"


@pytest.fixture
def hostile(tmp_path):
    path = tmp_path / f"a{ESCAPE.replace('/', '')}{TURN}.jsonl"
    formulas = ["=HYPERLINK(ba)", "-mo ba", "+ki nu", "@po ri", "a;=B1"]
    texts = [f"ba de {ESCAPE}fi go", f"ko {TURN}mi la", *formulas, "sa te"]
    return tiny.write_table(path, [{"text": text} for text in texts])


def raw(done):
    return [character for character in ("\x1b", "\x07", TURN) if character in done.out + done.err]


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "MODEL", "CORPUS", f"ba{ESCAPE}", f"ko{TURN}"),
        ("pairs", "MODEL", "CORPUS"),
        ("cluster", "MODEL", "CORPUS", "--clusters", 2),
        ("encode", "MODEL", "CORPUS", "--output", "OUT"),
        ("search", "MODEL", f"nowhere{ESCAPE}{TURN}.csv", "ba"),
        ("search", f"nowhere{ESCAPE}{TURN}", "CORPUS", "ba"),
        ("search", "MODEL", "CORPUS", "ba", f"--no{ESCAPE}"),
        ("pairs", "MODEL", "CORPUS", "--text-column", f"no{ESCAPE}{TURN}"),
    ],
)
def test_no_text_and_no_name_reaches_the_terminal_raw(selfsent, model, hostile, tmp_path, arguments):
    known = {"MODEL": model, "CORPUS": hostile, "OUT": tmp_path / f"v{ESCAPE.replace('/', '')}.npy"}
    done = selfsent(*(known.get(argument, argument) for argument in arguments))
    assert raw(done) == []
    assert done.out or done.err


def test_formulas_are_harmless_where_that_is_wanted(selfsent, model, hostile, tmp_path):
    def texts(*flags):
        selfsent("search", model, hostile, "ba", "--output", tmp_path / "hits.csv", *flags).ok()
        return {row["text"] for row in tiny.rows_of(tmp_path / "hits.csv")}

    assert {"=HYPERLINK(ba)", "-mo ba", "+ki nu", "@po ri", "a;=B1", "sa te"} < texts()
    assert {"'=HYPERLINK(ba)", "'-mo ba", "'+ki nu", "'@po ri", "a;'=B1", "sa te"} < texts("--safe-csv")
