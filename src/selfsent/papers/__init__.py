"""Reproduction of the papers: tables, and comparisons with our numbers."""
