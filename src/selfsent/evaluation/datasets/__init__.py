"""Data sets: declarations, sources, and published properties."""
