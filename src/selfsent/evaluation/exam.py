"""Deprecated name of `selfsent.exam.draw`, and of the exams and texts beside it."""

from __future__ import annotations

from selfsent.renamed import moved_module

__getattr__ = moved_module(__name__, "selfsent.exam.draw", "selfsent.exam.texts", "selfsent.exam.exam")
