"""The training loop: the same few lines for every method, on one process or many, with exact resume."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, cast

import torch
from torch import Tensor

from selfsent.data.batches import Batches
from selfsent.data.packed import Packed
from selfsent.data.random import make_key
from selfsent.distributed import accelerator, gathered, join, of_first, rank, wait, world_size
from selfsent.errors import Interrupted, TrainingError
from selfsent.fast.lookups import put_lookups
from selfsent.fast.prefetch import Prefetch
from selfsent.fast.rows_in_use import RowsInUse
from selfsent.methods import Learner, Loss
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.models.health import SENTENCES, Health, probe
from selfsent.models.precision import autocast, computes_bfloat16, resolve_precision
from selfsent.models.static import StaticEncoder
from selfsent.progress import SILENT, Progress
from selfsent.settings import Precision, Settings
from selfsent.training.budget import Clock, TimeBudget
from selfsent.training.checkpoint import BestCheckpoint, load_checkpoint, save_checkpoint
from selfsent.training.meter import PROBES, Meter, steps_between_probes
from selfsent.training.models import save_model
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory
from selfsent.training.schedule import make_optimizer, rate_at, scale_and_clip
from selfsent.training.signals import set_by_signals

TENTHS = 10
"""Checkpoints and scores in a run, where the user does not say how many steps apart."""
APART = 30.0
"""Default seconds between two checkpoints: less is soon done again."""
KEPT = 2
"""Checkpoints of a run on its way, unless the user says how many."""
MOST_ROWS = 0.8
"""Share of the rows of a table above which it is trained as a whole: fewer would not be faster."""
_UNKNOWN = 10**9
"""Steps of a run with a budget before its first one."""


def precision_of(settings: Settings, directory: RunDirectory, progress: Progress = SILENT) -> Precision:
    """Precision of a run; with `auto` a resumed run keeps the one it started with."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    earlier: Precision | None = directory.record.get("precision") if directory.resumed else None
    if settings.precision != "auto" or earlier is None:
        return resolve_precision(settings.precision, device)
    if earlier == "bfloat16" and not computes_bfloat16(device):
        progress.notice("the run keeps the bfloat16 that it started with, which is slow on this processor")
    return earlier


def rows_in_use(learner: Learner, batches: Batches, settings: Settings) -> RowsInUse | None:
    """The rows of the learner's table that its batches hold, put into its encoder; None where all are trained.

    The numbers are the same to the last digit, as no other row would move.
    """
    model = learner.model
    still = learner.nests and settings.weight_decay == 0 and settings.optimizer == "adamw"
    if not (still and isinstance(model, StaticEncoder) and model.table.weight.requires_grad):
        return None
    used = batches.token_ids()
    if used is None or len(used) > MOST_ROWS * model.table.num_embeddings:
        return None
    model.rows = RowsInUse(model.table.weight, used)
    return model.rows


class Loop:
    """One run of one learner over its batches.

    Args:
        learner: the model that is trained.
        batches: its batches, by step.
        settings: with `steps` resolved, or a `budget` to be turned into steps.
        directory: the run directory.
        run_config: checkpoints and scores.
        progress: receives notices and every step.
        finish: changes the encoder after the last step, before it is saved.
        apart: minimum seconds between two checkpoints, where the user does not say how many steps.
    """

    def __init__(
        self,
        learner: Learner,
        batches: Batches,
        settings: Settings,
        directory: RunDirectory,
        run_config: RunConfig,
        progress: Progress | None = None,
        finish: Callable[[Encoder], None] = lambda encoder: None,
        apart: float = APART,
    ) -> None:
        self.apart = apart
        self.progress = progress or SILENT
        self.learner, self.batches, self.settings = learner, batches, settings
        self.directory, self.run_config, self.finish = directory, run_config, finish
        use_cpu = not torch.cuda.is_available()
        self.precision = precision_of(settings, directory, self.progress)
        join()
        self.accelerator = accelerator() if world_size() > 1 else None
        place = self.accelerator.device if self.accelerator else torch.device("cpu" if use_cpu else "cuda")
        device = self.device = str(place)
        learner.to(place)
        if use_cpu and world_size() == 1:
            put_lookups(learner)
        learner.train()  # frozen parts stay without dropout
        batches.precompute(learner.features, directory.path, device, self.precision)
        learner.prepare(batches.single_pass(device))
        self.rows = rows_in_use(learner, batches, settings) if use_cpu and world_size() == 1 else None
        """Of a table, if they are few."""
        self.optimizer = make_optimizer(learner, settings, self.rows)
        self.trained = [self.rows.in_place_of(each) if self.rows else each for each in learner.parameters()]
        self.wrapped = self.accelerator.prepare_model(learner) if self.accelerator else learner
        self.micro_batches = Prefetch(lambda step: list(batches.micro_batches(step, device)), device)
        self.budget: TimeBudget | None = None
        self.steps = settings.steps or _UNKNOWN
        """The step after which the run ends; with a budget as many as seem to fit into it."""
        self.share = self.share_before = 0.0
        """Share of the budget over in the last step, and in the one before."""
        self.best = BestCheckpoint(directory.path, run_config.keep_best)
        self.start_health: Health | None = None
        self.step = 0
        self.sound = 0
        """The last step after which the space was probed and alive."""
        self.saved = time.perf_counter()
        """Time of the newest checkpoint, or of the start."""
        self.figures: dict[str, float] = {}
        self.stopped = threading.Event()
        self.stopping = False

    def run(self) -> None:
        """Train from the newest checkpoint to the end, and save the model.

        Raises:
            TrainingError: the loss is not finite or the space collapsed; the last good checkpoint is kept.
            Interrupted: the user asked to stop; a checkpoint, or the model, was written.
        """
        started = time.perf_counter()
        self.directory.update(steps=self.settings.steps, precision=self.precision, processes=world_size())
        if self.settings.budget is not None:
            clock = self.run_config.clock or Clock(started)
            self.budget = TimeBudget(self.settings.budget, clock, self.directory, self.progress)
        if self.directory.resumed:
            self._resume()
        if self.start_health is None:
            self.start_health = self.probe()
        with set_by_signals(self.stopped):
            self._train()
            if self.budget:
                self.budget.end(self.step)
            self.micro_batches.close()
            if isinstance(self.learner.model, StaticEncoder):
                self.learner.model.rows = None  # what follows changes the table as a whole
            if kept := self.best.put_back(self.learner):
                step, score = kept["step"], kept["score"]
                self.progress.notice(f"kept the model of step {step:,} of {self.steps:,}, whose score was {score:.2f}")
                self.directory.update(kept=kept)
            self.finish(self.learner.model)
            if rank() == 0:
                self.optimizer.zero_grad()
                self.optimizer.state.clear()  # room for the model once more, as it is read again
                save_model(self.directory.model, self.learner.save, self.learner.model)
            self.directory.update(status="trained", steps=self.step, seconds=time.perf_counter() - started)
            self.best.forget()  # not before: a run resumed after a crash needs it
        if any(gathered(self.stopped.is_set())):  # too late for a step, not for scores
            raise Interrupted

    def _train(self) -> None:
        config, meter = self.run_config, Meter()
        while self.step < self.steps:
            meter.add(*self.advance(self.step))
            self.step += 1
            done = self.step == self.steps
            log_every = max(1, min(50, self.steps // PROBES))
            if self.step % log_every == 0 or done:
                probe_every = steps_between_probes(self.steps, self.settings.batch_size // world_size())
                self._log(meter, with_health=self.step % probe_every < log_every or done)
                meter = Meter()
            logged = time.perf_counter()
            if config.scorer and (done or self._is_due(config.dev_every)):
                self._score()
            stopping = self.stopping and not done
            due = done or self._is_due(config.checkpoint_every)
            if due and (done or not config.checkpoint_every):  # at the end too: the disk may be too full for the model
                due = of_first(time.perf_counter() - self.saved) >= self.apart
            if stopping or due:
                self.checkpoint()
            meter.since += time.perf_counter() - logged
            self.progress.step(self.step, self.steps, self.figures)
            if stopping:
                raise Interrupted

    def _is_due(self, every: int | None) -> bool:
        """Whether something is due after this step: every `every` steps, else every tenth of the run."""
        if self.budget and not every:
            return int(TENTHS * self.share) > int(TENTHS * self.share_before)
        return self.step % (every or max(1, math.ceil(self.steps / TENTHS))) == 0

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The learner's loss in the precision of the run."""
        with autocast(self.device, self.precision):
            return cast(Loss, self.wrapped(views, labels))

    def advance(self, step: int) -> tuple[float, float, float, int, int]:
        """One optimiser step; returns loss sum, its count, gradient norm, and sentences and tokens of all processes."""
        # Dropout, like noise, is a function of seed, step and process, so that resuming is exact.
        torch.manual_seed(make_key(self.settings.seed, step, rank(), 7) % 2**63)
        share = rate_at(step, self.steps, self.settings)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * share
        total, count, sentences, tokens = 0.0, 0.0, 0, 0
        micro = self.micro_batches(step, last=step + 1 == self.steps)
        for number, (views, labels) in enumerate(micro):
            last = number == len(micro) - 1
            with nullcontext() if last or not self.accelerator else self.accelerator.no_sync(self.wrapped):
                loss = self.forward(views, labels)
                loss.total.backward()  # type: ignore[no-untyped-call]  # torch's own
            total, count = total + float(loss.total.detach()), count + loss.count
            sentences, tokens = sentences + len(views[0]), tokens + sum(view.tokens for view in views)
        total, count = self._over_processes(total, count)
        scale = world_size() / (count or 1)
        norm = scale_and_clip(self.optimizer, self.trained, scale, self.settings.clip)
        if not (math.isfinite(total) and math.isfinite(norm)):
            what = "gradient" if math.isfinite(total) else "loss"
            raise self._stop(f"the {what} is not finite at step {step + 1}", self.step - 1)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.learner.after_step()
        return total, count, norm, sentences * world_size(), tokens * world_size()

    def _over_processes(self, total: float, count: float) -> tuple[float, float]:
        """Loss and count over all processes, which also agree here whether to stop and on the end."""
        self.stopping = self.stopped.is_set()
        share = self.budget.share if self.budget and rank() == 0 else 0.0
        if self.accelerator:
            sums = torch.tensor([total, count, self.stopping, share], dtype=torch.float64, device=self.device)
            total, count, stopping, share = cast(Tensor, self.accelerator.reduce(sums, "sum")).tolist()
            self.stopping = bool(stopping)
        if self.budget:
            self.share_before, self.share = self.share, share
            self.steps = max(self.step + 1, int((self.step + 1) / share))
        return total, count

    def _stop(self, reason: str, sound: int) -> TrainingError:
        if rank() == 0:  # the fault may have been saved already
            self.directory.drop_checkpoints_after(sound)
        newest = self.directory.newest_checkpoint(self.progress)
        where = f"the last good checkpoint is {newest}" if newest else "there is no checkpoint yet"
        self.directory.update(stopped=reason)
        return TrainingError(reason, f"{where}; go on with resume=True and a lower learning_rate")

    def probe(self) -> Health:
        """Health of the space, on a fixed batch."""
        views = self.batches.views_of(self.batches.rows[:SENTENCES], 0, self.device)
        # The texts of a labelled pair, and sampled partners, are not two views of one sentence.
        same = all(view.sampler is None for view in self.batches.views[:2])
        views = views if self.batches.labels is None and same else views[:1]
        return probe(self.learner.model, views, autocast(self.device, self.precision))

    def _log(self, meter: Meter, with_health: bool) -> None:
        self.figures = {**meter.figures(), "rate": self.optimizer.param_groups[0]["lr"]}
        if with_health:
            health = self.probe()
            if fault := health.fault(None if self.learner.may_collapse else self.start_health):
                raise self._stop(f"{fault} at step {self.step}", self.sound)
            self.sound = self.step
            self.figures |= health.to_json()
        self._record({name: float(f"{value:.6g}") for name, value in self.figures.items()})

    def _record(self, figures: dict[str, float]) -> None:
        if rank() == 0:
            self.directory.log({"step": self.step, **figures})

    def _score(self) -> None:
        assert self.run_config.scorer
        with without_dropout(self.learner):
            since = time.perf_counter()
            score = self.run_config.scorer(self.learner.model)
            if self.budget:
                self.budget.last_score = time.perf_counter() - since
        self._record({"score": score})
        self.figures["score"] = score
        self.best.offer(score, self.step, self.learner)

    def checkpoint(self) -> None:
        """Save the state of the run."""
        if rank() == 0:
            progress: dict[str, Any] = {"step": self.step, "sound": self.sound, "dev": self.run_config.dev}
            progress["spent"] = self.budget.spent if self.budget else None
            progress["best"] = self.best.score if math.isfinite(self.best.score) else None
            progress["start_health"] = vars(self.start_health) if self.start_health else None
            save_checkpoint(self.directory.checkpoint_at(self.step), self.learner, self.optimizer, progress)
            self.directory.drop_old_checkpoints(self.run_config.keep or KEPT, self.sound)
        self.saved = time.perf_counter()
        wait()

    def _resume(self) -> None:
        newest = self.directory.newest_checkpoint(self.progress)
        progress: dict[str, Any] = {}
        if newest is not None:
            progress = load_checkpoint(newest, self.learner, self.optimizer)
            if self.rows:
                self.rows.read()
            self.step, self.sound = progress["step"], progress["sound"]
            dev = self.run_config.dev
            self.best.resume(progress["best"], dev, progress.get("dev", dev))
            self.start_health = Health(**progress["start_health"]) if progress["start_health"] else None
        if rank() == 0:
            self.directory.forget_after(self.step)
        if newest is None:
            self.progress.notice("there is no checkpoint to go on from: beginning at the first step")
            return
        if self.budget:
            self.budget.resume(progress["spent"])
            self.share = of_first(self.budget.share)
            self.steps = max(self.step + 1, int(self.step / self.share))
        self.progress.notice(f"resumed at step {self.step} of {self.steps}")
