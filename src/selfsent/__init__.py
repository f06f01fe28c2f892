"""selfsent: unlabelled sentences in, a sentence-embedding model out, and proof of whether it helped."""

from selfsent.version import __version__

__all__ = ["__version__"]
