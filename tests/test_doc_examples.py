"""The scripts that the documentation shows."""

import base64
import json
import runpy
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import selfsent
from selfsent.errors import DataError
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


@pytest.fixture
def service(monkeypatch):
    """Makes a service of embeddings of its own limits; returns the numbers of texts that it was asked for."""
    servers, asked = [], []

    def make(largest=64, slow=False, plain=False):
        class Service(BaseHTTPRequestHandler):
            def do_POST(self):
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                asked.append(len(texts))
                if len(texts) > largest and slow:
                    left.wait(5)  # the client has long gone
                    return
                vectors = [np.array([len(text), 0.5], "<f4") for text in texts]
                sent = [each.tolist() if plain else base64.b64encode(each.tobytes()).decode() for each in vectors]
                found = [{"index": place, "embedding": each} for place, each in enumerate(sent)]
                body = json.dumps({"data": found} if len(texts) <= largest else {"error": "too many"}).encode()
                self.send_response(200 if len(texts) <= largest else 413)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *about):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("EMBEDDINGS_URL", f"http://127.0.0.1:{server.server_port}/v1/embeddings")
        example = runpy.run_path(str(EXAMPLES / "api_encoder.py"))
        example["asked"].__globals__["SECONDS"] = 0.2 if slow else 5
        return example["encoder"](), asked

    left = threading.Event()
    yield make
    left.set()
    for server in servers:
        server.shutdown()


TEXTS = ["x" * number for number in range(1, 11)]


@pytest.mark.parametrize("plain", [False, True])
def test_vectors_come_as_lists_or_as_base64(service, plain):
    embed, asked = service(plain=plain)
    np.testing.assert_array_equal(embed(TEXTS), [[number, 0.5] for number in range(1, 11)])
    assert asked == [10]


@pytest.mark.parametrize("slow", [False, True])
def test_what_is_too_large_or_too_slow_for_a_service_is_halved(service, slow):
    embed, asked = service(largest=3, slow=slow)
    np.testing.assert_array_equal(embed(TEXTS)[:, 0], np.arange(1, 11))
    assert asked == [10, 5, 2, 3, 5, 2, 3]


def test_a_service_that_gives_nothing_is_told_in_one_line(service):
    embed, asked = service(largest=0)
    with pytest.raises(DataError, match=r"/v1/embeddings gave no vectors of 1 texts: .*413"):
        embed(TEXTS[:2])
    assert asked == [2, 1]
