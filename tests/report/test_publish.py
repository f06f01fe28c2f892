"""Publishing to a stand-in for the hub, by the hub's own client."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import selfsent
import tiny
from selfsent.errors import BaseEncoderError, OutputError, RunError, SettingsError
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.report.publish import published_card
from web import Quiet, running

SECRET = "hf_a-token-that-nobody-may-see"


class Hub:
    """What the hub was asked, and what it holds. `refuse`: part of a path -> status to answer with."""

    def __init__(self):
        self.repositories, self.files, self.sent, self.refuse, self.tokens = {}, {}, [], {}, set()


@pytest.fixture
def hub(monkeypatch):
    held = Hub()

    class Handler(Quiet):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            held.sent.append(body)
            held.tokens.add(self.headers.get("Authorization"))
            if status := next((status for part, status in held.refuse.items() if part in self.path), None):
                return self.say({"error": "refused\nby the test"}, status)
            if self.path == "/api/repos/create":
                asked = json.loads(body)
                name = f"{asked['organization']}/{asked['name']}"
                taken = name in held.repositories
                held.repositories.setdefault(name, asked.get("visibility"))
                return self.say({"url": f"{address}/{name}"}, 409 if taken else 200)
            if "/preupload/" in self.path:
                modes = {True: "lfs", False: "regular"}
                files = [
                    {"path": path, "uploadMode": modes[path.endswith(".safetensors")], "shouldIgnore": False}
                    for path in (file["path"] for file in json.loads(body)["files"])
                ]
                return self.say({"files": files})
            if self.path.endswith("/info/lfs/objects/batch"):
                objects = [
                    {**each, "actions": {"upload": {"href": f"{address}/lfs/{each['oid']}"}}}
                    for each in json.loads(body)["objects"]
                ]
                return self.say({"transfer": "basic", "objects": objects})
            if "/commit/" in self.path:
                for line in map(json.loads, body.splitlines()):
                    value = line["value"]
                    if line["key"] == "file":
                        held.files[value["path"]] = base64.b64decode(value["content"])
                    if line["key"] == "lfsFile":
                        held.files[value["path"]] = held.files.pop(value["oid"])
                made = f"{address}/me/tickets/commit/{'0' * 40}"
                return self.say({"commitUrl": made, "commitOid": "0" * 40, "pullRequestUrl": None})
            return self.say({"errors": [], "warnings": []})

        def do_PUT(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            held.sent.append(body)
            held.files[self.path.rpartition("/")[2]] = body
            self.say({})

        def do_GET(self):
            self.say({"error": "not found"}, 404)

    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", SECRET)
    with running(Handler) as server:
        address = held.address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        yield held


@pytest.fixture(scope="module")
def run(base_of, tmp_path_factory):
    """A run on documents, with scores, in a folder whose name nobody may see."""
    folder = tmp_path_factory.mktemp("someone-private")
    lines = tiny.make_sentences(500, seed=1)
    corpus = folder / "tickets.txt"
    corpus.write_text("".join(f"{one}\n{two}\n\n" for one, two in zip(lines[::2], lines[1::2], strict=True)))
    how = {"steps": 2, "batch_size": 8, "max_length": 32, "hold_out": 50}
    selfsent.train(corpus, "tsdae", base_of("bert", initializer_range=0.5), folder / "run", **how)
    for name in ("sentences.txt", "tickets.json", ".hidden.json", "vectors.npy"):
        (folder / "run" / "model" / name).write_text(lines[0])
    (folder / "run" / "model" / "tickets").mkdir()
    (folder / "run" / "model" / "tickets" / "part.csv").write_text(lines[0])
    return folder / "run"


def test_model_and_card_are_sent_and_nothing_else(hub, run, tmp_path):
    address, files = selfsent.publish(run, "me/tickets", licence="apache-2.0")
    assert address == f"{hub.address}/me/tickets"
    assert hub.repositories == {"me/tickets": "private"}
    assert sorted(hub.files) == sorted(files)
    own = {path.relative_to(run / "model").as_posix() for path in (run / "model").rglob("*") if path.is_file()}
    left = {"sentences.txt", "tickets.json", ".hidden.json", "vectors.npy", "tickets/part.csv"}
    assert own - {*files} == {*left, "texts_read.npy"}
    for name, content in hub.files.items():
        (tmp_path / "got" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "got" / name).write_bytes(content)
    texts = ["ba de fi", "ko mi"]
    found, expected = (encode(load_encoder(path), texts) for path in (tmp_path / "got", run))
    np.testing.assert_array_equal(found, expected)


def test_the_record_of_what_was_read_is_sent_if_told(hub, run):
    files = selfsent.publish(run, "me/tickets", texts_read=True)[1]
    assert "texts_read.npy" in files
    assert hub.files["texts_read.npy"] == (run / "model" / "texts_read.npy").read_bytes()
    assert "vectors.npy" not in files


def test_none_of_the_text_and_no_folder_is_sent(hub, run):
    selfsent.publish(run, "me/tickets")
    sent = b"\n".join([*hub.sent, *hub.files.values()])
    texts = re.findall(r"\S.*", (run.parent / "tickets.txt").read_text())
    long = [text for text in texts if len(text.split()) > 2]
    assert len(long) > 400
    assert [text for text in long if text.encode() in sent] == []
    assert b"someone-private" not in sent
    assert SECRET.encode() not in sent
    assert hub.tokens == {f"Bearer {SECRET}"}


def test_the_card_says_base_data_scores_and_licence(hub, run):
    selfsent.publish(run, "me/tickets", licence="apache-2.0")
    card = hub.files["README.md"].decode()
    assert card.startswith(
        "---\nlibrary_name: sentence-transformers\npipeline_tag: sentence-similarity\nlicense: apache-2.0\ntags:"
    )
    for said in ("texts of `tickets.txt`", "95 % interval", 'SentenceTransformer("me/tickets")', "from `bert"):
        assert said in card


def test_who_may_read_it_is_said(hub, run):
    selfsent.publish(run, "me/open", public=True)
    assert hub.repositories == {"me/open": "public"}
    with pytest.raises(OutputError, match=r"the hub has one of that name: give `update`"):
        selfsent.publish(run, "me/open")
    selfsent.publish(run, "me/open", update=True)
    assert hub.repositories == {"me/open": "public"}


@pytest.mark.parametrize(
    ("refuse", "said"),
    [
        ({"create": 401}, "was not published as me/tickets: the hub refuses the token: log in with `hf auth login`"),
        ({"create": 403}, "the hub refuses the token"),
        ({"create": 404}, "no such user or organisation"),
        ({"commit": 403}, "the repository is there already, so give `update` the next time: the hub refuses the token"),
        ({"create": 500}, "500"),
    ],
)
def test_refusals_are_one_line(hub, run, refuse, said):
    hub.refuse = refuse
    with pytest.raises(OutputError) as raised:
        selfsent.publish(run, "me/tickets")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("model", "repository", "licence", "kind", "said"),
    [
        ("run", "tickets", None, SettingsError, "write user/name"),
        ("run", "me/tick ets", None, SettingsError, "write user/name"),
        ("run", "me/tickets", "MIT\ntags: x", SettingsError, "is no licence"),
        ("nowhere", "me/tickets", None, RunError, "there is no directory"),
        ("bare", "me/tickets", None, RunError, "has no card of selfsent's"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_sent(hub, run, base_of, model, repository, licence, kind, said):
    paths = {"run": run, "nowhere": run / "nowhere", "bare": base_of("bert", initializer_range=0.5)}
    with pytest.raises(kind, match=said):
        selfsent.publish(paths[model], repository, licence=licence)
    assert hub.sent == []


def test_a_model_with_weights_missing_is_not_sent(hub, run, tmp_path):
    model = shutil.copytree(run / "model", tmp_path / "model")
    weights = load_file(model / "model.safetensors")
    weights.pop("encoder.layer.0.output.dense.weight")
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BaseEncoderError, match=r"lacks the weight encoder\.layer\.0\.output\.dense\.weight"):
        selfsent.publish(model, "me/tickets")
    assert not hub.sent


def test_names_of_data_lose_their_folders(tmp_path):
    (tmp_path / "model").mkdir()
    here = ("/home/me/my data/t.csv", r"C:\Users\me\t.csv", "data/of/me/t.csv")
    for source in (*here, "s3://me:key@bucket/t.csv?sign=1"):
        record = {"config": {"corpus": {"source": source}}}
        (tmp_path / "run.json").write_text(json.dumps(record))
        text = f"---\nlibrary_name: x\ntags:\n---\nTrained by selfsent 1 from `b` on 3 of `{source}`. /home/me/strong https://a.b/c/d"
        (tmp_path / "model" / "README.md").write_text(text)
        card = published_card(tmp_path / "model", "me/x")
        assert card.endswith("from `b` on 3 of `t.csv`. strong https://a.b/c/d")


def publish(run, endpoint):
    """The command in a process of its own: the hub's library reads its address once."""
    command = [sys.executable, "-m", "selfsent", "publish", str(run), "me/tickets", "--public"]
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_TOKEN": SECRET, "HF_HUB_DISABLE_XET": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.full
def test_the_command_without_a_network(run):
    gone = publish(run, "http://127.0.0.1:9")
    assert (gone.returncode, gone.stdout) == (2, "")
    assert re.fullmatch(r"selfsent: .* was not published as me/tickets: .*\n", gone.stderr)


def test_the_command(hub, run):
    done = publish(run, hub.address)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith(f"{hub.address}/me/tickets (for all): ")
    assert "model.safetensors" in hub.files
