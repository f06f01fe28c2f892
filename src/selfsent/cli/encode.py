"""`selfsent encode`, on this machine or, with `--engine ray`, on many; and `selfsent export`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from selfsent.cli.console import counting, doing, notice
from selfsent.cli.options import CORPUS, MODEL, Carrying, Command, Encoding
from selfsent.cli.outputs import check_outputs
from selfsent.display import counted
from selfsent.errors import OutputError, SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.encoding.job import Done


@dataclass(kw_only=True)
class Encode(Carrying, Encoding):
    """Write the vectors of a corpus to a file.

    There is one vector for each row of the input, in its order, also for repeated and empty texts (zeros for empty
    ones). Killed or interrupted, the same command goes on. With --engine ray, on many cores, GPUs or
    machines, into a folder of .parquet files.
    """

    model: str = MODEL
    corpus: tuple[str, ...] = CORPUS
    output: str = setting(
        MISSING,
        ".npy; or .parquet, with row numbers, ids and texts next to the vectors; with --engine"
        " ray a folder, here or elsewhere (s3://bucket/vectors)",
    )
    prompt: Literal["query", "document"] | None = setting(
        None, "put the model's prompt for queries, or for texts to be searched, before each text (default: its own)"
    )
    engine: Literal["ray"] | None = setting(None, "share the work with Ray Data: the cluster of $RAY_ADDRESS, or here")
    workers: int | None = setting(None, "processes with --engine ray (default: one a GPU, or a core)", minimum=1)
    cores: int | None = setting(None, "cores for each of them (default: 1)", minimum=1)

    def run(self) -> None:
        """Encode the corpus."""
        from selfsent.data.corpus.remote import is_address
        from selfsent.search import check_output, encode_to_file

        if self.engine:
            self._check_bulk()
            self._encode_in_bulk()
            return
        if self.workers is not None or self.cores is not None:
            raise SettingsError("--workers and --cores go with --engine ray")
        if is_address(self.output):
            raise SettingsError(f"--output {self.output} is remote: add --engine ray, or name a local file")
        output = Path(self.output)
        check_outputs({"--output": self.output}, [*self.corpus, *self.exclude])
        check_output(output)
        if output.suffix != ".parquet" and self.carried():
            raise SettingsError(
                f"{output} has room for vectors alone, in the order of the input's rows: give a .parquet file, or leave"
                " out --id-column and --keep"
            )
        corpus = self.read(self.corpus, min_rows=1)
        model = self.load(self.model, corpus)
        with counting("encoding", len(corpus.input_rows)) as done:
            made = encode_to_file(model, corpus, output, done, self.prompt)
        if made.kept:
            notice(f"{made.kept:,} of them had been made before an earlier run stopped")
        unit = corpus.input_rows.unit
        each = "for the one row" if made.rows == 1 else f"one for each {unit}{' of the input' * (unit == 'row')}"
        order = "" if made.rows == 1 else ", in its order"
        notice(f"{counted(made.rows, 'vector')} of {made.size} numbers in {output}, {each}{order}")
        if made.zeros:
            why = "empty, or left out with --without" if corpus.report.excluded else "empty"
            what = "is all zeros: its text is" if made.zeros == 1 else "are all zeros: their texts are"
            notice(f"{made.zeros:,} of them {what} {why}")
        if corpus.input_rows.split and output.suffix == ".npy":
            notice(f"{output} does not say which row a sentence is of: .parquet files do")

    def _check_bulk(self) -> None:
        """Reject conflicting options.

        Raises:
            SettingsError: a conflict.
            OutputError: `--output` names a file.
        """
        from selfsent.data.corpus.remote import path_of

        for flag, value in {"--without": self.exclude, "--document-column": self.document_column}.items():
            if value:
                raise SettingsError(f"{flag} does not go with --engine ray, whose workers see a part of the input each")
        if not isinstance(self.texts, str):
            raise SettingsError("--engine ray reads one text column: join them beforehand, and give --text-column once")
        if "file" in self.carried():
            raise SettingsError("--id-column or --keep: results have a column 'file' of their own; rename yours")
        if Path(self.output).suffix in (".npy", ".npz", ".parquet"):
            raise OutputError(f"--output {self.output} is to be a folder with --engine ray: leave out its ending")
        output = path_of(self.output).resolve()
        for name in self.corpus:
            path = path_of(name)
            if path.is_dir() and path.resolve() in (output, *output.parents):
                raise SettingsError(f"--output is in {name}, which is read: name a folder outside of it")
        for name in (*self.corpus, self.output):
            if name.startswith("memory://"):
                raise SettingsError(f"{name} is in the memory of one process, where Ray's workers do not see it")

    def _encode_in_bulk(self) -> None:
        """Encode local or remote files into a folder of parquet files."""
        from selfsent.encoding import BatchEncoder
        from selfsent.encoding.job import make_job, missing
        from selfsent.encoding.on_ray import encode_on_ray

        encoder = BatchEncoder(
            self.model, str(self.texts), fast=self.fast, int8=self.int8, clean=self.clean or None, prompt=self.prompt
        )
        split = bool(self.split_sentences)
        job, parts = make_job(encoder, list(self.corpus), self.output, carry=self.carried(), split=split)
        left, all_parts = missing(job, parts), counted(len(parts), "part")
        if len(left) < len(parts):
            notice(f"{len(parts) - len(left):,} of {all_parts} had been made before an earlier run stopped")
        rows = zeros = 0
        if left:
            with counting("encoding", len(left)) as encoded:

                def advance(done: Done) -> None:
                    nonlocal rows, zeros
                    rows, zeros = rows + done.rows, zeros + done.zeros
                    encoded(1)

                try:
                    encode_on_ray(job, left, self.workers, self.cores or 1, advance)
                except KeyboardInterrupt:
                    done = len(parts) - len(missing(job, parts))
                    raise KeyboardInterrupt(
                        f"interrupted: {done:,} of {all_parts} are done, the same command goes on from there"
                    ) from None
            empty = f" ({zeros:,} of empty texts)" if zeros else ""
            notice(f"{counted(rows, 'vector')} in {counted(len(left), 'part')}{empty}")
        job.output.sweep()
        notice(f"all of {all_parts} in {job.output}")


@dataclass(kw_only=True)
class Export(Command):
    """Write a model as a graph for ONNX Runtime or any other that reads ONNX.

    The graph leads from token ids to sentence vectors, pooling included; its tokenizer is in the same directory.
    Nothing is written if the graph's vectors differ from torch's.
    """

    model: str = MODEL
    normalize: bool = setting(False, "give the vectors length 1, even if the model does not")
    output: str = setting(MISSING, "directory to write")
    overwrite: bool = setting(False, "replace the export that is there")

    def run(self) -> None:
        """Export the model."""
        from selfsent.models.export import check_export, export
        from selfsent.models.loading import load_encoder

        output = Path(self.output)
        check_export(output, self.overwrite)
        model = load_encoder(self.model)
        with doing() as say:
            say("making a graph")
            made = export(model, output, self.normalize)
        notice(
            f"ONNX graph in {output}: {made.size} numbers a sentence, smallest cosine to torch's vectors"
            f" {made.smallest_cosine:.6f}, largest difference {made.largest_difference:.1e}"
        )
