"""The training loop by the clock: the schedule ends when the budget is spent, over however many legs and machines."""

from __future__ import annotations

import time
from typing import Any

from selfsent.distributed import broadcast, wait, world_size
from selfsent.errors import Interrupted
from selfsent.models.dropout import without_dropout
from selfsent.pretraining.held_out import ALONG_THE_WAY, AT_THE_END, HeldOut
from selfsent.pretraining.shape import save_model
from selfsent.training.loop import Loop
from selfsent.training.meter import Meter
from selfsent.training.save import save_model as put_model
from selfsent.training.schedule import rate_at
from selfsent.training.signals import set_by_signals

_LOG_EVERY = 20
_FINE = 1_000_000
"""Steps into which the schedule is cut where the clock decides."""


class PretrainingLoop(Loop):
    """A loop that may stop after a leg and go on elsewhere; its progress is seconds spent in steps, or steps.

    Args:
        *args: as for `Loop`.
        held_out: text to measure by, at every tenth of the run.
        started: when the leg began, by `time.perf_counter`.
        leg: seconds after which to stop with a checkpoint; None for never.
        half: whether the model is saved in half precision.
        ratio: share of the tokens that are predicted.
        **kwargs: as for `Loop`.
    """

    def __init__(
        self, *args: Any, held_out: HeldOut, started: float, leg: float | None, half: bool, ratio: float, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.held_out, self.started, self.leg, self.half = held_out, started, leg, half
        self.facts: dict[str, float] = {}
        self.begun = 0, 0.0
        """Tokens and seconds of the legs before this one, which may have run on another device."""
        # Six operations a token for each weight of the layers, and for each of the output at the tokens to predict:
        # compiled layers cannot be counted by running them.
        layers = sum(p.numel() for p in self.learner.model.transformer.encoder.parameters())
        output = self.learner.model.require_head("pretrain").output.weight.numel()
        self.arithmetic.per_token = 6 * (layers + ratio * output)

    @property
    def tokens_seen(self) -> int:
        """Tokens trained on so far, over all processes and legs."""
        return self.step * self.settings.batch_size * self.settings.max_length

    def share_done(self, step: int) -> float:
        """How much of the run lies behind: of the budget where there is one, else of the steps."""
        if self.settings.budget is None:
            return super().share_done(step)
        return broadcast(min(1.0, self.seconds / self.settings.budget))

    def rate(self, step: int) -> float:
        """The share of the peak learning rate now."""
        if self.settings.budget is None:
            return super().rate(step)
        return rate_at(int(self.share_done(step) * _FINE), _FINE, self.settings)

    def pretrain(self) -> bool:
        """Train until the run, or this leg of it, is over; returns whether it is the run.

        Raises:
            TrainingError: the loss is not finite; the last good checkpoint is kept.
            Interrupted: the user asked to stop; a checkpoint was written.
        """
        self.directory.update(precision=self.precision, processes=world_size(), device=self.device)
        self.arithmetic.measure()  # before memory fills
        self._resume()
        self.begun = self.tokens_seen, self.seconds
        with set_by_signals(self.stopped):
            over = self._train_leg()
        self.micro_batches.close()
        if over:
            self._save_result()
            self.directory.update(status="trained", steps=self.step, seconds=self.seconds, result=self.facts)
        wait()
        return over

    def _train_leg(self) -> bool:
        meter, share = Meter(), self.share_done(self.step)
        while share < 1:
            before = int(10 * share)
            self._take_step(meter)
            share = self.share_done(self.step)
            done = share >= 1
            if self.step % _LOG_EVERY == 0 or done:
                self._log(meter, healthy=False)
                meter = Meter()
            tenth = int(10 * share) > before
            over = self.leg is not None and broadcast(time.perf_counter() - self.started) >= self.leg
            if tenth:
                self._evaluate(share)
                meter = Meter()
            if not done and (tenth or over or self.stopping):
                self.checkpoint()
            self.progress.step(int(1000 * share), 1000, self.figures)
            if not done and self.stopping:
                raise Interrupted
            if not done and over:
                return False
        if not self.facts:  # killed between the last step and the end
            self._evaluate(1.0)
        return True

    def _evaluate(self, share: float) -> None:
        """Measure on held-out text, log it and say it."""
        with without_dropout(self.learner):
            loss = self.held_out.loss(self.forward, self.device, AT_THE_END if share >= 1 else ALONG_THE_WAY)
        speed = self.tokens_seen / max(self.seconds, 1e-9)
        self.facts = {
            "held_out_loss": round(loss, 5),
            "bits_per_character": round(self.held_out.bits_per_character(loss), 5),
            "tokens": self.tokens_seen,
            "tokens_per_second": round(speed, 1),
        }
        used = ""
        if tokens := self.tokens_seen - self.begun[0]:
            of_peak = self.arithmetic.share_of_peak(tokens / (self.seconds - self.begun[1]))
            self.facts["share_of_peak"] = round(of_peak, 4)
            used = f", {of_peak:.0%} of peak"
        if self.leads:
            self.directory.log({"step": self.step, "seconds": round(self.seconds, 2), **self.facts})
        self.notice(
            f"{share:4.0%} done: {self.seconds / 60:.1f} minutes, {self.tokens_seen / 1e6:.2f} million tokens,"
            f" {speed:,.0f} a second{used}; held out: loss {loss:.3f},"
            f" {self.facts['bits_per_character']:.3f} bits per character"
        )

    def _save_result(self) -> None:
        wait()
        if self.leads:
            put_model(self.directory.model, lambda place: save_model(self.learner.model, place, self.half))
        wait()
