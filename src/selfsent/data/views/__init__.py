"""A second look at a sentence: noise (ids to ids, in every batch), and other sentences of its document."""
