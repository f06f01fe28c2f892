from itertools import count

import pytest

import tiny


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """100 sentences without documents."""
    from selfsent.data.corpus import read_corpus

    return read_corpus(tiny.make_sentences(100), cache=tmp_path_factory.mktemp("corpora"))


@pytest.fixture
def make_loop(corpus, base_of, tmp_path):
    """Training loops over the 100 sentences that start alike, without dropout unless a rate is given."""
    import numpy as np
    import torch

    from selfsent.data.batches import Batches
    from selfsent.data.token_table import build_table
    from selfsent.data.views.tokens import Template
    from selfsent.methods import METHODS
    from selfsent.models.loading import load_encoder
    from selfsent.settings import Settings
    from selfsent.training.loop import APART, Loop
    from selfsent.training.run_config import RunConfig
    from selfsent.training.run_directory import RunDirectory

    numbers = count()

    def make(method="mlm", dropout=0.0, run_config=None, progress=None, apart=APART, **settings):
        base = base_of("bert", initializer_range=0.5)  # Made at its first use, with numbers of its own.
        torch.manual_seed(0)
        usual = {"batch_size": 8, "steps": 3, "learning_rate": 1e-3, "max_length": 32, "precision": "float32"}
        chosen = Settings(**{**usual, **settings})
        encoder = load_encoder(base, "mean", dropout)
        options = METHODS[method].options()
        table = build_table(corpus, encoder.tokenizer, "text")
        template = Template.of(encoder.tokenizer, encoder.transformer.config.vocab_size)
        batches = Batches([table], np.arange(len(corpus)), options.views(), template, chosen)
        directory = RunDirectory(tmp_path / f"run-{next(numbers)}")
        directory.check(False, False)
        directory.match({})
        directory.begin()
        learner = METHODS[method].learner(encoder, options)
        return Loop(learner, batches, chosen, directory, run_config or RunConfig(), progress, apart=apart)

    return make
