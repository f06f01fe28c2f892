"""Reproduction of four papers with selfsent: methods, a recipe for every table, and our scores beside the published."""

from pathlib import Path

__version__ = "0.1.0"

RECIPES = Path(__file__).parent / "tables"
"""The folder of the recipes, one or more for every table of the papers."""
