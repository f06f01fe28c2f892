"""`selfsent export`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import ClassVar, Literal

from selfsent.cli.console import doing, notice
from selfsent.cli.options import MODEL, Command
from selfsent.settings import setting


@dataclass(kw_only=True)
class Export(Command):
    """Write a model as a graph."""

    about: ClassVar = "write a model as a graph for ONNX Runtime or OpenVINO"
    description: ClassVar = (
        "Write a model as a graph from token ids to sentence vectors, pooling included, with its tokenizer."
        " Nothing is written if the graph's vectors differ from torch's."
    )

    model: str = MODEL
    to: Literal["onnx", "openvino"] = setting("onnx", "what will run the graph; each needs its extra")
    int8: bool = setting(False, "8-bit weights: a quarter of the size, but not the same vectors")
    normalize: bool = setting(False, "give the vectors length 1, even if the model does not")
    output: str = setting(MISSING, "directory to write", metavar="DIR")
    overwrite: bool = setting(False, "replace the export that is there")

    def run(self) -> None:
        """Export the model."""
        from selfsent.models.export import check_directory, export, require

        output = Path(self.output)
        require(self.to)
        check_directory(output, self.overwrite)
        from selfsent.models.loading import load_encoder

        model = load_encoder(self.model)
        with doing() as say:
            say(f"making a graph for {self.to}")
            made = export(model, output, self.to, self.int8, self.normalize)
        notice(
            f"{made.runtime} graph in {output}: {made.size} numbers a sentence, smallest cosine to torch's vectors"
            f" {made.smallest_cosine:.6f}, largest difference {made.largest_difference:.1e}"
        )
