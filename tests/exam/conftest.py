from stand_ins import corpus_of, documents_of, minilm, mirror, model, no_hub, write  # noqa: F401
