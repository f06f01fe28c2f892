"""An exam on a user's own texts: drawn, taken by models, and used for decisions (adapters, warranty, queries)."""
