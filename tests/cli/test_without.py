import tiny


def test_sentences_of_a_test_set_are_left_out(train, tmp_path):
    sentences = tiny.make_sentences(40, seed=8)
    (tmp_path / "sentences.txt").write_text("\n".join(sentences))
    (tmp_path / "tests.txt").write_text("\n".join([sentences[3].upper(), sentences[7] + "!", "not there"]))
    done = train("--without", tmp_path / "tests.txt", "--method", "mlm", corpus=tmp_path / "sentences.txt")
    assert done.status == 0, done.err
    assert "38 sentences (2 to be left out dropped)" in done.err
    done = train("--without", tmp_path / "none.txt", corpus=tmp_path / "sentences.txt")
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "none.txt: no such file or directory" in done.err
