"""The runs behind the claims, by docs/results/protocol.md: a rate for each row, five seeds, the last step.

What is run is declared in protocol.yaml, in groups of rows that differ in what a claim is about and in nothing else. A
run that was made once is not made again, and one that was killed goes on from its checkpoint. A row `after` another one
starts from the model of that row, with the rate chosen for it and the same seed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from selfsent import read_corpus, train
from selfsent.augment.make import augment
from selfsent.augment.registry import parse_augmenter
from selfsent.errors import CorpusError, SettingsError, TrainingError
from selfsent.evaluation.suites import evaluate
from selfsent.files import read_json, remove, write_text
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder
from selfsent.recipes import read_document
from selfsent.recipes.stage import located
from selfsent.stats.resampling import paired
from selfsent.training.run_directory import versions
from selfsent_papers.significance import contrast

ROOT = Path(__file__).parents[1]
DECLARED = ROOT / "experiments" / "protocol.yaml"
UNFINISHED = ROOT / "docs" / "results" / "claims" / "unfinished"
"""Folder with the figures of single runs until their group is finished, so that another checkout goes on with them."""
UNTRAINED = "untrained"
"""The row of the base as it is."""
MEAN = "mean"
"""The mean of a group's tests, as a test."""
EXTENSIONS = 4
"""Rates that a grid is extended by at most, until its best one is inside."""
WEIGHTS = {2: (1, -1), 4: (1, -1, -1, 1)}
"""Of the rows that a claim compares: a difference, or a difference of differences."""

Say = Callable[[str], None]


def plain(value: Any) -> Any:
    """Sections of YAML as plain data."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def declared(path: Path = DECLARED) -> dict[str, Any]:
    """Seeds, bases, texts, pairs for development, and groups."""
    found: dict[str, Any] = plain(read_document(path))
    return found


def digest(about: Any) -> str:
    """Sixteen hexadecimal digits of what decides a result."""
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def commit() -> str:
    """The commit of the code, and a plus where files that it knows were changed."""
    said = ["git", "-C", str(ROOT)]
    head = subprocess.run([*said, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    changed = [*said, "status", "--porcelain", "--untracked-files=no", "--", "src", "packages", "experiments"]
    return head + "+" * bool(subprocess.run(changed, capture_output=True, text=True, check=True).stdout.strip())


@dataclass
class Runner:
    """Makes what is missing of a group's runs.

    Args:
        name: of the group.
        bases: directories of bases that do not ship, by name.
        data: mirror of the data sets.
        place: an ignored folder for models and texts.
        say: receives a line for each run.
        about: what is declared; by default protocol.yaml.
        done: folder with the figures of each run; by default one in `place`.
    """

    name: str
    bases: Mapping[str, str]
    data: str | None
    place: Path
    say: Say = print
    about: dict[str, Any] = field(default_factory=declared)
    done: Path | None = None

    def __post_init__(self) -> None:
        self.group: dict[str, Any] = self.about["groups"][self.name]
        self.commit = commit()

    @cached_property
    def base(self) -> str:
        """The directory of the base, which is the one that the protocol names.

        Raises:
            SettingsError: another encoder.
        """
        name = self.group["base"]
        given = self.bases.get(name, name)
        wanted, found = self.about["bases"][name]["fingerprint"], fingerprint(load_encoder(given))
        if found != wanted:
            raise SettingsError(f"{given} is not the {name} of the protocol: its fingerprint is {found}, not {wanted}")
        return given

    def corpus(self, name: str) -> Any:
        """A text, which is the one that the protocol names.

        Raises:
            CorpusError: another text.
        """
        about = self.about["texts"][name]
        sources = [self._source(part) for part in about.get("parts", [name])]
        found = read_corpus(**sources[0]) if len(sources) == 1 else read_corpus(sources)
        if found.fingerprint != about["fingerprint"]:
            problem = f"{sources[0]['source']} is not the text {name} of the protocol"
            raise CorpusError(f"{problem}: its fingerprint is {found.fingerprint}, not {about['fingerprint']}")
        return found

    def _source(self, name: str) -> dict[str, Any]:
        """A source and its options for `read_corpus`; views of a text are made where they are not there yet."""
        about = {key: value for key, value in self.about["texts"][name].items() if key != "fingerprint"}
        if "views" not in about:
            return {**about, "source": located(about["source"], self.data)}
        path = self.place / "texts" / f"{digest(about)}.parquet"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            self.say(f"making views of {about['of']} by {' and '.join(about['views'])}")
            sentences = read_corpus(**{**self._source(about["of"]), "stack": True})
            augment(sentences, [[parse_augmenter(spec) for spec in about["views"]]], path)
        return {"source": str(path), "text_columns": ["view1", "view2"]}

    def settings(self, row: str) -> dict[str, Any]:
        """The settings of a row, but for its rate and seed, and without the row that it starts from."""
        about = {**self.group["all"], **(self.group["rows"][row] or {})}
        return {name: value for name, value in about.items() if name not in ("after", "text") and value is not None}

    def text(self, row: str) -> str:
        """The name of the text that a row is trained on."""
        return str((self.group["rows"].get(row) or {}).get("text", self.group["text"]))

    def start(self, row: str) -> str | None:
        """The row whose model a row starts from."""
        return (self.group["rows"].get(row) or {}).get("after")

    @property
    def starts(self) -> set[str | None]:
        """Rows that others start from; their models are kept until the group is finished."""
        return {self.start(row) for row in self.group["rows"]} - {None}

    @property
    def untrained(self) -> dict[str, Any]:
        """The scores of the base as it is."""
        return self.run(UNTRAINED, None, 0, development=False)

    def decides(self, row: str, rate: float | None, seed: int) -> dict[str, Any]:
        """All that the model of a run depends on."""
        settings = self.settings(row) if row != UNTRAINED else {"pooling": self.group["all"].get("pooling")}
        seed = seed if "method" in settings else 0
        found = {"base": self.about["bases"][self.group["base"]], "text": self.about["texts"][self.text(row)]}
        found |= {"settings": settings, "rate": rate, "seed": seed, "dev": self.group["dev"]}
        if start := self.start(row):
            found["after"] = self.decides(start, self.chosen(start)[0], seed)
        return found

    def scored(self, model: str, pooling: str | None, development: bool) -> dict[str, Any]:
        """The score of the development pairs, or score and resamples of each test."""
        if not development:
            result = evaluate(model, task=self.group["test"], data=self.data, pooling=pooling)
            about = result.scores.items()
            return {
                task: {"score": each.score, "samples": each.samples.round(3).tolist(), "n": each.n}
                for task, each in about
            }
        if self.group["dev"] not in self.about["dev"]:
            result = evaluate(model, task=self.group["dev"], data=self.data, pooling=pooling)
        else:
            result = evaluate(model, pairs=self._pairs(self.group["dev"]), pooling=pooling)
        (score,) = result.scores.values()
        return {"dev": score.score}

    def _pairs(self, name: str) -> Path:
        """A file of labelled pairs for development."""
        path, about = self.place / f"{name}.jsonl", self.about["dev"][name]
        if not path.is_file():
            rows = pq.read_table(located(about["source"], self.data)).to_pylist()
            kept = [row for row in rows if all(row[key] == value for key, value in about["where"].items())]
            pairs = [{"sentence1": row["s1"], "sentence2": row["s2"], "score": row["label"]} for row in kept]
            write_text(path, "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs))
        return path

    def run(self, row: str, rate: float | None, seed: int, development: bool) -> dict[str, Any]:
        """One run: the row at a rate and with a seed, trained to its last step, and its scores.

        Runs that choose a rate are scored on the development pairs alone, the others on the tests, too.
        """
        decides = self.decides(row, rate, seed)
        settings, seed = decides["settings"], decides["seed"]
        trained = "method" in settings
        decides |= {} if development else {"test": self.group["test"]}
        key, title = digest(decides), f"{self.name}: {row}" + (f" at {rate:g}" if rate else "") + f", seed {seed}"
        path, start = (self.done or self.place / "done") / f"{self.name}-{key}.json", time.process_time()
        if path.is_file():
            return dict(read_json(path))
        made = {"row": row, "rate": rate, "seed": seed, "commit": self.commit, "versions": versions()}
        try:
            model = self.model(row, rate, seed) if trained else self.base
            if trained:
                made["precision"] = read_json(self.work(row, rate, seed) / "run.json").get("precision")
        except TrainingError as error:  # a rate at which training breaks is a rate that loses
            made |= {"failed": error.reason, "dev": float("-inf")}
        else:
            pooling = None if trained else settings.get("pooling")
            made |= self.scored(model, pooling, development=True)
            made |= {} if development else {"tests": self.scored(model, pooling, development=False)}
        made["seconds"] = round(time.process_time() - start, 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(made) + "\n")  # a line, since the samples are a thousand numbers
        if row not in self.starts:
            remove(self.work(row, rate, seed))
        tests = "".join(f"  {task} {each['score']:.2f}" for task, each in made.get("tests", {}).items())
        self.say(f"{title}: dev {made['dev']:.2f}{tests}  ({made['seconds']:.0f} s)")
        return made

    def work(self, row: str, rate: float | None, seed: int) -> Path:
        """The directory of a training."""
        return self.place / "work" / digest(self.decides(row, rate, seed))

    def model(self, row: str, rate: float | None, seed: int) -> str:
        """The directory of a row's model, trained where it is not there yet."""
        start = self.start(row)
        base = self.model(start, self.chosen(start)[0], seed) if start else self.base
        return self._trained(self.text(row), base, self.settings(row), rate, seed, self.work(row, rate, seed))

    def _trained(
        self, text: str, base: str, settings: Mapping[str, Any], rate: float | None, seed: int, place: Path
    ) -> str:
        arguments = {**settings, "seed": seed, "hold_out": 0, "data": self.data, "quiet": True}
        arguments |= {} if rate is None else {"learning_rate": rate}
        if not (place / "model").is_dir():
            done = (place / "run.json").is_file()
            train(self.corpus(text), arguments.pop("method"), base, place, resume=done, **arguments)
        return str(place / "model")

    def chosen(self, row: str) -> tuple[float, dict[str, float]]:
        """The best rate of a row on the development pairs, and the score of each rate.

        While the best one is at an end of the grid, another one is added there.

        Raises:
            TrainingError: the best is still at the end after a few of them, and is above the untrained base.
        """
        rates, seed = sorted(map(float, self.group["rates"])), self.about["choosing_seed"]
        step = rates[1] / rates[0]
        for _ in range(EXTENSIONS + 1):
            scores = {rate: self.run(row, rate, seed, development=True)["dev"] for rate in rates}
            best = max(rates, key=scores.__getitem__)
            last = len(scores) == len(self.group["rates"]) + EXTENSIONS
            if best not in (rates[0], rates[-1]) or (last and scores[best] <= self.untrained["dev"]):
                return best, {f"{rate:g}": score for rate, score in scores.items()}
            further = best / step if best == rates[0] else best * step
            rates = sorted([*rates, float(f"{further:.3g}")])
        raise TrainingError(f"{self.name}: the best rate of {row} is still at the end of {rates}")

    def whole(self, comparisons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Everything of the group: rates, scores of all seeds, and the comparisons of the claims that read it.

        Args:
            comparisons: `rows`, two or four of the group, and the `test`.
        """
        untrained = self.untrained
        rows: dict[str, Any] = {}
        for row in self.group["rows"]:
            if "method" not in self.settings(row):  # the base as it is, with another pooling
                rows[row] = {"rate": None, "grid": {}, "trained": True}
                continue
            rate, grid = self.chosen(row)
            rows[row] = {"rate": rate, "grid": grid, "trained": max(grid.values()) > untrained["dev"]}
        seeds = self.about["seeds"]
        runs = {
            row: [self.run(row, about["rate"], seed, development=False) for seed in seeds]
            for row, about in rows.items()
        }
        if failed := [row for row, each in runs.items() if any("failed" in run for run in each)]:
            raise TrainingError(f"{self.name}: {failed[0]} did not finish with every seed")
        for run in [untrained, *(run for each in runs.values() for run in each)]:
            run["tests"] |= {MEAN: mean_of(run["tests"][task] for task in self.group["test"])}
        for row, each in runs.items():
            rows[row] |= {"dev": [run["dev"] for run in each], "seconds": [run["seconds"] for run in each]}
            rows[row]["scores"] = {task: [run["tests"][task]["score"] for run in each] for task in self.group["test"]}
        for row in self.starts:
            tried = [(rate, self.about["choosing_seed"]) for rate in map(float, rows[row]["grid"])]
            for rate, seed in [*tried, *((rows[row]["rate"], seed) for seed in seeds)]:
                remove(self.work(row, rate, seed))
        runs[UNTRAINED] = [untrained] * len(seeds)
        found = [self._compared(about, rows, runs) for about in comparisons]
        base = {"dev": untrained["dev"], "scores": {task: each["score"] for task, each in untrained["tests"].items()}}
        every = [run for each in runs.values() for run in each]
        return {
            **{"group": self.name, "seeds": seeds, "declared": self.group, "untrained": base, "rows": rows},
            "base": self.about["bases"][self.group["base"]],
            "text": self.about["texts"][self.group["text"]],
            "commits": sorted({run["commit"] for run in every}),
            "versions": every[0]["versions"],
            "comparisons": found,
        }

    def _compared(self, about: Mapping[str, Any], rows: Mapping[str, Any], runs: Mapping[str, Any]) -> dict[str, Any]:
        """A comparison: over seeds by Welch, over test pairs by the paired bootstrap of the means over seeds.

        A row that no rate raises above the untrained base on the development pairs is that base; what it does when
        trained all the same is kept beside it.
        """
        names, task = list(about["rows"]), about["test"]
        kept = [name if rows.get(name, {}).get("trained") else UNTRAINED for name in names]
        found = {"rows": names, "test": task, "stands_for": kept, **compared(kept, task, runs)}
        return found | ({} if kept == names else {"trained": compared(names, task, runs)})


def mean_of(tests: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of several tests, whose pairs are drawn again one by one, as a test."""
    scores, samples, sizes = zip(*((each["score"], each["samples"], each["n"]) for each in tests), strict=True)
    return {"score": float(np.mean(scores)), "samples": np.mean(samples, 0).tolist(), "n": sum(sizes)}


def compared(names: Sequence[str], task: str, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The weighted sum of rows, with Welch's interval over seeds and that over test pairs.

    Args:
        names: two rows, the first less the second, or four: (first − second) − (third − fourth).
        task: the test.
        runs: of each row, its runs with score and resamples of the tests.
    """
    weights = WEIGHTS[len(names)]
    tests = [[run["tests"][task] for run in runs[name]] for name in names]
    over_seeds = contrast([[each["score"] for each in side] for side in tests], weights)
    samples = [
        weight * np.mean([each["samples"] for each in side], 0) for weight, side in zip(weights, tests, strict=True)
    ]
    whole = np.sum(samples, 0)
    over_pairs = paired(over_seeds.difference, 0.0, whole, np.zeros_like(whole))
    seeds = {name: value for name, value in asdict(over_seeds).items() if name != "difference"}
    seeds["degrees"] = None if np.isinf(over_seeds.degrees) else over_seeds.degrees  # JSON has no infinity
    pairs = {"low": over_pairs.low, "high": over_pairs.high, "p": over_pairs.p}
    return {"difference": over_seeds.difference, "seeds": seeds, "pairs": pairs, "n": tests[0][0]["n"]}
