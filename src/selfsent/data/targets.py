"""What a model predicts at a position."""

IGNORED = -1
"""Target of a position without prediction."""
