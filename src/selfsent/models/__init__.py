"""What turns text into vectors: a base, the head on it, how it is loaded, run and exported."""
