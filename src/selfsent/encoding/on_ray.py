"""The shards of a job on Ray Data: on one machine or many, with one shard per core or GPU at a time."""

from __future__ import annotations

import copy
import dataclasses
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from selfsent.encoding.job import Done, Job, Shard, encode_shard
from selfsent.errors import SelfsentError, SettingsError

OBJECTS = 200 << 20
"""Bytes of shared memory for a local Ray: rows and vectors never pass through it."""
_BLOCKS = 4096
"""Maximum number of tasks; beyond it, a task has several shards."""


def encode_on_ray(
    job: Job,
    shards: Sequence[Shard],
    workers: int | None = None,
    cores: int = 1,
    advance: Callable[[Done], None] = lambda done: None,
) -> None:
    """Encode shards on the cluster of `$RAY_ADDRESS`, or on a temporary one on this machine.

    Shards are tasks, not actor calls: if a process or machine is lost, another one takes over at once, while an actor's
    calls would wait for its restart. Each process keeps the model for later shards.

    Args:
        job: the work.
        shards: those to encode.
        workers: concurrent processes; by default one per GPU, or as many as the cores allow.
        cores: per worker.
        advance: called with each finished shard.

    Raises:
        SettingsError: Ray is not installed, or the cluster has too little room.
        SelfsentError: a shard cannot be read, encoded or written, or a machine lacks a package or memory.
    """
    with _cluster(workers, cores) as ray:
        room = ray.cluster_resources()
        graphic = int(room.get("GPU", 0))
        most = graphic or int(room.get("CPU", 0)) // cores
        if (workers or 1) > most:
            raise SettingsError(f"workers is {workers or 1}, of {cores} cores each; this cluster has room for {most}")
        encoder = copy.copy(job.encoder)
        encoder.threads = None if graphic else cores
        rows = [dataclasses.asdict(shard) for shard in shards]
        done = ray.data.from_items(rows, override_num_blocks=min(len(rows), _BLOCKS)).map_batches(
            _Work(dataclasses.replace(job, encoder=encoder)),
            batch_size=1,
            batch_format="pyarrow",
            zero_copy_batch=True,
            concurrency=min(workers or most, most, len(rows)),
            num_cpus=cores,
            num_gpus=1 if graphic else None,
            max_calls=0,  # keep processes of GPU tasks, and their model, alive
        )
        try:
            for row in done.iter_rows():
                found = Done(**row)
                if found.problem:
                    raise SelfsentError(found.problem)
                advance(found)
        except ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            if absent := next((line for line in reversed(lines) if "No module named" in line), None):
                what = absent.rpartition("ModuleNotFoundError: ")[2]
                raise SelfsentError(
                    f"a machine of the cluster lacks a package ({what}): install the same on all"
                ) from error
            if isinstance(error, ray.exceptions.RayTaskError):  # a bug in selfsent
                raise
            raise SelfsentError(
                f"a worker was lost again and again ({lines[0][:200]}): has a machine too little memory? The same"
                " command goes on with what is missing"
            ) from error


@dataclasses.dataclass(frozen=True)
class _Work:
    """Encodes the shards of a batch on a worker."""

    job: Job

    def __call__(self, batch: Any) -> Any:
        import pyarrow as pa

        done = [dataclasses.asdict(encode_shard(self.job, Shard(**shard))) for shard in batch.to_pylist()]
        return pa.Table.from_pylist(done)


@contextmanager
def _cluster(workers: int | None, cores: int) -> Iterator[Any]:
    """Ray, connected; a cluster started here is shut down on exit."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
        import ray.exceptions
    except ImportError as error:
        raise SettingsError(f"Ray is not installed ({error.name}): pip install 'selfsent[ray]'") from None
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
    # Results are a few numbers. Ray would reserve 128 MB per block, and wait for memory.
    context.enable_progress_bars, context.target_max_block_size = False, 1 << 20
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        context.enable_progress_bars, context.target_max_block_size = before
        if mine:
            ray.shutdown()
