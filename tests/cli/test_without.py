import tiny


def test_sentences_of_a_test_set_and_near_duplicates_are_left_out(train, selfsent, model, tmp_path):
    lines = tiny.make_sentences(40, seed=8)
    corpus, tests = tmp_path / "sentences.txt", tmp_path / "tests.txt"
    corpus.write_text("\n".join([*lines, f"{lines[0].upper()}!"]))
    tests.write_text("\n".join([lines[3].upper(), lines[7] + "!", "not there"]))
    done = train("--without", tests, "--drop-near-duplicates", "--method", "mlm", corpus=corpus)
    assert done.status == 0, done.err
    assert "(1 near-duplicate, 2 to be left out dropped)" in done.err
    assert "none.txt: no such file" in train("--without", tmp_path / "none.txt", corpus=corpus).complaint
    said = selfsent("search", model, corpus, "ba", "--drop-near-duplicates").complaint
    assert "unrecognised argument --drop-near-duplicates" in said
