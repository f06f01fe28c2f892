"""Models and texts of somebody who means harm: nothing of theirs runs, and nothing of theirs is shown raw."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from world import Traps, World

TEXTS = [
    "<script>document.title='run'</script> ba de fi",
    "<img src=x onerror=alert(1)> ko mi la",
    "ba \x1b[2J\x1b]0;title\x07 go \u202eevil\u2066",
    "a link \x1b]8;;http://example.org\x07click\x1b]8;;\x07 ba",
    '=HYPERLINK("http://example.org","ba")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "</textarea></script><svg onload=alert(1)> mi",
    "{{ 7 * 7 }} {% for x in y %} ba",
]
RAW = ("\x1b", "\x07", "\u202e", "\u2066")
SECRET = "a-secret-that-nobody-may-see"
COMMANDS = ("train", "encode", "search", "pairs", "cluster", "compare")


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """Each of them once."""
    return [{"kind": KINDS[number]} for number in range(min(count, len(KINDS)))]


class Hostile:
    """The part of the campaign.

    Args:
        world: has a model to be changed.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Make the hostile thing, use it, and look what became of it."""
        folder = self.world.new("hostile")
        make = MODELS.get(case["kind"])
        found = self._model(make, folder) if make else getattr(self, case["kind"].replace(" ", "_"))(folder)
        shutil.rmtree(folder, ignore_errors=True)
        return {
            key: value.replace(str(folder), "") if isinstance(value, str) else value for key, value in found.items()
        }

    def _model(self, change: Callable[[Path, Path], bool], folder: Path) -> dict[str, Any]:
        """A model that is changed: refused, or, where the change says so, read safely."""
        model, touched = folder / "model", folder / "touched"
        shutil.copytree(self.world.model, model)
        may_pass = change(model, touched)
        done = self.world.do(["encode", model, self.world.sentences, "--output", folder / "out.npy"], folder / "cache")
        fault = done.fault
        if touched.exists():
            fault = "its code ran"
        elif not fault and done.status == 0 and not may_pass:
            fault = "it was not refused"
        elif not fault and done.seconds > 100 * 10:
            fault = "it took long"
        return {"status": done.status, "said": done.last[:250], "fault": fault}

    def texts(self, folder: Path) -> dict[str, Any]:
        """A run, its page and card, searches and tables of hostile texts."""
        import tiny

        lines = [f"{text} {more}" for text, more in zip(TEXTS * 20, tiny.make_sentences(160), strict=True)]
        file = folder / "texts.jsonl"
        file.write_text(
            "".join(json.dumps({"text": line, "team": TEXTS[i % 8]}) + "\n" for i, line in enumerate(lines))
        )
        run, cache = folder / "run", folder / "cache"
        steps = ["--steps", 2, "--batch-size", 8, "--max-length", 32]
        given: list[list[object]] = [
            ["train", file, "--method", "simcse", *steps, "--output", run],
            ["search", run, file, "ba", "--keep", "team", "--safe-csv", "--output", folder / "hits.csv"],
            ["pairs", run, file, "--safe-csv", "--output", folder / "pairs.csv"],
            ["cluster", run, file, "--clusters", 3, "--safe-csv", "--output", folder / "groups.tsv"],
        ]
        for arguments in given:
            done = self.world.do(arguments, cache)
            if done.status:
                return {"status": done.status, "fault": f"{arguments[0]}: {done.last}"}
            if odd := [mark for mark in RAW if mark in done.said]:
                return {"status": 0, "fault": f"{arguments[0]} prints {odd[0]!r}"}
        return {"status": 0, "fault": _shown_raw(folder, run)}

    def secrets(self, folder: Path) -> dict[str, Any]:
        """Nothing of the environment is in what a run writes."""
        names = ("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_PASSWORD")
        traps = Traps(environment={name: f"{SECRET}-{name}" for name in names})
        done = self.world.do([*self.world.train, "--output", folder / "run"], folder / "cache", traps)
        files = [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
        fault = done.fault or (done.last if done.status else None) or (f"{files[0]} has it" if files else None)
        return {"status": done.status, "fault": fault}

    def gzip_bomb(self, folder: Path) -> dict[str, Any]:
        """Ten gigabytes in a file of ten megabytes."""
        return self._bomb(folder / "bomb.csv.gz", _gzip_of_many, folder)

    def zstd_bomb(self, folder: Path) -> dict[str, Any]:
        """Half a gigabyte in a file of a few kilobytes."""
        return self._bomb(folder / "bomb.txt.zst", _zstd_of_many, folder)

    def yaml_bomb(self, folder: Path) -> dict[str, Any]:
        """A recipe of ten lines that stands for ten billion values."""
        names = "abcdefghij"
        lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"{b}: &{b} [{', '.join(['*' + a] * 10)}]" for a, b in pairwise(names)]
        file = folder / "bomb.yaml"
        file.write_text("\n".join(lines) + "\nstages: *j\n")
        done = self.world.do(["train", file, "--output", folder / "run"], folder / "cache", limit=15)
        fault = done.fault or (None if done.status else "it passed")
        return {"status": done.status, "said": done.last[:250], "fault": fault}

    def _bomb(self, file: Path, make: Callable[[Path], None], folder: Path) -> dict[str, Any]:
        make(file)
        done = self.world.do(["encode", "bundled", file, "--output", folder / "out.npy"], folder / "cache", limit=30)
        fault = done.fault or (None if done.status == 2 else "it passed")
        return {"status": done.status, "said": done.last[:250], "fault": fault}


def _shown_raw(folder: Path, run: Path) -> str | None:
    """What is not escaped in pages, cards and tables."""
    for path in [run / "report.html", run / "model" / "README.md"]:
        text = path.read_text(encoding="utf-8")
        if any(mark in text for mark in RAW):
            return f"{path.name} has control characters"
        if path.suffix == ".html" and re.search("<script>document.title|<img src=x|<svg onload", text):
            return f"{path.name} has markup of the texts"
    for path in (folder / "hits.csv", folder / "pairs.csv", folder / "groups.tsv"):
        text = path.read_text(encoding="utf-8")
        if re.search(r'(?m)(^|[\t,])"?(=HYPERLINK|@SUM)', text):
            return f"{path.name} has formulas"
    return None


class _Touch:
    """A pickle that makes a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (self.path, "w")


def _pickled(model: Path, touched: Path) -> bool:
    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(_Touch(touched)))
    return False


def _pickled_module(model: Path, touched: Path) -> bool:
    modules = json.loads((model / "modules.json").read_text())
    kind = "sentence_transformers.sentence_transformer.modules.dense.Dense"
    modules.append({"idx": len(modules), "name": "d", "path": "9_Dense", "type": kind})
    (model / "modules.json").write_text(json.dumps(modules))
    (model / "9_Dense").mkdir()
    about = {"in_features": 32, "out_features": 8, "activation_function": "torch.nn.modules.linear.Identity"}
    (model / "9_Dense" / "config.json").write_text(json.dumps(about))
    (model / "9_Dense" / "pytorch_model.bin").write_bytes(pickle.dumps(_Touch(touched)))
    return False


def _coded_config(model: Path, touched: Path) -> bool:
    _coded(model, touched)
    config = json.loads((model / "config.json").read_text())
    about = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    (model / "config.json").write_text(json.dumps({**config, "model_type": "evil", "auto_map": about}))
    return False


def _coded_tokenizer(model: Path, touched: Path) -> bool:
    _coded(model, touched)
    file = model / "tokenizer_config.json"
    about = {"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.Evil", None]}}
    file.write_text(json.dumps({**json.loads(file.read_text()), **about}))
    return True


def _coded_module(model: Path, touched: Path) -> bool:
    _coded(model, touched)
    modules = json.loads((model / "modules.json").read_text())
    modules[-1]["type"] = "evil.Evil"
    (model / "modules.json").write_text(json.dumps(modules))
    return False


def _coded(model: Path, touched: Path) -> None:
    (model / "evil.py").write_text(
        f"open({str(touched)!r}, 'w')\nclass Config: pass\nclass Model: pass\nclass Evil: pass\n"
    )


def _up(model: Path, touched: Path) -> bool:
    shutil.move(model / "1_Pooling", model.parent / "1_Pooling")
    return _module_at(model, "../1_Pooling")


def _absolute(model: Path, touched: Path) -> bool:
    shutil.move(model / "1_Pooling", model.parent / "1_Pooling")
    return _module_at(model, str(model.parent / "1_Pooling"))


def _module_at(model: Path, place: str) -> bool:
    modules = json.loads((model / "modules.json").read_text())
    modules[1]["path"] = place
    (model / "modules.json").write_text(json.dumps(modules))
    return False


def _linked(model: Path, touched: Path) -> bool:
    """Links are read, since the hub's own cache is made of them; but as weights, and as nothing else."""
    (model / "model.safetensors").unlink()
    (model / "model.safetensors").symlink_to("/etc/passwd")
    return False


def _endless(model: Path, touched: Path) -> bool:
    (model / "round").symlink_to(model)
    return True


MODELS: dict[str, Callable[[Path, Path], bool]] = {
    "pickled weights": _pickled,
    "pickled weights of a module": _pickled_module,
    "code named in config.json": _coded_config,
    "code named in tokenizer_config.json": _coded_tokenizer,
    "code named in modules.json": _coded_module,
    "a module at ..": _up,
    "a module at an absolute path": _absolute,
    "a link to another file": _linked,
    "a link to itself": _endless,
}
KINDS = (*MODELS, "texts", "secrets", "gzip bomb", "zstd bomb", "yaml bomb")


def _gzip_of_many(path: Path) -> None:
    import gzip

    row = gzip.compress(b"text\n" + b"a row of a table again and again\n" * (1 << 20), mtime=0)
    more = gzip.compress(b"a row of a table again and again\n" * (1 << 22), mtime=0)
    with path.open("wb") as file:
        file.write(row)
        for _ in range(70):  # members of one file, as gzip allows
            file.write(more)


def _zstd_of_many(path: Path) -> None:
    import zstandard

    block = b"one line that repeats\n" * (1 << 20)
    with path.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as writer:
        for _ in range(23):
            writer.write(block)
