"""Fixtures of the command line, as for the tests of selfsent itself."""

from cli.conftest import cache as cache, selfsent as selfsent
