"""Data sets of the Hugging Face hub, from a local mirror first, then streamed from the hub."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from selfsent.data.corpus.batch import BATCH_ROWS, Batch, Columns, check_header, make_batch
from selfsent.data.corpus.failure import fail
from selfsent.data.corpus.remote import require_hub
from selfsent.errors import first_line, install

_IDENTIFIER = re.compile(r"[\w][\w.-]*/[\w][\w.-]*(:[\w.-]*){0,2}")


class HubDataset(NamedTuple):
    """A data set of the hub, written `org/name`, `org/name:config`, `org/name:config:split` or `org/name::split`."""

    name: str
    config: str | None
    split: str

    @classmethod
    def parse(cls, text: str) -> HubDataset | None:
        """The data set that a text names, with `train` as the default split; None if it names none."""
        if not _IDENTIFIER.fullmatch(text):
            return None
        name, config, split = (*text.split(":"), "", "")[:3]
        return cls(name, config or None, split or "train")

    def mirrored(self, root: str | Path | None = None) -> Path | None:
        """The data set's parquet file in a mirror, if there is one.

        Args:
            root: the folder of the mirror; by default `$SELFSENT_DATA`.

        Raises:
            CorpusError: the mirror has the data set but not this split.
        """
        root = root or os.environ.get("SELFSENT_DATA")
        if not root:
            return None
        folder = Path(root) / self.name / (self.config or "")
        path = folder / f"{self.split}.parquet"
        if path.is_file():
            return path
        splits = sorted(file.stem for file in folder.glob("*.parquet"))
        configs = sorted(child.name for child in folder.glob("*") if child.is_dir())
        if splits:
            fail(self.name, f"the mirror has no split {self.split!r}, only {', '.join(splits)}: write org/name::split")
        if configs and self.config is None:
            fail(self.name, f"the mirror has it in parts {', '.join(configs[:20])}: write org/name:part:split")
        return None

    def read(self, columns: Columns) -> Iterator[Batch]:
        """The data set's rows, streamed from the hub.

        Raises:
            CorpusError: `datasets` is not installed, or the hub cannot be reached or does not have it.
        """
        require_hub(self.name)
        try:
            import datasets
        except ImportError:
            fail(self.name, f"no such file, and reading it as a hub data set needs datasets: {install('hub')}")
        start = 1
        try:
            rows = datasets.load_dataset(self.name, self.config, split=self.split, streaming=True)
            yield Batch([[] for _ in columns.kept], files=1)
            for values in rows.iter(batch_size=BATCH_ROWS):
                check_header(list(values), self.name, columns)
                numbers = range(start, start + len(values[columns.texts[0]]))
                yield make_batch(values, self.name, columns, numbers)
                start = numbers.stop
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            fail(self.name, f"no such file, and not available as a hub data set: {first_line(error)}")
