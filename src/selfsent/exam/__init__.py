"""An exam on a user's own texts: drawn, taken by models, and what is decided by it (adapters, warranty, queries)."""
