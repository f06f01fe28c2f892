"""Vectors, words, groups and near-copies of tables larger than a machine, in Spark, Ray, Dask and Daft."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selfsent.lazily import imported_from

if TYPE_CHECKING:
    from selfsent.encoding.bands import BatchBands as BatchBands
    from selfsent.encoding.copies import deduplicate as deduplicate
    from selfsent.encoding.encoder import BatchEncoder as BatchEncoder
    from selfsent.encoding.engines import (
        daft as daft,
        daft_udf as daft_udf,
        dask as dask,
        local as local,
        ray as ray,
        spark as spark,
        spark_udf as spark_udf,
    )
    from selfsent.encoding.groups import BatchGroups as BatchGroups
    from selfsent.encoding.words import (
        BatchStems as BatchStems,
        BatchTerms as BatchTerms,
        TermCounts as TermCounts,
        count_terms as count_terms,
    )

_HOMES = {
    "bands": ("BatchBands",),
    "copies": ("deduplicate",),
    "encoder": ("BatchEncoder",),
    "engines": ("dask", "daft", "daft_udf", "local", "ray", "spark", "spark_udf"),
    "groups": ("BatchGroups",),
    "words": ("BatchStems", "BatchTerms", "TermCounts", "count_terms"),
}

__getattr__ = imported_from(__name__, _HOMES)
