"""The modules between or above transformer and sentence vector."""
