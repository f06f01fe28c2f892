"""Prediction targets of positions."""

IGNORED = -1
"""Target of a position without prediction."""
