"""An index in a database: rows, vectors and words are carried there, and asked for as `search` asks."""
