"""Which method makes the best encoder of a text, found out without labels."""

from selfsent.comparison.candidate import Candidate
from selfsent.comparison.ending import PAGE
from selfsent.comparison.result import Selection
from selfsent.comparison.run import compare
from selfsent.comparison.turns import CANDIDATES

__all__ = ["CANDIDATES", "PAGE", "Candidate", "Selection", "compare"]
