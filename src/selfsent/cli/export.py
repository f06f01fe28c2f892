"""`selfsent export`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from selfsent.cli.console import doing, notice
from selfsent.cli.options import MODEL, Command
from selfsent.settings import setting


@dataclass(kw_only=True)
class Export(Command):
    """Write a model as a graph for ONNX Runtime or any other that reads ONNX.

    The graph leads from token ids to sentence vectors, pooling included; its tokenizer lies beside it. Nothing is
    written if the graph's vectors differ from torch's.
    """

    model: str = MODEL
    int8: bool = setting(False, "8-bit weights: a quarter of the size, but not the same vectors")
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
            made = export(model, output, self.int8, self.normalize)
        notice(
            f"ONNX graph in {output}: {made.size} numbers a sentence, smallest cosine to torch's vectors"
            f" {made.smallest_cosine:.6f}, largest difference {made.largest_difference:.1e}"
        )
