"""Bulk encoding: a callable for engines that distribute batches, and whole inputs on Ray Data."""

from selfsent.encoding.batch import BatchEncoder
from selfsent.encoding.job import Job, Shard

__all__ = ["BatchEncoder", "Job", "Shard"]
