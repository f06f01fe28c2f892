"""Parametrisations of which a few are for every run."""

import pytest


def some(values, soon):
    """Parameters of a test; all that are not in `soon` are for `make contract`."""
    return [pytest.param(value, marks=() if value in soon else pytest.mark.full) for value in values]
