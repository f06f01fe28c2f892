import csv
import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from selfsent.index import Index
from selfsent.models.loading import load_encoder
from selfsent.serving.app import application
from selfsent.serving.engine import Engine
from selfsent.serving.limits import Limits
from selfsent.serving.server import listen, server_of

HOSTILE = [
    "</script><script>window.ran = 1</script> the printers",
    "<img src=x onerror='window.ran = 1'> printing",
    "{{ window.ran = 1 }} ${window.ran = 1} ` printed",
]
TICKETS = [
    ("T-1", "The printer on the second floor does not answer.", "sales"),
    ("T-2", "Our invoice is wrong: the address was changed twice.", "finance"),
    ("T-3", "Printing takes an hour since Monday. " + "Nobody knows why. " * 60, "sales"),
    ("T-4", "My password has expired.", "it"),
    *((f"H-{number}", text, text) for number, text in enumerate(HOSTILE)),
]


@pytest.fixture(scope="session")
def index(tmp_path_factory):
    """The directory of an index of a few tickets."""
    from selfsent.cli import main

    folder = tmp_path_factory.mktemp("served")
    with (folder / "tickets.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "body", "team"), *TICKETS])
    carried = ["--text-column", "body", "--id-column", "id", "--keep", "team"]
    with pytest.raises(SystemExit, match="0"):
        main(["index", "bundled", str(folder / "tickets.csv"), *carried, "--output", str(folder / "index")])
    return folder / "index"


@pytest.fixture(scope="session")
def engine(index):
    return Engine(Index(index), load_encoder("bundled"))


@pytest.fixture(scope="session")
def serving():
    """A context with the address of a running service."""

    @contextmanager
    def run(engine, token=None, names=(), judging=None, **limits):
        allowed = Limits(**limits)
        listening = listen("127.0.0.1", 0)
        server = server_of(application(engine, allowed, token, names, judging), allowed.timeout)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()

    return run


@pytest.fixture(scope="session")
def url(engine, serving):
    with serving(engine) as address:
        yield address
