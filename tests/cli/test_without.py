import tiny


def test_sentences_of_a_test_set_are_left_out(train, tmp_path):
    lines = tiny.make_sentences(40, seed=8)
    corpus, tests = tmp_path / "sentences.txt", tmp_path / "tests.txt"
    corpus.write_text("\n".join(lines))
    tests.write_text("\n".join([lines[3].upper(), lines[7] + "!", "not there"]))
    done = train("--without", tests, "--method", "mlm", corpus=corpus)
    assert done.status == 0, done.err
    assert "38 sentences (2 to be left out dropped)" in done.err
    assert "none.txt: no such file" in train("--without", tmp_path / "none.txt", corpus=corpus).complaint
