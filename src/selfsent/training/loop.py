"""The training loop: the same few lines for every method, on one process or many, exact to resume."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import cast

import torch
from accelerate import DistributedType
from torch import Tensor

from selfsent.data.batches import Batches
from selfsent.data.packed import Packed
from selfsent.data.random import make_key
from selfsent.distributed import broadcast, mean_over_processes, rank, wait, world_size
from selfsent.errors import Interrupted, TrainingError
from selfsent.fast.gradients import clear_gradients, release
from selfsent.fast.lookups import put_lookups
from selfsent.fast.prefetch import Ahead
from selfsent.methods import Learner, Loss
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.progress import Progress
from selfsent.settings import Settings
from selfsent.training.best import Best
from selfsent.training.budget import APART, PROBES, TENTHS, Clock, steps_between_probes
from selfsent.training.checkpoint import load_checkpoint, save_checkpoint
from selfsent.training.health import SENTENCES, Health, probe as health_of
from selfsent.training.meter import Meter
from selfsent.training.operations import Arithmetic
from selfsent.training.pace import Pace
from selfsent.training.precision import accelerator, autocast, precision_of_run
from selfsent.training.run_config import Notice, RunConfig, Scorer
from selfsent.training.run_directory import RunDirectory
from selfsent.training.save import save_model
from selfsent.training.schedule import make_optimizer, rate_at, scale_and_clip
from selfsent.training.signals import set_by_signals
from selfsent.training.trackers import Trackers


class Loop:
    """One run of one learner over its batches.

    Args:
        learner: what is trained.
        batches: its batches, by step.
        settings: with `steps` resolved, or a `budget` to be turned into steps.
        directory: the run's directory.
        run_config: checkpoints and scores.
        progress: hears what the user should know, and every step.
        finish: what is done to the encoder behind the last step, before it is saved.
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
    ) -> None:
        self.progress = progress or Progress()
        self.notice: Notice = self.progress.notice
        use_cpu = not torch.cuda.is_available()
        self.precision = precision_of_run(
            settings, directory.record if directory.resumed else {}, "cpu" if use_cpu else "cuda", self.notice
        )
        self.accelerator = accelerator(use_cpu)
        self.learner, self.batches, self.settings = learner, batches, settings
        self.directory, self.run_config = directory, run_config
        self.finish = finish
        self.device = str(self.accelerator.device)
        learner.to(self.accelerator.device)
        learner.alone = use_cpu and self.accelerator.distributed_type == DistributedType.NO
        if learner.alone:
            put_lookups(learner)
        self.learner.train()  # which leaves frozen parts without dropout
        batches.precompute(learner.features, directory.path, self.device, self.precision)
        learner.prepare(batches.single_pass(self.device))
        self.optimizer = make_optimizer(learner, settings)
        self.wrapped = self.accelerator.prepare_model(learner)
        device = self.device
        self.micro_batches = Ahead(lambda step: list(batches.micro_batches(step, device)), device)
        self.step = 0
        self.pace = Pace(settings, directory, self.notice)
        self.trackers = Trackers(run_config.trackers, directory, self.notice)
        self.start_health: Health | None = None
        self.seconds = 0.0
        """Spent in steps, before interruptions too."""
        self.arithmetic = Arithmetic(device, torch.bfloat16 if self.precision == "bfloat16" else torch.float32)
        self.sound = 0
        """The last step behind which the space was looked at, and alive."""
        self.saved = time.perf_counter()
        """When the newest checkpoint was written, or the run begun."""
        self.best = Best(directory.path, run_config.keep_best)
        self.figures: dict[str, float] = {}
        self.stopped = threading.Event()
        self.stopping = False

    @property
    def leads(self) -> bool:
        """Whether this process writes the files."""
        return rank() == 0

    @property
    def steps(self) -> int:
        """The step after which the run ends, as far as is known."""
        return self.pace.course.steps

    def run(self) -> None:
        """Train from where the directory's newest checkpoint stands to the end, and save the model.

        Raises:
            TrainingError: the loss is not finite or the space collapsed; the last good checkpoint is kept.
            Interrupted: the user asked to stop; a checkpoint, or the model, was written.
        """
        started = time.perf_counter()
        self.arithmetic.measure()  # now: in the middle of the run memory may be full, and a budget would not know
        self.pace.lay_out(self, self.run_config.clock or Clock(started))
        self.directory.update(precision=self.precision, processes=world_size(), paths=self.learner.paths)
        self._resume()
        if self.start_health is None:
            self.start_health = self.probe()
        with set_by_signals(self.stopped), self.trackers:
            self._train()
            release(self.optimizer)
            self.micro_batches.close()
            self._save_result()
            self.directory.update(status="trained", seconds=time.perf_counter() - started)
            self.best.forget()  # now: had this been killed before, a resumed run would need it
        if mean_over_processes(float(self.stopped.is_set()), self.device):  # too late for a step; what follows can wait
            raise Interrupted

    def _train(self) -> None:
        laid_out = self.pace.course.laid_out
        every = self.run_config.checkpoint_every or max(1, math.ceil(laid_out / TENTHS))
        log_every = max(1, min(50, laid_out // PROBES))
        probe_every = steps_between_probes(laid_out, self.settings.batch_size // world_size())
        dev_every = self.run_config.dev_every or max(1, math.ceil(laid_out / TENTHS))
        meter = Meter()
        while self.step < self.steps:
            self._take_step(meter)
            done = self.step == self.steps
            paused = time.perf_counter()
            if self._is_turn(log_every) or done:
                self._log(meter, healthy=self.pace.course.place(self.step) % probe_every < log_every or done)
                meter = Meter()
            logged = time.perf_counter()
            if self.run_config.scorer and (self._is_turn(dev_every, bool(self.run_config.dev_every)) or done):
                self._score(self.run_config.scorer)
            stopping = self.stopping and not done
            its_turn = self._is_turn(every, bool(self.run_config.checkpoint_every))
            if stopping or ((its_turn or done) and self._is_due(done)):
                self.checkpoint()
            meter.leave_out(time.perf_counter() - logged)
            self.pace.leave_out(time.perf_counter() - paused)
            self.progress.step(self.step, self.steps, self.figures)
            if stopping:
                raise Interrupted

    def _is_turn(self, every: int, steps: bool = False) -> bool:
        """Whether something is due behind this step: every so many steps, or so many of the schedule."""
        return self.step % every == 0 if steps else self.pace.course.passes(self.step, every)

    def _is_due(self, done: bool) -> bool:
        """Whether a checkpoint is wanted at a step that is one's turn: the newest may be too young.

        Behind the last step, too: what comes next is to write the model, for which the disk may be full.
        """
        if self.run_config.checkpoint_every and not done:
            return True
        return broadcast(time.perf_counter() - self.saved) >= APART

    def _take_step(self, meter: Meter) -> None:
        since = time.perf_counter()
        self.pace.look(self.step)
        meter.add(*self.arithmetic.of_step(lambda: self.advance(self.step)))
        self.step += 1
        self.seconds += time.perf_counter() - since
        self.pace.turn(self.step)

    def share_done(self, step: int) -> float:
        """How much of the run lies behind a step, from 0 to 1."""
        return self.pace.course.share(step)

    def rate(self, step: int) -> float:
        """The share of the peak learning rate at a step."""
        return rate_at(self.pace.course.place(step), self.pace.course.laid_out, self.settings)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The learner's loss in the precision of the run."""
        with autocast(self.device, self.precision):
            return cast(Loss, self.wrapped(views, labels))

    def advance(self, step: int) -> tuple[float, float, float, int, int]:
        """One optimiser step; returns loss sum, its count, gradient norm, sentences and tokens of this process."""
        # Dropout, like noise, is a function of seed, step and process: there is no running state to lose.
        torch.manual_seed(make_key(self.settings.seed, step, rank(), 7) % 2**63)
        share = self.rate(step)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * share
        total, count, sentences, tokens = 0.0, 0.0, 0, 0
        micro = self.micro_batches(step, last=step + 1 == self.steps)
        for number, (views, labels) in enumerate(micro):
            last = number == len(micro) - 1
            with nullcontext() if last else self.accelerator.no_sync(self.wrapped):
                loss = self.forward(views, labels)
                self.accelerator.backward(loss.total)
            total, count = total + float(loss.total.detach()), count + loss.count
            sentences, tokens = sentences + len(views[0]), tokens + sum(view.tokens for view in views)
        total, count = self._over_processes(total, count)
        norm = scale_and_clip(
            self.optimizer, self.learner.parameters(), world_size() / (count or 1), self.settings.clip
        )
        if not (math.isfinite(total) and math.isfinite(norm)):
            what = "gradient" if math.isfinite(total) else "loss"
            raise self._stop(f"the {what} is not finite at step {step + 1}", self.step - 1)
        self.optimizer.step()
        clear_gradients(self.optimizer)
        self.learner.after_step()
        return total, count, norm, sentences * world_size(), tokens * world_size()

    def _over_processes(self, total: float, count: float) -> tuple[float, float]:
        self.stopping = self.stopped.is_set()
        if world_size() == 1:
            return total, count
        # They all stop at the same step, at the first signal that any of them got, and end when the first one's clock
        # wants it.
        sums = torch.tensor([total, count, self.stopping, self.pace.wanted], dtype=torch.float64, device=self.device)
        both = cast(Tensor, self.accelerator.reduce(sums, "sum"))
        self.stopping, self.pace.wanted = bool(both[2]), int(both[3])
        return float(both[0]), float(both[1])

    def _stop(self, reason: str, sound: int) -> TrainingError:
        # What went wrong behind that step may have been saved already.
        if self.leads:
            self.directory.drop_checkpoints_after(sound)
        newest = self.directory.newest_checkpoint(self.notice)
        where = f"the last good checkpoint is {newest}" if newest else "there is no checkpoint yet"
        self.directory.update(stopped=reason)
        return TrainingError(reason, f"{where}; go on with --resume and a lower --learning-rate")

    def probe(self) -> Health:
        """Health of the space, on a fixed batch."""
        views = self.batches.views_of(self.batches.rows[:SENTENCES], 0, self.device)
        # The two texts of a labelled pair are no two looks at one sentence, and partners are other sentences.
        same = all(view.sampler is None for view in self.batches.views[:2])
        views = views if self.batches.labels is None and same else views[:1]
        return health_of(self.learner.model, views, autocast(self.device, self.precision))

    def _look(self) -> Health:
        """Health of the space; a run whose space is lost ends here, and checkpoints that may be lost, too, go."""
        health = self.probe()
        if fault := health.fault(None if self.learner.may_collapse else self.start_health):
            raise self._stop(f"{fault} at step {self.step}", self.sound)
        self.sound = self.step
        return health

    def _log(self, meter: Meter, healthy: bool) -> None:
        speeds = meter.speeds()
        self.figures = {
            "loss": meter.loss,
            "norm": meter.norm,
            "rate": self.optimizer.param_groups[0]["lr"],
            **speeds,
            "share_of_peak": self.arithmetic.share_of_peak(speeds["tokens_per_second"]),
        }
        if healthy:
            self.figures.update(self._look().to_json())
        self._tell({name: float(f"{value:.6g}") for name, value in self.figures.items()})

    def _tell(self, figures: dict[str, float]) -> None:
        self.trackers.log(figures, self.step)
        if self.leads:
            self.directory.log({"step": self.step, **figures})

    def _score(self, scorer: Scorer) -> None:
        with without_dropout(self.learner):
            score = scorer(self.learner.model)
        self._tell({"score": score})
        self.figures["score"] = score
        self.best.offer(score, self.step, self.learner)

    def checkpoint(self) -> None:
        """Save where the run is."""
        if self.leads:
            start = self.start_health.__dict__ if self.start_health else None
            progress = {
                "step": self.step,
                "seconds": self.seconds,
                "spent": self.pace.spent,
                "best": self.best.score if math.isfinite(self.best.score) else None,
                "dev": self.run_config.dev,
                "start_health": start,
                "sound": self.sound,
                "operations_per_token": self.arithmetic.per_token,
            }
            save_checkpoint(self.directory.checkpoint_at(self.step), self.learner, self.optimizer, progress)
            self.directory.drop_old_checkpoints(self.run_config.keep, self.sound)
        self.saved = time.perf_counter()
        wait()

    def _resume(self) -> None:
        if not self.directory.resumed:
            return
        newest = self.directory.newest_checkpoint(self.notice)
        if newest is None:
            self.pace.resume(None)
            self.notice("there is no checkpoint to go on from: beginning at the first step")
            if self.leads:
                self.directory.forget_after(0)
            return
        progress = load_checkpoint(newest, self.learner, self.optimizer)
        self.step, self.seconds, self.sound = progress["step"], progress["seconds"], progress.get("sound", 0)
        self.arithmetic.per_token = progress.get("operations_per_token", self.arithmetic.per_token)
        dev = self.run_config.dev
        if line := self.best.go_on(progress["best"], dev, progress.get("dev", dev)):
            self.notice(line)
        self.start_health = Health(**progress["start_health"]) if progress["start_health"] else None
        if self.leads:
            self.directory.forget_after(self.step)
        self.pace.resume(progress.get("spent"))
        self.notice(f"resumed at step {self.step}" + (f" of {self.steps}" if self.pace.known else ""))

    def _save_result(self) -> None:
        if kept := self.best.put_back(self.learner):
            self.notice(
                f"kept the model of step {kept['step']:,} of {self.steps:,}, whose score was {kept['score']:.2f}"
            )
            self.directory.update(kept=kept)
        self.finish(self.learner.model)
        if self.leads:
            save_model(self.directory.model, self.learner.save)
