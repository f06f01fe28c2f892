import json

import numpy as np
import pytest

from naive import words as naive
from selfsent.data.corpus import read_corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.errors import DataError, OutputError, SelfsentError, SettingsError
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.search import encode_to_file, ivf, search, write_index
from selfsent.search.index import FILES, MANIFEST, Index
from selfsent.search.index_writer import check_index_output
from selfsent.search.ivf import IVF, training_rows


def in_groups(groups, each=10, size=16, seed=0, noise=0.3):
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(groups, size)).repeat(each, axis=0)
    vectors = (vectors + noise * draw.normal(size=vectors.shape)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def filled(vectors):
    found = IVF.trained(vectors[: training_rows(len(vectors))], len(vectors))
    found.add(vectors, np.arange(len(vectors)))
    return found


def nearest(vectors, top):
    cosine = vectors @ vectors.T
    np.fill_diagonal(cosine, -2)
    return np.argsort(-cosine, axis=1)[:, :top]


def test_lists_are_searched_until_enough_is_found(monkeypatch):
    monkeypatch.setattr(ivf, "SAMPLE", 2000)
    vectors = in_groups(200, noise=1)
    lists = filled(vectors)
    recall = lists.tune(0.9)
    assert 1 <= lists.nprobe < lists.nlist
    found = lists.search(vectors, 11)[1]
    exact = nearest(vectors, 10)
    share = np.mean([len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)]) / 10
    assert share == pytest.approx(recall, abs=0.01)
    assert recall >= 0.9
    fewer, probed = lists.tune(0.3), lists.nprobe
    assert lists.tune(1) == 1
    assert fewer < recall
    assert probed < lists.nprobe <= lists.nlist


def test_vectors_come_back_from_lists_and_from_a_file(tmp_path):
    vectors = in_groups(30)
    lists = filled(vectors)
    lists.write(tmp_path / "v")
    for each in (lists, IVF.read(tmp_path / "v"), IVF.read(tmp_path / "v", mapped=False)):
        back = np.zeros_like(vectors)
        for rows, part in each.lists():
            back[rows] = part
        np.testing.assert_allclose(back, vectors, atol=3e-4)
        np.testing.assert_array_equal(each.take(np.array([3, 70, 299])), back[[3, 70, 299]])
    (tmp_path / "v").write_bytes(b"nothing")
    with pytest.raises(DataError, match="damaged"):
        IVF.read(tmp_path / "v")


@pytest.fixture
def rows(sentences, tmp_path_factory):
    """A corpus with ids, an empty and a repeated text."""
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    texts = [*sentences[:40], "", sentences[3]]
    path.write_text("".join(json.dumps({"id": f"t{n}", "text": text}) + "\n" for n, text in enumerate(texts)))
    return read_corpus(path, carry=("id",), cache=path.parent, min_rows=1)


@pytest.fixture
def more(sentences, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "more.jsonl"
    texts = [sentences[3], *sentences[40:60], sentences[45]]
    path.write_text("".join(json.dumps({"id": f"m{n}", "text": text}) + "\n" for n, text in enumerate(texts)))
    return read_corpus(path, carry=("id",), cache=path.parent, min_rows=1)


def test_an_index_finds_what_comparing_all_finds(encoder, rows, sentences, tmp_path):
    added = write_index(encoder, rows, tmp_path / "i", "name", fingerprint(encoder))
    assert (added.new, added.known) == (40, 0)
    index = Index(tmp_path / "i")
    index.check_model(fingerprint(encoder), "name")
    queries = [sentences[3], sentences[60]]
    found = index.search(encode(encoder, queries), 5)
    for mine, exact in zip(found, search(encoder, rows, queries, 5, word_weight=0), strict=True):
        assert [hit.row for hit in mine] == [hit.row for hit in exact]
        assert [hit.cosine for hit in mine] == pytest.approx([hit.cosine for hit in exact], abs=1e-3)
    [best] = index.describe([found[0][0][0]])
    assert best == {"row": 3, "id": "t3", "repeats": 1, "text": sentences[3]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i"]


def test_words_put_the_nearest_in_order(encoder, rows, more, sentences, tmp_path, monkeypatch):
    write_index(encoder, rows, tmp_path / "i", "name", fingerprint(encoder))
    queries = [sentences[3], "ba de fi"]
    vectors = encode(encoder, queries)
    exact = search(encoder, rows, queries, 60, word_weight=0)
    texts = rows.texts(np.arange(len(rows)))
    for query, mine, theirs in zip(queries, Index(tmp_path / "i").search(vectors, 5, queries), exact, strict=True):
        shared = {hit.row: naive.shared_words(query, texts[hit.row], texts) for hit in theirs}
        best = sorted(theirs, key=lambda hit: -hit.cosine - 0.5 * shared[hit.row])[:5]
        assert [hit.row for hit in mine] == [hit.row for hit in best]
        assert [hit.words for hit in mine] == pytest.approx([shared[hit.row] for hit in best], abs=1e-5)
    old = check_index_output(tmp_path / "i", add=True, overwrite=False)
    write_index(encoder, more, tmp_path / "i", "name", fingerprint(encoder), old)
    index = Index(tmp_path / "i")
    [[hit, *_]] = index.search(vectors[:1], 3, queries[:1])
    others = [index.describe([row])[0]["text"] for row in range(len(index))]
    assert index.words.texts == len(others) == 60
    [everything] = index.search(vectors[1:], 60, queries[1:])
    shared = [naive.shared_words(queries[1], others[each.row], others) for each in everything]
    assert [each.words for each in everything] == pytest.approx(shared, abs=1e-5)
    assert max(shared) > 0
    assert hit == (3, pytest.approx(1, abs=1e-3), pytest.approx(1, abs=1e-5))
    monkeypatch.setattr("selfsent.search.index.RERANKED", 2)
    [few] = index.search(vectors[1:], 2, queries[1:])
    [near] = index.search(vectors[1:], 2)
    assert {hit.row for hit in few} == {hit.row for hit in near}
    assert [hit.words for hit in near] == [0, 0]
    with pytest.raises(SettingsError, match="the weight of words is -1"):
        index.search(vectors, 1, queries, word_weight=-1)
    with pytest.raises(SettingsError, match="put it into a list"):
        index.search(vectors, 1, queries[0])
    with pytest.raises(SettingsError, match="2 vectors of queries were given, and 1 texts of them"):
        index.search(vectors, 1, queries[:1])


def test_damaged_words_are_refused(encoder, rows, tmp_path):
    write_index(encoder, rows, tmp_path / "i", "name", fingerprint(encoder))
    (tmp_path / "i" / "words.npy").write_bytes(b"no numbers")
    with pytest.raises(DataError, match=r"words.npy is not as it was written"):
        Index(tmp_path / "i")


def test_adding_is_as_one_index_of_both(encoder, rows, more, sentences, tmp_path, monkeypatch):
    for grown in (1, 100):  # arranged anew, and not
        monkeypatch.setattr("selfsent.search.index_writer.GROWTH", grown)
        output = tmp_path / f"i{grown}"
        write_index(encoder, rows, output, "name", fingerprint(encoder))
        old = check_index_output(output, add=True, overwrite=False)
        added = write_index(encoder, more, output, "name", fingerprint(encoder), old)
        assert (added.new, added.known) == (20, 1)
        index = Index(output)
        assert (len(index), index.rows) == (60, 42 + 22)
        assert index.manifest["trained"] == (60 if grown == 1 else 40)
        hits = index.search(encode(encoder, [sentences[3], sentences[45], sentences[59]]), 1)
        assert [index.describe([row])[0] for [(row, *_)] in hits] == [
            {"row": 3, "id": "t3", "repeats": 2, "text": sentences[3]},
            {"row": 42 + 6, "id": "m6", "repeats": 1, "text": sentences[45]},
            {"row": 42 + 20, "id": "m20", "repeats": 0, "text": sentences[59]},
        ]


def test_another_model_and_other_columns_are_refused(encoder, encoder_of, rows, sentences, tmp_path):
    write_index(encoder, rows, tmp_path / "i", "name", fingerprint(encoder))
    other, index = encoder_of("bert", initializer_range=0.4), Index(tmp_path / "i")
    assert fingerprint(other) != fingerprint(encoder)
    with pytest.raises(DataError, match="holds vectors of another model"):
        index.check_model(fingerprint(other), "other")
    with pytest.raises(DataError, match="another model"):
        write_index(other, rows, tmp_path / "i", "other", fingerprint(other), index)
    plain = read_corpus(sentences, carry=(), cache=tmp_path / "cache")
    with pytest.raises(SettingsError, match=r"has the columns row \(int\), id \(str\), text \(str\), and not row"):
        write_index(encoder, plain, tmp_path / "i", "name", fingerprint(encoder), index)
    assert len(Index(tmp_path / "i")) == 40


def test_whole_or_not_at_all(encoder, rows, more, tmp_path, monkeypatch):
    output = tmp_path / "i"
    write_index(encoder, rows, output, "name", fingerprint(encoder))
    before = {path.name: path.read_bytes() for path in output.iterdir()}

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(IVF, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            write_index(encoder, more, output, "name", fingerprint(encoder), Index(output))
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["i"]
    old = Index(output)
    write_index(encoder, more, output, "name", fingerprint(encoder), Index(output))
    with pytest.raises(OutputError, match="changed by another process"):
        write_index(encoder, more, output, "name", fingerprint(encoder), old)
    assert len(Index(output)) == 60


def test_a_file_of_vectors_saves_encoding(encoder, rows, tmp_path, monkeypatch):
    encode_to_file(encoder, rows, tmp_path / "v.npy")
    monkeypatch.setattr("selfsent.search.vectors.encode_stream", None)
    stored = VectorsFile(tmp_path / "v.npy")
    assert write_index(encoder, rows, tmp_path / "i", "name", "f", file=stored).new == 40


def test_places_that_cannot_be_used(encoder, rows, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x").touch()
    for path in ("file", "other"):
        with pytest.raises(OutputError, match="is not an index of selfsent"):
            check_index_output(tmp_path / path, add=False, overwrite=True)
        with pytest.raises(DataError, match="holds no index: make one with"):
            check_index_output(tmp_path / path, add=True, overwrite=False)
    write_index(encoder, rows, tmp_path / "i", "name", "f")
    with pytest.raises(OutputError, match="already holds an index: give `add`"):
        check_index_output(tmp_path / "i", add=False, overwrite=False)
    assert check_index_output(tmp_path / "i", add=False, overwrite=True) is None


def test_columns_of_another_order_or_look_are_added(encoder, sentences, tmp_path):
    def table(name, rows):
        (tmp_path / name).write_text("a,b,text\n" + "".join(f"{a},{b},{text}\n" for a, b, text in rows))
        return tmp_path / name

    first, later = table("1.csv", [("x1", 1, sentences[0]), ("x2", 2, sentences[1])]), table("2.csv", [(5, 3, "ko mi")])
    output = tmp_path / "i"
    for path, carry in ((first, ("a", "b")), (later, ("b", "a"))):
        corpus = read_corpus(path, carry=carry, cache=tmp_path, min_rows=1)
        old = Index(output) if output.exists() else None
        write_index(encoder, corpus, output, "name", fingerprint(encoder), old)
    assert [(told["a"], told["b"]) for told in Index(output).describe([0, 1, 2])] == [("x1", 1), ("x2", 2), ("5", 3)]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("file", [*FILES, MANIFEST])
def test_a_changed_byte_is_found(encoder, rows, more, tmp_path, monkeypatch, file, large):
    write_index(encoder, rows, tmp_path / "i", "name", fingerprint(encoder))
    path = tmp_path / "i" / file
    data = bytearray(path.read_bytes())
    for damaged in (b"", data[: len(data) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(SelfsentError, match=r"damaged|holds no index"):
            Index(tmp_path / "i")
    if file == MANIFEST:
        return
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))
    if not large:
        with pytest.raises(DataError, match=rf"damaged \({file} is not as it was written\)"):
            Index(tmp_path / "i")
        return
    monkeypatch.setattr("selfsent.search.index._READ_WHOLE", 0)
    index = Index(tmp_path / "i")
    with pytest.raises(DataError, match="damaged"):
        write_index(encoder, more, tmp_path / "i", "name", fingerprint(encoder), add_to=index)


def test_a_cosine_or_a_row_that_is_none_is_refused(encoder, rows, tmp_path, monkeypatch):
    write_index(encoder, rows, tmp_path / "i", "name", "f")
    index, query = Index(str(tmp_path / "i")), encode(encoder, ["ba du"])
    for cosine, row in ((5.4, 1), (float("nan"), 1), (0.5, 10**6)):
        found = np.array([[cosine]], np.float32), np.array([[row]])
        monkeypatch.setattr(index.ivf, "search", lambda *_, found=found: found)
        with pytest.raises(DataError, match="its vectors or row numbers are not as they were written"):
            index.search(query, 1)
