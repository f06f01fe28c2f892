import json

import pytest
from accelerate.tracking import LOGGER_TYPE_TO_CLASS

import selfsent
import tiny
from selfsent.errors import SettingsError
from selfsent.training.trackers import Trackers, check_trackers


class Recorder:
    """A tracker that records its calls, and fails in those of `fails_at`."""

    requires_logging_directory = False
    fails_at = ()

    def __init__(self, project, **own):
        self.received = [("project", project, own)]
        type(self).last = self

    def _receive(self, what, *values):
        if what in self.fails_at:
            raise RuntimeError(f"no {what}")
        self.received.append((what, *values))

    def start(self):
        self._receive("start")

    def store_init_configuration(self, values):
        self._receive("config", values)

    def log(self, values, step):
        self._receive("log", step, values)

    def finish(self):
        self._receive("finish")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def recorder(monkeypatch):
    """Stands for TensorBoard."""
    monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, "tensorboard", Recorder)
    monkeypatch.setattr(Recorder, "fails_at", ())
    return Recorder


@pytest.fixture
def train(base_of, tmp_path):
    def run(**options):
        lines = []
        common = {"steps": 4, "batch_size": 8, "max_length": 32, "seed": 7, "progress": tiny.heard(notice=lines.append)}
        base = base_of("bert", initializer_range=0.5)
        done = selfsent.train(tiny.make_sentences(40), "mlm", base, tmp_path / "run", **common, **options)
        return done, lines

    return run


def test_a_tracker_receives_the_figures_of_the_log(train, recorder):
    run, _ = train(trackers=("tensorboard",))
    project, start, config, *logs, finish = recorder.last.received
    assert (project, start, finish) == (("project", "selfsent", {}), ("start",), ("finish",))
    assert config[1]["method"] == "mlm"
    assert (config[1]["settings.steps"], config[1]["settings.seed"]) == (4, 7)
    assert all(isinstance(value, (bool, int, float, str)) for value in config[1].values())
    written = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    assert [step for _, step, _ in logs] == [entry["step"] for entry in written] == [1, 2, 3, 4]
    for (_, _, values), entry in zip(logs, written, strict=True):
        assert values["loss"] == pytest.approx(entry["loss"], rel=1e-5)


@pytest.mark.parametrize("when", ["log", "finish"])
def test_a_tracker_that_fails_does_not_stop_the_run(train, recorder, when, monkeypatch):
    monkeypatch.setattr(recorder, "fails_at", (when,))
    run, lines = train(trackers=("tensorboard",))
    assert run.record["status"] == "finished"
    assert sum(f"no {when}" in line for line in lines) == 1


def test_a_tracker_that_does_not_start_is_said_in_one_line(train, recorder, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "fails_at", ("start",))
    with pytest.raises(SettingsError, match="trackers=tensorboard cannot start: no start"):
        train(trackers=("tensorboard",))
    assert not (tmp_path / "run").exists()


def test_wandb_gets_the_name_of_the_run(train, monkeypatch):
    monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, "wandb", Recorder)
    monkeypatch.setattr("selfsent.training.trackers.get_available_trackers", lambda: ["wandb"])
    train(trackers=("wandb",))
    assert Recorder.last.received[0] == ("project", "selfsent", {"name": "run"})


def test_only_the_first_process_logs(recorder, monkeypatch):
    monkeypatch.setattr("selfsent.training.trackers.rank", lambda: 1)
    with Trackers(("tensorboard",), None, print) as trackers:
        trackers.log({"loss": 1.0}, 1)
    assert trackers.names == ()


def test_names_are_looked_at_first(train, monkeypatch):
    with pytest.raises(SettingsError, match="there is no 'tensorbord'; did you mean 'tensorboard'"):
        train(trackers=("tensorbord",))
    monkeypatch.setattr("selfsent.training.trackers.get_available_trackers", list)
    with pytest.raises(SettingsError, match="wandb: its package is not installed: pip install wandb"):
        check_trackers(("wandb",))


@pytest.mark.full
def test_tensorboard_reads_what_was_written(train):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, _ = train(trackers=("tensorboard",))
    written = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    events = EventAccumulator(str(run.directory / "trackers" / "selfsent")).Reload().Scalars("loss")
    assert [(event.step, event.value) for event in events] == [
        (entry["step"], pytest.approx(entry["loss"], rel=1e-4)) for entry in written
    ]
    assert not (run.directory / "model" / "trackers").exists()
