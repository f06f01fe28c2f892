"""Which method makes the best encoder of a text, found out without labels."""

from selfsent.selection.result import Candidate, Selection
from selfsent.selection.run import PAGE, UNSUPERVISED, compare

__all__ = ["PAGE", "UNSUPERVISED", "Candidate", "Selection", "compare"]
