import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")


@pytest.fixture
def index(selfsent, tmp_path):
    (tmp_path / "tickets.csv").write_text("id,body\n1,the printer is dead\n2,an invoice\n")
    given = ("--text-column", "body", "--id-column", "id", "--output", tmp_path / "i")
    assert selfsent("index", "bundled", tmp_path / "tickets.csv", *given).status == 0
    return tmp_path / "i"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_it_serves_until_it_is_told_to_stop(index, number):
    command = [sys.executable, "-m", "selfsent", "serve", str(index), "--port", "0"]
    environment = {**os.environ, "SELFSENT_TOKEN": "s3cret-of-the-test"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        first = process.stderr.readline()
        address = re.fullmatch(
            rf"2 texts of {re.escape(str(index))} at (http://127\.0\.0\.1:\d+/) \(Ctrl-C stops\)\n", first
        )
        assert address, first
        with urllib.request.urlopen(f"{address[1]}health") as answer:
            assert json.load(answer) == {"status": "ok"}
        process.send_signal(number)
        rest = process.stderr.read()
    assert (process.returncode, rest) == (0, "stopped\n")


def test_what_is_wrong_is_said_first(selfsent, index, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = selfsent("serve", index, "--port", taken.getsockname()[1]).complaint
        assert re.search(r"port \d+ of 127\.0\.0\.1 cannot be used \(.*\): give another --port", said)
    assert "cannot be used" in selfsent("serve", index, "--host", "no.such.host.invalid").complaint
    assert "holds no index" in selfsent("serve", tmp_path, "--port", 0).complaint
    assert "--token-file" in selfsent("serve", index, "--token-file", tmp_path / "none").complaint
    (tmp_path / "token").write_text("two words\n")
    said = selfsent("serve", index, "--token-file", tmp_path / "token").complaint
    assert "must be one line" in said
    assert "two words" not in said
    monkeypatch.setenv("SELFSENT_TOKEN", "")
    assert "must be one line" in selfsent("serve", index).complaint
    monkeypatch.delenv("SELFSENT_TOKEN")
    assert "another model" in selfsent("serve", index, "--port", 0, "--model", "bundled-raw").complaint
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "selfsent.serving.server", raising=False)
    assert 'python -m pip install -c constraints.txt -e ".[serve]"' in selfsent("serve", index).complaint


def test_judging_needs_ids_and_a_table_of_judgements(selfsent, index, tmp_path):
    without = ("--text-column", "body", "--output", tmp_path / "without")
    assert selfsent("index", "bundled", tmp_path / "tickets.csv", *without).status == 0
    said = selfsent("serve", tmp_path / "without", "--port", 0, "--judge", tmp_path / "mine.csv").complaint
    assert "has no ids, which judgements need: build it by selfsent index with --id-column" in said
    assert "must end in .csv" in selfsent("serve", index, "--port", 0, "--judge", tmp_path / "mine.txt").complaint
    said = selfsent("serve", index, "--port", 0, "--judge", tmp_path / "tickets.csv").complaint
    assert "must have the columns query, id and relevant" in said
    assert (tmp_path / "tickets.csv").read_text().startswith("id,body\n")
