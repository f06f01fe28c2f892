"""Text on its way in: corpora, views, tokens and batches."""
