"""Label-free comparison of methods on a text."""

from selfsent.comparison.page import PAGE
from selfsent.comparison.run import Comparison, compare
from selfsent.comparison.selection import Candidate, Selection
from selfsent.comparison.trials import CANDIDATES

__all__ = ["CANDIDATES", "PAGE", "Candidate", "Comparison", "Selection", "compare"]
