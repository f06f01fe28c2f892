"""`selfsent encode` and `selfsent export`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Literal

from selfsent.cli.console import doing, notice, shown
from selfsent.cli.options import CORPUS, MODEL, Command, Sized, WithMetadata
from selfsent.cli.outputs import check_outputs
from selfsent.display import counted
from selfsent.errors import SettingsError
from selfsent.settings import setting


@dataclass(kw_only=True)
class Encode(WithMetadata, Sized):
    """Write the vectors of a corpus to a file.

    There is one vector for each row of the input, in its order, also for repeated and empty texts (zeros for empty
    ones). Killed or interrupted, the same command goes on.
    """

    model: str = MODEL
    corpus: tuple[str, ...] = CORPUS
    output: str = setting(MISSING, ".npy; or .parquet, with row numbers, ids and texts next to the vectors")
    prompt: Literal["query", "document"] | None = setting(
        None, "put the model's prompt for queries, or for texts to be searched, before each text (default: its own)"
    )
    normalize: bool = setting(False, "scale each vector to length 1, so that inner products are cosines")

    def run(self) -> None:
        """Encode the corpus."""
        from selfsent.data.corpus.remote import is_address
        from selfsent.search.vectors import check_output, encode_to_file

        if is_address(self.output):
            raise SettingsError(f"--output {self.output} is remote: name a local file")
        output = Path(self.output)
        check_outputs({"--output": self.output}, [*self.corpus, *self.exclude])
        check_output(output)
        if output.suffix != ".parquet" and self.metadata_columns():
            problem = f"{output} has room for vectors alone, in the order of the input's rows"
            advice = "give a .parquet file, or leave out --id-column and --keep"
            raise SettingsError(f"{problem}: {advice}")
        corpus = self.read(self.corpus, min_rows=1)
        model = self.load(self.model, corpus)
        with shown("encoding") as progress:
            made = encode_to_file(model, corpus, output, progress, self.prompt, self.normalize)
        if made.kept:
            notice(f"{counted(made.kept, 'text')} had been encoded before an earlier run stopped")
        unit = corpus.input_rows.unit
        each = "for the one row" if made.rows == 1 else f"one for each {unit}{' of the input' * (unit == 'row')}"
        order = "" if made.rows == 1 else ", in its order"
        notice(f"{counted(made.rows, 'vector')} of {made.size} numbers in {output}, {each}{order}")
        if not made.normalized:
            notice("vectors are not of length 1: compare them by the cosine, or give --normalize for inner products")
        if made.zeros:
            why = "empty, or left out with --without" if corpus.report.excluded else "empty"
            what = "is all zeros: its text is" if made.zeros == 1 else "are all zeros: their texts are"
            notice(f"{made.zeros:,} of them {what} {why}")
        if corpus.input_rows.split and output.suffix == ".npy":
            notice(f"{output} does not say which row a sentence is of: .parquet files do")


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
