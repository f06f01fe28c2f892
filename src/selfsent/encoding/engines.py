"""Thin adapters: a stage or a column over folders of Parquet, in Spark, Ray, Dask, Daft, or one plain process.

Each function gives an engine, which is called with folders of Parquet, a stage or a `BatchColumn`, and a new folder.
The packages are imported when an engine is made.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset

from selfsent.encoding.batches import BatchColumn
from selfsent.encoding.stages import Run, batches_of, check_new, place_of, rows_of
from selfsent.errors import CorpusError, SettingsError

TOGETHER = 4096
"""Rows of a batch."""
_HELD = 1 << 20
"""Rows that wait for others of their part."""


def local() -> Run:
    """One plain process: to try things out, and the measure of the other engines."""

    def run(sources: Sequence[str], step: Any, output: str, by: str | None) -> None:
        given, numbers = rows_of(*sources).schema, count()
        schema = step.schema(given)
        system, folder = place_of(output)
        system.create_dir(folder, recursive=True)

        def write(tables: Iterator[pa.Table]) -> None:
            with pq.ParquetWriter(f"{folder}/{next(numbers):05}.parquet", schema, filesystem=system) as writer:
                for table in tables:
                    writer.write_table(step(table))

        if by is None:
            write(pa.Table.from_batches([batch]) for batch in batches_of(sources, TOGETHER))
            return
        with tempfile.TemporaryDirectory(prefix="selfsent-") as parts:
            least = max(1 << 10, _HELD // step.parts)  # else a group for each batch
            how = {"schema": given, "min_rows_per_group": least, "max_partitions": 1 << 16}
            rows = batches_of(sources, TOGETHER)
            dataset.write_dataset(rows, parts, format="parquet", partitioning=[by], **how)
            together = (dataset.dataset(each).to_table() for each in sorted(Path(parts).iterdir()))
            write(together)

    return _checked(run)


def spark(session: Any = None) -> Run:
    """Spark 4, in a session that is there, or in a new one."""
    sql = _package("pyspark.sql", "pyspark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers here start another Python
    session = session or sql.SparkSession.builder.getOrCreate()

    def run(sources: Sequence[str], step: Any, output: str, by: str | None) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = _with_lists(step.schema(rows_of(*sources).schema))
        rows = session.read.parquet(*sources)

        def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from step(pa.Table.from_batches([batch])).cast(schema).to_batches()

        def together(table: pa.Table) -> pa.Table:
            return step(table).cast(schema)

        made = from_arrow_schema(schema)
        found = rows.mapInArrow(each, made) if by is None else rows.groupBy(by).applyInArrow(together, made)
        found.write.parquet(output)

    return _checked(run)


def ray() -> Run:
    """Ray Data, on the cluster that `ray.init` joined, or on this machine."""
    data = _package("ray.data", "ray[data]")

    def run(sources: Sequence[str], step: Any, output: str, by: str | None) -> None:
        rows = data.read_parquet(list(sources))

        def together(table: pa.Table) -> pa.Table:  # Ray asks for a name
            return step(table)

        if by is not None:
            most = data.DataContext.get_current().default_hash_shuffle_parallelism
            rows = rows.groupby(by, min(step.parts, most)).map_groups(together, batch_format="pyarrow")
        else:
            # max_calls=0: a process keeps the model from batch to batch, with a GPU, too.
            how = {"batch_format": "pyarrow", "batch_size": TOGETHER, "num_cpus": 1, "max_calls": 0}
            rows = rows.map_batches(step, **how)
        rows.write_parquet(output)

    return _checked(run)


def dask() -> Run:
    """Dask, by the scheduler or client that is set."""
    frames, config = _package("dask.dataframe", "dask[dataframe]"), _package("dask.config", "dask[dataframe]")

    def run(sources: Sequence[str], step: Any, output: str, by: str | None) -> None:
        schema = step.schema(rows_of(*sources).schema)

        def each(frame: Any) -> Any:
            return step(pa.Table.from_pandas(frame, preserve_index=False)).to_pandas()

        with config.set({"dataframe.convert-string": False}):
            rows = frames.concat([frames.read_parquet(each) for each in sources])
            rows = rows if by is None else rows.shuffle(by)
            rows.map_partitions(each, meta=schema.empty_table().to_pandas()).to_parquet(
                output, schema=schema, write_index=False
            )

    return _checked(run)


def daft() -> Run:
    """Daft, by its runner that is set."""
    package = _package("daft", "daft")

    def run(sources: Sequence[str], step: Any, output: str, by: str | None) -> None:
        schema = step.schema(rows_of(*sources).schema)
        rows = package.read_parquet(list(sources))
        names = rows.column_names
        kind = package.DataType.from_arrow_type(pa.list_(pa.struct(schema)))

        @package.func.batch(return_dtype=kind)  # type: ignore[untyped-decorator]  # Daft's
        def packed(*columns: Any) -> Any:
            """All rows that a batch gives, in the list of its first one."""
            table = step(pa.table({name: each.to_arrow() for name, each in zip(names, columns, strict=True)}))
            size = len(columns[0]) if by is None else 1
            ends = pa.array([0, *[table.num_rows] * size], pa.int32())
            flat = table.cast(schema).combine_chunks().to_struct_array()
            flat = flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
            return package.Series.from_arrow(pa.ListArray.from_arrays(ends, flat))

        given = [package.col(name) for name in names]
        made = (
            rows.groupby(by).map_groups(packed(*given).alias("made"))
            if by
            else rows.select(packed(*given).alias("made"))
        )
        made = made.explode("made", ignore_empty_and_null=True)
        made.select(*(package.col("made").get(name).alias(name) for name in schema.names)).write_parquet(output)

    return _checked(run)


def spark_udf(step: BatchColumn) -> Any:
    """A `pandas_udf` of Spark, called with the columns that the step reads.

    Examples:
        >>> from selfsent.encoding import BatchEncoder, spark_udf
        >>> rows.withColumn("embedding", spark_udf(BatchEncoder("bundled"))("text"))  # doctest: +SKIP
    """
    functions = _package("pyspark.sql.functions", "pyspark")
    import pandas as pd
    from pyspark.sql.pandas.types import from_arrow_type

    kind = from_arrow_type(_with_lists(pa.schema([("", step.type)])).field(0).type)
    is_struct = pa.types.is_struct(step.type)

    def values(*columns: Any) -> Any:
        made = step.array(*columns)
        return pd.DataFrame(made.to_pylist()) if is_struct else made.to_pandas()

    values.__annotations__ = {"columns": pd.Series, "return": pd.DataFrame if is_struct else pd.Series}
    return functions.pandas_udf(values, kind)


def daft_udf(step: BatchColumn) -> Callable[..., Any]:
    """A function from the columns that the step reads to an expression of Daft.

    Examples:
        >>> from selfsent.encoding import BatchEncoder, daft_udf
        >>> rows.with_column("embedding", daft_udf(BatchEncoder("bundled"))(daft.col("text")))  # doctest: +SKIP
    """
    package = _package("daft", "daft")

    @package.func.batch(return_dtype=package.DataType.from_arrow_type(step.type))  # type: ignore[untyped-decorator]
    def values(*columns: Any) -> Any:
        return package.Series.from_arrow(step.array(*(each.to_arrow() for each in columns)))

    found: Callable[..., Any] = values
    return found


def _package(module: str, name: str) -> Any:
    """A module of an engine.

    Raises:
        SettingsError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise SettingsError(f"{error.name or module} is not installed: python -m pip install '{name}'") from None


def _checked(run: Callable[[Sequence[str], Any, str, str | None], None]) -> Run:
    """An engine that checks its arguments before it starts anything."""

    def checked(sources: Sequence[str] | str, step: Any, output: str, by: str | None = None) -> None:
        listed = [sources] if isinstance(sources, str) else list(sources)
        check_new(output)
        names = rows_of(*listed).schema.names
        if missing := [name for name in step.inputs if name not in names]:
            raise CorpusError(f"{listed[0]} has no column {missing[0]!r}; it has {', '.join(map(repr, names))}")
        if isinstance(step, BatchColumn) and step.output in names:
            raise SettingsError(f"{listed[0]} has a column {step.output!r} already: name the new one otherwise")
        run(listed, step, output, by)

    return checked


def _with_lists(schema: pa.Schema) -> pa.Schema:
    """A schema with lists of any size, as Spark has them."""
    fixed = pa.types.is_fixed_size_list
    return pa.schema(
        [(each.name, pa.list_(each.type.value_type) if fixed(each.type) else each.type) for each in schema]
    )
