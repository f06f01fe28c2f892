from seventy import corpus, encoder, sentences  # noqa: F401
