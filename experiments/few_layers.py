"""experiments/grid.py, with all but the last layers of the base held as they are.

    python experiments/few_layers.py 2 experiments/few_layers_dev.yaml --text TEXT --base minilm=DIR --output OUT.json

The first argument says how many layers learn; embeddings and pooling never do.
"""

from __future__ import annotations

import sys
from typing import Any

from grid import main

from selfsent.methods.neighbours import RankingLearner
from selfsent.models.encoder import Encoder


def hold(learn: int) -> None:
    """Let every learner that ranks train so many layers alone."""
    usual = RankingLearner.__init__

    def begun(self: RankingLearner, model: Encoder, options: Any) -> None:
        usual(self, model, options)
        layers = next(part for name, part in model.transformer.named_modules() if name.endswith("encoder.layer"))
        model.transformer.requires_grad_(False)
        layers[-learn:].requires_grad_(True)

    RankingLearner.__init__ = begun  # type: ignore[method-assign]


if __name__ == "__main__":
    hold(int(sys.argv.pop(1)))
    main()
