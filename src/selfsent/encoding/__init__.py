"""Many texts on many machines: a callable for engines that share out batches, and whole inputs on Ray Data."""

from selfsent.encoding.batch import BatchEncoder
from selfsent.encoding.job import Job, Part

__all__ = ["BatchEncoder", "Job", "Part"]
