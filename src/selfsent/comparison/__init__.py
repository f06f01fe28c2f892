"""Label-free comparison of methods on a text."""

from selfsent.comparison.page import PAGE as PAGE
from selfsent.comparison.run import Comparison as Comparison, compare as compare
from selfsent.comparison.selection import Candidate as Candidate, Selection as Selection
from selfsent.comparison.trials import CANDIDATES as CANDIDATES
