"""The parts of a job on Ray Data: one machine or many, each core or GPU at work on a part of its own."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from selfsent.encoding.job import Job, Part
from selfsent.encoding.part import Done, encode_part
from selfsent.errors import SelfsentError, SettingsError

OBJECTS = 200 << 20
"""Bytes of Ray's shared memory where it is started for this alone: rows and vectors never go through it."""
_BLOCKS = 4096
"""Tasks, at most: of more parts, each does several."""


def encode_on_ray(
    job: Job,
    parts: Sequence[Part],
    workers: int | None = None,
    cores: int = 1,
    advance: Callable[[Done], None] = lambda done: None,
) -> None:
    """Encode parts on the cluster of `$RAY_ADDRESS`, else on one of this machine alone that ends with the call.

    A part is a task, not a call of an actor: where a process or a machine is lost, any other one takes it over at once,
    while an actor's calls would wait until there is room to start it again. Each process keeps the model for the parts
    that come next.

    Args:
        job: what is to be done.
        parts: of it.
        workers: processes at a time; by default one for each GPU, or as many as the cores allow.
        cores: of each.
        advance: called with each part that is done.

    Raises:
        SettingsError: Ray is not installed, or the cluster has less room than asked for.
        SelfsentError: a part cannot be read, encoded or written.
    """
    with _cluster(workers, cores) as ray:
        room = ray.cluster_resources()
        graphic = int(room.get("GPU", 0))
        most = graphic or int(room.get("CPU", 0)) // cores
        if (workers or 1) > most:
            raise SettingsError(f"--workers {workers or 1} of {cores} cores are more than this cluster has room for")
        work = _Work(dataclasses.replace(job, encoder=job.encoder.with_threads(None if graphic else cores)))
        rows = [dataclasses.asdict(part) for part in parts]
        done = ray.data.from_items(rows, override_num_blocks=min(len(rows), _BLOCKS)).map_batches(
            work,
            batch_size=1,
            batch_format="pyarrow",
            zero_copy_batch=True,
            concurrency=min(workers or most, most, len(rows)),
            num_cpus=cores,
            num_gpus=1 if graphic else None,
            max_calls=0,  # for tasks with a GPU Ray would otherwise end the process, and the model with it
        )
        try:
            for row in done.iter_rows():
                found = Done(**row)
                if found.problem:
                    raise SelfsentError(found.problem)
                advance(found)
        except ray.exceptions.RayError as error:
            _explain(error, isinstance(error, ray.exceptions.RayTaskError))


def _explain(error: Exception, raised: bool) -> NoReturn:
    """Tell what a cluster could not do; whatever else code of ours raised there is a bug, and raised here.

    Raises:
        SelfsentError: a machine lacks what it needs.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if absent := next((line for line in reversed(lines) if "No module named" in line), None):
        said = absent.rpartition("ModuleNotFoundError: ")[2]
        raise SelfsentError(f"a machine of the cluster lacks a package ({said}): install the same on all") from error
    if raised:
        raise error
    raise SelfsentError(
        f"a worker was lost again and again ({lines[0][:200]}): has a machine too little memory? The same command goes"
        " on with what is missing"
    ) from error


@dataclasses.dataclass(frozen=True)
class _Work:
    """Does the parts of a batch, wherever it is sent."""

    job: Job

    def __call__(self, batch: Any) -> Any:
        import pyarrow as pa

        done = [dataclasses.asdict(encode_part(self.job, Part(**part))) for part in batch.to_pylist()]
        return pa.Table.from_pylist(done)


@contextmanager
def _cluster(workers: int | None, cores: int) -> Iterator[Any]:
    """Ray, connected; what was started here ends here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
        import ray.exceptions
    except ImportError as error:
        raise SettingsError(f"--engine ray needs Ray ({error.name}): pip install 'selfsent[ray]'") from None
    mine = not ray.is_initialized()
    if mine:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if os.environ.get("RAY_ADDRESS"):
            ray.init(**quiet)
        else:
            cpus = None if workers is None else workers * cores
            ray.init("local", num_cpus=cpus, object_store_memory=OBJECTS, include_dashboard=False, **quiet)
    context = ray.data.DataContext.get_current()
    before = context.enable_progress_bars, context.target_max_block_size
    # A block of results is a few numbers: Ray would reserve 128 MB of its memory for each, and wait where it has less.
    context.enable_progress_bars, context.target_max_block_size = False, 1 << 20
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        context.enable_progress_bars, context.target_max_block_size = before
        if mine:
            ray.shutdown()
