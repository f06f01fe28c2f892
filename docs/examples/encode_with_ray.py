"""Vectors for a folder of parquet files, as a step of your own pipeline on Ray Data.

python docs/examples/encode_with_ray.py bundled tickets.parquet vectors
"""

import sys

import ray

from selfsent.encoding import BatchEncoder


def main(model: str, source: str, output: str) -> None:
    """Add a column `embedding` to the rows of `source`, and write them below `output`."""
    encode = BatchEncoder(model, threads=1)
    rows = ray.data.read_parquet(source)
    # max_calls=0: a process keeps the model from batch to batch, with a GPU, too.
    rows = rows.map_batches(encode, batch_format="pyarrow", batch_size=4096, num_cpus=1, max_calls=0)
    rows.write_parquet(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
