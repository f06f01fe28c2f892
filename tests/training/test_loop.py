import math
import signal

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

import tiny
from selfsent.errors import OutputError, TrainingError
from selfsent.fast.lookups import Lookup, put_lookups
from selfsent.methods import Loss
from selfsent.progress import SILENT
from selfsent.training import loop as loop_module
from selfsent.training.loop import Interrupted, Loop, steps_between_probes
from selfsent.training.run_config import RunConfig
from slices import some


def weights(loop):
    return {name: tensor.clone() for name, tensor in loop.learner.state_dict().items()}


def largest_difference(one, other):
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@pytest.mark.parametrize("method", ["tsdae", "mlm"])
@pytest.mark.parametrize("parts", [2, 3])
def test_accumulating_gradients_changes_nothing(method, parts, make_loop):
    """Parts of a batch hold different numbers of tokens: a mean of their means would be another loss."""
    start, found, figures = weights(make_loop(method)), [], []
    for accumulate in (1, parts):
        loop = make_loop(method, accumulate=accumulate, epsilon=1e-4)
        figures.append([loop.advance(step)[:3] for step in range(3)])
        found.append(weights(loop))
    # The norm too: the optimiser would not notice a gradient of another scale.
    close = [
        (pytest.approx(total, rel=1e-5), count, pytest.approx(norm, rel=1e-3)) for total, count, norm in figures[1]
    ]
    assert figures[0] == close
    assert largest_difference(*found) < 2e-5
    assert largest_difference(start, found[0]) > 1e-3


def test_dropout_is_drawn_anew_in_every_step_and_the_same_again(make_loop):
    one, other = (make_loop("simcse", dropout=0.1) for _ in range(2))
    torch.rand(5)  # whatever else draws numbers
    first = [one.advance(step)[0] for step in range(3)]
    torch.rand(7)
    assert [other.advance(step)[0] for step in range(3)] == first
    assert len(set(first)) == 3


def test_clipping_bounds_the_gradient_and_zero_does_not_clip(make_loop):
    def norms(clip):
        """Of the gradient that the optimiser takes a step along, and as reported."""
        loop, taken = make_loop(clip=clip), []
        gradients = [group["params"] for group in loop.optimizer.param_groups]
        loop.optimizer.step = lambda: taken.extend(
            p.grad.norm() / loop.optimizer.grad_scale for group in gradients for p in group if p.grad is not None
        )
        reported = loop.advance(0)[2]
        return float(torch.stack(taken).norm()), reported

    clipped, reported = norms(0.01)
    free, same = norms(0.0)
    assert clipped == pytest.approx(0.01, rel=1e-4)
    assert free == pytest.approx(same, rel=1e-4)
    assert reported == pytest.approx(same)
    assert free > 0.1


def test_a_batch_without_a_target_changes_nothing(make_loop, monkeypatch):
    """As `mlm` has it where no text of a batch is more than its border tokens."""
    loop = make_loop()
    before = weights(loop)
    monkeypatch.setattr(loop, "forward", lambda views, labels: Loss(0 * next(loop.learner.parameters()).sum(), 0))
    assert loop.advance(0)[:3] == (0, 0, 0)
    assert largest_difference(before, weights(loop)) < 1e-4  # weight decay


def collapse_in(loop, last):
    """The step of this number leaves an encoder that maps everything to one point."""
    advance = loop.advance

    def spoil(step):
        result = advance(step)
        if step == last:
            with torch.no_grad():
                loop.learner.model.transformer.embeddings.LayerNorm.weight.zero_()
        return result

    loop.advance = spoil


def test_the_encoder_that_collapses_is_caught(make_loop):
    loop = make_loop("tsdae", steps=10, run_config=RunConfig(checkpoint_every=1))
    collapse_in(loop, 4)
    with pytest.raises(TrainingError, match=r"collapsing to one point .* at step 6: .*step-00000004;"):
        loop.run()
    assert not loop.directory.checkpoint_at(5).exists()
    assert not loop.directory.model.exists()
    assert loop.directory.record["status"] == "running"


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_space_is_looked_at_in_the_precision_of_the_run(make_loop, precision):
    loop, seen = make_loop(precision=precision), []
    loop.learner.model.transformer.register_forward_hook(lambda *_: seen.append(torch.is_autocast_enabled("cpu")))
    assert math.isfinite(loop.probe().mean_cosine)
    assert set(seen) == {precision == "bfloat16"}


def test_a_lost_space_goes_back_behind_the_last_look_at_it(make_loop, monkeypatch):
    monkeypatch.setattr("selfsent.training.loop.steps_between_probes", lambda steps, batch_size: 4)
    loop = make_loop("tsdae", steps=10, run_config=RunConfig(checkpoint_every=1))
    collapse_in(loop, 4)
    with pytest.raises(TrainingError, match=r"collapsing to one point .* at step 8: .*step-00000004;"):
        loop.run()
    assert [path.name for path in loop.directory.checkpoints.iterdir()] == ["step-00000004"]


@pytest.mark.parametrize(("apart", "expected"), [(0.0, [21, 22]), (4.5, [12, 18]), (math.inf, [])])
def test_checkpoints_are_at_least_half_a_minute_apart(make_loop, monkeypatch, apart, expected):
    loop = make_loop(steps=22, apart=apart)
    loop.saved = 0.0
    monkeypatch.setattr("selfsent.training.loop.time.perf_counter", lambda: float(loop.step))
    loop.run()
    assert sorted(int(path.name[5:]) for path in loop.directory.checkpoints.glob("step-*")) == expected


@pytest.mark.parametrize(
    ("steps", "batch_size", "expected"),
    [(1, 32, 1), (10, 0, 2), (20, 32, 4), (64, 8, 13), (64, 128, 4), (1000, 32, 50), (100_000, 8, 5000)],
)
def test_the_space_is_looked_at_20_times_or_less_often_where_that_takes_long(steps, batch_size, expected):
    assert steps_between_probes(steps, batch_size) == expected


@pytest.mark.parametrize(
    ("bad", "after", "steps", "said"),
    [
        (5, False, 10, r"the loss is not finite at step 6: .*step-00000004;"),
        (0, True, 2, r"the embeddings are not finite at step 1: there is no checkpoint yet"),
    ],
)
def test_what_is_not_finite_is_caught_and_not_saved(bad, after, steps, said, make_loop):
    loop = make_loop(steps=steps, run_config=RunConfig(checkpoint_every=1))
    advance = loop.advance

    def spoil():
        with torch.no_grad():
            next(loop.learner.parameters()).fill_(math.nan)

    def take(step):
        if step == bad and not after:
            spoil()
        result = advance(step)
        if step == bad and after:
            spoil()
        return result

    loop.advance = take
    with pytest.raises(TrainingError, match=said):
        loop.run()
    assert not loop.directory.checkpoint_at(5).exists()
    assert "not finite at step" in loop.directory.record["stopped"]


def test_a_termination_signal_saves_and_stops(make_loop):
    loop = make_loop(steps=50, run_config=RunConfig(checkpoint_every=40))
    loop.progress.step = lambda step, steps, figures: signal.raise_signal(signal.SIGTERM) if step == 7 else None
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted):
        loop.run()
    assert [path.name for path in loop.directory.checkpoints.iterdir()] == ["step-00000008"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_while_the_model_is_written_waits_for_it(make_loop, monkeypatch):
    save = loop_module.save_model
    monkeypatch.setattr(loop_module, "save_model", lambda *given: (signal.raise_signal(signal.SIGTERM), save(*given)))
    loop = make_loop()
    with pytest.raises(Interrupted):
        loop.run()
    assert (loop.directory.model / "modules.json").is_file()
    assert loop.directory.record["status"] == "trained"


def test_a_disk_that_is_full_behind_the_last_step_costs_none_of_them(make_loop, monkeypatch):
    def fail(*given):
        raise OutputError("no space left")

    monkeypatch.setattr(loop_module, "save_model", fail)
    loop = make_loop(steps=4, apart=0.0)
    with pytest.raises(OutputError):
        loop.run()
    assert loop.directory.newest_checkpoint(SILENT) == loop.directory.checkpoint_at(4)


@pytest.mark.parametrize(("method", "seen_twice"), [("simcse", True), ("ct", False)])
def test_only_a_sentence_that_is_seen_twice_has_an_alignment(make_loop, method, seen_twice):
    assert (make_loop(method, dropout=0.1).probe().alignment is not None) == seen_twice


def test_scores_are_without_dropout_and_steps_with_it(make_loop):
    seen = []
    loop = make_loop(
        steps=3, run_config=RunConfig(scorer=lambda model: seen.append(model.training) or 0.5, dev_every=1)
    )
    loop.progress.step = lambda step, steps, figures: seen.append(loop.learner.training)
    loop.run()
    assert seen == [False, True] * 3


@pytest.mark.parametrize(
    "method", some(["tsdae", "mlm", "simcse", "ct", "ct-inbatch", "infomax", "bootstrap"], soon=["tsdae", "ct-inbatch"])
)
def test_bfloat16_learns_what_float32_does(method, make_loop, monkeypatch):
    """Whatever another trainer in this process made accelerate believe; one run can follow the other.

    Where rows are filled in bfloat16, dropout would drop other numbers than in float32.
    """
    monkeypatch.setattr("selfsent.fast.padding.compiles", lambda device: False)
    AcceleratorState._reset_state()
    Accelerator(cpu=True, mixed_precision="bf16")
    totals = {}
    for precision in ("float32", "bfloat16", "float32"):
        loop = make_loop(method, dropout=0.1, precision=precision)
        assert all(p.dtype == torch.float32 for p in loop.learner.parameters())
        totals.setdefault(precision, []).append([loop.advance(step)[0] / loop.advance(step)[1] for step in range(4)])
    exact, again = totals["float32"]
    assert exact == again
    assert totals["bfloat16"][0] != exact
    assert totals["bfloat16"][0] == pytest.approx(exact, rel=0.05, abs=0.02)


@pytest.mark.parametrize("method", some(["tsdae", "mlm", "simcse", "ct", "bootstrap"], soon=["tsdae", "bootstrap"]))
def test_large_tables_learn_what_torch_s_own_do(method, make_loop):
    """Large tables have gradients added in place: micro-batches, tied weights, twins."""
    totals = []
    for large in (10**9, 1):
        loop = make_loop(method, dropout=0.1, precision="bfloat16", accumulate=2)
        put_lookups(loop.learner, large)
        kinds = {type(part) for part in loop.learner.modules()}
        assert (Lookup in kinds) == (large == 1)
        totals.append([total / count for total, count, *_ in map(loop.advance, range(6))])
    assert totals[1] == pytest.approx(totals[0], rel=0.03)


def test_a_resumed_run_goes_on_in_the_precision_it_began_in(make_loop, monkeypatch):
    monkeypatch.setattr("selfsent.training.loop.computes_bfloat16", lambda device: False)
    said = []
    loop = make_loop()
    loop.directory.record["precision"], loop.directory.resumed = "bfloat16", True
    for precision, expected in (("auto", "bfloat16"), ("float32", "float32")):
        settings, heard = loop.settings.replace(precision=precision), tiny.heard(notice=said.append)
        again = Loop(loop.learner, loop.batches, settings, loop.directory, RunConfig(), heard)
        assert again.precision == expected
    assert said == ["the run keeps the bfloat16 that it started with, which is slow on this processor"]
