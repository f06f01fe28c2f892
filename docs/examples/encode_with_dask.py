"""Vectors for a folder of parquet files, with Dask.

python docs/examples/encode_with_dask.py bundled tickets.parquet vectors
"""

import sys

import dask.dataframe as dd

from selfsent.encoding import BatchEncoder


def main(model: str, source: str, output: str) -> None:
    """Add a column `embedding` to the rows of `source`, and write them below `output`."""
    encode = BatchEncoder(model)
    rows = dd.read_parquet(source)
    rows = rows.map_partitions(encode, meta={**rows.dtypes, "embedding": object})
    rows.to_parquet(output, schema=None, write_index=False)  # the schema is that of what comes


if __name__ == "__main__":
    main(*sys.argv[1:])
