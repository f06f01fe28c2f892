"""The scripts that the documentation shows."""

import json
import runpy
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfsent
from selfsent.scorers.load_scorer import load_scorer

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
BUNDLED = Path(selfsent.__file__).parent / "models" / "bundled" / "static"


def test_ids_come_back_from_qdrant(tmp_path, monkeypatch, capsys):
    pytest.importorskip("qdrant_client", reason="Qdrant's client is not installed")
    monkeypatch.chdir(tmp_path)
    rows = ["T-1,The printer does not answer.", "T-2,Our invoice is wrong.", "T-3,The printer prints nothing."]
    (tmp_path / "tickets.csv").write_text("id,text\n" + "\n".join(rows) + "\n")
    main = runpy.run_path(str(EXAMPLES / "qdrant.py"))["main"]
    for _ in range(2):  # what is there already is replaced
        main(str(BUNDLED), "tickets.csv", "a broken printer")
    first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert {first.split()[1], second.split()[1]} == {"T-1", "T-3"}
    assert third.split()[1] == "T-2"


@pytest.fixture
def tickets(tmp_path):
    """A parquet file of tickets, and where their vectors are to go."""
    texts = ["The printer does not answer.", "", "Our invoice is wrong."]
    pq.write_table(pa.table({"id": ["T-1", "T-2", "T-3"], "text": texts}), tmp_path / "tickets.parquet")
    return str(tmp_path / "tickets.parquet"), tmp_path / "vectors"


def check_vectors(output):
    table = pq.read_table(output)
    assert table["id"].to_pylist() == ["T-1", "T-2", "T-3"]
    vectors = np.stack(table["embedding"].to_pylist())
    assert vectors.shape == (3, 256)
    assert vectors.any(1).tolist() == [True, False, True]


def test_dask(tickets):
    pytest.importorskip("dask", reason="Dask is not installed")
    runpy.run_path(str(EXAMPLES / "encode_with_dask.py"))["main"](str(BUNDLED), *map(str, tickets))
    check_vectors(tickets[1])


@pytest.mark.full
def test_ray(tickets):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init("local", num_cpus=1, object_store_memory=200 << 20, include_dashboard=False, log_to_driver=False)
    try:
        runpy.run_path(str(EXAMPLES / "encode_with_ray.py"))["main"](str(BUNDLED), *map(str, tickets))
    finally:
        ray.shutdown()
    check_vectors(tickets[1])


def test_an_encoder_behind_an_api(monkeypatch):
    asked = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.headers["Authorization"], request["model"], len(request["input"])))
            found = [{"index": place, "embedding": [len(text), 1.0]} for place, text in enumerate(request["input"])]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"data": found[::-1]}).encode())

        def log_message(self, *about):
            pass

    server = HTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("EMBEDDINGS_URL", f"http://127.0.0.1:{server.server_port}/v1/embeddings")
    monkeypatch.setenv("EMBEDDINGS_KEY", "secret")
    monkeypatch.syspath_prepend(EXAMPLES)
    texts = ["x" * number for number in range(1, 71)]  # more than one batch
    try:
        vectors = load_scorer("api_encoder:encoder")(texts)
    finally:
        server.shutdown()
    assert vectors[:, 0].tolist() == [*range(1, 71)]
    assert asked == [("Bearer secret", "default", 64), ("Bearer secret", "default", 6)]
