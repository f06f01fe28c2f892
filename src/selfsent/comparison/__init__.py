"""Which method makes the best encoder of a text, found out without labels."""

from selfsent.comparison.result import Candidate, Selection
from selfsent.comparison.run import PAGE, compare
from selfsent.comparison.turns import CANDIDATES

__all__ = ["CANDIDATES", "PAGE", "Candidate", "Selection", "compare"]
