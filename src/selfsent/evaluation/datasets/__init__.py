"""Data sets: their declarations, where they come from, and what was published of them."""
