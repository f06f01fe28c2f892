import tiny


def test_near_duplicates_are_dropped_and_told(selfsent, train, tmp_path):
    lines = tiny.make_sentences(60, seed=2)
    (tmp_path / "near.txt").write_text("\n".join([*lines, f"{lines[0].upper()}!"]) + "\n")
    done = train("--method", "simcse", "--drop-near-duplicates", corpus=tmp_path / "near.txt")
    assert done.status == 0, done.err
    assert "1 near-duplicate dropped" in done.err
    again = train("--method", "simcse", corpus=tmp_path / "near.txt", output=tmp_path / "other")
    assert again.status == 0, again.err
    assert "near-duplicate" not in again.err


def test_commands_that_want_every_row_have_no_such_option(selfsent, model, sentences):
    said = selfsent("search", model, sentences, "ba", "--drop-near-duplicates").complaint
    assert "unrecognised argument --drop-near-duplicates" in said
