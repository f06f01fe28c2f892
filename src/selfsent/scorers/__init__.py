"""Scorers: any model, word vectors, BM25, a hybrid or a reranker behind one interface (`load_scorer`)."""
