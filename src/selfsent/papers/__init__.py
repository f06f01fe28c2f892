"""Reproduction of the papers: tables, analyses, and comparisons with our numbers."""
