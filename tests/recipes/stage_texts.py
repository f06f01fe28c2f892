"""Recipes, without their base and corpus."""

STAGES = """\
base: {base}
all: {{batch_size: 8, max_length: 32, checkpoint_every: 1}}
stages:
  words: {{corpus: {corpus}, method: mlm, steps: 2, pooling: max}}
  pairs: {{corpus: {corpus}, method: simcse, steps: 3, head: ngram-cnn, filters: 4, whiten: 0.5}}
  white: {{corpus: {corpus}, method: whitening, ridge: 0.1}}
evaluate: ukp-aspect
"""
FOLDED = """\
base: {base}
all: {{batch_size: 8, max_length: 32}}
cross_validate: {{data: ukp-aspect, by: cross-topic}}
stages:
  words: {{corpus: {corpus}, method: mlm, steps: 1}}
  scores: {{corpus: fold, method: cosine, steps: 1}}
"""
