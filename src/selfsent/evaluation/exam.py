"""Deprecated name of `selfsent.exam.draw`."""

from __future__ import annotations

from selfsent.renamed import moved_module

__getattr__ = moved_module(__name__, "selfsent.exam.draw")
